//! Values of 8 bits: quantised tensors, and the functions between them.
//!
//! The NPU stores bytes. A function of bytes that only undoes a quantisation, or moves them, is no layer: its readers
//! read the bytes. A function of inputs that quantises them is computed by the host.

use super::locate::unique;
use super::roles::Role;
use irc_tl::{Binary, DType, Graph, Node, NodeKind, Op, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// Whether a value's elements are integers of 8 bits.
pub fn is_byte(graph: &Graph, value: ValueId) -> bool {
    matches!(graph.ty(value).dtype, DType::I8 | DType::U8)
}

/// Whether nodes only undo a quantisation.
pub fn is_decoding(graph: &Graph, nodes: &[usize]) -> bool {
    use Binary::{Add, Div, Mul, Sub};
    let is = |kind: &NodeKind| match kind {
        NodeKind::Op(Op::Binary(function)) => matches!(function, Add | Sub | Mul | Div),
        NodeKind::Op(Op::Cast { .. } | Op::Broadcast { .. }) => true,
        _ => false,
    };
    nodes.iter().all(|node| is(&graph.nodes[*node].kind))
}

/// Whether nodes only add integers, as between signed and unsigned bytes.
pub fn is_shift(graph: &Graph, nodes: &[usize]) -> bool {
    nodes.iter().all(|node| {
        let node = &graph.nodes[*node];
        let is_integer = node.results.iter().all(|value| graph.ty(*value).dtype.is_integer());
        is_integer && is_decoding_op(node)
    })
}

fn is_decoding_op(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Op(Op::Cast { .. } | Op::Binary(Binary::Add | Binary::Sub)))
}

/// Whether nodes only raise bytes to a least one, as a ReLU of bytes does. Other limits are functions of their own.
pub fn is_clamp(graph: &Graph, nodes: &[usize]) -> bool {
    let is = |kind: &NodeKind| {
        matches!(kind, NodeKind::Op(Op::Binary(Binary::Max) | Op::Broadcast { .. }))
    };
    let mut nodes = nodes.iter().map(|node| &graph.nodes[*node]);
    nodes.all(|node| is(&node.kind) && node.results.iter().all(|value| is_byte(graph, *value)))
}

/// What the host computes of the inputs: functions of each element of one input, which quantise it, and how parts of it are
/// arranged.
#[derive(Debug, Default)]
pub struct Encoding {
    /// Whether each node is a part of it.
    pub is_host: Vec<bool>,
    /// The names of the inputs and of its results.
    pub names: BTreeMap<ValueId, String>,
    /// All of these names.
    pub used: BTreeSet<String>,
}

/// What a value depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Nothing,
    /// Each element depends on one element of an input that is not quantised, by number.
    Input(usize),
    Other,
}

impl Encoding {
    /// The quantisations of inputs.
    pub fn of(graph: &Graph, roles: &[Role]) -> Self {
        let mut origins = vec![Origin::Nothing; graph.types.len()];
        for (number, (_, value)) in graph.inputs.iter().enumerate() {
            if roles[value.0].is_activation {
                let is_open = !is_byte(graph, *value);
                origins[value.0] = if is_open { Origin::Input(number) } else { Origin::Other };
            }
        }
        let mut ends: Vec<(usize, ValueId, usize)> = vec![];
        for (index, node) in graph.nodes.iter().enumerate() {
            let found = of_node(node, &origins);
            for result in &node.results {
                origins[result.0] = found;
                if let (Origin::Input(number), true) = (found, is_byte(graph, *result)) {
                    ends.push((index, *result, number));
                    origins[result.0] = Origin::Other;
                }
            }
        }
        let mut all = Self { is_host: vec![false; graph.nodes.len()], ..Self::default() };
        // Whether a value is read by nodes of the host only.
        let mut is_inner = vec![true; graph.types.len()];
        graph.outputs.iter().for_each(|(_, value)| is_inner[value.0] = false);
        let is_end: BTreeSet<usize> = ends.iter().map(|(node, ..)| *node).collect();
        for (index, node) in graph.nodes.iter().enumerate().rev() {
            let is_part = |result: &ValueId| {
                matches!(origins[result.0], Origin::Input(_)) && is_inner[result.0]
            };
            let is_host = is_end.contains(&index) || node.results.iter().all(is_part);
            all.is_host[index] = is_host && !node.operands.is_empty();
            if !is_host {
                node.operands.iter().for_each(|operand| is_inner[operand.0] = false);
            }
        }
        for (name, value) in &graph.inputs {
            all.names.insert(*value, name.clone());
            all.used.insert(name.clone());
        }
        let mut is_used = vec![false; graph.inputs.len()];
        for (_, result, number) in ends {
            let (name, value) = &graph.inputs[number];
            // The quantised input has its name, unless something else reads the input as well.
            let is_free = is_inner[value.0] && !std::mem::replace(&mut is_used[number], true);
            let name = if is_free { name.clone() } else { unique(name, &mut all.used) };
            all.names.insert(result, name);
        }
        all
    }
}

fn of_node(node: &Node, origins: &[Origin]) -> Origin {
    let is_function = matches!(
        node.kind,
        NodeKind::Op(
            Op::Unary(_)
                | Op::Binary(_)
                | Op::Compare(_)
                | Op::Select
                | Op::Cast { .. }
                | Op::Broadcast { .. }
                | Op::Reshape { .. }
                | Op::Transpose { .. }
        )
    );
    let mut found = Origin::Nothing;
    for operand in &node.operands {
        found = match (found, origins[operand.0]) {
            (found, Origin::Nothing) => found,
            (Origin::Nothing, own) => own,
            (found, own) if found == own => found,
            _ => Origin::Other,
        };
    }
    if is_function || found == Origin::Nothing { found } else { Origin::Other }
}
