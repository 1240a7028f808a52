//! Checks of a graph.

use std::collections::BTreeMap;

use irc_diag::{Diagnostic, Sink};

use super::{Edge, Graph, storage};
use irc_diag::clip;

/// All errors of a graph; diagnostics have paths, but no spans.
pub fn check(graph: &Graph) -> Vec<Diagnostic> {
    let mut sink = Sink::new();
    structure(graph, &mut sink);
    types(graph, &mut sink);
    // Live ranges follow from edges.
    if !sink.has_errors() {
        storage::check(graph, &mut sink);
    }
    sink.into_diagnostics()
}

fn error(code: &'static str, message: String, path: String) -> Diagnostic {
    Diagnostic::error(code, message).path(path)
}

fn structure(graph: &Graph, sink: &mut Sink) {
    let given = graph.first_entries().last().copied().unwrap_or_default();
    if given != graph.entries.len() {
        let message = format!("nodes have {given} entries, but {} are listed", graph.entries.len());
        sink.push(error("mlf-graph-entries", message, "$.attrs".into()));
    }
    for (index, call) in graph.calls() {
        if call.function.is_empty() {
            let path = format!("$.nodes[{index}].attrs.func_name");
            sink.push(error("mlf-graph-function", "a call names no function".into(), path));
        }
        if call.outputs == 0 {
            let path = format!("$.nodes[{index}].attrs.num_outputs");
            sink.push(error("mlf-graph-count", "a call has no outputs".into(), path));
        }
        for (operand, edge) in call.inputs.iter().enumerate() {
            let path = format!("$.nodes[{index}].inputs[{operand}]");
            operand_of(graph, index, edge, path, sink);
        }
    }
    if graph.outputs.is_empty() {
        sink.push(error("mlf-graph-outputs", "the graph has no outputs".into(), "$.heads".into()));
    }
    for (index, edge) in graph.outputs.iter().enumerate() {
        there(graph, edge, format!("$.heads[{index}]"), sink);
    }
    inputs(graph, sink);
}

/// Calls read results of earlier nodes.
fn operand_of(graph: &Graph, index: usize, edge: &Edge, path: String, sink: &mut Sink) {
    let node = edge.node;
    if !there(graph, edge, path.clone(), sink) || node < index {
        return;
    }
    let name = clip(&graph.nodes[index].name);
    let message = match node == index {
        true => format!("`{name}` reads its own result"),
        false => format!(
            "`{name}` reads the result of `{}`, which runs later",
            clip(&graph.nodes[node].name)
        ),
    };
    sink.push(
        error("mlf-graph-cycle", message, path)
            .related(format!("$.nodes[{node}].name"), "made here")
            .help("nodes run in the order in which they are listed"),
    );
}

/// Checks that an edge starts at an existing output.
fn there(graph: &Graph, edge: &Edge, path: String, sink: &mut Sink) -> bool {
    let outputs = graph.nodes.get(edge.node).map(super::Node::outputs);
    let message = match outputs {
        Some(outputs) if edge.output < outputs => return true,
        Some(outputs) => {
            format!("node {} has {outputs} outputs, expected more than {}", edge.node, edge.output)
        }
        None => format!("there is no node {}", edge.node),
    };
    sink.push(error("mlf-graph-reference", message, path));
    false
}

/// The inputs listed are the input nodes, each once, with unique names.
fn inputs(graph: &Graph, sink: &mut Sink) {
    let mut listed = vec![false; graph.nodes.len()];
    let namesakes = namesakes(graph);
    for (index, &node) in graph.inputs.iter().enumerate() {
        let path = format!("$.arg_nodes[{index}]");
        let message = match graph.nodes.get(node) {
            None => format!("there is no node {node}"),
            Some(input) if input.call.is_some() => {
                format!("node {node} is `{}`, which is not an input but a call", clip(&input.name))
            }
            Some(input) if listed[node] => format!("input `{}` is listed twice", clip(&input.name)),
            Some(input) => {
                listed[node] = true;
                if let Some(first) = namesakes[node] {
                    let message = format!("two inputs are named `{}`", clip(&input.name));
                    let path = format!("$.nodes[{node}].name");
                    let first = format!("$.nodes[{first}].name");
                    sink.push(error("mlf-graph-name", message, path).related(first, "first here"));
                }
                continue;
            }
        };
        sink.push(error("mlf-graph-inputs", message, path));
    }
    let nodes = graph.nodes.iter().enumerate();
    for (index, node) in nodes.filter(|(index, node)| node.call.is_none() && !listed[*index]) {
        let message = format!("input `{}` is not listed in `arg_nodes`", clip(&node.name));
        sink.push(error("mlf-graph-inputs", message, format!("$.nodes[{index}]")));
    }
}

/// For each input node, the input listed before it with the same name.
fn namesakes(graph: &Graph) -> Vec<Option<usize>> {
    let is_input = |node: usize| graph.nodes.get(node).is_some_and(|node| node.call.is_none());
    let mut namesakes = vec![None; graph.nodes.len()];
    let mut by_name = BTreeMap::new();
    for node in graph.inputs.iter().copied().filter(|node| is_input(*node)) {
        let first = *by_name.entry(graph.nodes[node].name.as_str()).or_insert(node);
        if first != node {
            namesakes[node] = Some(first);
        }
    }
    namesakes
}

fn types(graph: &Graph, sink: &mut Sink) {
    for (index, entry) in graph.entries.iter().enumerate() {
        if entry.ty.bytes().is_none() {
            let message = format!("invalid tensor type {}", clip(&entry.ty.to_string()));
            sink.push(error("mlf-graph-shape", message, format!("$.attrs.shape[1][{index}]")));
        }
        if entry.storage < 0 {
            let message = format!("storage {} of entry {index} is negative", entry.storage);
            let path = format!("$.attrs.storage_id[1][{index}]");
            sink.push(error("mlf-graph-storage", message, path));
        }
    }
}
