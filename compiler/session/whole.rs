//! Whole programs in one module: LLVM IR, assembly, C source, and modules after the tensor level.
use super::{
    Compiled,
    constants::{self, Place},
    error::{CompileError, QueryError},
    kernel::{self, KernelObject, lower, plan_memory},
};
use crate::{
    attributes::{ORIGIN, launcher},
    codegen::{CodegenError, Output, Target, compile, hide_inner, link_library, restrict_metadata},
    diagnostics::in_text,
    import::Parsed,
    interface::Interface,
    lowering::{
        compute_to_loops::simt::{COPIES, SHARED_BYTES, groups, shared_bytes},
        emit_entry::{WEIGHTS, define_weights, share},
        emit_gpu_entry::{ENTRY, SHARED, entry_of},
        share_program::kernel_calls,
    },
    machine::{in_context, run_stages},
    pipeline::Settings,
};
use irc_mlir::{CapturedDiagnostic, Context, Module, read};
use irc_runtime::{GpuKernel, gpu::record::Step};
use irc_tl::Constant;
use std::{collections::BTreeMap, sync::Arc};

/// Whether PTX uses the shared memory of blocks.
fn uses_shared_memory(code: &[u8]) -> bool {
    uses(code, SHARED)
}

fn uses(code: &[u8], name: &str) -> bool {
    String::from_utf8_lossy(code).contains(name)
}

/// The scheduled kernels of a program in one module, and their descriptions.
pub fn scheduled<'c>(
    context: &'c Context,
    kernels: &BTreeMap<String, Arc<str>>,
    target: &Target,
) -> Option<(Module<'c>, BTreeMap<String, Arc<KernelObject>>)> {
    let symbols: Vec<String> = kernels.keys().cloned().collect();
    let texts = kernels.iter().map(|(symbol, text)| (symbol.as_str(), &**text));
    let mut module = kernel::module_of(context, texts)?;
    let objects = kernel::schedule(context, &mut module, &symbols, target)?.into_iter();
    let objects = objects.map(|kernel| (kernel.symbol.clone(), Arc::new(kernel)));
    Some((module, objects.collect()))
}

/// Code of a program with its constants, as text.
pub fn emit(
    program: &str,
    kernels: &BTreeMap<String, Arc<str>>,
    weights: Vec<Constant>,
    target: &Target,
    output: Output,
) -> Result<Vec<u8>, QueryError> {
    let code = in_context(|context| {
        let (mut module, objects) = scheduled(context, kernels, target)?;
        let (program, constants) =
            constants::settle_in(context, program, weights, &objects, Place::Linked)?;
        let text = kernel::with_declarations([&*program], &objects);
        let mut main = irc_mlir::parse_module(context, &text)?;
        let interfaces = plan_memory(context, &mut main, target)?;
        kernel::add(&module, &main);
        lower(context, &mut module, target)?;
        match output {
            Output::C => hide_inner(&module),
            Output::Ptx => {}
            Output::Object | Output::LlvmIr | Output::Assembly => {
                let functions = kernel::functions(module.as_operation());
                for symbol in kernels.keys() {
                    share(*functions.get(symbol)?);
                    functions.get(&launcher(symbol)).copied().map(share);
                }
            }
        }
        let messages = messages(&main);
        let step_name = |kernel: String| match messages.get(&kernel) {
            Some(message) => format!("the check: {message}"),
            None => kernel,
        };
        let steps = kernel_calls(main.as_operation())
            .into_iter()
            .map(|(_, kernel)| Step { name: step_name(kernel), ..Step::default() });
        let steps: Vec<Step> = steps.collect();
        let declared = kernel::named(module.as_operation(), WEIGHTS);
        if let Some(declared) = declared.filter(|_| !constants.is_empty() && output != Output::Ptx)
        {
            define_weights(declared, &constants::bytes(&constants));
        }
        let code = compile(&module, target, output);
        match (output, interfaces.first()) {
            (Output::Ptx, Some(interface)) => {
                let constants = constants::bytes(&constants);
                let threads = Settings::of(target).block_threads;
                let launches = if target.form.separate { interfaces.len() } else { 0 };
                let launches = (0..launches).map(entry_of).collect();
                Some(code.map(|code| {
                    described(&code, interface, (threads, &constants), |kernel| {
                        GpuKernel { steps, ..kernel }.formed(target.form.timestamps, launches)
                    })
                }))
            }
            _ => Some(code),
        }
    });
    finished(code)
}

/// What kernels require that only check, by name.
fn messages(main: &Module<'_>) -> BTreeMap<String, String> {
    let functions = read::body_ops(main.as_operation()).into_iter();
    let own = functions.filter_map(|op| Some((read::string(&op, "sym_name")?, ORIGIN.read(&op)?)));
    own.collect()
}

/// PTX with the description of its kernel, and with its constants.
fn described(
    code: &[u8],
    interface: &Interface,
    (threads, constants): (u32, &[u8]),
    complete: impl FnOnce(GpuKernel) -> GpuKernel,
) -> Vec<u8> {
    let shared_bytes = match () {
        () if uses(code, groups::INSTRUCTION) => groups::SHARED_BYTES,
        () if uses(code, COPIES) => shared_bytes(threads.into(), true),
        () if uses_shared_memory(code) => SHARED_BYTES,
        () => 0,
    };
    let shared_bytes = shared_bytes.cast_unsigned();
    let kernel = GpuKernel::of_program(ENTRY, interface.clone(), threads, !constants.is_empty());
    let constant_bytes = constants.len() as u64;
    complete(GpuKernel { shared_bytes, constant_bytes, ..kernel }).describe(code, constants)
}

/// A library of a module that is the output of a stage after the tensor level.
pub fn library(parsed: &Parsed, stage: &str, target: &Target) -> Result<Compiled, QueryError> {
    let (object, interface) = compiled(parsed, stage, target, Output::Object)?;
    let Some(mut interface) = interface else {
        let message = "the module has no main function with an interface";
        return Err(QueryError::at("mlir-interface", message));
    };
    if interface.inputs.iter().any(|port| port.weight.is_some()) {
        let message = "the module refers to large constants that are not in it";
        return Err(QueryError::at("mlir-constants", message));
    }
    let library = link_library([("irc_program".to_owned(), object.as_slice())])?;
    interface.requires = library.features.among(interface.requires);
    Ok(Compiled { library: library.bytes, interface, constants: vec![] })
}

/// Code of a module that is the output of a stage after the tensor level.
pub fn emit_from(
    parsed: &Parsed,
    stage: &str,
    target: &Target,
    output: Output,
) -> Result<Vec<u8>, QueryError> {
    let (mut code, _) = compiled(parsed, stage, target, output)?;
    if output == Output::Object {
        restrict_metadata(&mut code)?;
    }
    Ok(code)
}

fn compiled(
    parsed: &Parsed,
    stage: &str,
    target: &Target,
    output: Output,
) -> Result<(Vec<u8>, Option<Interface>), QueryError> {
    let settings = Settings::of(target);
    let position = |stage| settings.pipeline.position(stage).map_err(QueryError::internal);
    let is_planned = position(stage)? >= position("memory")?;
    let made = in_context(|context| {
        let mut module = parsed.document.as_deref()?.dialect(context)?;
        if !is_planned {
            run_stages(context, &mut module, &settings, stage, "memory")?;
            kernel::complete_interfaces(&module, target)?;
        }
        let planned = if is_planned { stage } else { "memory" };
        run_stages(context, &mut module, &settings, planned, "llvm")?;
        let metadata = kernel::named(module.as_operation(), "irc_metadata");
        let interface = metadata.and_then(|global| read::string(&global, "value"));
        let interface =
            interface.and_then(|text| Interface::from_json(text.trim_end_matches('\0')).ok());
        if output == Output::C {
            hide_inner(&module);
        }
        Some((compile(&module, target, output), interface))
    });
    let (code, interface) =
        made.map_err(|captured| QueryError::found(in_text(&captured, &parsed.source)))?;
    Ok((code?, interface))
}

fn finished(
    code: Result<Result<Vec<u8>, CodegenError>, Vec<CapturedDiagnostic>>,
) -> Result<Vec<u8>, QueryError> {
    Ok(code.map_err(CompileError::Passes)??)
}
