//! Graphs that call functions of libraries.

use irc_common_format::library::{LoadOptions, bundle, load};
use irc_common_format::model::{ElementType, Graph, Module, Node, Value};
use irc_common_format::{Options, open};
use irc_diag::Sink;
use irc_onnx_ops::{ImportOptions, import};
use irc_tensor::Tensor;
use std::collections::BTreeMap;
use std::path::Path;

/// A valid graph, with the libraries that it imports bundled.
fn bundled(rule: &str) -> Module {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lit_tests/common_ir/rules");
    let path = folder.join(format!("{rule}_ok.pbtxt"));
    let mut sink = Sink::new();
    let document = open(&path, &Options::default(), &mut sink).expect("a graph");
    let libraries = load(&document.module, &LoadOptions::beside(&path), &mut sink);
    assert!(sink.diagnostics().is_empty(), "{sink:?}");
    bundle(&document.module, &libraries)
}

fn values(module: &Module, x: &[f32]) -> Vec<f64> {
    let imported = import(module, &ImportOptions::default());
    let graph = imported.unwrap_or_else(|diagnostics| panic!("{diagnostics:#?}")).graph;
    let x = Tensor::from_values([x.len() as i64], x).expect("a row");
    let found = graph.eval(&BTreeMap::from([("x".to_owned(), x)])).expect("it fits");
    found[0].to_f64()
}

#[test]
fn operators_and_functions_of_libraries_are_called() {
    // An operator that the library declares; a function of it, which calls that operator.
    for rule in ["R65", "R66"] {
        assert_eq!(values(&bundled(rule), &[-1.0, 2.0]), [0.0, 2.0], "{rule}");
    }
}

#[test]
fn counts_of_several_parameters_are_inputs_in_a_row() {
    assert_eq!(values(&bundled("R44"), &[1.0, 2.0]), [1.0, 2.0].repeat(5));
}

#[test]
fn control_inputs_order_nodes_and_change_no_value() {
    let value = |name| Value::tensor(name, ElementType::Float, ["N"]);
    let unary = |op: &str, from: &str, to: &str| Node {
        arg_counts: vec![1],
        ..Node::new(op, [from], [to]).named(format!("n{to}"))
    };
    let module = |control: &[&str]| Module {
        graph: Some(Graph {
            inputs: vec![value("x")],
            outputs: vec![value("y")],
            nodes: vec![
                unary("Neg", "x", "a"),
                Node {
                    control_inputs: control.iter().map(|&name| name.into()).collect(),
                    ..unary("Relu", "x", "y")
                },
            ],
            ..Graph::default()
        }),
        ..Module::default()
    };
    assert_eq!(values(&module(&["na"]), &[-1.0, 2.0]), values(&module(&[]), &[-1.0, 2.0]));
}
