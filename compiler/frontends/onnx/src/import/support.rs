//! Finds nodes without a known operator.

use super::functions::Functions;
use super::meaning::operator_of;
use super::opsets;
use super::scope::describe;
use crate::diagnostic::{NodeDiagnostic, NodeDiagnosticKind};
use crate::operator::canonical;
use irc_common_format::model::{Graph, Module, Node, Path};
use std::collections::BTreeMap;

/// Every node whose operator is unknown, including those in functions and graph attributes.
pub fn unsupported(module: &Module) -> Vec<NodeDiagnostic> {
    let functions = Functions::of(module, super::Calls::Inlined, false);
    let opsets = opsets(module);
    let mut diagnostics = vec![];
    if let Some(graph) = &module.graph {
        check(&graph.nodes, &Path::GRAPH, &functions, None, &opsets, &mut diagnostics);
    }
    for (index, function) in module.functions.iter().enumerate() {
        let mut inside = opsets.clone();
        for opset in &function.opsets {
            let domain = canonical(opset.domain.as_deref().unwrap_or_default());
            inside.insert(domain.to_owned(), opset.version);
        }
        let path = Path::ROOT.index("function", index);
        let home = function.domain.as_deref();
        check(&function.nodes, &path, &functions, home, &inside, &mut diagnostics);
    }
    diagnostics
}

fn check(
    nodes: &[Node],
    at: &Path<'_>,
    functions: &Functions<'_>,
    home: Option<&str>,
    opsets: &BTreeMap<String, i64>,
    diagnostics: &mut Vec<NodeDiagnostic>,
) {
    for (index, node) in nodes.iter().enumerate() {
        let path = at.index("node", index);
        for attribute in &node.attributes {
            let key = path.key("attribute", attribute.name.as_deref().unwrap_or_default());
            for graph in attribute.value.graphs() {
                check_graph(graph, &key, functions, home, opsets, diagnostics);
            }
        }
        if functions.called(node, home).is_some() {
            continue;
        }
        if let Err(message) = operator_of(node, functions.schema, opsets) {
            let kind = NodeDiagnosticKind::UnknownOperator;
            diagnostics.push(NodeDiagnostic::new(path.to_string(), describe(node), kind, message));
        }
    }
}

fn check_graph(
    graph: &Graph,
    at: &Path<'_>,
    functions: &Functions<'_>,
    home: Option<&str>,
    opsets: &BTreeMap<String, i64>,
    diagnostics: &mut Vec<NodeDiagnostic>,
) {
    let path = at.field("g");
    check(&graph.nodes, &path, functions, home, opsets, diagnostics);
}
