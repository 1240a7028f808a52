//! Whole programs in one module: LLVM IR, assembly, C source, and modules after the tensor level.
use super::{
    Compiled,
    constants::{self, Place},
    error::{CompileError, QueryError},
    kernel::{self, KernelObject, lower, plan_memory},
};
use crate::{
    attributes::{CONSTANTS, DESCRIPTION, ORIGIN, launcher},
    codegen::{CodegenError, GpuForm, Output, Target, compile, hide_inner, restrict_metadata},
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
use irc_diag::Diagnostic;
use irc_mlir::{CapturedDiagnostic, Context, Module, OperationLike, elements, read};
use irc_runtime::{GpuKernel, gpu::record::Step};
use irc_tl::Constant;
use std::{collections::BTreeMap, sync::Arc};

/// Whether PTX contains a name.
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
        let is_of_gpu = target.backend.writes(Output::Ptx);
        match output {
            _ if is_of_gpu => {}
            Output::C => hide_inner(&module),
            Output::Object | Output::LlvmIr | Output::Assembly | Output::Ptx => {
                let functions = kernel::functions(module.as_operation());
                for symbol in kernels.keys() {
                    share(*functions.get(symbol)?);
                    functions.get(&launcher(symbol)).copied().map(share);
                }
            }
        }
        let bytes = constants::bytes(&constants);
        let kernel = description_of(&main, interfaces, &bytes, target);
        let declared = kernel::named(module.as_operation(), WEIGHTS);
        if let Some(declared) = declared.filter(|_| !constants.is_empty() && !is_of_gpu) {
            define_weights(declared, &bytes);
        }
        let code = compile(&module, target, output);
        Some(match kernel.filter(|_| output == Output::Ptx) {
            Some(kernel) => code.map(|code| described(kernel, &code, &bytes)),
            None => code,
        })
    });
    finished(code)
}

/// The description of the kernel of a module after memory planning, but for its shared memory, which its code determines.
fn description_of(
    main: &Module<'_>,
    interfaces: Vec<Interface>,
    constants: &[u8],
    target: &Target,
) -> Option<GpuKernel> {
    let messages = messages(main);
    let name = |kernel: String| match messages.get(&kernel) {
        Some(message) => format!("the check: {message}"),
        None => kernel,
    };
    let calls = kernel_calls(main.as_operation()).into_iter();
    let steps = calls.map(|(_, kernel)| Step { name: name(kernel), ..Step::default() });
    let GpuForm { timestamps, separate } = target.form;
    let launches = if separate { interfaces.len() } else { 0 };
    let launches = (0..launches).map(entry_of).collect();
    let threads = Settings::of(target).block_threads;
    let interface = interfaces.into_iter().next()?;
    let kernel = GpuKernel::of_program(ENTRY, interface, threads, !constants.is_empty());
    let constant_bytes = constants.len() as u64;
    let kernel = GpuKernel { constant_bytes, steps: steps.collect(), ..kernel };
    Some(kernel.formed(timestamps, launches))
}

/// PTX with the description of its kernel, and with its constants.
fn described(kernel: GpuKernel, code: &[u8], constants: &[u8]) -> Vec<u8> {
    let threads = kernel.threads;
    let shared_bytes = match () {
        () if uses(code, groups::INSTRUCTION) => groups::SHARED_BYTES,
        () if uses(code, COPIES) => shared_bytes(threads.into(), true),
        () if uses(code, SHARED) => SHARED_BYTES,
        () => 0,
    };
    let shared_bytes = shared_bytes.cast_unsigned();
    GpuKernel { shared_bytes, ..kernel }.describe(code, constants)
}

/// What kernels require that only check, by name.
fn messages(main: &Module<'_>) -> BTreeMap<String, String> {
    let functions = read::body_ops(main.as_operation()).into_iter();
    let own = functions.filter_map(|op| Some((read::string(&op, "sym_name")?, ORIGIN.read(&op)?)));
    own.collect()
}

/// A library of a module that is the output of a stage after the tensor level.
pub fn library(parsed: &Parsed, stage: &str, target: &Target) -> Result<Compiled, QueryError> {
    let (object, interface) = compiled(parsed, stage, target, Output::Object)?;
    let interface = interface.ok_or_else(no_interface)?;
    expect_constants(&interface)?;
    Ok(Compiled::link([("irc_program".to_owned(), object.as_slice())], interface)?)
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
    let mut settings = Settings::of(target);
    let position = |stage| settings.pipeline.position(stage).map_err(QueryError::internal);
    let (at, memory) = (position(stage)?, position("memory")?);
    if output == Output::Ptx && at > memory {
        let message =
            format!("the module is after stage '{stage}', which PTX of irc is not made from");
        let help = "a module after an earlier stage has its description; --emit ll writes LLVM IR of this one";
        return Err(QueryError::found(vec![Diagnostic::error("mlir-stage", message).help(help)]));
    }
    let made = in_context(|context| {
        let mut module = parsed.document.as_deref()?.dialect(context)?;
        let of_plan = of_plan(&module);
        if at < memory && of_plan.is_none() {
            run_stages(context, &mut module, &settings, stage, "memory")?;
        }
        let has_interfaces = at < memory || output == Output::Ptx;
        let interfaces = match has_interfaces && of_plan.is_none() {
            true => kernel::complete_interfaces(&module, target)?,
            false => vec![],
        };
        let constants = constants_of(&module);
        let kernel = match of_plan {
            Some(kernel) => {
                settings.block_threads = kernel.threads;
                Some(kernel)
            }
            None => description_of(&module, interfaces, &constants, target),
        };
        let planned = if at > memory { stage } else { "memory" };
        run_stages(context, &mut module, &settings, planned, "llvm")?;
        let metadata = kernel::named(module.as_operation(), "irc_metadata");
        let interface = metadata.and_then(|global| read::string(&global, "value"));
        let interface =
            interface.and_then(|text| Interface::from_json(text.trim_end_matches('\0')).ok());
        if output == Output::C {
            hide_inner(&module);
        }
        Some((compile(&module, target, output), interface, (kernel, constants)))
    });
    let (code, interface, (kernel, constants)) =
        made.map_err(|captured| QueryError::found(in_text(&captured, &parsed.source)))?;
    if output != Output::Ptx {
        return Ok((code?, interface));
    }
    let kernel = kernel.ok_or_else(no_interface)?;
    expect_constants(&kernel.interface)?;
    let code = match kernel.blocks {
        // Its shared memory is known.
        Some(_) => kernel.describe(&code?, &constants),
        None => described(kernel, &code?, &constants),
    };
    Ok((code, interface))
}

/// The description of the kernel of a module of an ARK plan.
fn of_plan(module: &Module<'_>) -> Option<GpuKernel> {
    let functions = read::body_ops(module.as_operation());
    let line = functions.iter().find_map(|function| DESCRIPTION.read(function))?;
    GpuKernel::from_ptx(&line).ok()
}

/// The constants of a module after memory planning.
fn constants_of(module: &Module<'_>) -> Vec<u8> {
    let functions = read::body_ops(module.as_operation());
    let constants = functions.iter().find_map(|function| function.attribute(CONSTANTS).ok());
    constants.and_then(elements::bytes_of).unwrap_or_default()
}

fn no_interface() -> QueryError {
    let message = "the module has no main function with an interface";
    let help = "of a plan, 'memory' is the first stage from which compilation continues: it has the persistent kernel";
    QueryError::found(vec![Diagnostic::error("mlir-interface", message).help(help)])
}

/// Checks that a module contains its constants.
fn expect_constants(interface: &Interface) -> Result<(), QueryError> {
    match interface.inputs.iter().any(|port| port.weight.is_some()) {
        true => {
            let message = "the module refers to large constants that are not in it";
            Err(QueryError::at("mlir-constants", message))
        }
        false => Ok(()),
    }
}

fn finished(
    code: Result<Result<Vec<u8>, CodegenError>, Vec<CapturedDiagnostic>>,
) -> Result<Vec<u8>, QueryError> {
    Ok(code.map_err(CompileError::Passes)??)
}
