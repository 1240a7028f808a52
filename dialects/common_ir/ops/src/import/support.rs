//! Which nodes of a module have an operator at all.

use super::functions::Functions;
use super::meaning::operator_of;
use super::scope::describe;
use super::{Finding, FindingKind, opsets};
use crate::operator::canonical;
use irc_common_format::model::{Graph, Module, Node, Path};
use std::collections::BTreeMap;

/// Every node whose operator is not known, in functions and graphs inside nodes as well.
pub fn unsupported(module: &Module) -> Vec<Finding> {
    let functions = Functions::of(module, super::Calls::Inlined, false);
    let opsets = opsets(module);
    let mut findings = vec![];
    if let Some(graph) = &module.graph {
        check(&graph.nodes, &Path::GRAPH, &functions, None, &opsets, &mut findings);
    }
    for (index, function) in module.functions.iter().enumerate() {
        let mut inside = opsets.clone();
        for opset in &function.opsets {
            let domain = canonical(opset.domain.as_deref().unwrap_or_default());
            inside.insert(domain.to_owned(), opset.version);
        }
        let path = Path::ROOT.index("function", index);
        let home = function.domain.as_deref();
        check(&function.nodes, &path, &functions, home, &inside, &mut findings);
    }
    findings
}

fn check(
    nodes: &[Node],
    at: &Path<'_>,
    functions: &Functions<'_>,
    home: Option<&str>,
    opsets: &BTreeMap<String, i64>,
    findings: &mut Vec<Finding>,
) {
    for (index, node) in nodes.iter().enumerate() {
        let path = at.index("node", index);
        for attribute in &node.attributes {
            let key = path.key("attribute", attribute.name.as_deref().unwrap_or_default());
            for graph in attribute.value.graphs() {
                check_graph(graph, &key, functions, home, opsets, findings);
            }
        }
        if functions.called(node, home).is_some() {
            continue;
        }
        if let Err(message) = operator_of(node, functions.schema, opsets) {
            let kind = FindingKind::UnknownOperator;
            findings.push(Finding::new(path.to_string(), describe(node), kind, message));
        }
    }
}

fn check_graph(
    graph: &Graph,
    at: &Path<'_>,
    functions: &Functions<'_>,
    home: Option<&str>,
    opsets: &BTreeMap<String, i64>,
    findings: &mut Vec<Finding>,
) {
    let path = at.field("g");
    check(&graph.nodes, &path, functions, home, opsets, findings);
}
