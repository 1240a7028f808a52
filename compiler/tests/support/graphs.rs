//! Compiles graphs, runs them, and compares with their evaluation. Not every test uses all of it.
#![allow(dead_code)]
use irc::{CompileOptions, CompiledGraph, Session};
use irc_runtime::{Library, RunError, Runner};
use irc_tensor::{DType, Tensor, TensorType, Tolerance, compare};
use irc_tl::Graph;
use std::{collections::BTreeMap, sync::Arc};

/// Named tensors.
pub type Inputs<'i> = &'i [(&'i str, Tensor)];

/// Random numbers.
pub fn f32s(shape: impl Into<Vec<i64>>, seed: u64) -> Tensor {
    Tensor::random(TensorType::new(DType::F32, shape), seed).unwrap()
}

/// Given numbers.
pub fn i64s(shape: impl Into<Vec<i64>>, values: &[i64]) -> Tensor {
    Tensor::from_values(shape, values).unwrap()
}

/// A condition.
pub fn truth(value: bool) -> Tensor {
    Tensor::from_f64(TensorType::new(DType::Bool, []), &[f64::from(u8::from(value))]).unwrap()
}

/// Compiles a graph.
pub fn compile(graph: &Graph) -> CompiledGraph {
    Session::new().compile_graph(graph, &CompileOptions::default()).unwrap()
}

fn named(inputs: Inputs<'_>) -> BTreeMap<String, Tensor> {
    inputs.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect()
}

/// A runner of a compiled graph.
pub fn runner(compiled: &CompiledGraph) -> Runner {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graph.so");
    std::fs::write(&path, &compiled.library).unwrap();
    let library = Arc::new(Library::load(&path).unwrap());
    let weights: Vec<_> = compiled.weights.iter().map(|weight| weight.bytes.clone()).collect();
    Runner::new(library, &weights).unwrap()
}

/// Runs a compiled graph.
pub fn run(
    compiled: &CompiledGraph,
    inputs: Inputs<'_>,
) -> Result<BTreeMap<String, Tensor>, RunError> {
    runner(compiled).run(named(inputs))
}

/// Compiles and runs a graph, and compares its outputs with those of its evaluation.
pub fn agree(graph: &Graph, inputs: Inputs<'_>) {
    let compiled = compile(graph);
    let mut runner = runner(&compiled);
    // Twice: memory of the first run is used again.
    for _ in 0..2 {
        same(graph, inputs, &runner.run(named(inputs)).unwrap());
    }
}

fn same(graph: &Graph, inputs: Inputs<'_>, found: &BTreeMap<String, Tensor>) {
    let expected = graph.eval(&named(inputs)).unwrap();
    for ((name, _), expected) in graph.outputs.iter().zip(&expected) {
        let found = &found[name];
        assert_eq!(found.ty(), expected.ty(), "{name}");
        let result = compare(expected, found, Tolerance::of(expected.dtype())).unwrap();
        assert!(result.is_match(), "{name}: {result}");
    }
}

/// As [`agree`], of graphs compiled to one library.
pub fn agree_together(graphs: &[Graph], inputs: Inputs<'_>) {
    let all: Vec<&Graph> = graphs.iter().collect();
    let compiled = Session::new().compile_graphs(&all, &CompileOptions::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("graphs.so");
    std::fs::write(&path, &compiled.library).unwrap();
    let entries: Vec<_> = compiled.graphs.into_iter().map(Result::unwrap).collect();
    let suffixes: Vec<_> = entries.iter().map(|entry| entry.suffix.clone()).collect();
    let libraries = Library::load_entries(&path, &suffixes).unwrap();
    for ((graph, entry), library) in graphs.iter().zip(&entries).zip(libraries) {
        let weights: Vec<_> = entry.weights.iter().map(|weight| weight.bytes.clone()).collect();
        let mut runner = Runner::new(Arc::new(library), &weights).unwrap();
        same(graph, inputs, &runner.run(named(inputs)).unwrap());
    }
}
