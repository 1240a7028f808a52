//! The LLVM tier: MLIR's `llvm` dialect to LLVM IR, optimised for a target, to an object.
//! `docs/kernels.md` lists the LLVM bugs that are worked around here.
use super::{
    CodegenError, Output, Row, Target, isolate::isolated, saturate::widen_saturating_conversions,
    unroll::disable_unrolling,
};
use crate::lowering::linalg_to_vector::Dots;
use inkwell::{
    OptimizationLevel,
    attributes::{Attribute, AttributeLoc},
    basic_block::BasicBlock,
    context::Context as LlvmContext,
    memory_buffer::MemoryBuffer,
    module::Module as LlvmModule,
    passes::PassBuilderOptions,
    targets::{CodeModel, FileType, InitializationConfig, RelocMode, TargetMachine, TargetTriple},
    types::{AnyType, AnyTypeEnum, BasicTypeEnum},
    values::FunctionValue,
};
use irc_mlir::Module;
use std::sync::Once;

/// An LLVM module and its context, owned together so that a thread can take both.
pub(super) struct Owned {
    context: *mut inkwell::llvm_sys::LLVMContext,
    module: *mut inkwell::llvm_sys::LLVMModule,
}

// Safety: the pair moves to one thread as a whole; there are no other references to either.
unsafe impl Send for Owned {}

/// LLVM's row.
pub const ROW: Row = Row {
    name: "llvm",
    outputs: &[Output::Object, Output::LlvmIr, Output::Assembly],
    pipeline: &crate::pipeline::HOST_CPU,
    vector_bytes,
    dots,
    streams: |target| target.triple.starts_with("x86_64"),
    features: |target| target.known_features().unwrap_or_default(),
    expect: |_| Ok(()),
    compile,
};

fn vector_bytes(target: &Target) -> u32 {
    if target.has(&["avx512f", "avx512vl", "avx512bw"]) { 64 } else { 32 }
}

fn dots(target: &Target) -> Dots {
    let vnni = match vector_bytes(target) {
        64 => target.has(&["avx512vnni"]),
        _ => target.has(&["avxvnni"]) || target.has(&["avx512vnni", "avx512vl"]),
    };
    match vnni {
        true => Dots::Vnni,
        false if target.has(&["avx2"]) => Dots::Pairs,
        false => Dots::Plain,
    }
}

/// Compiles a module in the `llvm` dialect.
///
/// # Errors
/// What MLIR could not translate or LLVM could not compile.
fn compile(module: &Module<'_>, target: &Target, output: Output) -> Result<Vec<u8>, CodegenError> {
    widen_saturating_conversions(module);
    disable_unrolling(module);
    let owned = translate(module)?;
    let target = target.clone();
    isolated(move || generate(owned, &target, output))
}

pub(super) fn translate(module: &Module<'_>) -> Result<Owned, CodegenError> {
    // Safety: the context is fresh, and owned by the result together with the module.
    unsafe {
        let context = inkwell::llvm_sys::core::LLVMContextCreate();
        let translated =
            mlir_sys::mlirTranslateModuleToLLVMIR(module.as_operation().to_raw(), context.cast());
        if translated.is_null() {
            inkwell::llvm_sys::core::LLVMContextDispose(context);
            return Err(CodegenError::new("the module does not translate to LLVM IR"));
        }
        Ok(Owned { context, module: translated.cast() })
    }
}

pub(super) fn generate(
    owned: Owned,
    target: &Target,
    output: Output,
) -> Result<Vec<u8>, CodegenError> {
    // Safety: both were created by `translate` and are owned here; the module is dropped first.
    let (context, module) =
        unsafe { (LlvmContext::new(owned.context), LlvmModule::new(owned.module)) };
    let machine = machine(target, effort(&module))?;
    module.set_triple(&TargetTriple::create(&target.triple));
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    if !target.backend.writes(Output::Ptx) && !target.has(&["f16c", "avx512bf16"]) {
        add_conversions(&context, &module)?;
    }
    mark_functions(&context, &module, target);
    let options = PassBuilderOptions::create();
    // The SLP vectoriser finds nothing in kernels.
    options.set_loop_slp_vectorization(false);
    module
        .run_passes("default<O3>", &machine, options)
        .map_err(|error| CodegenError::new(error.to_string()))?;
    align_stacks(&context, &module, target);
    let bytes = match output {
        Output::LlvmIr => module.print_to_string().to_bytes().to_vec(),
        Output::Object => emit(&machine, &module, FileType::Object)?,
        Output::Assembly | Output::Ptx => emit(&machine, &module, FileType::Assembly)?,
        Output::C => return Err(CodegenError::new("LLVM writes no C source")),
    };
    drop(module);
    drop(context);
    Ok(bytes)
}

/// Adds the functions that LLVM calls to convert 16-bit floats, to a module that has any.
fn add_conversions<'c>(
    context: &'c LlvmContext,
    module: &LlvmModule<'c>,
) -> Result<(), CodegenError> {
    const SOURCE: &[u8] = concat!(include_str!("conversions.ll"), "\0").as_bytes();
    let halves = [context.f16_type(), context.bf16_type()].map(BasicTypeEnum::from);
    let is_half = |ty: AnyTypeEnum<'c>| match ty {
        AnyTypeEnum::VectorType(vector) => halves.contains(&vector.get_element_type()),
        other => halves.iter().any(|half| half.as_any_type_enum() == other),
    };
    let mut blocks = module.get_functions().flat_map(FunctionValue::get_basic_block_iter);
    if !blocks.any(|block| block.get_instructions().any(|made| is_half(made.get_type()))) {
        return Ok(());
    }
    let failed = |error: inkwell::support::LLVMString| CodegenError::new(error.to_string());
    let source = MemoryBuffer::create_from_memory_range_copy(SOURCE, "conversions");
    let conversions = context.create_module_from_ir(source).map_err(failed)?;
    conversions.set_triple(&module.get_triple());
    conversions.set_data_layout(&module.get_data_layout());
    module.link_in_module(conversions).map_err(failed)
}

fn emit(
    machine: &TargetMachine,
    module: &LlvmModule<'_>,
    kind: FileType,
) -> Result<Vec<u8>, CodegenError> {
    let buffer = machine
        .write_to_memory_buffer(module, kind)
        .map_err(|error| CodegenError::new(error.to_string()))?;
    let bytes = buffer.as_slice();
    // LLVM appends a zero to text.
    Ok(bytes.strip_suffix(&[0]).filter(|_| kind == FileType::Assembly).unwrap_or(bytes).to_vec())
}

/// How much code generation optimises: nothing if most of a module is excluded from optimisation, as registers
/// are otherwise allocated in more than linear time.
fn effort(module: &LlvmModule<'_>) -> OptimizationLevel {
    let excluded = Attribute::get_named_enum_kind_id("optnone");
    let (mut all, mut long) = (0, 0);
    for function in module.get_functions() {
        let length = |block: BasicBlock<'_>| block.get_instructions().count();
        let length: usize = function.get_basic_block_iter().map(length).sum();
        let is_long = function.get_enum_attribute(AttributeLoc::Function, excluded).is_some();
        all += length;
        long += if is_long { length } else { 0 };
    }
    if long > all / 4 * 3 { OptimizationLevel::None } else { OptimizationLevel::Aggressive }
}

fn machine(target: &Target, effort: OptimizationLevel) -> Result<TargetMachine, CodegenError> {
    static TARGETS: Once = Once::new();
    TARGETS.call_once(|| {
        inkwell::targets::Target::initialize_x86(&InitializationConfig::default());
        inkwell::targets::Target::initialize_nvptx(&InitializationConfig::default());
    });
    let triple = TargetTriple::create(&target.triple);
    let backend = inkwell::targets::Target::from_triple(&triple)
        .map_err(|error| CodegenError::new(error.to_string()))?;
    backend
        .create_target_machine(
            &triple,
            &target.cpu,
            &target.features,
            effort,
            RelocMode::PIC,
            CodeModel::Default,
        )
        .ok_or_else(|| CodegenError::new(format!("no target machine for '{}'", target.cpu)))
}

/// Lets every function use the full vector width of the target.
fn mark_functions(context: &LlvmContext, module: &LlvmModule<'_>, target: &Target) {
    let width = (target.vector_bytes() * 8).to_string();
    let pairs = [
        ("target-cpu", target.cpu.as_str()),
        ("target-features", target.features.as_str()),
        ("prefer-vector-width", width.as_str()),
    ];
    for function in module.get_functions() {
        for (name, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
            let attribute = context.create_string_attribute(name, value);
            function.add_attribute(AttributeLoc::Function, attribute);
        }
    }
}

/// Aligns the stack of functions that may have more vectors than registers, so that each lies in one cache line. LLVM cannot
/// do so any more when it finds that it stores some.
fn align_stacks(context: &LlvmContext, module: &LlvmModule<'_>, target: &Target) {
    let registers = if target.vector_bytes() == 64 { 32 } else { 16 };
    let is_vector = |ty: AnyTypeEnum<'_>| matches!(ty, AnyTypeEnum::VectorType(_));
    let vectors = |block: BasicBlock<'_>| {
        block.get_instructions().filter(|made| is_vector(made.get_type())).count()
    };
    for function in module.get_functions() {
        if function.get_basic_block_iter().any(|block| vectors(block) > 2 * registers) {
            let attribute = context.create_string_attribute("stackrealign", "");
            function.add_attribute(AttributeLoc::Function, attribute);
        }
    }
}
