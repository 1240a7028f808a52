//! `irc bench` of Common IR and ONNX files.
use super::{Libraries, open, run};
use crate::{console::Console, stop::Stop, values};
use bytes::Bytes;
use irc::{CompileOptions, Session};
use irc_cli::Bench;
use irc_onnx_ops::{Imported, cases::Values};
use irc_runtime::{RunError, Runner};
use irc_tensor::Tensor;
use irc_tl::Dim;
use std::collections::BTreeMap;

/// A compiled model with its inputs, ready to run.
pub struct Prepared {
    runner: Runner,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    /// Floating-point operations of a run, if known.
    pub flops: Option<u64>,
    /// Bytes of inputs, constants and outputs, each once.
    pub traffic: u64,
}

/// Compiles a model and runs it once.
pub fn prepare(
    console: &Console,
    arguments: &Bench,
    bytes: Bytes,
    options: &CompileOptions,
) -> Result<Prepared, Stop> {
    let (document, source) =
        open(console, &arguments.file, bytes, &arguments.graphs, Libraries::Bundled)?;
    let given = arguments.inputs.as_deref().map(values::read).transpose()?.unwrap_or_default();
    let mut inputs = Values::default();
    run::add(&mut inputs, &document, given)?;
    let imported = run::import(console, &document, &source, &inputs, &arguments.graphs)?;
    run::fill(&imported, &mut inputs, arguments.seed)?;
    let inputs = inputs.to_tensors().map_err(Stop::problem)?;
    let flops = flops(&imported, &inputs);
    let step = console.step("compiling");
    let compiled = Session::new().compile_graph(&imported.graph, options);
    let compiled = compiled.map_err(|failure| Stop::failure(source, failure))?;
    drop(step);
    let constants: usize = compiled.weights.iter().map(|weight| weight.bytes.len()).sum();
    let mut prepared = Prepared::of(compiled.runner().map_err(failed)?, inputs)?;
    prepared.flops = flops;
    prepared.traffic += constants as u64;
    Ok(prepared)
}

impl Prepared {
    /// A model that has run once on these inputs.
    pub fn of(mut runner: Runner, mut inputs: BTreeMap<String, Tensor>) -> Result<Self, Stop> {
        let mut found = runner.run(inputs.clone()).map_err(failed)?;
        let inputs: Option<Vec<Tensor>> =
            runner.inputs().map(|port| inputs.remove(&port.name)).collect();
        let inputs = inputs.ok_or_else(|| Stop::problem("an input has no value"))?;
        let ports = runner.interface().outputs.iter();
        let outputs: Vec<Tensor> = ports.filter_map(|port| found.remove(&port.name)).collect();
        let tensors = inputs.iter().chain(&outputs).map(|tensor| tensor.bytes().len() as u64);
        let traffic = tensors.sum();
        Ok(Self { runner, inputs, outputs, flops: None, traffic })
    }

    /// Runs the model once more.
    pub fn run(&mut self) -> Result<(), Stop> {
        let inputs: Vec<&Tensor> = self.inputs.iter().collect();
        self.runner.run_with(&inputs, &mut self.outputs).map_err(failed)
    }
}

fn failed(error: RunError) -> Stop {
    Stop::problem(error.to_string())
}

/// Operations where symbols are what these inputs say.
fn flops(imported: &Imported, inputs: &BTreeMap<String, Tensor>) -> Option<u64> {
    let graph = &imported.graph;
    let mut sizes: BTreeMap<Dim, i64> = BTreeMap::new();
    for (name, value) in &graph.inputs {
        let extents = inputs.get(name)?.shape().iter().copied();
        sizes.extend(graph.ty(*value).dims.iter().cloned().zip(extents));
    }
    graph.flops(&|name| sizes.get(&Dim::symbol(name)).copied())
}
