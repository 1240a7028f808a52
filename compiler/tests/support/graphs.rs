//! Compiles graphs, runs them, and compares with their evaluation. Not every test uses all of it.
#![allow(dead_code)]
use irc::{
    Compiled, Place, Session, Target,
    lowering::{
        graph_to_tl::{graph_to_tl, weights},
        tl_to_graph::tl_to_graph,
    },
};
use irc_mlir::{Capture, Module, OperationLike, to_text};
use irc_runtime::RunError;
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
pub fn compile(graph: &Graph) -> Arc<Compiled> {
    compile_for(graph, Target::host())
}

/// Compiles a graph for a target.
pub fn compile_for(graph: &Graph, target: Target) -> Arc<Compiled> {
    Session::new().import_graph(graph).library_with(target, Place::Given).unwrap()
}

fn named(inputs: Inputs<'_>) -> BTreeMap<String, Tensor> {
    inputs.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect()
}

/// Runs a compiled graph.
pub fn run(compiled: &Compiled, inputs: Inputs<'_>) -> Result<BTreeMap<String, Tensor>, RunError> {
    compiled.runner().unwrap().run(named(inputs))
}

/// A graph as it is after it was written as MLIR and read back: writing it again must give the same
/// text, to the last location.
pub fn read_back(graph: &Graph) -> Graph {
    let context = irc_dialects::new_context();
    for dialect in ["func", "tl"] {
        context.get_or_load_dialect(dialect);
    }
    let capture = Capture::new(&context);
    let module = graph_to_tl(&context, graph, "main").unwrap();
    assert!(module.as_operation().verify(), "{:?}", capture.take());
    let read = tl_to_graph(module.as_operation(), &weights(graph));
    let read = read.unwrap_or_else(|_| panic!("{:#?}", capture.take()));
    let again = graph_to_tl(&context, &read, "main").unwrap();
    let text = |module: &Module<'_>| to_text(&module.as_operation(), true);
    let (written, again) = (text(&module), text(&again));
    // The first line that differs, not two texts of megabytes.
    if let Some(pair) = written.lines().zip(again.lines()).find(|(left, right)| left != right) {
        panic!("written: {}\nread back: {}", pair.0, pair.1);
    }
    assert_eq!(written.len(), again.len());
    read
}

/// Compiles and runs a graph, and compares its outputs with those of its evaluation; and so does what
/// is read back from its MLIR.
pub fn agree(graph: &Graph, inputs: Inputs<'_>) {
    let expected = evaluate(graph, inputs);
    assert_eq!(evaluate(&read_back(graph), inputs), expected);
    let compiled = compile(graph);
    let mut runner = compiled.runner().unwrap();
    // Twice: memory of the first run is used again.
    for _ in 0..2 {
        same_as(&expected, &runner.run(named(inputs)).unwrap());
    }
}

/// The outputs of a graph by the reference evaluator, in order: slow, so once for all runs on the same inputs.
pub fn evaluate(graph: &Graph, inputs: Inputs<'_>) -> Vec<(String, Tensor)> {
    let names = graph.outputs.iter().map(|(name, _)| name.clone());
    names.zip(graph.eval(&named(inputs)).unwrap()).collect()
}

/// Compares outputs of a run with their evaluation.
pub fn same(graph: &Graph, inputs: Inputs<'_>, found: &BTreeMap<String, Tensor>) {
    same_as(&evaluate(graph, inputs), found);
}

/// Compares outputs of a run with those that were evaluated.
pub fn same_as(expected: &[(String, Tensor)], found: &BTreeMap<String, Tensor>) {
    for (name, expected) in expected {
        let found = &found[name];
        assert_eq!(found.ty(), expected.ty(), "{name}");
        let result = compare(expected, found, Tolerance::of(expected.dtype())).unwrap();
        assert!(result.is_match(), "{name}: {result}");
    }
}

/// As [`agree`], of graphs compiled to one library.
pub fn agree_together(graphs: &[Graph], inputs: Inputs<'_>) {
    let session = Session::new();
    let models: Vec<_> = graphs.iter().map(|graph| session.import_graph(graph)).collect();
    let compiled = session.compile_batch(&models, &Target::host().into()).unwrap();
    for (graph, runner) in graphs.iter().zip(compiled.runners().unwrap()) {
        same(graph, inputs, &runner.unwrap().run(named(inputs)).unwrap());
    }
}
