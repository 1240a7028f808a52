//! `irc compile`: a model to whatever the output's suffix says.
use crate::{
    archive,
    console::Console,
    graphs,
    input::{self, Content},
    output, plan,
    stop::Stop,
    target,
};
use irc::{
    Accumulate, Backend, CompileOptions, Model, Results, Session, codegen::Output,
    pipeline::HOST_CPU,
};
use irc_cli::{Codegen, CompileTo, Explain, Generator, Kind};
use std::path::Path;

/// Compiles a model to a file.
pub fn compile(console: &Console, arguments: &CompileTo) -> Result<(), Stop> {
    let kind = match arguments.emit {
        Some(kind) => kind,
        None => kind_of(&arguments.output)?,
    };
    refuse_not_built(kind)?;
    refuse_without_effect(kind, arguments)?;
    let stage = stage(arguments)?;
    let planning = plan::Planning {
        arch: arguments.arch.as_deref().unwrap_or("CUDA_80"),
        processors: arguments.processors,
        planner: arguments.planner.unwrap_or_default(),
        rules: arguments.config_rules.as_deref(),
    };
    let planning = plan::options(console, &planning)?;
    let is_source = kind == Kind::C || arguments.codegen == Some(Codegen::C);
    let backend = if is_source { Backend::C } else { backend(arguments.backend) };
    let options =
        options(&arguments.compile, backend, arguments.keep_intermediates, Results::Outputs)?;
    output::probe_beside(&arguments.output, &arguments.model)?;
    let bytes = input::read(&arguments.model)?;
    let content = input::content_as(&arguments.model, &bytes, arguments.graphs.format.as_deref());
    let session = Session::new();
    let what = What { kind, stage, options, planning };
    if content == Content::Graph {
        graphs::refuse_of_ark(&arguments.compile, arguments.keep_intermediates)?;
        // The first stage is the file as written, whether or not it can be lowered.
        if kind == Kind::Mlir && stage == HOST_CPU.stages[0].name {
            let text = graphs::translate::written(console, arguments, bytes)?;
            return output::write(&arguments.output, &text, output::Content::Text);
        }
        let model = graphs::model(console, &session, arguments, bytes)?;
        return write(console, arguments, &model, &what);
    }
    graphs::refuse(&arguments.graphs)?;
    if arguments.inputs.is_some() {
        return Err(Stop::Usage("--inputs is for Common IR and ONNX files".into()));
    }
    if content == Content::Plan && kind == Kind::Mlir {
        return write_tasks(arguments, input::source(&arguments.model, &bytes));
    }
    input::expect_model(&arguments.model, content).map_err(|stop| match content {
        Content::Plan => stop.help("plans compile to .mlir, and run with irc run"),
        _ => stop,
    })?;
    let model = input::open(console, &session, input::source(&arguments.model, &bytes), false)?;
    explain(console, &model, &what.options, arguments.compile.explain_fusion)?;
    write(console, arguments, &model, &what)
}

/// What is to be written.
struct What<'a> {
    kind: Kind,
    /// The stage after which MLIR is.
    stage: &'a str,
    options: CompileOptions,
    planning: plan::Options,
}

fn write(
    console: &Console,
    arguments: &CompileTo,
    model: &Model<'_>,
    what: &What<'_>,
) -> Result<(), Stop> {
    let What { kind, stage, options, planning } = what;
    let step = match kind {
        Kind::Tar => return archive::write(console, arguments, model, options),
        Kind::Json if model.imported().is_some() => {
            return Err(Stop::problem("plans are made of ARK models"));
        }
        Kind::Json => None,
        _ => Some(console.step("compiling")),
    };
    let (bytes, content) = match kind {
        Kind::So => (model.library(options)?.library.clone(), output::Content::Executable),
        Kind::O => (model.emit(Output::Object, options)?, output::Content::Binary),
        Kind::Ll => (model.emit(Output::LlvmIr, options)?, output::Content::Text),
        Kind::S => (model.emit(Output::Assembly, options)?, output::Content::Text),
        Kind::C => (model.emit(Output::C, options)?, output::Content::Text),
        Kind::Mlir => (model.stage(stage, options)?.into_bytes(), output::Content::Text),
        Kind::Json => {
            let plan = plan::plan(console, model.source(), planning)?;
            (plan.into_bytes(), output::Content::Text)
        }
        Kind::Tar => unreachable!("written above"),
        Kind::Asm | Kind::Ptx => return refuse_not_built(*kind),
    };
    drop(step);
    output::write(&arguments.output, &bytes, content)
}

/// Writes the kernels that a plan's tasks are, which have no stage before `kernels`: named by task
/// info, step, and variant for tiles that are cut short.
fn write_tasks(arguments: &CompileTo, source: irc_diag::Source) -> Result<(), Stop> {
    if !matches!(arguments.stage.as_deref(), None | Some("kernels")) {
        let message =
            "--stage: of a plan the kernels are written, after no other stage than kernels";
        return Err(Stop::Usage(message.into()));
    }
    let mut session = Session::new();
    let file = session.open_source(source.clone());
    let tasks = session.task_kernels(file).map_err(|failure| Stop::failure(source, failure))?;
    let mut text = String::new();
    for (task, steps) in tasks.iter().enumerate() {
        for (step, variants) in steps.iter().enumerate() {
            for (variant, kernel) in variants.iter().enumerate() {
                let name = format!("@task_{task}_{step}_{variant}(");
                text += &kernel.replacen("@irc_kernel(", &name, 1);
                text.push('\n');
            }
        }
    }
    output::write(&arguments.output, text.as_bytes(), output::Content::Text)
}

fn kind_of(path: &Path) -> Result<Kind, Stop> {
    let name = path.display();
    let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
    let kind = <Kind as clap::ValueEnum>::from_str(suffix, false);
    kind.map_err(|_| match suffix {
        "" => Stop::Usage(format!("{name} has no suffix that says what to write; give --emit")),
        _ => Stop::Usage(format!(
            "the suffix of {name} says nothing: expected .so, .tar, .o, .c, .ll, .s, .mlir or .json, found \
             .{suffix}"
        )),
    })
}

fn refuse_not_built(kind: Kind) -> Result<(), Stop> {
    match kind {
        Kind::Asm => Err(Stop::not_built("NPU programs (.asm)")),
        Kind::Ptx => Err(Stop::not_built("NVIDIA PTX (.ptx)")),
        _ => Ok(()),
    }
}

/// Refuses flags that say nothing about what is written.
fn refuse_without_effect(kind: Kind, arguments: &CompileTo) -> Result<(), Stop> {
    let flags = [
        ("--stage", arguments.stage.is_some(), Kind::Mlir, "MLIR (.mlir)"),
        ("--arch", arguments.arch.is_some(), Kind::Json, "plans (.json)"),
        ("--processors", arguments.processors.is_some(), Kind::Json, "plans (.json)"),
        ("--planner", arguments.planner.is_some(), Kind::Json, "plans (.json)"),
        ("--config-rules", arguments.config_rules.is_some(), Kind::Json, "plans (.json)"),
        ("--mlf-version", arguments.mlf_version.is_some(), Kind::Tar, "archives (.tar)"),
        ("--codegen", arguments.codegen.is_some(), Kind::Tar, "archives (.tar)"),
        ("--check-reproducible", arguments.check_reproducible, Kind::Tar, "archives (.tar)"),
        ("--with-test-vectors", arguments.with_test_vectors, Kind::Tar, "archives (.tar)"),
        ("--model-name", arguments.model_name.is_some(), Kind::Tar, "archives (.tar)"),
    ];
    match flags.into_iter().find(|(_, given, only, _)| *given && *only != kind) {
        Some((flag, _, _, only)) => {
            Err(Stop::Usage(format!("{flag} has no effect here: it is for {only} only")))
        }
        None if arguments.codegen == Some(Codegen::C) && arguments.backend != Generator::Llvm => {
            Err(Stop::Usage("--backend has no effect here: the archive holds C source".into()))
        }
        None => refuse_without_backend(kind, arguments.backend),
    }
}

/// Refuses what only one code generator writes, and a choice of one where no code is written.
fn refuse_without_backend(kind: Kind, backend: Generator) -> Result<(), Stop> {
    match (backend, kind) {
        (Generator::Llvm, _) | (_, Kind::So | Kind::O | Kind::Mlir | Kind::Tar) => Ok(()),
        (Generator::Cranelift, Kind::Ll | Kind::S) => {
            Err(Stop::Usage("--backend cranelift writes .so and .o; .ll and .s are LLVM's".into()))
        }
        (Generator::Cranelift, _) => Err(Stop::Usage(
            "--backend has no effect here: it is for .so, .tar, .o and .mlir only".into(),
        )),
    }
}

/// The code generator of a flag.
pub fn backend(flag: Generator) -> Backend {
    match flag {
        Generator::Llvm => Backend::Llvm,
        Generator::Cranelift => Backend::Cranelift,
    }
}

/// The stage after which MLIR is written.
fn stage(arguments: &CompileTo) -> Result<&str, Stop> {
    let stage = arguments.stage.as_deref().unwrap_or("import");
    HOST_CPU.position(stage).map(|_| stage).map_err(Stop::Usage)
}

/// The session's options for the flags.
pub fn options(
    flags: &irc_cli::Compile,
    backend: Backend,
    keep: bool,
    default: Results,
) -> Result<CompileOptions, Stop> {
    let results = match flags.results {
        Some(irc_cli::Results::All) => Results::All,
        Some(irc_cli::Results::Outputs) => Results::Outputs,
        None if keep => Results::All,
        None => default,
    };
    // C source is for any processor, and code for this one.
    let any = if backend == Backend::C { "x86-64" } else { "native" };
    let target = target::named(flags.target_cpu.as_deref().unwrap_or(any))?;
    Ok(CompileOptions {
        target: target::with_backend(target, backend)?,
        results,
        accumulate: accumulate(flags.ark_accumulate),
    })
}

/// How sums accumulate, by the flag.
pub fn accumulate(ark: bool) -> Accumulate {
    if ark { Accumulate::Ark } else { Accumulate::Wide }
}

/// Tells how the ops were fused, if that was asked.
pub fn explain(
    console: &Console,
    model: &Model<'_>,
    options: &CompileOptions,
    format: Option<Explain>,
) -> Result<(), Stop> {
    let Some(format) = format else { return Ok(()) };
    let Some(report) = model.explain_fusion(options)? else { return Ok(()) };
    let text = match format {
        Explain::Text => report.to_string(),
        Explain::Json => {
            let json = serde_json::to_string_pretty(&report);
            json.map_err(|error| Stop::Internal(error.to_string()))? + "\n"
        }
    };
    console.text(&text);
    Ok(())
}
