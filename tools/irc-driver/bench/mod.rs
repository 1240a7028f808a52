//! `irc bench`: measures a model's latency, and compares it with the roofline of the machine.
mod kernel;
pub mod latency;
mod profile;
mod report;
mod roofline;
mod work;

use crate::{
    archive,
    console::Console,
    error::Error,
    gpu::{Engine, Program},
    input::{self, Content, Input},
    models, output, target as processor, threads,
    tuning::TuningFile,
    values::{Buffers, Given, Missing, shapes_of},
    world::{Preparation, World},
};
use irc::{
    CompileOptions, ImportOptions, Interface, Port, Runner, Session, Target, Tensor,
    codegen::Output, session::KernelWork,
};
use irc_cli::{Bench, CUDA, EMULATOR, Flags, GENERATORS};
use irc_tl::{Dim, Graph};
use latency::{Latency, Length};
use profile::Profile;
use report::Report;
use std::{collections::BTreeMap, path::Path};

/// Measures a program and prints the results.
pub fn bench(console: &Console, arguments: &Bench, flags: &Flags) -> Result<(), Error> {
    let input = Input::open(&arguments.file, arguments.graphs.format.as_deref())?;
    let Some(kind) = input.kind().filter(|_| input.is_for("bench")) else {
        return Err(input::not_for("bench", &arguments.file, input.content));
    };
    flags.expect(&[kind], None).map_err(Error::Usage)?;
    let engine = Engine::named(&arguments.backend);
    if engine == Some(Engine::Emulator) {
        return kernel::emulate(console, arguments, &input);
    }
    let is_kernel = match input.content {
        Content::Ptx => true,
        Content::Library | Content::Archive => Program::of_compiled(console, &input)?.is_some(),
        _ => engine.is_some(),
    };
    let has_choice = arguments.backend != GENERATORS[0].0;
    if has_choice && !is_kernel && matches!(input.content, Content::Library | Content::Archive) {
        return Err(Error::Usage(format!(
            "--backend {} has no effect on {}: it is already compiled, for processors",
            arguments.backend, arguments.file
        )));
    }
    let is_model = !matches!(
        input.content,
        Content::Plan | Content::Ptx | Content::Library | Content::Archive
    );
    if arguments.arch.is_some() && !is_kernel {
        return Err(Error::Usage(format!(
            "--arch has no effect on {} without --backend {EMULATOR} or {CUDA}",
            input.content.words()
        )));
    }
    if is_kernel && arguments.tuning.is_some() {
        let backend = &arguments.backend;
        return Err(Error::Usage(format!(
            "--tuning has no effect with --backend {backend}: its schedules are of processors"
        )));
    }
    if is_kernel && arguments.profile {
        return Err(Error::Usage("--profile samples functions of processors, not a GPU".into()));
    }
    let processor = processor::named(arguments.machine.target_cpu.as_deref().unwrap_or("native"))?;
    let target =
        processor::with_backend(processor.clone(), processor::backend(&arguments.backend))?;
    let target = match engine {
        Some(engine) if is_model => engine.target(arguments.arch.as_deref())?,
        _ => target,
    };
    let measured = match input.content {
        Content::Ptx | Content::Plan if is_kernel => {
            let ptx = kernel::ptx_of(console, arguments, &input)?;
            let library = irc::session::gpu::library(&input.source(), &ptx)?.library;
            let (runner, file) = runner_of_file(&library)?;
            let missing = missing(arguments, runner.interface())?;
            let given = given(arguments)?.complete(console, runner.interface(), &missing)?;
            let prepared = Prepared { _file: file, ..Prepared::of(runner, given)? };
            measure(console, prepared, arguments)?
        }
        Content::Plan => {
            let preparation = Preparation { target, race_check: false, rank: None };
            let world = World::open(console, &[(input.source(), input.content)], &preparation)?;
            Measured {
                flops: Some(world.ranks.iter().map(|rank| work::of_plan(rank.plan())).sum()),
                traffic: world.ranks.iter().map(|rank| traffic(rank.interface())).sum(),
                inputs: vec![],
                latency: measure_world(console, &world, arguments)?,
                device: None,
                profile: None,
                processor: None,
            }
        }
        Content::Library => {
            let library = input.load_library()?;
            let given = inputs_of(console, arguments, library.interface())?;
            let mut runner = Runner::new(library.into(), &[])?;
            runner.set_pool(&threads::pool(arguments.threads)?)?;
            let prepared = Prepared::of(runner, given);
            let prepared = prepared.map_err(|error| error.in_file(Path::new(&arguments.file)))?;
            measure(console, prepared, arguments)?
        }
        Content::Archive => measure_archive(console, &input, arguments)?,
        _ => measure(console, model(console, arguments, &input, &target.into())?, arguments)?,
    };
    // The peak of code that was compiled before is that of its own instructions.
    let is_compiled = matches!(input.content, Content::Library | Content::Archive);
    let processor = measured.processor.clone().filter(|_| is_compiled).unwrap_or(processor);
    let step = console.step("measuring the roofline");
    let peaks = || -> Result<_, Error> {
        Ok(roofline::Roofline {
            gflops: match arguments.peak_gflops {
                Some(given) => given,
                None => roofline::measure_gflops(&processor)? * cores(arguments.threads) as f64,
            },
            vector_bytes: match arguments.peak_gflops {
                Some(_) => None,
                None => Some(processor.vector_bytes()),
            },
            bandwidth: match arguments.peak_bandwidth {
                Some(given) => given,
                None => roofline::measure_bandwidth(),
            },
        })
    };
    let roofline = if is_kernel { None } else { Some(peaks()?) };
    drop(step);
    let Measured { latency, device, flops, traffic, inputs, profile, .. } = measured;
    let threads = arguments.threads;
    let report = Report { latency, device, flops, traffic, roofline, threads, inputs, profile };
    output::print(&if arguments.json { report.json() } else { report.text() })
}

/// The given inputs.
fn given(arguments: &Bench) -> Result<Given, Error> {
    Given::open(arguments.inputs.as_deref())
}

/// What inputs of a compiled program are that are not given.
fn missing(arguments: &Bench, interface: &Interface) -> Result<Missing, Error> {
    let missing = Missing::of(interface, Some(arguments.seed));
    Ok(missing.with_shapes(models::shapes(&arguments.graphs)?))
}

/// The inputs of a compiled program, whose sizes are all stated.
fn inputs_of(
    console: &Console,
    arguments: &Bench,
    interface: &Interface,
) -> Result<Buffers, Error> {
    let given = given(arguments)?;
    let missing = missing(arguments, interface)?;
    let shapes = given.types().into_iter().map(|(name, ty)| (name, ty.shape)).collect();
    expect_no_open(&missing.open(&shapes, &interface.inputs)?)?;
    given.complete(console, interface, &missing)
}

/// Compiles a model and runs it once.
fn model(
    console: &Console,
    arguments: &Bench,
    input: &Input,
    compile: &CompileOptions,
) -> Result<Prepared, Error> {
    let mut options = ImportOptions {
        accumulate: models::accumulate(arguments.machine.ark_accumulate),
        ..models::options(&arguments.graphs)?
    };
    let (mut inputs, mut given) = (Some(given(arguments)?), Buffers::new());
    if input.content == Content::Graph
        && let Some(inputs) = inputs.take()
    {
        given = models::given(input, &options, inputs)?;
        options.inputs = models::values(&given);
        options.known_sizes = compile.target.backend.writes(Output::Ptx);
    }
    let session = Session::new();
    let model = models::open(console, &session, input, &options)?;
    let mut compile = compile.clone();
    let tuning = TuningFile::open(arguments.tuning.as_deref(), &mut compile)?;
    tuning.check(console, &model, &compile)?;
    let compile = &compile;
    if let Some(inputs) = inputs {
        given = inputs.read_for(&model.interface()?)?;
    }
    let step = console.step("compiling");
    let is_loaded = arguments.profile || compile.target.backend.writes(Output::Ptx);
    let (mut runner, file) = match is_loaded {
        true => runner_of_file(&model.library(compile)?.library)?,
        false => (model.compile(compile)?.runner()?, None),
    };
    runner.set_pool(&threads::pool(arguments.threads)?)?;
    drop(step);
    if !compile.target.backend.writes(Output::Ptx) {
        console.diagnostics(&model.source(), &model.slow_kernels(compile)?);
    }
    let ports: Vec<Port> = runner.inputs().cloned().collect();
    let mut inputs = given;
    let imported = model.imported().ok();
    let missing = match &imported {
        Some(imported) => Missing::of_model(imported, Some(arguments.seed)),
        None => Missing::of(runner.interface(), Some(arguments.seed)),
    };
    expect_no_open(&missing.open(&shapes_of(&inputs), &ports)?)?;
    missing.complete(console, &mut inputs, &ports)?;
    let sizes = imported.as_ref().map(|imported| sizes(&imported.graph, &inputs));
    let size = |name: &str| sizes.as_ref()?.get(&Dim::symbol(name)).copied();
    let flops = imported.as_ref().and_then(|imported| imported.graph.flops(&size));
    let work = match arguments.profile && imported.is_some() {
        true => model.kernel_work(compile, &size)?,
        false => BTreeMap::new(),
    };
    Ok(Prepared { flops, work, _file: file, ..Prepared::of(runner, inputs)? })
}

/// The number of cores that so many threads run on.
pub(super) fn cores(threads: u32) -> usize {
    let all = std::thread::available_parallelism().map_or(1, Into::into);
    all.min(threads.max(1) as usize)
}

/// A library from a file that remains, in which a profile finds the names of its functions.
fn runner_of_file(library: &[u8]) -> Result<(Runner, Option<crate::temporary::Folder>), Error> {
    let folder = output::temporary_folder()?;
    let path = folder.path().join("model.so");
    let written = std::fs::write(&path, library);
    written.map_err(|error| {
        Error::problem(format!("cannot write {}: {}", path.display(), output::plain(&error)))
    })?;
    let library = irc_runtime::Library::load(&path)?;
    Ok((Runner::new(library.into(), &[])?, Some(folder)))
}

/// Rejects inputs with sizes that are not determined, as the time depends on them.
fn expect_no_open(open: &[&Port]) -> Result<(), Error> {
    if open.is_empty() {
        return Ok(());
    }
    let types: Vec<String> =
        open.iter().map(|port| format!("{}[{}]", port.name, port.sizes.join(" x "))).collect();
    let flags: Vec<String> =
        open.iter().map(|port| format!("--shape {}", port.example_shape())).collect();
    Err(Error::Usage(format!(
        "inputs have dynamic sizes: {}; specify them with --inputs, or as with {}",
        types.join(", "),
        flags.join(" ")
    )))
}

/// The values of open sizes that inputs have.
fn sizes(graph: &Graph, inputs: &Buffers) -> BTreeMap<Dim, i64> {
    let mut sizes: BTreeMap<Dim, i64> = BTreeMap::new();
    for (name, value) in &graph.inputs {
        let extents = inputs.get(name).map(Tensor::shape).unwrap_or_default().iter().copied();
        sizes.extend(graph.ty(*value).dims.iter().cloned().zip(extents));
    }
    sizes
}

/// The properties of a measured program.
struct Measured {
    latency: Latency,
    /// The latency on a GPU, without copies.
    device: Option<Latency>,
    /// Number of floating-point operations of a run, if known.
    flops: Option<u64>,
    /// Size of all inputs, constants and outputs in bytes.
    traffic: u64,
    /// The inputs and their types.
    inputs: Vec<String>,
    /// The time of each kernel, if it is wanted.
    profile: Option<Profile>,
    /// The processor whose instructions the code has, if it is less than this one.
    processor: Option<Target>,
}

/// The level of processors of code that does not use all vectors of this one.
fn code_for(required: &[String]) -> Option<Target> {
    let requires = |prefix: &str| required.iter().any(|feature| feature.starts_with(prefix));
    match () {
        () if requires("avx512") => None,
        () if requires("avx") => Some(Target::from_name("x86-64-v3")),
        () => Some(Target::from_name("x86-64")),
    }
}

fn measure_archive(console: &Console, input: &Input, arguments: &Bench) -> Result<Measured, Error> {
    let loaded = archive::Loaded::open_checked(console, &input.name, &input.bytes)?;
    let loaded = loaded.on(threads::pool(arguments.threads)?);
    let given = inputs_of(console, arguments, loaded.interface())?;
    let in_file = |error: Error| error.in_file(Path::new(&arguments.file));
    let mut context = loaded.context(&given).map_err(in_file)?;
    let _step = console.step("measuring");
    let (latency, profile) = repeated(arguments, || context.run()).map_err(in_file)?;
    let inputs = given.iter().map(|(name, tensor)| format!("{name} {}", tensor.ty()));
    let read: usize = given.values().map(|tensor| tensor.bytes().len()).sum();
    let outputs = 0..loaded.interface().outputs.len();
    let written: usize = outputs.map(|output| context.output_bytes(output)).sum();
    let traffic = (read + written) as u64;
    let (inputs, processor) = (inputs.collect(), code_for(loaded.requires()));
    Ok(Measured { latency, device: None, flops: None, traffic, inputs, profile, processor })
}

/// A compiled model with its inputs, ready to run.
pub struct Prepared {
    runner: Runner,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    /// Number of floating-point operations of a run, if known.
    pub flops: Option<u64>,
    /// The work of its kernels in a run, by symbol; without those that a library describes.
    work: BTreeMap<String, KernelWork>,
    /// Size of all inputs, constants and outputs in bytes.
    traffic: u64,
    /// The folder of the library's file.
    _file: Option<crate::temporary::Folder>,
}

impl Prepared {
    /// Runs a model once on these inputs; omitted inputs are zero.
    pub fn of(mut runner: Runner, mut inputs: Buffers) -> Result<Self, Error> {
        for port in runner.inputs() {
            if inputs.contains_key(&port.name) {
                continue;
            }
            let unknown = || Error::problem(format!("{}: unknown type {}", port.name, port.dtype));
            let zeros = Tensor::zeros(port.tensor_type().ok_or_else(unknown)?);
            let zeros = zeros.map_err(|error| Error::problem(format!("{}: {error}", port.name)))?;
            inputs.insert(port.name.clone(), zeros);
        }
        let mut found = runner.run(inputs.clone())?;
        let inputs = runner.inputs().filter_map(|port| inputs.remove(&port.name)).collect();
        let ports = runner.interface().outputs.iter();
        let outputs: Vec<Tensor> = ports.filter_map(|port| found.remove(&port.name)).collect();
        let (work, _file) = (BTreeMap::new(), None);
        let mut prepared = Self { runner, inputs, outputs, flops: None, work, traffic: 0, _file };
        prepared.traffic = prepared.bytes();
        Ok(prepared)
    }

    fn bytes(&self) -> u64 {
        let constants = self.runner.interface().inputs.iter().filter(|port| port.weight.is_some());
        let constants = constants.filter_map(|port| port.tensor_type()?.byte_size().ok());
        let tensors = self.inputs.iter().chain(&self.outputs);
        tensors.map(|tensor| tensor.bytes().len()).chain(constants).map(|bytes| bytes as u64).sum()
    }

    /// The inputs and their types.
    fn described(&self) -> Vec<String> {
        let ports = self.runner.inputs().zip(&self.inputs);
        ports.map(|(port, tensor)| format!("{} {}", port.name, tensor.ty())).collect()
    }

    /// Runs the model once more.
    pub fn run(&mut self) -> Result<(), Error> {
        let inputs: Vec<&Tensor> = self.inputs.iter().collect();
        Ok(self.runner.run_with(&inputs, &mut self.outputs)?)
    }
}

/// Measures a model's latency.
fn measure(
    console: &Console,
    mut prepared: Prepared,
    arguments: &Bench,
) -> Result<Measured, Error> {
    let _step = console.step("measuring");
    if arguments.in_place {
        prepared.runner.share();
    }
    let mut times = vec![];
    let (latency, profile) = repeated(arguments, || {
        prepared.run()?;
        times.extend(prepared.runner.device_seconds());
        Ok(())
    })?;
    // Runs that warmed up come first.
    let device = times.split_off(times.len().saturating_sub(latency.runs()));
    let device = (!device.is_empty()).then(|| Latency::of(device));
    let (inputs, processor) =
        (prepared.described(), code_for(&prepared.runner.interface().requires));
    let Prepared { flops, traffic, work, .. } = prepared;
    let profile = profile.map(|profile| profile.with_work(&work));
    Ok(Measured { latency, device, flops, traffic, inputs, profile, processor })
}

/// Runs a program repeatedly, and profiles it if that is wanted.
fn repeated(
    arguments: &Bench,
    run: impl FnMut() -> Result<(), Error>,
) -> Result<(Latency, Option<Profile>), Error> {
    let measure = || latency::measure(length(arguments), run);
    if !arguments.profile {
        return Ok((measure()?, None));
    }
    let (latency, profile) = profile::profiled(measure)?;
    Ok((latency, Some(profile)))
}

fn measure_world(console: &Console, world: &World, arguments: &Bench) -> Result<Latency, Error> {
    let mut memories = world.memories(Buffers::new(), Some(arguments.seed))?;
    let _step = console.step("measuring");
    let threads = arguments.threads as usize;
    latency::measure(length(arguments), || {
        world.run(&mut memories, irc_executor::Options { threads, ..Default::default() })
    })
}

fn length(arguments: &Bench) -> Length {
    match arguments.iterations {
        Some(runs) => Length::Runs(runs),
        None => Length::Seconds(arguments.time),
    }
}

/// Size of all inputs and outputs in bytes.
fn traffic(interface: &Interface) -> u64 {
    let ports = interface.inputs.iter().chain(&interface.outputs);
    ports.filter_map(|port| port.tensor_type()?.byte_size().ok()).map(|bytes| bytes as u64).sum()
}
