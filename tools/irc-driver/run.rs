//! `irc run`: a model, a compiled library or plans, on given or random inputs.
use crate::{
    compile,
    console::Console,
    graphs,
    input::{self, Content},
    output, run_plans,
    stop::Stop,
    transport::Transport,
    values::{self, Buffers},
    world,
};
use irc::{CompileOptions, FileId, Results, Session, Target};
use irc_cli::{Backend, Run};
use irc_diag::Source;
use irc_runtime::{Interface, Library};
use std::path::Path;

/// Runs a program once.
pub fn run(console: &Console, arguments: &Run) -> Result<(), Stop> {
    if let [name] = &arguments.files[..]
        && (arguments.graphs.format.is_some() || graphs::run::is_graph(name))
    {
        return graphs::run::run(console, arguments, name);
    }
    refuse_not_built(arguments)?;
    let transport = Transport::open(arguments.transport)?;
    let result = run_over(&transport, console, arguments);
    transport.close(console, result)
}

fn run_over(transport: &Transport, console: &Console, arguments: &Run) -> Result<(), Stop> {
    let outputs = arguments.outputs.as_deref().map(|path| transport.own(path));
    if let Some(path) = &outputs {
        output::probe(path)?;
    }
    let given = arguments.inputs.as_deref().map(values::read).transpose()?.unwrap_or_default();
    let expected = arguments.expected.as_deref().map(values::read).transpose()?;
    let files = read(&arguments.files)?;
    let (found, buffers) = match &files[..] {
        [(_, Content::Library)] => {
            refuse_of_plans(arguments)?;
            say_threads(console, arguments.threads);
            (run_library(console, arguments, given)?, None)
        }
        [(source, Content::Model)] if !world::communicates(source) => {
            refuse_of_plans(arguments)?;
            say_threads(console, arguments.threads);
            (run_model(console, arguments, source.clone(), given)?, None)
        }
        _ => {
            let (found, buffers) = run_plans::run(transport, console, arguments, &files, given)?;
            (found, Some(buffers))
        }
    };
    if let Some(path) = &outputs {
        values::write(path, &found)?;
    } else if expected.is_none() {
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

/// The files and what they hold: one of any kind, or several plans, or several models.
fn read(names: &[String]) -> Result<Vec<(Source, Content)>, Stop> {
    let mut files = vec![];
    for name in names {
        let bytes = input::read(name)?;
        let content = input::content(&bytes);
        match content {
            Content::Archive => {
                return Err(Stop::not_built("Model Library Format archives (.tar)"));
            }
            Content::Library if names.len() > 1 => {
                return Err(Stop::Usage(format!("{name} is a library: it runs alone")));
            }
            Content::Graph if names.len() > 1 => {
                return Err(Stop::Usage(format!("{name} is a model of its own: it runs alone")));
            }
            Content::Graph => return Err(Stop::problem(format!("{name}: cannot be read twice"))),
            Content::Library => files.push((Source::new(name, ""), content)),
            Content::Model | Content::Plan => files.push((input::source(name, &bytes), content)),
        }
    }
    match files.iter().find(|(_, content)| *content != files[0].1) {
        Some((other, _)) => Err(Stop::Usage(format!(
            "expected plans only, or models only; {} and {} are one of each",
            files[0].0.name(),
            other.name()
        ))),
        None => Ok(files),
    }
}

fn refuse_not_built(arguments: &Run) -> Result<(), Stop> {
    match arguments.backend {
        Backend::Cuda => return Err(Stop::not_built("the CUDA backend")),
        Backend::Llvm | Backend::Cranelift | Backend::Reference => {}
    }
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
    ];
    let name = &arguments.files[0];
    refuse_flags(&flags, &format!("it is for models, and {name} is compiled already"))
}

/// Refuses flags that say how plans run.
pub fn refuse_of_plans(arguments: &Run) -> Result<(), Stop> {
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

fn run_library(console: &Console, arguments: &Run, given: Buffers) -> Result<Buffers, Stop> {
    if arguments.backend == Backend::Reference {
        return Err(Stop::Usage("--backend reference evaluates models, not libraries".into()));
    }
    refuse_to_compile(arguments)?;
    // The loader searches its own folders for a name without a slash.
    let path = Path::new(".").join(&arguments.files[0]);
    let library = load(&path)?;
    execute(console, &library, prepare(given, library.interface(), arguments.seed)?)
}

fn run_model(
    console: &Console,
    arguments: &Run,
    source: Source,
    given: Buffers,
) -> Result<Buffers, Stop> {
    let generator = generator(arguments.backend);
    let options = compile::options(&arguments.compile, generator, false, Results::All)?;
    let (session, file) = input::open(console, source, false)?;
    compile::explain(console, &session, file, &options, arguments.compile.explain_fusion)?;
    if arguments.backend == Backend::Reference {
        return evaluate(console, &session, file, &options, arguments.seed, given);
    }
    let loaded = Loaded::compile(console, &session, file, &options)?;
    execute(console, &loaded.library, prepare(given, loaded.library.interface(), arguments.seed)?)
}

/// The code generator of a backend; what generates no code has none, and takes the default.
pub fn generator(backend: Backend) -> irc::Backend {
    match backend {
        Backend::Cranelift => irc::Backend::Cranelift,
        Backend::Llvm | Backend::Reference | Backend::Cuda => irc::Backend::Llvm,
    }
}

/// A model that was compiled and loaded.
pub struct Loaded {
    /// The library.
    pub library: Library,
    /// Where it lies; removed when the library is.
    _folder: tempfile::TempDir,
}

impl Loaded {
    /// Compiles and loads a model.
    pub fn compile(
        console: &Console,
        session: &Session,
        file: FileId,
        options: &CompileOptions,
    ) -> Result<Self, Stop> {
        expect_runnable(&options.target)?;
        let step = console.step("compiling");
        let compiled = session
            .compile(file, options)
            .map_err(|failure| Stop::failure(session.source(file), failure))?;
        drop(step);
        Self::from_bytes(&compiled.library)
    }

    /// Loads a library from memory.
    pub fn from_bytes(library: &[u8]) -> Result<Self, Stop> {
        let folder = tempfile::tempdir().map_err(|error| {
            Stop::problem(format!("cannot create a temporary folder: {}", output::plain(&error)))
        })?;
        let path = folder.path().join("model.so");
        output::write(&path, library, output::Content::Executable)?;
        Ok(Self { library: load(&path)?, _folder: folder })
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

/// Loads a library.
pub fn load(path: &Path) -> Result<Library, Stop> {
    Library::load(path).map_err(|error| Stop::problem(error.to_string()))
}

fn prepare(mut given: Buffers, interface: &Interface, seed: Option<u64>) -> Result<Buffers, Stop> {
    if let Some(seed) = seed {
        values::fill(&mut given, interface, seed)?;
    }
    Ok(given)
}

fn execute(console: &Console, library: &Library, inputs: Buffers) -> Result<Buffers, Stop> {
    let _step = console.step("running");
    library.run(inputs).map_err(|error| Stop::problem(error.to_string()))
}

fn evaluate(
    console: &Console,
    session: &Session,
    file: FileId,
    options: &CompileOptions,
    seed: Option<u64>,
    given: Buffers,
) -> Result<Buffers, Stop> {
    let failed = |failure| Stop::failure(session.source(file), failure);
    let interface = session.interface(file, options).map_err(failed)?;
    let inputs = prepare(given, &interface, seed)?;
    let _step = console.step("evaluating");
    session.run_reference(file, inputs, options).map_err(failed)
}
