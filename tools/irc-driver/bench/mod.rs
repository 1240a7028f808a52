//! `irc bench`: how long a model takes, and how near that is to what the machine can do.
mod latency;
mod report;
mod roofline;
mod work;

use crate::{
    compile,
    console::Console,
    input::{self, Content},
    output,
    run::{self, Loaded},
    stop::Stop,
    target as processor, values,
};
use irc::{CompileOptions, Results};
use irc_cli::Bench;
use irc_runtime::{Interface, Library, Port};
use irc_tensor::Tensor;
use latency::{Latency, Length};
use report::Report;

/// Measures a program and prints what was found.
pub fn bench(console: &Console, arguments: &Bench) -> Result<(), Stop> {
    run::say_threads(console, arguments.threads);
    let bytes = input::read(&arguments.model)?;
    let target = processor::named(&arguments.target_cpu)?;
    let (loaded, flops) = match input::content(&bytes) {
        Content::Model => {
            let source = input::source(&arguments.model, &bytes);
            let flops = work::flops(&source);
            let (session, file) = input::open(console, source, false)?;
            let options = CompileOptions {
                target: target.clone(),
                results: Results::Outputs,
                accumulate: compile::accumulate(arguments.ark_accumulate),
            };
            (Loaded::compile(console, &session, file, &options)?, flops)
        }
        Content::Library if arguments.ark_accumulate => {
            return Err(Stop::Usage(format!(
                "--ark-accumulate has no effect here: it is for models, and {} is compiled already",
                arguments.model
            )));
        }
        // A library does not say how much it computes.
        Content::Library => (Loaded::from_bytes(&bytes)?, None),
        Content::Plan => return Err(Stop::not_built("running plans")),
        Content::Archive => return Err(Stop::not_built("Model Library Format archives (.tar)")),
    };
    let library = &loaded.library;
    let latency = measure(console, library, arguments)?;
    let step = console.step("measuring the roofline");
    let traffic = traffic(library.interface());
    let roofline = roofline::Roofline {
        gflops: match arguments.peak_gflops {
            Some(given) => given,
            None => roofline::measure_gflops(&target)?,
        },
        bandwidth: match arguments.peak_bandwidth {
            Some(given) => given,
            None => roofline::measure_bandwidth(traffic),
        },
    };
    drop(step);
    let report = Report { latency, flops, traffic, roofline };
    output::print(&if arguments.json { report.json() } else { report.text() })
}

fn measure(console: &Console, library: &Library, arguments: &Bench) -> Result<Latency, Stop> {
    let interface = library.interface();
    let failed = |error: irc_runtime::RunError| Stop::problem(error.to_string());
    let mut given = values::Buffers::new();
    values::fill(&mut given, interface, arguments.seed)?;
    let mut inputs = bind(&interface.inputs, given)?;
    let mut outputs = bind(&interface.outputs, values::Buffers::new())?;
    let mut workspace = library.workspace().map_err(failed)?;
    let length = match arguments.iterations {
        Some(runs) => Length::Runs(runs),
        None => Length::Seconds(arguments.time),
    };
    let _step = console.step("measuring");
    latency::measure(length, || {
        library.run_with(&mut inputs, &mut outputs, &mut workspace).map_err(failed)
    })
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
