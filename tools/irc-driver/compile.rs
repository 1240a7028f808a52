//! `irc compile`: compiles a model to the kind of artefact that the output's suffix selects.
use crate::{
    archive, ark_files,
    console::Console,
    error::Error,
    gpu,
    input::{self, Content, Input},
    models, npu, output, plan, target,
    tuning::TuningFile,
    values::Given,
};
use irc::{
    Backend, CompileOptions, Results, Session, Target,
    codegen::Output,
    pipeline::{HOST_CPU, Pipeline},
    quantise::Scope,
};
use irc_cli::{CUDA, Codegen, CompileTo, Flags, Kind, Support};
use std::path::Path;

/// Compiles a model to a file.
pub fn compile(console: &Console, arguments: &CompileTo, flags: &Flags) -> Result<(), Error> {
    let kind = match arguments.emit {
        Some(kind) => kind,
        None => kind_of(&arguments.output)?,
    };
    let suffix = kind.suffix();
    flags.expect(&[], Some(&suffix)).map_err(Error::Usage)?;
    expect_one_generator(arguments, kind)?;
    output::probe_all(flags, Path::to_owned)?;
    let input = Input::open(&arguments.model, arguments.graphs.format.as_deref())?;
    let Some(input_kind) = input.kind() else {
        return Err(input::not_for("compile", input.shown(), input.content));
    };
    if let Support::No(why) = input_kind.support(kind) {
        let (name, words) = (input.shown(), input.content.words());
        return Err(Error::problem(format!("{name} is {words}: {why}")));
    }
    flags.expect(&[input_kind], Some(&suffix)).map_err(Error::Usage)?;
    let is_kernel = is_of_gpu(arguments, kind);
    let mut sources = vec![input.source()];
    for name in &arguments.ranks {
        let other = Input::open(name, None)?;
        for file in [&input, &other] {
            if file.content != Content::Plan {
                return Err(Error::Usage(format!(
                    "several files are the ARK plans of ranks, and {} is {}; irc compile MODEL -o PLAN.plan.json plans a model",
                    file.shown(),
                    file.content.words()
                )));
            }
        }
        if !is_kernel {
            return Err(Error::Usage(format!(
                "several ARK plans are compiled together for GPUs: --backend {CUDA}"
            )));
        }
        sources.push(other.source());
    }
    match input.content {
        Content::Plan if is_kernel && !is_of_tasks(arguments, kind) => {
            gpu::write_plans(console, arguments, &sources, kind)
        }
        Content::Plan if kind != Kind::Mlir => {
            let why = "the executor runs its tasks (irc run), and a library is made from its model";
            let problem = Error::problem(format!("{} is an ARK plan: {why}", input.shown()));
            Err(problem.help(format!("--backend {CUDA} compiles it for a GPU")))
        }
        Content::Plan => write_tasks(arguments, input.source()),
        Content::Schedule => write_program(console, arguments),
        _ => write_model(console, arguments, flags, &input, kind),
    }
}

/// Writes the NPU program of a schedule.
fn write_program(console: &Console, arguments: &CompileTo) -> Result<(), Error> {
    let frontend = arguments.frontend.as_deref();
    let quantise = &arguments.compile.quantise;
    if quantise.calibrate.is_some() && arguments.numbers_of.is_none() {
        return Err(Error::Usage("--calibrate quantises a model: give it with --model".into()));
    }
    let quantising = models::Quantising::of(quantise, Scope::Everywhere);
    let model = arguments.numbers_of.as_deref().map(|name| npu::ModelOf {
        name,
        shapes: &arguments.graphs.shape,
        quantising: &quantising,
        inputs: None,
        has_values: true,
        falls_back: false,
    });
    let (schedule, output) = (&arguments.model, &arguments.output);
    let (bytes, content) = npu::translate::to_program(console, schedule, frontend, model, output)?;
    if frontend.or(arguments.numbers_of.as_ref().map(Path::new)).is_none() {
        console.note(
            "the program moves data and has placeholder constants; --model MODEL writes one with those of the model",
        );
    }
    output::write(&arguments.output, &bytes, content)
}

/// Writes an artefact of a model.
fn write_model(
    console: &Console,
    arguments: &CompileTo,
    flags: &Flags,
    input: &Input,
    kind: Kind,
) -> Result<(), Error> {
    let is_source = kind == Kind::C || arguments.codegen == Some(Codegen::C);
    let is_kernel = is_of_gpu(arguments, kind);
    let backend = match &arguments.backend {
        _ if is_source => Backend::C,
        Some(name) => target::backend(name),
        None => Backend::default(),
    };
    let mut options = options(&arguments.compile, backend)?;
    if is_kernel {
        let target =
            target::gpu(arguments.arch.as_deref().unwrap_or(target::GPU)).map_err(Error::Usage)?;
        options.target = Target { form: gpu::form_of(arguments), ..target };
    }
    let tuning = TuningFile::open(arguments.compile.tuning.as_deref(), &mut options)?;
    let mut import =
        models::program_options(&arguments.graphs, &arguments.compile, Results::Outputs)?;
    if input.content == Content::Graph {
        let given = Given::open(arguments.inputs.as_deref())?;
        import.inputs = models::values(&models::given(input, &import, given)?);
        import.known_sizes = is_kernel;
    }
    let stage = stage(arguments, options.target.backend.pipeline)?;
    let session = Session::new();
    if let Some(npu) = npu::model::options(&arguments.npu)? {
        let quantising = models::Quantising::of(&arguments.compile.quantise, Scope::Everywhere);
        let model = models::open_quantised(console, &session, input, &import, &quantising)?;
        let calibration = quantising.text()?;
        let written = npu::model::Written {
            to: &arguments.output,
            report: arguments.report.as_deref(),
            explains: arguments.npu.explain_schedule,
            dialect: arguments.dialect,
            falls_back: arguments.host_fallback,
            calibration: calibration.as_deref(),
            flags,
        };
        return npu::model::write(console, &model, &npu, kind, written);
    }
    let of_npu =
        [("--report", arguments.report.is_some()), ("--dialect", arguments.dialect.is_some())];
    if let Some((flag, _)) = of_npu.iter().find(|(_, given)| *given) {
        return Err(Error::Usage(format!("{flag} needs the NPU: --target npu:mesh=WxH")));
    }
    if kind == Kind::Asm {
        let problem = Error::problem("an NPU program needs the NPU");
        return Err(problem.help("give it, as in --target npu:mesh=4x4"));
    }
    let quantising = models::Quantising::of(&arguments.compile.quantise, Scope::WhereRead);
    // The first stage is the file in its own dialect, whether or not it can be imported.
    if kind == Kind::Mlir && stage == HOST_CPU.stages[0].name {
        let model = session.parse(input.shown(), input.bytes.clone(), &import)?;
        models::explain(console, &model, &options, arguments.compile.explain_fusion)?;
        let text = model.stage(stage, &options)?;
        console.diagnostics(&model.source(), &models::briefly(model.read_diagnostics()));
        return output::write(&arguments.output, text.as_bytes(), output::Content::Text);
    }
    if kind == Kind::Json {
        let planning = plan::Planning {
            arch: arguments.arch.as_deref().unwrap_or(target::GPU),
            processors: arguments.processors,
            planner: arguments.planner.unwrap_or_default(),
            rules: arguments.config_rules.as_deref(),
        };
        let planning = plan::options(console, &planning)?;
        if input.content == Content::Model {
            let plan = plan::plan(console, &input.source(), &planning)?;
            return output::write(&arguments.output, plan.as_bytes(), output::Content::Text);
        }
        output::probe_derived(flags, &ark_files::beside_all(&arguments.output))?;
        let model = models::open_quantised(console, &session, input, &import, &quantising)?;
        let ark = model.to_ark()?;
        let plan = plan::plan_converted(console, &model, &ark, &planning)?;
        let beside = ark_files::stage_beside(console, &arguments.output, &ark)?;
        let plan = output::stage(&arguments.output, plan.as_bytes(), output::Content::Text)?;
        return beside.into_iter().chain([plan]).try_for_each(output::Stream::finish);
    }
    let model = models::open_quantised(console, &session, input, &import, &quantising)?;
    models::explain(console, &model, &options, arguments.compile.explain_fusion)?;
    tuning.check(console, &model, &options)?;
    if kind == Kind::Tar {
        return archive::write(console, arguments, &model, &options);
    }
    let step = console.step("compiling");
    model.observe(step.kernels());
    let (bytes, content) = match kind {
        Kind::So => (model.library(&options)?.library.clone(), output::Content::Executable),
        Kind::O => (model.emit(Output::Object, &options)?, output::Content::Binary),
        Kind::Ll => (model.emit(Output::LlvmIr, &options)?, output::Content::Text),
        Kind::S => (model.emit(Output::Assembly, &options)?, output::Content::Text),
        Kind::C => (model.emit(Output::C, &options)?, output::Content::Text),
        Kind::Ptx => (model.emit(Output::Ptx, &options)?, output::Content::Text),
        Kind::Mlir => (model.stage(stage, &options)?.into_bytes(), output::Content::Text),
        Kind::Tar | Kind::Json | Kind::Asm => unreachable!("written or rejected above"),
    };
    drop(step);
    if matches!(kind, Kind::So | Kind::O) && !is_kernel {
        console.diagnostics(&model.source(), &model.slow_kernels(&options)?);
    }
    output::write(&arguments.output, &bytes, content)
}

/// Whether the kernels of a plan's tasks are written before they are scheduled.
fn is_of_tasks(arguments: &CompileTo, kind: Kind) -> bool {
    kind == Kind::Mlir && matches!(arguments.stage.as_deref(), None | Some(TASKS))
}

/// The first stage of a plan.
const TASKS: &str = "kernels";

/// Writes the kernels of a plan's tasks, named by task info, step, and variant for partial tiles.
fn write_tasks(arguments: &CompileTo, source: irc_diag::Source) -> Result<(), Error> {
    if !is_of_tasks(arguments, Kind::Mlir) {
        let message = format!(
            "--stage: the only stage of a plan is '{TASKS}', or with --backend {CUDA} a later one too"
        );
        return Err(Error::Usage(message));
    }
    let tasks = Session::new().plan(source).kernels()?;
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

const SUFFIXES: &str = ".so, .tar, .o, .c, .ll, .s, .mlir, .ptx, .json, .asm";

fn kind_of(path: &Path) -> Result<Kind, Error> {
    let name = path.display();
    if path.is_dir() {
        return Err(Error::Usage(format!("--output: {name} is a folder: name a file in it")));
    }
    let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
    let kind = <Kind as clap::ValueEnum>::from_str(suffix, false);
    kind.map_err(|_| match suffix {
        "" => Error::Usage(format!(
            "--output: {name} has no suffix to select the kind of output: add one of {SUFFIXES}, or use --emit"
        )),
        _ => Error::Usage(format!(
            "--output: expected one of the suffixes {SUFFIXES}, found '.{suffix}'"
        )),
    })
}

/// Whether code is for a GPU.
fn is_of_gpu(arguments: &CompileTo, kind: Kind) -> bool {
    kind == Kind::Ptx || arguments.backend.as_deref() == Some(CUDA)
}

/// The code of a kind of output, if only some code generators write it.
const fn code_of(kind: Kind) -> Option<Output> {
    match kind {
        Kind::O => Some(Output::Object),
        Kind::Ll => Some(Output::LlvmIr),
        Kind::S => Some(Output::Assembly),
        Kind::C => Some(Output::C),
        Kind::Ptx => Some(Output::Ptx),
        Kind::So | Kind::Mlir | Kind::Json | Kind::Tar | Kind::Asm => None,
    }
}

/// Rejects a code generator that does not write the output, or for an archive that contains C source, and flags of the
/// other kind of code.
fn expect_one_generator(arguments: &CompileTo, kind: Kind) -> Result<(), Error> {
    if let (Some(name), Some(code)) = (&arguments.backend, code_of(kind))
        && !target::generator(name).writes(code)
    {
        let other = target::writing(code).unwrap_or_default();
        let suffix = kind.suffix();
        return Err(Error::Usage(format!(
            "--backend {name} does not write {suffix}: --backend {other} does"
        )));
    }
    let is_kernel = is_of_gpu(arguments, kind);
    let is_of_any = matches!(kind, Kind::So | Kind::Tar | Kind::Ll | Kind::Mlir);
    let of_kernel =
        [("--timestamps", arguments.timestamps), ("--no-persistent", arguments.no_persistent)];
    if let Some((flag, _)) = of_kernel.iter().find(|(_, given)| *given && is_of_any && !is_kernel) {
        let suffix = kind.suffix();
        return Err(Error::Usage(format!(
            "{flag} has no effect on {suffix} without --backend {CUDA}"
        )));
    }
    if is_of_any && !is_kernel && arguments.arch.is_some() {
        let suffix = kind.suffix();
        return Err(Error::Usage(format!(
            "--arch has no effect on {suffix} without --backend {CUDA}; --target-cpu names a processor"
        )));
    }
    let of_host = [
        ("--target-cpu", arguments.compile.machine.target_cpu.is_some()),
        ("--tuning", arguments.compile.tuning.is_some()),
    ];
    if let Some((flag, _)) = of_host.iter().find(|(_, given)| *given && is_kernel) {
        return Err(Error::Usage(format!("{flag} has no effect with --backend {CUDA}")));
    }
    match arguments.codegen {
        Some(Codegen::C) if arguments.backend.is_some() => {
            Err(Error::Usage("--backend has no effect on C source, which --codegen selects".into()))
        }
        _ => Ok(()),
    }
}

/// The stage whose MLIR is written.
fn stage<'a>(arguments: &'a CompileTo, pipeline: &Pipeline) -> Result<&'a str, Error> {
    let stage = arguments.stage.as_deref().unwrap_or("import");
    let found = pipeline.position(stage).map(|_| stage);
    found.map_err(|error| Error::Usage(format!("--stage: {error}")))
}

/// The options of the flags.
pub fn options(flags: &irc_cli::Compile, backend: Backend) -> Result<CompileOptions, Error> {
    // C source is for any processor, other code for this one.
    let any = if backend == Backend::C { "x86-64" } else { "native" };
    let target = target::named(flags.machine.target_cpu.as_deref().unwrap_or(any))?;
    Ok(target::with_backend(target, backend)?.into())
}
