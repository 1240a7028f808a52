//! `irc bench`: how long a model takes, and how near that is to what the machine can do.
mod latency;
mod report;
mod roofline;
mod work;

use crate::{
    compile,
    console::Console,
    graphs,
    input::{self, Content},
    output,
    run::{self, Loaded},
    stop::Stop,
    target as processor, values,
    world::{Preparation, World},
};
use irc::{CompileOptions, Results};
use irc_cli::{Bench, Generator};
use irc_runtime::{Interface, Library, Port, Runner};
use irc_tensor::Tensor;
use latency::{Latency, Length};
use report::Report;

/// Measures a program and prints what was found.
pub fn bench(console: &Console, arguments: &Bench) -> Result<(), Stop> {
    let bytes = input::read(&arguments.file)?;
    let processor = processor::named(&arguments.target_cpu)?;
    let target = processor::with_backend(processor.clone(), compile::backend(arguments.backend))?;
    let content = input::content_as(&arguments.file, &bytes, arguments.graphs.format.as_deref());
    if content != Content::Graph {
        refuse_of_graphs(arguments)?;
    } else if arguments.ark_accumulate {
        return Err(Stop::Usage(
            "--ark-accumulate has no effect here: it is for ARK models".into(),
        ));
    }
    let threads = if content == Content::Plan { arguments.threads } else { 1 };
    if content != Content::Plan {
        run::say_threads(console, arguments.threads);
    }
    let (latency, flops, traffic) = match content {
        Content::Model => {
            let source = input::source(&arguments.file, &bytes);
            let flops = work::flops(&source);
            let (session, file) = input::open(console, source, false)?;
            let options = CompileOptions {
                target: target.clone(),
                results: Results::Outputs,
                accumulate: compile::accumulate(arguments.ark_accumulate),
            };
            let loaded = Loaded::compile(console, &session, file, &options)?;
            let library = &loaded.library;
            (measure(console, library, arguments)?, flops, traffic(library.interface()))
        }
        Content::Library if arguments.ark_accumulate => {
            return Err(Stop::Usage(format!(
                "--ark-accumulate has no effect here: it is for models, and {} is compiled already",
                arguments.file
            )));
        }
        Content::Library if arguments.backend == Generator::Cranelift => {
            return Err(Stop::Usage(format!(
                "--backend has no effect here: {} is compiled already",
                arguments.file
            )));
        }
        // A library does not say how much it computes.
        Content::Library => {
            let loaded = Loaded::from_bytes(&bytes)?;
            let (latency, traffic) = measure_library(console, loaded.library, arguments)?;
            (latency, None, traffic)
        }
        Content::Plan => {
            let source = input::source(&arguments.file, &bytes);
            let preparation = Preparation { target: target.clone(), race_check: false, rank: None };
            let world = World::open(console, &[(source, content)], &preparation)?;
            let flops = world.ranks.iter().map(|rank| work::of_plan(rank.plan())).sum();
            let bytes = world.ranks.iter().map(|rank| traffic(rank.interface())).sum();
            (measure_world(console, &world, arguments)?, Some(flops), bytes)
        }
        Content::Mlir
        | Content::Schedule
        | Content::Frontend
        | Content::Listing
        | Content::Binary
        | Content::Empty
        | Content::Unknown => return Err(input::runs_not(&arguments.file, content)),
        Content::Archive => return Err(Stop::not_built("Model Library Format archives (.tar)")),
        Content::Graph => {
            let options = CompileOptions { target: target.clone(), ..CompileOptions::default() };
            let mut prepared = graphs::bench::prepare(console, arguments, bytes, &options)?;
            let _step = console.step("measuring");
            let latency = latency::measure(length(arguments), || prepared.run())?;
            (latency, prepared.flops, prepared.traffic)
        }
    };
    let step = console.step("measuring the roofline");
    let roofline = roofline::Roofline {
        gflops: match arguments.peak_gflops {
            Some(given) => given,
            None => roofline::measure_gflops(&processor)?,
        },
        bandwidth: match arguments.peak_bandwidth {
            Some(given) => given,
            None => roofline::measure_bandwidth(traffic),
        },
    };
    drop(step);
    let report = Report { latency, flops, traffic, roofline, threads };
    output::print(&if arguments.json { report.json() } else { report.text() })
}

fn refuse_of_graphs(arguments: &Bench) -> Result<(), Stop> {
    graphs::refuse(&arguments.graphs)?;
    match arguments.inputs {
        Some(_) => Err(Stop::Usage("--inputs is for Common IR and ONNX files".into())),
        None => Ok(()),
    }
}

/// How long a library takes, and the bytes it is given and gives.
fn measure_library(
    console: &Console,
    library: Library,
    arguments: &Bench,
) -> Result<(Latency, u64), Stop> {
    if !library.interface().is_sized() {
        return Ok((measure(console, &library, arguments)?, traffic(library.interface())));
    }
    let mut given = values::Buffers::new();
    values::fill(&mut given, library.interface(), arguments.seed)?;
    let runner = Runner::new(library.into(), &[])?;
    let mut prepared = graphs::bench::Prepared::of(runner, given)?;
    let _step = console.step("measuring");
    let latency = latency::measure(length(arguments), || prepared.run())?;
    Ok((latency, prepared.traffic))
}

fn measure(console: &Console, library: &Library, arguments: &Bench) -> Result<Latency, Stop> {
    let interface = library.interface();
    let mut given = values::Buffers::new();
    values::fill(&mut given, interface, arguments.seed)?;
    let mut inputs = bind(&interface.inputs, given)?;
    let mut outputs = bind(&interface.outputs, values::Buffers::new())?;
    let mut workspace = library.workspace()?;
    let _step = console.step("measuring");
    latency::measure(length(arguments), || {
        Ok(library.run_with(&mut inputs, &mut outputs, &mut workspace)?)
    })
}

fn measure_world(console: &Console, world: &World, arguments: &Bench) -> Result<Latency, Stop> {
    let mut memories = world.memories(values::Buffers::new(), Some(arguments.seed))?;
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

/// The buffers of ports in order; those not given are zero.
fn bind(ports: &[Port], mut given: values::Buffers) -> Result<Vec<Tensor>, Stop> {
    let bind = |port: &Port| {
        if let Some(given) = given.remove(&port.name) {
            return Ok(given);
        }
        let unknown = || Stop::problem(format!("{}: unknown type {}", port.name, port.dtype));
        Tensor::zeros(port.tensor_type().ok_or_else(unknown)?)
            .map_err(|error| Stop::problem(format!("{}: {error}", port.name)))
    };
    ports.iter().map(bind).collect()
}

/// Bytes of all inputs and outputs, each once.
fn traffic(interface: &Interface) -> u64 {
    let ports = interface.inputs.iter().chain(&interface.outputs);
    ports.filter_map(|port| port.tensor_type()?.byte_size().ok()).map(|bytes| bytes as u64).sum()
}
