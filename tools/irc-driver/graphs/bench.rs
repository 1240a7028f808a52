//! `irc bench` of Common IR and ONNX files.
use super::{Libraries, import, open, options, run};
use crate::{bench::Prepared, console::Console, stop::Stop, values};
use bytes::Bytes;
use irc::{CompileOptions, Session, Tensor};
use irc_cli::Bench;
use irc_tl::{Dim, Graph};
use std::collections::BTreeMap;

/// Compiles a model and runs it once.
pub fn prepare(
    console: &Console,
    arguments: &Bench,
    bytes: Bytes,
    compile: &CompileOptions,
) -> Result<Prepared, Stop> {
    let mut options = options(&arguments.graphs)?;
    let (document, source) = open(console, &arguments.file, bytes, &options, Libraries::Bundled)?;
    options.inputs = run::read(&document, arguments.inputs.as_deref())?;
    let session = Session::new();
    let model = import(console, &session, &document, source, &options)?;
    let mut inputs = options.inputs.to_tensors().map_err(Stop::problem)?;
    values::fill(&mut inputs, &model.inputs(compile)?, arguments.seed)?;
    let flops = model.imported().and_then(|imported| flops(&imported.graph, &inputs));
    let mut prepared = Prepared::compiled(console, &model, compile, inputs)?;
    prepared.flops = flops;
    Ok(prepared)
}

/// Floating-point operations of a run on inputs, if they are known.
fn flops(graph: &Graph, inputs: &values::Buffers) -> Option<u64> {
    let mut sizes: BTreeMap<Dim, i64> = BTreeMap::new();
    for (name, value) in &graph.inputs {
        let extents = inputs.get(name).map(Tensor::shape).unwrap_or_default().iter().copied();
        sizes.extend(graph.ty(*value).dims.iter().cloned().zip(extents));
    }
    graph.flops(&|name| sizes.get(&Dim::symbol(name)).copied())
}
