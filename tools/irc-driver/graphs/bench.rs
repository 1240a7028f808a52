//! `irc bench` of Common IR and ONNX files.
use super::{Libraries, open, run, sizes};
use crate::{console::Console, stop::Stop};
use bytes::Bytes;
use irc::{CompileOptions, Session};
use irc_cli::Bench;
use irc_runtime::Runner;
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
    let mut inputs = run::read(&document, arguments.inputs.as_deref())?;
    let imported = run::import(console, &document, &source, &inputs, &arguments.graphs)?;
    run::fill(&imported, &mut inputs, arguments.seed)?;
    let inputs = inputs.to_tensors().map_err(Stop::problem)?;
    let sizes = sizes(&imported.graph, |name| inputs.get(name).map(Tensor::shape));
    let flops = imported.graph.flops(&|name| sizes.get(&Dim::symbol(name)).copied());
    let step = console.step("compiling");
    let compiled = Session::new().compile_graph(&imported.graph, options);
    let compiled = compiled.map_err(|failure| Stop::failure(source, failure))?;
    drop(step);
    let constants: usize = compiled.weights.iter().map(|weight| weight.bytes.len()).sum();
    let mut prepared = Prepared::of(compiled.runner()?, inputs)?;
    prepared.flops = flops;
    prepared.traffic += constants as u64;
    Ok(prepared)
}

impl Prepared {
    /// A model that has run once on these inputs.
    pub fn of(mut runner: Runner, mut inputs: BTreeMap<String, Tensor>) -> Result<Self, Stop> {
        let mut found = runner.run(inputs.clone())?;
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
        Ok(self.runner.run_with(&inputs, &mut self.outputs)?)
    }
}
