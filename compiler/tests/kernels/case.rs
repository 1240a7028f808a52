//! Kernels with their operands: compiled together, run, and compared with what they mean.

use irc::codegen::{Output, Target, compile, link_library};
use irc::pipeline::{HOST_CPU, Settings};
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    Block, BlockLike, Context, Location, Module, OpSpec, OperationLike, Type, Value, ValueLike,
    function,
};
use irc_runtime::{Library, Runner};
use irc_tensor::{DType, SmallFloat, Tensor, TensorType};
use irc_tl::{Algorithm, Binary, Combine, Op, Unary};
use std::collections::BTreeMap;

/// What one kernel computes.
#[derive(Clone, Debug)]
pub(super) enum Work {
    Op(Op),
    Algorithm(Algorithm),
}

/// One kernel and its operands.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) work: Work,
    pub(super) operands: Vec<Tensor>,
    /// Units in the last place by which a float may differ.
    pub(super) ulp: f64,
}

pub(super) fn case(op: Op, operands: &[&Tensor]) -> Case {
    Case { work: Work::Op(op), operands: operands.iter().map(|x| (*x).clone()).collect(), ulp: 0.5 }
}

impl Case {
    pub(super) fn within(self, ulp: f64) -> Self {
        Self { ulp, ..self }
    }

    pub(super) fn expected(&self) -> Vec<Tensor> {
        let operands: Vec<_> = self.operands.iter().collect();
        match &self.work {
            Work::Op(op) => vec![op.eval(&operands).unwrap_or_else(|e| panic!("{op:?}: {e}"))],
            Work::Algorithm(algorithm) => algorithm.eval(&operands).unwrap(),
        }
    }
}

/// A program of all cases, each on inputs of its own.
pub(super) fn module<'c>(context: &'c Context, cases: &[Case]) -> Module<'c> {
    let location = Location::unknown(context);
    let module = Module::new(location);
    let operands = || cases.iter().flat_map(|case| &case.operands);
    let inputs: Vec<Type> =
        operands().map(|tensor| tl::tensor_type_to_mlir(context, tensor.ty())).collect();
    let arguments: Vec<_> = inputs.iter().map(|ty| (*ty, location)).collect();
    let block = Block::new(&arguments);
    let (mut returned, mut next) = (vec![], 0);
    for case in cases {
        let operands: Vec<Value> =
            (0..case.operands.len()).map(|i| block.argument(next + i).unwrap().into()).collect();
        next += operands.len();
        let built = match &case.work {
            Work::Op(op) => tl::build(context, op, &operands, location),
            Work::Algorithm(work) => tl::build_algorithm(context, work, &operands, location),
        };
        let built =
            block.append_operation(built.unwrap_or_else(|e| panic!("{:?}: {e}", case.work)));
        returned.extend(built.results().map(Value::from));
    }
    let results: Vec<Type> = returned.iter().map(ValueLike::r#type).collect();
    OpSpec::new(context, func::RETURN, location).operands(&returned).append(&block);
    let main = function(context, "main", &inputs, &results, block, location).build();
    module.body().append_operation(main);
    module
}

/// Compiles all cases and runs them.
pub(super) fn run(cases: &[Case]) -> Vec<Tensor> {
    let context = irc_dialects::new_context();
    let mut module = module(&context, cases);
    let inputs = cases.iter().flat_map(|case| case.operands.clone()).collect();
    run_module(&context, &mut module, inputs)
}

/// Compiles a program and runs it.
pub(super) fn run_module(
    context: &Context,
    module: &mut Module<'_>,
    inputs: Vec<Tensor>,
) -> Vec<Tensor> {
    irc::passes::register_all();
    let target = Target::host();
    let passes = HOST_CPU.text(&Settings::of(&target), Some("tensor"), Some("llvm")).unwrap();
    let capture = irc_mlir::Capture::new(context);
    let lowered = irc_mlir::run_pipeline(context, module, &passes);
    assert!(lowered.is_ok(), "{:?}", capture.take());
    let object = compile(module, &target, Output::Object).unwrap();
    let library = link_library([("kernels".to_owned(), &object[..])]).unwrap().bytes;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernels.so");
    std::fs::write(&path, library).unwrap();
    let inputs: BTreeMap<_, _> = inputs
        .into_iter()
        .enumerate()
        .map(|(at, tensor)| (format!("input_{at}"), tensor))
        .collect();
    let library = Library::load(&path).unwrap();
    let mut outputs = Runner::new(library.into(), &[]).unwrap().run(inputs).unwrap();
    (0..outputs.len()).map(|at| outputs.remove(&format!("output_{at}")).unwrap()).collect()
}

/// Units in the last place of `expected`'s type between it and what was found.
pub(super) fn distance(found: f64, expected: f64, dtype: DType) -> f64 {
    if found == expected || found.is_nan() && expected.is_nan() {
        return 0.0;
    }
    if !found.is_finite() || !expected.is_finite() {
        return f64::INFINITY;
    }
    let (digits, least) = match dtype {
        DType::F64 => (52, -1022),
        DType::F32 => (23, -126),
        DType::F16 => (10, -14),
        DType::BF16 => (7, -126),
        DType::F8E8M0 => (0, -127),
        small => match SmallFloat::of(small) {
            Some(format) => (format.mantissa as i32, format.least() + format.mantissa as i32),
            None => return f64::INFINITY,
        },
    };
    let exponent = (expected.abs().log2().floor() as i32).max(least);
    (found - expected).abs() / 2f64.powi(exponent - digits)
}

/// Compiles and runs all cases; every element must be what it means.
pub(super) fn check(cases: &[Case]) {
    let mut found = run(cases).into_iter();
    let mut wrong = vec![];
    for case in cases {
        for (number, expected) in case.expected().into_iter().enumerate() {
            let found = found.next().unwrap();
            assert_eq!(found.ty(), expected.ty(), "{:?}", case.work);
            if let Some(message) = difference(&found, &expected, case.ulp) {
                let types: Vec<_> = case.operands.iter().map(|x| x.ty().to_string()).collect();
                wrong.push(format!("{:?} of {types:?}, result {number}: {message}", case.work));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

pub(super) fn difference(found: &Tensor, expected: &Tensor, ulp: f64) -> Option<String> {
    if !expected.dtype().is_float() {
        let (found, expected) = (found.to_i128()?, expected.to_i128()?);
        let at = found.iter().zip(&expected).position(|(found, expected)| found != expected)?;
        return Some(format!("element {at}: {} instead of {}", found[at], expected[at]));
    }
    let (dtype, found, expected) = (expected.dtype(), found.to_f64(), expected.to_f64());
    let apart = |at: &usize| distance(found[*at], expected[*at], dtype);
    let worst = (0..found.len()).max_by(|a, b| apart(a).total_cmp(&apart(b)))?;
    // Whatever is near in an `f32` is the same in a small type, or its neighbour.
    let ulp = if dtype.is_small() { ulp.min(1.0) } else { ulp };
    (apart(&worst) > ulp).then(|| {
        let (found, expected) = (found[worst], expected[worst]);
        format!("element {worst}: {found:e} instead of {expected:e}: {} ulp", apart(&worst))
    })
}

/// Pseudo-random numbers, with what is special of the type among them.
pub(super) fn numbers(dtype: DType, shape: &[i64], seed: u64) -> Tensor {
    let mut tensor = Tensor::random(TensorType::new(dtype, shape), seed).unwrap();
    if dtype.is_float() {
        for at in 0..tensor.elements() {
            tensor.set_f64(at, tensor.get_f64(at) * 3.0);
        }
        let special = [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 2.5, -0.5];
        let count = tensor.elements();
        for (at, value) in special.into_iter().enumerate().take(count / 2) {
            tensor.set_f64((at * 5 + seed as usize) % count, value);
        }
        return tensor;
    }
    if dtype == DType::Bool {
        return tensor;
    }
    let (Ok(low), Ok(high)) = (bound(Combine::Max, dtype), bound(Combine::Min, dtype)) else {
        unreachable!("integers have bounds");
    };
    let special = [0, 1, -1, low, high, 7, -7, 63, 64, 3];
    let count = tensor.elements();
    for (at, value) in special.into_iter().enumerate().take(count / 2) {
        set_integer(&mut tensor, (at * 3 + seed as usize) % count, value);
    }
    tensor
}

pub(super) fn bound(combine: Combine, dtype: DType) -> Result<i128, ()> {
    match combine.neutral(dtype) {
        irc_tl::Number::Int(value) => Ok(value),
        irc_tl::Number::Float(_) => Err(()),
    }
}

pub(super) fn set_integer(tensor: &mut Tensor, at: usize, value: i128) {
    let width = tensor.dtype().size();
    tensor.bytes_mut()[at * width..][..width].copy_from_slice(&value.to_ne_bytes()[..width]);
}

/// By which a function may differ from its correctly rounded value.
pub(super) fn tolerance(op: &Op, dtype: DType) -> f64 {
    let loose = match op {
        Op::Unary(
            Unary::Neg
            | Unary::Abs
            | Unary::Sign
            | Unary::Sqrt
            | Unary::Floor
            | Unary::Ceil
            | Unary::Round
            | Unary::Relu
            | Unary::RoundTf32,
        ) => 0.0,
        Op::Unary(_) | Op::Binary(Binary::Pow) => 4.0,
        // Small errors of a difference.
        Op::Binary(Binary::Mod) => 0.6,
        _ => 0.0,
    };
    match dtype {
        // The step in between is exact to a hundredth of a unit.
        DType::F16 | DType::BF16 if loose > 0.0 => 1.0,
        // The exponential's argument is rounded before it, and its size counts.
        DType::F32 | DType::F64 if matches!(op, Op::Unary(Unary::Gelu | Unary::Sigmoid)) => 128.0,
        _ => loose,
    }
}

/// The numbers without infinities and NaN, around 1, so that sums do not cancel.
pub(super) fn calm(tensor: &Tensor) -> Tensor {
    let mut calm = tensor.clone();
    if tensor.dtype().is_float() {
        for at in 0..calm.elements() {
            let value = calm.get_f64(at);
            calm.set_f64(at, if value.is_finite() { 1.0 + value.abs() / 4.0 } else { 1.5 });
        }
    }
    calm
}
