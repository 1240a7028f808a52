//! Writes a graph as JSON that every client accepts.

use std::collections::BTreeMap;

use irc_diag::{Diagnostic, Severity};
use serde::Serialize;

use super::{Edge, Graph, check, outside_subset};

/// The text of a graph.
///
/// # Errors
/// All errors of the graph, and reasons for some client to reject it.
pub fn write(graph: &Graph) -> Result<String, Vec<Diagnostic>> {
    let mut found = check(graph);
    if found.is_empty() {
        found = outside_subset(graph);
    }
    if found.is_empty() {
        let failed = |error: serde_json::Error| {
            vec![Diagnostic::error("mlf-json", format!("the graph cannot be written: {error}"))]
        };
        return crate::json::print(&document(graph)).map_err(failed);
    }
    found.iter_mut().for_each(|diagnostic| diagnostic.severity = Severity::Error);
    Err(found)
}

#[derive(Serialize)]
struct Document<'g> {
    nodes: Vec<NodeText<'g>>,
    arg_nodes: &'g [usize],
    heads: Vec<[usize; 3]>,
    attrs: Attrs,
    node_row_ptr: Vec<usize>,
}

#[derive(Serialize)]
struct NodeText<'g> {
    op: &'static str,
    name: &'g str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attrs: Option<BTreeMap<&'g str, String>>,
    inputs: Vec<[usize; 3]>,
}

#[derive(Serialize)]
struct Attrs {
    dltype: (&'static str, Vec<String>),
    #[serde(skip_serializing_if = "Option::is_none")]
    device_index: Option<(&'static str, Vec<i64>)>,
    storage_id: (&'static str, Vec<i64>),
    shape: (&'static str, Vec<Vec<i64>>),
}

fn document(graph: &Graph) -> Document<'_> {
    Document {
        nodes: graph.nodes.iter().map(node).collect(),
        arg_nodes: &graph.inputs,
        heads: graph.outputs.iter().map(edge).collect(),
        attrs: attrs(graph),
        node_row_ptr: graph.first_entries(),
    }
}

fn edge(edge: &Edge) -> [usize; 3] {
    [edge.node, edge.output, 0]
}

fn node(node: &super::Node) -> NodeText<'_> {
    let Some(call) = &node.call else {
        return NodeText { op: "null", name: &node.name, attrs: None, inputs: vec![] };
    };
    let others = call.attributes.iter().map(|(key, value)| (key.as_str(), value.clone()));
    let mut attrs: BTreeMap<&str, String> = others.collect();
    attrs.insert("func_name", call.function.clone());
    attrs.insert("num_inputs", call.inputs.len().to_string());
    attrs.insert("num_outputs", call.outputs.to_string());
    attrs.insert("flatten_data", "0".into());
    let inputs = call.inputs.iter().map(edge).collect();
    NodeText { op: "tvm_op", name: &node.name, attrs: Some(attrs), inputs }
}

fn attrs(graph: &Graph) -> Attrs {
    let entries = &graph.entries;
    let devices: Option<Vec<i64>> = entries.iter().map(|entry| entry.device).collect();
    Attrs {
        dltype: ("list_str", entries.iter().map(|entry| entry.ty.dtype.to_string()).collect()),
        device_index: devices.map(|devices| ("list_int", devices)),
        storage_id: ("list_int", entries.iter().map(|entry| entry.storage).collect()),
        shape: ("list_shape", entries.iter().map(|entry| entry.ty.shape.clone()).collect()),
    }
}
