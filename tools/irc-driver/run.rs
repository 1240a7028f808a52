//! `irc run`: a model or a compiled library, on given or random inputs.
use crate::{
    compile,
    console::Console,
    input::{self, Content},
    output,
    stop::Stop,
    values::{self, Buffers},
};
use irc::{CompileOptions, FileId, Results, Session, Target};
use irc_cli::{Backend, Run};
use irc_diag::Source;
use irc_runtime::{Interface, Library};
use std::path::Path;

/// Runs a program once.
pub fn run(console: &Console, arguments: &Run) -> Result<(), Stop> {
    refuse_not_built(arguments)?;
    say_threads(console, arguments.threads);
    if let Some(path) = &arguments.outputs {
        output::probe(path)?;
    }
    let given = arguments.inputs.as_deref().map(values::read).transpose()?.unwrap_or_default();
    let expected = arguments.expected.as_deref().map(values::read).transpose()?;
    let bytes = input::read(&arguments.model)?;
    let found = match input::content(&bytes) {
        Content::Library => run_library(console, arguments, given)?,
        Content::Plan => return Err(Stop::not_built("running plans")),
        Content::Archive => return Err(Stop::not_built("Model Library Format archives (.tar)")),
        Content::Model => {
            run_model(console, arguments, input::source(&arguments.model, &bytes), given)?
        }
    };
    if let Some(path) = &arguments.outputs {
        values::write(path, &found)?;
    } else if expected.is_none() {
        output::print(&values::summary(&found))?;
    }
    match expected {
        Some(expected) => values::check(console, expected, &found, arguments.tolerance),
        None => Ok(()),
    }
}

fn refuse_not_built(arguments: &Run) -> Result<(), Stop> {
    match arguments.backend {
        Backend::Cranelift => return Err(Stop::not_built("the Cranelift backend")),
        Backend::Cuda => return Err(Stop::not_built("the CUDA backend")),
        Backend::Llvm | Backend::Reference => {}
    }
    match arguments.data_set {
        Some(_) => Err(Stop::not_built("ONNX data sets")),
        None => Ok(()),
    }
}

/// Says that more threads do not help.
pub fn say_threads(console: &Console, threads: u32) {
    if threads > 1 {
        console.note(&format!("kernels run on one thread today, not on {threads}"));
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
    ];
    match flags.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Stop::Usage(format!(
            "{flag} has no effect here: it is for models, and {} is compiled already",
            arguments.model
        ))),
        None => Ok(()),
    }
}

fn run_library(console: &Console, arguments: &Run, given: Buffers) -> Result<Buffers, Stop> {
    if arguments.backend == Backend::Reference {
        return Err(Stop::Usage("--backend reference evaluates models, not libraries".into()));
    }
    refuse_to_compile(arguments)?;
    // The loader searches its own folders for a name without a slash.
    let path = Path::new(".").join(&arguments.model);
    let library = load(&path)?;
    execute(console, &library, prepare(given, library.interface(), arguments.seed)?)
}

fn run_model(
    console: &Console,
    arguments: &Run,
    source: Source,
    given: Buffers,
) -> Result<Buffers, Stop> {
    let options = compile::options(&arguments.compile, false, Results::All)?;
    let (session, file) = input::open(console, source, false)?;
    compile::explain(console, &session, file, &options, arguments.compile.explain_fusion)?;
    if arguments.backend == Backend::Reference {
        return evaluate(console, &session, file, &options, arguments.seed, given);
    }
    let loaded = Loaded::compile(console, &session, file, &options)?;
    execute(console, &loaded.library, prepare(given, loaded.library.interface(), arguments.seed)?)
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

fn expect_runnable(target: &Target) -> Result<(), Stop> {
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
