//! `irc run`: a model, a compiled library or plans, on given or random inputs.
use crate::{
    archive, compile,
    console::Console,
    graphs,
    input::{self, Content},
    output, run_plans,
    stop::Stop,
    transport::Transport,
    values::{self, Buffers},
    world,
};
use bytes::Bytes;
use irc::{CompileOptions, Model, Results, Runner, Session, Target};
use irc_cli::{Backend, Run};
use irc_diag::Source;
use irc_runtime::Library;
use std::path::Path;

/// Runs a program once.
pub fn run(console: &Console, arguments: &Run) -> Result<(), Stop> {
    if arguments.backend == Backend::Cuda {
        return Err(Stop::not_built("the CUDA backend"));
    }
    let transport = Transport::open(arguments.transport)?;
    let result = run_over(&transport, console, arguments);
    transport.close(console, result)
}

fn run_over(transport: &Transport, console: &Console, arguments: &Run) -> Result<(), Stop> {
    let outputs = arguments.outputs.as_deref().map(|path| transport.own(path));
    if let Some(path) = &outputs {
        for file in &arguments.files {
            output::probe_beside(path, file)?;
        }
    }
    let given = arguments.inputs.as_deref().map(values::read).transpose()?.unwrap_or_default();
    let expected = arguments.expected.as_deref().map(values::read).transpose()?;
    let files = read(arguments)?;
    if arguments.self_test && files[0].content != Content::Archive {
        return Err(Stop::Usage("--self-test is for archives (.tar)".into()));
    }
    if files[0].content != Content::Graph {
        refuse_of_graphs(arguments)?;
    }
    let (found, buffers) = match &files[..] {
        [File { content: Content::Graph, bytes, .. }] => {
            refuse_of_plans(arguments)?;
            say_threads(console, arguments.threads);
            (graphs::run::run(console, arguments, bytes.clone(), given)?, None)
        }
        [File { content: Content::Archive, bytes, .. }] => {
            refuse_of_plans(arguments)?;
            say_threads(console, arguments.threads);
            refuse_to_compile(arguments)?;
            if arguments.self_test {
                return archive::self_test(console, arguments, bytes);
            }
            (archive::run(console, arguments, bytes, given)?, None)
        }
        [File { content: Content::Library, .. }] => {
            refuse_of_plans(arguments)?;
            say_threads(console, arguments.threads);
            (run_library(console, arguments, given)?, None)
        }
        [File { content: Content::Model, source, .. }] if !world::communicates(source) => {
            refuse_of_plans(arguments)?;
            say_threads(console, arguments.threads);
            (run_ark(console, arguments, source.clone(), given)?, None)
        }
        _ => {
            let files: Vec<_> = files.into_iter().map(|file| (file.source, file.content)).collect();
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
                expected.retain(|name, _| name.starts_with(&own) || !name.starts_with("rank"));
            }
            if let Some(buffers) = buffers {
                values::set_aside(console, &mut expected, &found, &buffers)?;
            }
            values::check(console, expected, &found, arguments.tolerance)
        }
        None => Ok(()),
    }
}

/// A file to run.
struct File {
    /// Its text, of models and plans.
    source: Source,
    content: Content,
    bytes: Bytes,
}

/// The files and what they hold: one of any kind, or several plans, or several models.
fn read(arguments: &Run) -> Result<Vec<File>, Stop> {
    let mut files: Vec<File> = vec![];
    for name in &arguments.files {
        let bytes = input::read(name)?;
        let content = input::content_as(name, &bytes, arguments.graphs.format.as_deref());
        let source = match content {
            Content::Library | Content::Graph | Content::Archive if arguments.files.len() > 1 => {
                let what = content.words();
                return Err(Stop::Usage(format!("{name} is {what}: it runs alone")));
            }
            Content::Library | Content::Graph | Content::Archive => Source::new(name, ""),
            Content::Model | Content::Plan => input::source(name, &bytes),
            Content::Mlir
            | Content::Schedule
            | Content::Frontend
            | Content::Listing
            | Content::Binary
            | Content::Empty
            | Content::Unknown => return Err(input::runs_not(name, content)),
        };
        files.push(File { source, content, bytes });
    }
    match files.iter().find(|file| file.content != files[0].content) {
        Some(other) => Err(Stop::Usage(format!(
            "expected plans only, or models only; {} and {} are one of each",
            files[0].source.name(),
            other.source.name()
        ))),
        None => Ok(files),
    }
}

/// Refuses flags that say how Common IR and ONNX files are read and run.
fn refuse_of_graphs(arguments: &Run) -> Result<(), Stop> {
    graphs::refuse(&arguments.graphs)?;
    match arguments.data_set {
        Some(_) => Err(Stop::Usage("--data-set is for ONNX and Common IR models".into())),
        None => Ok(()),
    }
}

/// Says that more threads do not help.
pub fn say_threads(console: &Console, threads: u32) {
    if threads > 1 {
        console.note(&format!("models run on one thread today, not on {threads}"));
    }
}

/// Refuses flags that say how a model is compiled: a library is.
fn refuse_to_compile(arguments: &Run) -> Result<(), Stop> {
    let irc_cli::Compile { target_cpu, results, ark_accumulate, explain_fusion } =
        &arguments.compile;
    let flags = [
        ("--target-cpu", target_cpu.is_some()),
        ("--results", results.is_some()),
        ("--ark-accumulate", *ark_accumulate),
        ("--explain-fusion", explain_fusion.is_some()),
        ("--backend cranelift", arguments.backend == Backend::Cranelift),
        ("--backend reference", arguments.backend == Backend::Reference),
    ];
    let name = &arguments.files[0];
    refuse_flags(&flags, &format!("it is for models, and {name} is compiled already"))
}

/// Refuses flags that say how plans run.
fn refuse_of_plans(arguments: &Run) -> Result<(), Stop> {
    let flags = [("--trace", arguments.trace.is_some()), ("--race-check", arguments.race_check)];
    refuse_flags(&flags, "it is for plans; irc compile -o model.plan.json makes one of a model")
}

/// Refuses the first flag that is given.
pub fn refuse_flags(flags: &[(&str, bool)], why: &str) -> Result<(), Stop> {
    match flags.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Stop::Usage(format!("{flag} has no effect here: {why}"))),
        None => Ok(()),
    }
}

fn run_library(console: &Console, arguments: &Run, mut given: Buffers) -> Result<Buffers, Stop> {
    refuse_to_compile(arguments)?;
    let library = Library::load(Path::new(&arguments.files[0]))?;
    if let Some(seed) = arguments.seed {
        values::fill(&mut given, &library.interface().inputs, seed)?;
    }
    let mut runner = Runner::new(library.into(), &[])?;
    let _step = console.step("running");
    Ok(runner.run(given)?)
}

fn run_ark(
    console: &Console,
    arguments: &Run,
    source: Source,
    given: Buffers,
) -> Result<Buffers, Stop> {
    let generator = generator(arguments.backend);
    let options = compile::options(&arguments.compile, generator, false, Results::All)?;
    let session = Session::new();
    let model = input::open(console, &session, source, false)?;
    compile::explain(console, &model, &options, arguments.compile.explain_fusion)?;
    run_model(console, arguments, &model, &options, given)
}

/// Runs a model on given inputs, and random ones if the flags say so.
pub fn run_model(
    console: &Console,
    arguments: &Run,
    model: &Model<'_>,
    options: &CompileOptions,
    mut given: Buffers,
) -> Result<Buffers, Stop> {
    if let Some(seed) = arguments.seed {
        values::fill(&mut given, &model.inputs(options)?, seed)?;
    }
    if arguments.backend == Backend::Reference {
        let _step = console.step("evaluating");
        return Ok(model.evaluate(given, options)?);
    }
    expect_runnable(&options.target)?;
    let step = console.step("compiling");
    let program = model.compile(options)?;
    drop(step);
    let _step = console.step("running");
    Ok(program.run(given)?)
}

/// The code generator of a backend; what generates no code has none, and takes the default.
pub fn generator(backend: Backend) -> irc::Backend {
    match backend {
        Backend::Cranelift => irc::Backend::Cranelift,
        Backend::Llvm | Backend::Reference | Backend::Cuda => irc::Backend::Llvm,
    }
}

/// Refuses a target whose code this machine cannot run.
pub fn expect_runnable(target: &Target) -> Result<(), Stop> {
    if target.runs_here() {
        return Ok(());
    }
    let problem = Stop::problem(format!("code for '{}' does not run on this machine", target.cpu));
    Err(problem.help("leave --target-cpu out, or use irc compile"))
}
