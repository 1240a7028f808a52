//! `irc run`: a model, a compiled library or plans, on given or random inputs.
use crate::{
    archive, compile,
    console::Console,
    error::Error,
    gpu::{self, Engine, Program},
    input::{self, Content, Input},
    models, npu, output, run_plans, target, threads,
    transport::Transport,
    tuning::TuningFile,
    values::{self, Buffers, Given, Missing},
    world,
};
use irc::quantise::Scope;
use irc::{CompileOptions, Model, Runner, Session, codegen::Output};
use irc_cli::{CUDA, EMULATOR, Flags, InputKind, REFERENCE, Run};
use std::path::Path;

/// Runs a program once.
pub fn run(console: &Console, arguments: &Run, flags: &Flags) -> Result<(), Error> {
    let transport = Transport::open(arguments.transport)?;
    let result = run_over(&transport, console, arguments, flags);
    transport.close(console, result)
}

fn run_over(
    transport: &Transport,
    console: &Console,
    arguments: &Run,
    flags: &Flags,
) -> Result<(), Error> {
    let outputs = arguments.outputs.as_deref().map(|path| transport.own(path));
    output::probe_all(flags, |path| transport.own(path))?;
    let given = Given::open(arguments.inputs.as_deref())?;
    let expected = arguments.expected.as_deref().map(|path| Given::open(Some(path))).transpose()?;
    let files = read(arguments)?;
    let first = &files[0];
    let runs_alone = match first.content {
        Content::Model => !world::communicates(&first.source()),
        Content::Plan => false,
        _ => true,
    };
    let runs_alone = runs_alone && files.len() == 1;
    if runs_alone {
        let kind: Vec<InputKind> = first.kind().into_iter().collect();
        flags.expect(&kind, None).map_err(Error::Usage)?;
    } else {
        expect_of_plans(first.content, flags)?;
    }
    let engine = Engine::named(arguments.engine());
    expect_of_engine(arguments, first.content, engine, runs_alone)?;
    let plans = match engine {
        Some(_) if !runs_alone => {
            if transport.rank().is_some() {
                return Err(Error::problem(
                    "ranks on GPUs run in one process: memory of GPUs is not shared between those of --transport mpi",
                ));
            }
            let files: Vec<_> = files.iter().map(|file| (file.source(), file.content)).collect();
            Some(world::Plans::open(console, &files, arguments.race_check)?)
        }
        _ => None,
    };
    let program = match (&plans, &files[..]) {
        (Some(plans), _) => Some(Program::of_plans(plans, arguments)?),
        (None, [input]) => program(console, arguments, input)?,
        _ => None,
    };
    let (found, buffers) = match (&files[..], runs_alone) {
        _ if let Some(program) = &program => {
            let engine = Engine::of_kernel(arguments.backend.as_deref(), first.shown())?;
            if arguments.self_test {
                let emulate = |inputs| program.run(console, arguments, engine, inputs);
                let emulate: &dyn Fn(Buffers) -> Result<Buffers, Error> = &emulate;
                let emulated = (engine == Engine::Emulator).then_some(emulate);
                return archive::self_test(console, arguments, &first.bytes, emulated);
            }
            let found = program.run_on(console, arguments, engine, given)?;
            plans.iter().try_for_each(|plans| plans.expect_no_suspicion(console))?;
            (found, program.buffers())
        }
        ([input], true) if input.content == Content::Archive => {
            if arguments.self_test {
                return archive::self_test(console, arguments, &input.bytes, None);
            }
            (archive::run(console, arguments, &input.bytes, given)?, None)
        }
        ([input], true) if input.content == Content::Library => {
            (run_library(console, arguments, input, given)?, None)
        }
        ([input], true) if input.kind() == Some(InputKind::Program) => {
            (npu::values::run_program(console, arguments, input)?, None)
        }
        ([input], true) => (run_model(console, arguments, input, given)?, None),
        _ => {
            let files: Vec<_> = files.iter().map(|file| (file.source(), file.content)).collect();
            let (found, buffers) = run_plans::run(transport, console, arguments, &files, given)?;
            (found, Some(buffers))
        }
    };
    if let Some(path) = &outputs {
        values::write(path, &found)?;
    } else if expected.is_none() && arguments.data_set.is_none() {
        output::print(&values::summary(&found))?;
    }
    match expected {
        Some(mut expected) => {
            if let Some(rank) = transport.rank() {
                let own = world::prefix(rank);
                expected.retain(|name| name.starts_with(&own) || !name.starts_with("rank"));
            }
            if let Some(buffers) = buffers {
                values::set_aside(console, &mut expected, &found, &buffers)?;
            }
            values::check(console, expected, &found, arguments.tolerance)
        }
        None => Ok(()),
    }
}

/// Rejects flags that have no effect where a program runs.
fn expect_of_engine(
    arguments: &Run,
    content: Content,
    engine: Option<Engine>,
    runs_alone: bool,
) -> Result<(), Error> {
    let is_emulated = engine == Some(Engine::Emulator);
    let checks_races = (content == Content::Plan && engine.is_none()) || is_emulated;
    let what = content.words();
    if arguments.race_check && !checks_races {
        return Err(Error::Usage(format!(
            "--race-check has no effect on {what}: it applies to ARK plans and with --backend {EMULATOR}"
        )));
    }
    let is_compiled = matches!(content, Content::Ptx | Content::Library | Content::Archive);
    if arguments.trace.is_some() && runs_alone && engine.is_none() && !is_compiled {
        return Err(Error::Usage(format!(
            "--trace has no effect on {what}: it applies to ARK plans and with --backend {EMULATOR} or {CUDA}"
        )));
    }
    if arguments.arch.is_some() && engine.is_none() {
        return Err(Error::Usage(format!(
            "--arch has no effect on {what} without --backend {EMULATOR} or {CUDA}"
        )));
    }
    if arguments.compile.tuning.is_some() && (engine.is_some() || arguments.engine() == REFERENCE) {
        return Err(Error::Usage(format!(
            "--tuning has no effect with --backend {}: its schedules are of processors",
            arguments.engine()
        )));
    }
    if arguments.max_instructions.is_some() && !is_emulated {
        return Err(Error::Usage(format!(
            "--max-instructions has no effect on {what} without --backend {EMULATOR}"
        )));
    }
    Ok(())
}

/// The kernel for a GPU that a file is.
fn program(console: &Console, arguments: &Run, input: &Input) -> Result<Option<Program>, Error> {
    match input.content {
        Content::Ptx => Program::of_ptx(&input.source()).map(Some),
        Content::Library | Content::Archive => {
            let program = Program::of_compiled(console, input)?;
            match (&program, &arguments.backend) {
                (None, Some(backend)) => Err(Error::Usage(format!(
                    "--backend {backend} has no effect on {}: it is already compiled, for processors",
                    input.shown()
                ))),
                (None, None) if arguments.trace.is_some() => Err(Error::Usage(format!(
                    "--trace has no effect on {}: it is compiled for processors",
                    input.shown()
                ))),
                _ => Ok(program),
            }
        }
        _ => Ok(None),
    }
}

/// The files: one of any kind, several plans, or several ARK models.
fn read(arguments: &Run) -> Result<Vec<Input>, Error> {
    let mut files: Vec<Input> = vec![];
    for name in &arguments.files {
        let input = Input::open(name, arguments.graphs.format.as_deref())?;
        let has_ranks = matches!(input.content, Content::Model | Content::Plan);
        if !input.is_for("run") {
            return Err(input::not_for("run", name, input.content));
        }
        if !has_ranks && arguments.files.len() > 1 {
            let what = input.content.words();
            return Err(Error::Usage(format!(
                "{name} is {what}, which cannot run together with other files"
            )));
        }
        files.push(input);
    }
    match files.iter().find(|file| file.content != files[0].content) {
        Some(other) => Err(Error::Usage(format!(
            "expected only plans or only models, found both: {} and {}",
            files[0].shown(),
            other.shown()
        ))),
        None => Ok(files),
    }
}

/// Rejects flags that have no effect on plans, to which models of several ranks are compiled.
fn expect_of_plans(content: Content, flags: &Flags) -> Result<(), Error> {
    flags.expect(&[InputKind::Plan], None).map_err(|message| match content {
        Content::Model => Error::Usage(format!(
            "{message}; models that exchange data with other ranks run as plans"
        )),
        _ => Error::Usage(message),
    })
}

fn run_library(
    console: &Console,
    arguments: &Run,
    input: &Input,
    given: Given,
) -> Result<Buffers, Error> {
    let library = input.load_library()?;
    let missing = Missing::of(library.interface(), arguments.seed);
    let missing = missing.with_shapes(models::shapes(&arguments.graphs)?);
    let given = given.complete(console, library.interface(), &missing)?;
    let mut runner = Runner::new(library.into(), &[])?;
    runner.set_pool(&threads::pool(arguments.threads)?)?;
    let _step = console.step("running");
    let found = runner.run(given).map_err(Error::from);
    found.map_err(|error| error.in_file(Path::new(input.shown())))
}

/// Compiles a model and runs it once, on given inputs, those of a data set, and random ones if requested;
/// compares with the data set's outputs.
fn run_model(
    console: &Console,
    arguments: &Run,
    input: &Input,
    inputs: Given,
) -> Result<Buffers, Error> {
    let results = models::run_results(input.content);
    let mut options = models::program_options(&arguments.graphs, &arguments.compile, results)?;
    let (mut expected, mut inputs, mut given) = (None, Some(inputs), Buffers::new());
    if input.content == Content::Graph
        && let Some(inputs) = inputs.take()
    {
        if Engine::named(arguments.engine()).is_some() {
            options = models::with_given_shapes(input, options, &inputs)?;
        }
        given = models::given(input, &options, inputs)?;
        options.inputs = models::values(&given);
        options.known_sizes = Engine::named(arguments.engine()).is_some();
    }
    if let Some(folder) = &arguments.data_set {
        let (inputs, outputs) = models::data_set(input, &options, folder)?;
        let more = std::mem::replace(&mut options.inputs, inputs);
        options.inputs.tensors.extend(more.tensors);
        given = options.inputs.to_tensors().map_err(Error::problem)?;
        expected = Some(outputs);
    }
    let session = Session::new();
    let quantising = models::Quantising::of(&arguments.compile.quantise, Scope::WhereRead);
    let model = models::open_quantised(console, &session, input, &options, &quantising)?;
    if let Some(inputs) = inputs {
        given = inputs.read_for(&model.interface()?)?;
    }
    if model.is_quantised() {
        values::note_nan(console, &given);
    }
    let mut compile = compile::options(&arguments.compile, target::backend(arguments.engine()))?;
    let tuning = TuningFile::open(arguments.compile.tuning.as_deref(), &mut compile)?;
    tuning.check(console, &model, &compile)?;
    models::explain(console, &model, &compile, arguments.compile.explain_fusion)?;
    let found = evaluate(console, arguments, &model, &compile, given)?;
    if let Some(expected) = expected {
        let imported = model.imported()?;
        let same = expected.compare(&found, &imported.structures);
        same.map_err(|message| {
            console.error(&message, None);
            Error::Mismatch
        })?;
    }
    Ok(found)
}

/// The outputs of a model for the given inputs, and random ones if requested.
fn evaluate(
    console: &Console,
    arguments: &Run,
    model: &Model<'_>,
    options: &CompileOptions,
    mut given: Buffers,
) -> Result<Buffers, Error> {
    if arguments.engine() == REFERENCE {
        let missing = Missing::of_model(&*model.imported()?, arguments.seed);
        missing.complete(console, &mut given, &model.inputs()?)?;
        let _step = console.step("evaluating");
        return Ok(model.evaluate(given)?);
    }
    let step = console.step("compiling");
    if let Some(engine) = Engine::named(arguments.engine()) {
        let target = engine.target(arguments.arch.as_deref())?;
        let target = irc::Target { form: gpu::form(arguments), ..target };
        let options = CompileOptions { target, ..options.clone() };
        let code = model.emit(Output::Ptx, &options)?;
        drop(step);
        let source = irc_diag::Source::from_bytes("the kernel of the model", &code);
        let program = Program::of_ptx(&source)?;
        return program.run(console, arguments, engine, given);
    }
    model.observe(step.kernels());
    let program = model.compile(options)?.with_pool(threads::pool(arguments.threads)?)?;
    drop(step);
    let interface = program.interface();
    let missing = match model.imported() {
        Ok(imported) => Missing::of_model(&imported, arguments.seed),
        // A module after the tensor level.
        Err(_) => Missing::of(interface, arguments.seed),
    };
    missing.complete(console, &mut given, &interface.inputs)?;
    let _step = console.step("running");
    Ok(program.run(given)?)
}
