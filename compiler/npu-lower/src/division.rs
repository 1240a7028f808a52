//! Models that the NPU computes only in part.
//!
//! Nodes that are no layers, and layers without numbers, go to the host; the others are parts for the NPU. A part has all
//! nodes between two visits of the host: nodes are in steps, each as early as what it reads allows. As parts have other
//! inputs and outputs than the model, they are found again until all of them are networks. Parts read and write bytes: what
//! quantises their inputs, and what undoes a quantisation for others, is in steps of the host.

use crate::layers::{Rejected, find, is_byte, nothing, roles, shapes, unique, word};
use crate::numbers;
use irc_diag::Diagnostic;
use irc_npu_cost::Op as LayerOp;
use irc_tl::{Binary, Graph, NodeKind, Op, ValueId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// After so many searches, a part that is no network goes to the host as a whole.
const MAX_SEARCHES: usize = 8;

/// Where a step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// On the host.
    Host,
    /// On the NPU.
    Npu,
}

/// A part of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Where it runs.
    pub place: Place,
    /// What it computes. Outputs that are none of the model are inputs of later steps, by name.
    pub graph: Graph,
}

/// A model as steps for the host and the NPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// The steps in the order in which they run; none of a model that the NPU computes as a whole.
    pub steps: Vec<Step>,
    /// Why nodes are computed by the host, at these.
    pub reasons: Vec<Diagnostic>,
}

/// Divides a graph between the NPU and the host. Where values of a graph are bytes, a layer must have numbers.
///
/// # Errors
/// `layer-open-size`; all that the NPU does not compute if it computes nothing.
pub fn divide(graph: &Graph) -> Result<Division, Vec<Diagnostic>> {
    let shapes = shapes(graph)?;
    let mut cut = Cut::new(graph, &shapes);
    let mut accepted: BTreeSet<Vec<usize>> = BTreeSet::new();
    for search in 0.. {
        let mut is_done = true;
        for piece in cut.pieces() {
            if piece.place == Place::Host || accepted.contains(&piece.nodes) {
                continue;
            }
            let (part, nodes) = cut.graph(&piece, false);
            let is_divided = cut.is_host.contains(&true);
            match cut.check(&part) {
                // Parts read bytes: the host quantises inputs, with the steps before.
                Ok(encoding) if is_divided && !encoding.is_empty() => {
                    is_done = false;
                    encoding.iter().for_each(|node| cut.is_host[nodes[*node]] = true);
                }
                Ok(_) => drop(accepted.insert(piece.nodes)),
                Err(rejected) => {
                    is_done = false;
                    // All of a part without layers only moves data.
                    if !rejected.nodes.is_empty() {
                        cut.reasons.extend(rejected.found);
                    }
                    let rejected: Vec<usize> =
                        rejected.nodes.iter().map(|node| nodes[*node]).collect();
                    if search >= MAX_SEARCHES || !cut.give(&rejected) {
                        cut.give(&piece.nodes);
                    }
                }
            }
        }
        if is_done {
            break;
        }
    }
    let mut pieces = cut.pieces();
    if pieces.iter().all(|piece| piece.place == Place::Host) {
        cut.reasons.push(nothing());
        return Err(cut.reasons);
    }
    if cut.is_host.iter().all(|is_host| !is_host) {
        return Ok(Division { steps: vec![], reasons: vec![] });
    }
    let mut steps: Vec<Step> = vec![];
    // The host computes the outputs that depend on no step.
    if pieces.last().is_none_or(|last| last.place == Place::Npu) {
        pieces.push(Piece { place: Place::Host, nodes: vec![] });
    }
    let count = pieces.len();
    for (number, piece) in pieces.into_iter().enumerate() {
        let (graph, _) = cut.graph(&piece, number + 1 == count);
        if !graph.outputs.is_empty() {
            steps.push(Step { place: piece.place, graph });
        }
    }
    Ok(Division { steps, reasons: cut.reasons })
}

/// The nodes of a step, ascending.
struct Piece {
    place: Place,
    nodes: Vec<usize>,
}

/// A graph while it is divided.
struct Cut<'g> {
    graph: &'g Graph,
    /// Whether bytes are computed with.
    is_quantised: bool,
    /// Whether nodes depend on no activation, or undo the quantisation of bytes: every step has those that it needs.
    is_free: Vec<bool>,
    is_host: Vec<bool>,
    /// The nodes that define values, and those that read them.
    makers: Vec<Option<usize>>,
    readers: Vec<Vec<usize>>,
    /// The nodes of the graph that are one of its source.
    groups: BTreeMap<Arc<str>, Vec<usize>>,
    /// The names of outputs, and those of values between steps.
    outputs: BTreeMap<ValueId, Vec<String>>,
    names: BTreeMap<ValueId, String>,
    taken: BTreeSet<String>,
    reasons: Vec<Diagnostic>,
}

impl<'g> Cut<'g> {
    fn new(graph: &'g Graph, shapes: &[Vec<u64>]) -> Self {
        let roles = roles(graph, shapes);
        let mut makers = vec![None; graph.types.len()];
        let mut readers = vec![vec![]; graph.types.len()];
        let mut is_free_value = vec![false; graph.types.len()];
        for (_, value) in &graph.inputs {
            is_free_value[value.0] = !roles[value.0].is_activation;
        }
        let is_decoding = decoding(graph);
        let mut is_free = vec![];
        let mut groups: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
        let mut is_quantised = false;
        for (index, node) in graph.nodes.iter().enumerate() {
            let is_pure = matches!(node.kind, NodeKind::Constant(_) | NodeKind::Op(_));
            let is_own = is_pure && node.operands.iter().all(|value| is_free_value[value.0]);
            is_free.push(is_own || is_decoding[index]);
            node.operands.iter().for_each(|value| readers[value.0].push(index));
            for value in &node.results {
                makers[value.0] = Some(index);
                is_free_value[value.0] = is_own;
                is_quantised |= !is_own && is_byte(graph, *value);
            }
            if let Some(origin) = &node.origin {
                groups.entry(origin.clone()).or_default().push(index);
            }
        }
        let mut outputs: BTreeMap<ValueId, Vec<String>> = BTreeMap::new();
        for (name, value) in &graph.outputs {
            outputs.entry(*value).or_default().push(name.clone());
        }
        let names = graph.inputs.iter().map(|(name, value)| (*value, name.clone()));
        let taken = graph.inputs.iter().chain(&graph.outputs).map(|(name, _)| name.clone());
        Self {
            graph,
            is_quantised,
            is_host: vec![false; graph.nodes.len()],
            is_free,
            makers,
            readers,
            groups,
            outputs,
            names: names.collect(),
            taken: taken.collect(),
            reasons: vec![],
        }
    }

    /// Gives nodes, and others of the same nodes of the source, to the host. Whether there are any that have a step of
    /// their own.
    fn give(&mut self, nodes: &[usize]) -> bool {
        let mut is_any = false;
        for node in nodes.iter().copied() {
            let origin = self.graph.nodes[node].origin.as_ref();
            let group = origin.and_then(|origin| self.groups.remove(origin));
            for node in group.into_iter().flatten().chain([node]) {
                if !self.is_free[node] {
                    self.is_host[node] = true;
                    is_any = true;
                }
            }
        }
        is_any
    }

    /// The steps of all nodes that are not free, in the order in which they run.
    fn pieces(&self) -> Vec<Piece> {
        // The stage of each value, and whether the NPU computes it, or the bytes that it is decoded of.
        let mut places = vec![(0, false); self.graph.types.len()];
        let mut pieces: BTreeMap<(usize, bool), Vec<usize>> = BTreeMap::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            if self.is_free[index] {
                let place = node.operands.iter().map(|value| places[value.0]).max();
                node.results.iter().for_each(|value| places[value.0] = place.unwrap_or_default());
                continue;
            }
            let is_npu = !self.is_host[index];
            let stage = |value: &ValueId| {
                let (stage, is_of_npu) = places[value.0];
                stage + usize::from(is_of_npu && !is_npu)
            };
            let stage = node.operands.iter().map(stage).max().unwrap_or(0);
            node.results.iter().for_each(|value| places[value.0] = (stage, is_npu));
            pieces.entry((stage, is_npu)).or_default().push(index);
        }
        let piece = |((_, is_npu), nodes)| {
            let place = if is_npu { Place::Npu } else { Place::Host };
            Piece { place, nodes }
        };
        pieces.into_iter().map(piece).collect()
    }

    /// The graph of a step, and the node that each of its nodes is. The last step also computes the outputs that depend
    /// on no step, or are decoded of results of steps.
    fn graph(&mut self, piece: &Piece, is_last: bool) -> (Graph, Vec<usize>) {
        let is_own: BTreeSet<usize> = piece.nodes.iter().copied().collect();
        let mut outputs: Vec<(String, ValueId)> = vec![];
        let results = piece.nodes.iter().flat_map(|node| &self.graph.nodes[*node].results);
        for value in results.copied().collect::<Vec<_>>() {
            if !is_last && self.is_read_outside(value, &is_own) {
                outputs.push((self.name(value), value));
            }
            let names = self.outputs.get(&value).into_iter().flatten();
            outputs.extend(names.map(|name| (name.clone(), value)));
        }
        if is_last {
            let is_left = |(_, value): &&(String, ValueId)| {
                self.makers[value.0].is_none_or(|maker| self.is_free[maker])
            };
            outputs.extend(self.graph.outputs.iter().filter(is_left).cloned());
        }
        let mut nodes = is_own.clone();
        let mut inputs: BTreeSet<ValueId> = BTreeSet::new();
        let operands = piece.nodes.iter().flat_map(|node| &self.graph.nodes[*node].operands);
        let mut pending: Vec<ValueId> = operands.copied().collect();
        pending.extend(outputs.iter().map(|(_, value)| *value));
        while let Some(value) = pending.pop() {
            match self.makers[value.0] {
                Some(maker) if is_own.contains(&maker) => {}
                Some(maker) if self.is_free[maker] => {
                    if nodes.insert(maker) {
                        pending.extend(&self.graph.nodes[maker].operands);
                    }
                }
                _ => drop(inputs.insert(value)),
            }
        }
        let inputs: Vec<(String, ValueId)> =
            inputs.into_iter().map(|value| (self.name(value), value)).collect();
        let nodes: Vec<usize> = nodes.into_iter().collect();
        (self.graph.extract(&nodes, &inputs, &outputs), nodes)
    }

    /// Whether a node of another step reads a value, or an output is decoded of it.
    fn is_read_outside(&self, value: ValueId, is_own: &BTreeSet<usize>) -> bool {
        let mut pending = vec![value];
        let mut seen: BTreeSet<usize> = BTreeSet::new();
        while let Some(value) = pending.pop() {
            for reader in &self.readers[value.0] {
                if !self.is_free[*reader] {
                    if !is_own.contains(reader) {
                        return true;
                    }
                } else if seen.insert(*reader) {
                    let results = &self.graph.nodes[*reader].results;
                    if results.iter().any(|result| self.outputs.contains_key(result)) {
                        return true;
                    }
                    pending.extend(results);
                }
            }
        }
        false
    }

    /// The name of a value between steps.
    fn name(&mut self, value: ValueId) -> String {
        if let Some(known) = self.names.get(&value) {
            return known.clone();
        }
        let maker = self.makers[value.0].map(|maker| &self.graph.nodes[maker]);
        let origin = maker.and_then(|node| node.origin.as_deref());
        let name = unique(&word(origin, "value"), &mut self.taken);
        self.names.insert(value, name.clone());
        name
    }

    /// The nodes of a part that quantise its inputs, if the NPU computes all others.
    fn check(&self, part: &Graph) -> Result<Vec<usize>, Rejected> {
        let layers = find(part)?;
        let is_move = |op: &LayerOp| matches!(op, LayerOp::Transpose { .. });
        if layers.network.nodes().iter().all(|node| is_move(&node.layer.op)) {
            return Err(Rejected::default());
        }
        if !self.is_quantised {
            return Ok(layers.encoding);
        }
        let mut rejected = Rejected::default();
        let is_decoding = decoding(part);
        for (origin, own) in layers.origins.iter().zip(numbers::each(part, &layers)) {
            let Err(found) = own else { continue };
            // Others may read the bytes of what is decoded.
            let of_host = origin.nodes.iter().copied().filter(|node| !is_decoding[*node]);
            let before = rejected.nodes.len();
            rejected.nodes.extend(of_host);
            if rejected.nodes.len() == before {
                rejected.nodes.extend(&origin.nodes);
            }
            rejected.found.push(found);
        }
        if rejected.found.is_empty() { Ok(layers.encoding) } else { Err(rejected) }
    }
}

/// Whether each node is a step of undoing a quantisation: arithmetic of one value of bytes with constants.
fn decoding(graph: &Graph) -> Vec<bool> {
    use Binary::{Add, Div, Mul, Sub};
    let mut is_constant = vec![false; graph.types.len()];
    let mut is_decoded = vec![false; graph.types.len()];
    let mut all = vec![];
    for node in &graph.nodes {
        let is_arithmetic = matches!(
            &node.kind,
            NodeKind::Op(
                Op::Cast { .. } | Op::Broadcast { .. } | Op::Binary(Add | Sub | Mul | Div)
            )
        );
        let mut read = node.operands.iter().filter(|value| !is_constant[value.0]);
        let is_known = node.operands.iter().all(|value| is_constant[value.0]);
        let is_of_bytes = match (read.next(), read.next()) {
            (Some(value), None) => is_decoded[value.0] || is_byte(graph, *value),
            _ => false,
        };
        let is_result = node.results.iter().all(|value| !is_byte(graph, *value));
        let is_own = is_arithmetic && is_of_bytes && is_result;
        for value in &node.results {
            is_constant[value.0] = is_known;
            is_decoded[value.0] = is_own;
        }
        all.push(is_own);
    }
    all
}
