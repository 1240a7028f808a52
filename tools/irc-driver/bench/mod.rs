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
    output, run,
    stop::Stop,
    target as processor,
    values::{self, Buffers},
    world::{Preparation, World},
};
use irc::{CompileOptions, Interface, Model, Program, Results, Runner, Session, Tensor};
use irc_cli::{Bench, Generator};
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
            let session = Session::new();
            let model = input::open(console, &session, source, false)?;
            let options = CompileOptions {
                target: target.clone(),
                results: Results::Outputs,
                accumulate: compile::accumulate(arguments.ark_accumulate),
            };
            let mut given = Buffers::new();
            values::fill(&mut given, &model.inputs(&options)?, arguments.seed)?;
            let prepared = Prepared::compiled(console, &model, &options, given)?;
            measure(console, Prepared { flops, ..prepared }, arguments)?
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
            let program = Program::from_library(&bytes)?;
            let mut given = Buffers::new();
            values::fill(&mut given, &program.interface().inputs, arguments.seed)?;
            measure(console, Prepared::of(program.runner()?, given)?, arguments)?
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
            let prepared = graphs::bench::prepare(console, arguments, bytes, &options)?;
            measure(console, prepared, arguments)?
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

/// A compiled model with its inputs, ready to run.
pub struct Prepared {
    runner: Runner,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    /// Floating-point operations of a run, if known.
    pub flops: Option<u64>,
    /// Bytes of inputs, constants and outputs, each once.
    traffic: u64,
}

impl Prepared {
    /// A model that was compiled for this, and has run once on these inputs.
    pub fn compiled(
        console: &Console,
        model: &Model<'_>,
        options: &CompileOptions,
        inputs: Buffers,
    ) -> Result<Self, Stop> {
        let step = console.step("compiling");
        let program = model.compile(options)?;
        drop(step);
        Self::of(program.runner()?, inputs)
    }

    /// A model that has run once on these inputs; those not given are zero.
    fn of(mut runner: Runner, mut inputs: Buffers) -> Result<Self, Stop> {
        for port in runner.inputs() {
            if inputs.contains_key(&port.name) {
                continue;
            }
            let unknown = || Stop::problem(format!("{}: unknown type {}", port.name, port.dtype));
            let zeros = Tensor::zeros(port.tensor_type().ok_or_else(unknown)?);
            let zeros = zeros.map_err(|error| Stop::problem(format!("{}: {error}", port.name)))?;
            inputs.insert(port.name.clone(), zeros);
        }
        let mut found = runner.run(inputs.clone())?;
        let inputs = runner.inputs().filter_map(|port| inputs.remove(&port.name)).collect();
        let ports = runner.interface().outputs.iter();
        let outputs: Vec<Tensor> = ports.filter_map(|port| found.remove(&port.name)).collect();
        let mut prepared = Self { runner, inputs, outputs, flops: None, traffic: 0 };
        prepared.traffic = prepared.bytes();
        Ok(prepared)
    }

    fn bytes(&self) -> u64 {
        let constants = self.runner.interface().inputs.iter().filter(|port| port.weight.is_some());
        let constants = constants.filter_map(|port| port.tensor_type()?.byte_size().ok());
        let tensors = self.inputs.iter().chain(&self.outputs);
        tensors.map(|tensor| tensor.bytes().len()).chain(constants).map(|bytes| bytes as u64).sum()
    }

    /// Runs the model once more.
    fn run(&mut self) -> Result<(), Stop> {
        let inputs: Vec<&Tensor> = self.inputs.iter().collect();
        Ok(self.runner.run_with(&inputs, &mut self.outputs)?)
    }
}

/// How long a model takes, its floating-point operations and its traffic.
fn measure(
    console: &Console,
    mut prepared: Prepared,
    arguments: &Bench,
) -> Result<(Latency, Option<u64>, u64), Stop> {
    let _step = console.step("measuring");
    let latency = latency::measure(length(arguments), || prepared.run())?;
    Ok((latency, prepared.flops, prepared.traffic))
}

fn measure_world(console: &Console, world: &World, arguments: &Bench) -> Result<Latency, Stop> {
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

/// Bytes of all inputs and outputs, each once.
fn traffic(interface: &Interface) -> u64 {
    let ports = interface.inputs.iter().chain(&interface.outputs);
    ports.filter_map(|port| port.tensor_type()?.byte_size().ok()).map(|bytes| bytes as u64).sum()
}
