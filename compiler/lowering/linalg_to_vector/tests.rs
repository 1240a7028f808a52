//! Every kernel here is compiled twice, by irc and by upstream's linalg-to-loops, and run.
#![allow(clippy::unwrap_used)]
use super::{DIALECTS, Target, lower_module};
use crate::attributes::{KERNEL, KernelInfo};
use half::{bf16, f16};
use irc_mlir::{Context, Module, OperationLike, Type, parse_module, run_pipeline, walk_collect};
use melior::{
    ExecutionEngine,
    ir::{
        attribute::TypeAttribute,
        r#type::{FunctionType, RankedTensorType, ShapedTypeLike},
    },
};

mod elementwise;
mod math;
mod matmul;
mod rows;

const REFERENCE: &str = "builtin.module(one-shot-bufferize{bufferize-function-boundaries \
    function-boundary-type-conversion=identity-layout-map},\
    buffer-results-to-out-params{modify-public-functions=true},convert-linalg-to-loops,fold-memref-alias-ops)";

/// A tensor in memory.
#[derive(Clone, Debug)]
pub struct Array {
    pub shape: Vec<i64>,
    pub element: String,
    /// Storage with padding to align to a cache line.
    storage: Vec<u8>,
    start: usize,
}

impl Array {
    pub fn new(shape: &[i64], element: &str) -> Self {
        let width = match element {
            "i1" | "i8" => 1,
            "f16" | "bf16" | "i16" => 2,
            "f32" | "i32" => 4,
            _ => 8,
        };
        let storage = vec![0; (shape.iter().product::<i64>() * width + 64) as usize];
        let start = storage.as_ptr().align_offset(64);
        let (shape, element) = (shape.to_vec(), element.to_owned());
        Self { shape, element, storage, start }
    }

    pub fn len(&self) -> usize {
        self.shape.iter().product::<i64>() as usize
    }

    fn bytes<const N: usize>(&self, index: usize) -> [u8; N] {
        self.storage[self.start + index * N..][..N].try_into().unwrap()
    }

    pub fn get(&self, index: usize) -> f64 {
        match self.element.as_str() {
            "f16" => f16::from_ne_bytes(self.bytes(index)).to_f64(),
            "bf16" => bf16::from_ne_bytes(self.bytes(index)).to_f64(),
            "f32" => f32::from_ne_bytes(self.bytes(index)).into(),
            "f64" => f64::from_ne_bytes(self.bytes(index)),
            "i32" => i32::from_ne_bytes(self.bytes(index)).into(),
            "i64" => i64::from_ne_bytes(self.bytes(index)) as f64,
            "i8" => i8::from_ne_bytes(self.bytes(index)).into(),
            "i1" => u8::from_ne_bytes(self.bytes(index)).into(),
            other => panic!("no element type {other}"),
        }
    }

    pub fn set(&mut self, index: usize, value: f64) {
        let bytes = match self.element.as_str() {
            "f16" => f16::from_f64(value).to_ne_bytes().to_vec(),
            "bf16" => bf16::from_f64(value).to_ne_bytes().to_vec(),
            "f32" => (value as f32).to_ne_bytes().to_vec(),
            "f64" => value.to_ne_bytes().to_vec(),
            "i32" => (value as i32).to_ne_bytes().to_vec(),
            "i64" => (value as i64).to_ne_bytes().to_vec(),
            "i8" => (value as i8).to_ne_bytes().to_vec(),
            "i1" => vec![u8::from(value != 0.0)],
            other => panic!("no element type {other}"),
        };
        let at = self.start + index * bytes.len();
        self.storage[at..at + bytes.len()].copy_from_slice(&bytes);
    }

    /// The memref descriptor.
    fn descriptor(&mut self) -> Vec<u64> {
        let pointer = self.storage[self.start..].as_mut_ptr() as u64;
        let mut words = vec![pointer, pointer, 0];
        words.extend(self.shape.iter().map(|size| *size as u64));
        let mut strides = vec![1u64; self.shape.len()];
        for d in (1..strides.len()).rev() {
            strides[d - 1] = strides[d] * self.shape[d] as u64;
        }
        words.extend(strides);
        words
    }

    /// Pseudo-random values: small integers, or floats in `[-2, 2)`.
    fn fill(&mut self, seed: &mut u64) {
        for index in 0..self.len() {
            *seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let unit = (*seed >> 40) as f64 / f64::from(1 << 24);
            let float = self.element.contains('f');
            let whole =
                if self.element == "i1" { (unit * 2.0).floor() } else { (unit * 7.0).floor() };
            self.set(index, if float { unit * 4.0 - 2.0 } else { whole });
        }
    }
}

/// Shapes of arguments and results of the only function.
fn arrays(module: &Module) -> (Vec<Array>, Vec<Array>) {
    let func = walk_collect(operation_of(module), |op| KERNEL.is_on(&op))[0];
    let ty = TypeAttribute::try_from(func.attribute("function_type").unwrap()).unwrap().value();
    let ty = FunctionType::try_from(ty).unwrap();
    let array = |ty: Type| {
        let tensor = RankedTensorType::try_from(ty).unwrap();
        let shape: Vec<i64> = (0..tensor.rank())
            .map(|dim| match tensor.dim_size(dim).unwrap() {
                melior::ir::r#type::DimSize::Static(size) => size as i64,
                melior::ir::r#type::DimSize::Dynamic => panic!("static shapes only"),
            })
            .collect();
        Array::new(&shape, &tensor.element().to_string())
    };
    let inputs = (0..ty.input_count()).map(|i| array(ty.input(i).unwrap())).collect();
    let results = (0..ty.result_count()).map(|i| array(ty.result(i).unwrap())).collect();
    (inputs, results)
}

fn operation_of<'c, 'a>(module: &'a Module<'c>) -> irc_mlir::OperationRef<'c, 'a> {
    module.as_operation()
}

fn text_for(source: &str) -> String {
    assert!(source.contains("attributes {tl.kernel"), "a kernel says so");
    source.replace("{tl.kernel", "{llvm.emit_c_interface, tl.kernel")
}

/// The module after irc's lowering.
pub fn lowered<'c>(context: &'c Context, source: &str, target: &Target) -> Module<'c> {
    let module = parse_module(context, &text_for(source)).unwrap();
    for dialect in DIALECTS {
        context.get_or_load_dialect(dialect);
    }
    lower_module(context, operation_of(&module), target).unwrap();
    assert!(module.as_operation().verify(), "the lowered module verifies");
    module
}

fn info_of(module: &Module) -> KernelInfo {
    let kernels = walk_collect(operation_of(module), |op| KERNEL.is_on(&op));
    KERNEL.read(&kernels[0]).unwrap()
}

fn name_of(module: &Module) -> String {
    let func =
        walk_collect(operation_of(module), |op| op.has_attribute("llvm.emit_c_interface"))[0];
    func.attribute("sym_name").unwrap().to_string().trim_matches('"').to_owned()
}

/// The nearest `bf16` to a number, in the low bits of the register that holds it.
extern "C" fn round_to_bf16(x: f32) -> f32 {
    f32::from_bits(u32::from(half::bf16::from_f32(x).to_bits()))
}

fn invoke(context: &Context, mut module: Module, arrays: &mut [&mut Array]) {
    let name = name_of(&module);
    crate::passes::register_all();
    // The engine calls through descriptors, not bare pointers, and there is no main.
    let passes = crate::pipeline::TO_LLVM
        .replace("{use-bare-ptr-memref-call-conv=true}", "")
        .replace(",emit-entry", "");
    run_pipeline(context, &mut module, &format!("builtin.module({passes})")).unwrap();
    let engine = ExecutionEngine::new(&module, 2, &[], false, false);
    // Safety: LLVM calls it by this name if the processor has no instruction for the conversion.
    unsafe { engine.register_symbol("__truncsfbf2", round_to_bf16 as *mut ()) };
    let mut descriptors: Vec<Vec<u64>> =
        arrays.iter_mut().map(|array| array.descriptor()).collect();
    let mut pointers: Vec<*mut u64> =
        descriptors.iter_mut().map(|words| words.as_mut_ptr()).collect();
    let mut arguments: Vec<*mut ()> =
        pointers.iter_mut().map(|pointer| std::ptr::from_mut(pointer).cast()).collect();
    // Safety: the descriptors describe live arrays of the types the function was compiled for.
    unsafe { engine.invoke_packed(&name, &mut arguments) }.unwrap();
}

/// Runs irc's lowering on the given inputs.
pub fn run(source: &str, inputs: &mut [Array], target: &Target) -> Vec<Array> {
    run_keeping(source, inputs, &mut None, target)
}

/// Like [`run`], with the memory kept by an earlier call, if any; updates it.
pub fn run_keeping(
    source: &str,
    inputs: &mut [Array],
    kept: &mut Option<Array>,
    target: &Target,
) -> Vec<Array> {
    let context = irc_dialects::new_context();
    let (_, mut outputs) = arrays(&parse_module(&context, source).unwrap());
    let module = lowered(&context, source, target);
    let info = info_of(&module);
    let mut workspace = Array::new(&[info.scratch().cast_signed()], "i8");
    let mut all: Vec<&mut Array> = inputs.iter_mut().chain(&mut outputs).collect();
    let is_filled = kept.is_some();
    if let Some(keeps) = info.kept {
        let bytes = keeps.bytes.cast_signed();
        let kept = kept.get_or_insert_with(|| Array::new(&[bytes], "i8"));
        kept.set(0, f64::from(u8::from(is_filled)));
        all.push(kept);
    }
    all.push(&mut workspace);
    invoke(&context, module, &mut all);
    outputs
}

fn run_reference(source: &str, inputs: &mut [Array]) -> Vec<Array> {
    let context = irc_dialects::new_context();
    let mut module = parse_module(&context, &text_for(source)).unwrap();
    let (_, mut outputs) = arrays(&module);
    run_pipeline(&context, &mut module, REFERENCE).unwrap();
    let mut all: Vec<&mut Array> = inputs.iter_mut().chain(&mut outputs).collect();
    invoke(&context, module, &mut all);
    outputs
}

/// Random inputs for a kernel.
pub fn random_inputs(source: &str) -> Vec<Array> {
    let context = irc_dialects::new_context();
    let (mut inputs, _) = arrays(&parse_module(&context, source).unwrap());
    let mut seed = 7;
    inputs.iter_mut().for_each(|input| input.fill(&mut seed));
    inputs
}

/// Compares irc's lowering with upstream's, for every vector width.
pub fn check(source: &str, tolerance: f64) {
    let mut inputs = random_inputs(source);
    let expected = run_reference(source, &mut inputs);
    for vector_bytes in [64, 32, 16] {
        let target = Target { vector_bytes, ..Target::default() };
        let found = run(source, &mut inputs, &target);
        for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
            compare(found, expected, tolerance, &format!("{vector_bytes}-byte result {number}"));
        }
    }
}

fn compare(found: &Array, expected: &Array, tolerance: f64, what: &str) {
    for index in 0..expected.len() {
        let (found, expected) = (found.get(index), expected.get(index));
        let same = (found - expected).abs() <= tolerance * expected.abs().max(1.0)
            || found == expected
            || (found.is_nan() && expected.is_nan());
        assert!(same, "{what}, element {index}: found {found}, expected {expected}");
    }
}

/// The lowered kernel as text.
pub fn lowered_text(source: &str) -> String {
    let context = irc_dialects::new_context();
    lowered(&context, source, &Target::default()).as_operation().to_string()
}
