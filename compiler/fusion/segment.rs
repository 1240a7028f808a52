//! Cuts a graph where fusion is impossible, so that the segments are fused independently.
//!
//! A segment is a connected component of the edges that some rule may fuse. Its fusion depends only on the
//! [`Segment`], which is plain data: equal segments are fused equally, in any function. An edge is cut if
//! its consumer cannot be fused with a producer of that kind, or if the producer also reaches the consumer
//! through memory: then they cannot share a kernel, and such long skips would make a whole residual network
//! one segment. A component of more than [`MAX_NODES`] ops is cut into several, in the order of its ops, so
//! that the compile time is linear in the length of a program. Constants (`fill`) are copied into every
//! segment that uses them.
use super::{
    form::{Application, combine},
    graph::{Graph, NodeId, ValueId},
};
use irc_tl::{Op, TensorType};
use std::collections::BTreeMap;

/// Maximum number of ops of a segment, not counting the constants that it copies.
pub const MAX_NODES: usize = 256;

/// Maximum number of ops between a producer and a consumer in one segment.
const MAX_SPAN: usize = 4096;

/// Maximum number of uses that are followed to find the paths around a segment; beyond it, every later
/// input is assumed to depend on every output.
const MAX_WALK: usize = 1 << 14;

/// A part of a graph that is fused independently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The ops, in topological order.
    pub nodes: Vec<SegmentNode>,
    /// The types of its inputs.
    pub inputs: Vec<TensorType>,
    /// Pairs of node and input: the input depends, outside of the segment, on the node's value.
    pub paths: Vec<(usize, usize)>,
}

/// One op of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SegmentNode {
    /// The op.
    pub op: Op,
    /// Its operands.
    pub operands: Vec<Edge>,
    /// The type of its result.
    pub ty: TensorType,
    /// Number of arithmetic operations.
    pub flops: u64,
    /// Whether its value is used outside of the segment.
    pub output: bool,
}

/// An operand of a node of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The producer of the value.
    pub source: Source,
    /// Why the two ends cannot share a kernel; `None` if they may.
    pub cut: Option<String>,
}

/// The producer of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// An input of the segment.
    Input(usize),
    /// Another node of the segment.
    Node(usize),
}

/// A segment and its place in the graph.
#[derive(Clone, Debug)]
pub struct GraphSegment {
    /// The segment.
    pub segment: Segment,
    /// The graph's node of each node of the segment.
    pub nodes: Vec<NodeId>,
    /// The graph's value of each input of the segment.
    pub inputs: Vec<ValueId>,
}

/// The segments of a graph, ordered by their first node. Every live computing node is in one segment;
/// constants may be in several.
pub fn segments(graph: &Graph) -> Vec<GraphSegment> {
    let mut edges = Edges::of(graph);
    components(graph, &mut edges).iter().map(|nodes| place(graph, &edges, nodes)).collect()
}

/// The edges of a graph.
struct Edges {
    cuts: Vec<Vec<Option<String>>>,
    /// Per value: the live nodes that read it, ascending.
    users: Vec<Vec<NodeId>>,
    /// Per value: whether the function returns it.
    returned: Vec<bool>,
    live: Vec<bool>,
}

impl Edges {
    /// The edges of a graph.
    fn of(graph: &Graph) -> Self {
        let live = graph.live();
        let mut users = vec![Vec::new(); graph.types.len()];
        for (index, node) in graph.nodes.iter().enumerate().filter(|(node, _)| live[*node]) {
            node.operands.iter().for_each(|value| users[*value].push(index));
        }
        let mut returned = vec![false; graph.types.len()];
        graph.results.iter().for_each(|value| returned[*value] = true);
        let mut cuts: Vec<_> = (0..graph.nodes.len()).map(|node| local_cuts(graph, node)).collect();
        cut_long_skips(graph, &mut cuts);
        Self { cuts, users, returned, live }
    }

    /// Why an operand must be read from memory; `None` if a rule may fuse it.
    fn cut(&self, node: NodeId, operand: usize) -> Option<&str> {
        self.cuts[node][operand].as_deref()
    }
}

/// The edges that are not cut yet: the operands of a node and their producers.
fn uncut(
    graph: &Graph,
    cuts: &[Vec<Option<String>>],
    node: NodeId,
) -> impl Iterator<Item = (usize, NodeId)> {
    let operands = graph.nodes[node].operands.iter().zip(&cuts[node]).enumerate();
    operands.filter_map(|(operand, (value, cut))| {
        let maker = graph.makers[*value].filter(|maker| !is_constant(graph, *maker))?;
        cut.is_none().then_some((operand, maker))
    })
}

/// Cuts the edges whose producer also reaches the consumer over a cut edge.
///
/// Consumers are processed 64 at a time, one bit each: an edge spans at most [`MAX_SPAN`] ops, so only
/// those before them are visited.
fn cut_long_skips(graph: &Graph, cuts: &mut [Vec<Option<String>>]) {
    for node in 0..graph.nodes.len() {
        let far: Vec<_> =
            uncut(graph, cuts, node).filter(|(_, maker)| node - maker > MAX_SPAN).collect();
        for (operand, _) in far {
            let fact = format!("the producer is more than {MAX_SPAN} ops before the consumer");
            cuts[node][operand] = Some(fact);
        }
    }
    let mut skips = vec![];
    for first in (0..graph.nodes.len()).step_by(64) {
        let consumers = first..(first + 64).min(graph.nodes.len());
        let edges = || {
            let of = |node| uncut(graph, cuts, node).map(move |(at, maker)| (node, at, maker));
            consumers.clone().flat_map(of)
        };
        let Some(lowest) = edges().map(|(.., maker)| maker).min() else { continue };
        let through_memory = reached_through_memory(graph, cuts, lowest, consumers.clone());
        let skip = edges()
            .filter(|(node, _, maker)| through_memory[maker - lowest] >> (node - first) & 1 == 1);
        skips.extend(skip.map(|(node, operand, _)| (node, operand)));
    }
    for (node, operand) in skips {
        cuts[node][operand] = Some("the producer also reaches the consumer through memory".into());
    }
}

/// Per node from `lowest` to the last of at most 64 consumers: a bit for each consumer that it reaches over
/// at least one cut edge.
fn reached_through_memory(
    graph: &Graph,
    cuts: &[Vec<Option<String>>],
    lowest: NodeId,
    consumers: std::ops::Range<NodeId>,
) -> Vec<u64> {
    let mut reached = vec![0_u64; consumers.end - lowest];
    let mut through_memory = reached.clone();
    for node in (lowest..consumers.end).rev() {
        let mut own = reached[node - lowest];
        if node >= consumers.start {
            own |= 1 << (node - consumers.start);
        }
        for (value, cut) in graph.nodes[node].operands.iter().zip(&cuts[node]) {
            let maker = graph.makers[*value].and_then(|maker| maker.checked_sub(lowest));
            let Some(maker) = maker else { continue };
            reached[maker] |= own;
            through_memory[maker] |=
                if cut.is_some() { own } else { through_memory[node - lowest] };
        }
    }
    through_memory
}

fn is_constant(graph: &Graph, node: NodeId) -> bool {
    graph.nodes[node].op.as_ref().is_some_and(|op| op.row().arity() == Some(0))
}

fn local_cuts(graph: &Graph, node: NodeId) -> Vec<Option<String>> {
    let operands = 0..graph.nodes[node].operands.len();
    operands.map(|operand| fusable(graph, node, operand).err()).collect()
}

/// Whether the producer of an operand, as a kernel of its own, can be fused with the consumer.
fn fusable(graph: &Graph, node: NodeId, operand: usize) -> Result<(), String> {
    let consumer = &graph.nodes[node];
    let Some(maker) = graph.makers[consumer.operands[operand]] else {
        return Err("the value is an argument of the function".into());
    };
    let not_computed = |node: NodeId| match &graph.nodes[node].op {
        Some(view) => outside_as_view(view.name()),
        None => "no kernel of a segment computes the op".to_owned(),
    };
    let Some(op) = graph.compute(node) else { return Err(not_computed(node)) };
    let Some(producer) = graph.compute(maker) else { return Err(not_computed(maker)) };
    let apart = vec![None; graph.nodes[maker].operands.len()];
    let form = with_types(graph, maker, |types, result| {
        combine(Application { node: maker, op: producer, operands: types, result }, &apart)
    })?;
    let mut together = vec![None; consumer.operands.len()];
    together[operand] = Some(&form);
    with_types(graph, node, |types, result| {
        combine(Application { node, op, operands: types, result }, &together)
    })?;
    Ok(())
}

/// Why a view is not in a kernel with its readers.
pub fn outside_as_view(name: &str) -> String {
    format!("{name} is a view and stays outside kernels")
}

fn with_types<R>(
    graph: &Graph,
    node: NodeId,
    run: impl FnOnce(&[&TensorType], &TensorType) -> R,
) -> R {
    let node = &graph.nodes[node];
    let operands: Vec<_> = node.operands.iter().map(|value| &graph.types[*value]).collect();
    run(&operands, &graph.types[node.results[0]])
}

/// The nodes of every segment, ascending, with the constants that they use. Edges between the parts of a
/// component that is too large are cut.
fn components(graph: &Graph, edges: &mut Edges) -> Vec<Vec<NodeId>> {
    let mut sets = Sets::new(graph.nodes.len());
    let mut needs_own = vec![false; graph.nodes.len()];
    let mut constants: Vec<(NodeId, NodeId)> = Vec::new();
    for value in &graph.results {
        graph.makers[*value].into_iter().for_each(|maker| needs_own[maker] = true);
    }
    for (node, consumer) in graph.nodes.iter().enumerate().filter(|(node, _)| edges.live[*node]) {
        for (operand, value) in consumer.operands.iter().enumerate() {
            let Some(maker) = graph.makers[*value] else { continue };
            match (edges.cut(node, operand), is_constant(graph, maker)) {
                (Some(_), _) => needs_own[maker] = true,
                (None, true) => constants.push((node, maker)),
                (None, false) => {
                    if !sets.join(maker, node) {
                        let fact = format!("together they would be more than {MAX_NODES} ops");
                        edges.cuts[node][operand] = Some(fact);
                    }
                }
            }
        }
    }
    let mut members: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    let computes = |node: &NodeId| edges.live[*node] && graph.compute(*node).is_some();
    for node in (0..graph.nodes.len()).filter(computes) {
        if !is_constant(graph, node) || needs_own[node] {
            members.entry(sets.root(node)).or_default().push(node);
        }
    }
    for (user, constant) in constants {
        let nodes = members.entry(sets.root(user)).or_default();
        if let Err(place) = nodes.binary_search(&constant) {
            nodes.insert(place, constant);
        }
    }
    members.into_values().collect()
}

/// Disjoint sets of nodes, of at most [`MAX_NODES`] each. The first node of a set is its root, so that
/// segments are ordered by their first node.
struct Sets {
    parents: Vec<NodeId>,
    sizes: Vec<usize>,
}

impl Sets {
    fn new(count: usize) -> Self {
        Self { parents: (0..count).collect(), sizes: vec![1; count] }
    }

    fn root(&mut self, mut node: NodeId) -> NodeId {
        while self.parents[node] != node {
            self.parents[node] = self.parents[self.parents[node]];
            node = self.parents[node];
        }
        node
    }

    /// Merges two sets; returns false if the result would be too large.
    fn join(&mut self, one: NodeId, other: NodeId) -> bool {
        let (one, other) = (self.root(one), self.root(other));
        if one == other {
            return true;
        }
        let size = self.sizes[one] + self.sizes[other];
        if size <= MAX_NODES {
            self.parents[one.max(other)] = one.min(other);
            self.sizes[one.min(other)] = size;
        }
        size <= MAX_NODES
    }
}

fn place(graph: &Graph, edges: &Edges, nodes: &[NodeId]) -> GraphSegment {
    let mut placing = Placing { graph, edges, nodes, inputs: Vec::new(), numbers: BTreeMap::new() };
    let placed: Vec<SegmentNode> = nodes.iter().map(|node| placing.node(*node)).collect();
    let inputs = placing.inputs;
    let types = inputs.iter().map(|value| graph.types[*value].clone()).collect();
    let outputs: Vec<usize> = (0..nodes.len()).filter(|at| placed[*at].output).collect();
    let paths = paths(graph, edges, nodes, &outputs, &inputs);
    let segment = Segment { nodes: placed, inputs: types, paths };
    GraphSegment { segment, nodes: nodes.to_vec(), inputs }
}

/// Which inputs of a segment depend on which of its outputs.
fn paths(
    graph: &Graph,
    edges: &Edges,
    nodes: &[NodeId],
    outputs: &[usize],
    inputs: &[ValueId],
) -> Vec<(usize, usize)> {
    let makers = inputs.iter().enumerate();
    let makers: Vec<(usize, NodeId)> =
        makers.filter_map(|(input, value)| Some((input, graph.makers[*value]?))).collect();
    let last = makers.iter().map(|(_, maker)| *maker).max().unwrap_or(0);
    // The outputs that each node depends on. Nodes are visited in topological order.
    let mut waiting: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
    for output in outputs.iter().filter(|output| nodes[**output] < last) {
        waiting.insert(nodes[*output], vec![*output]);
    }
    let mut reached: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
    let mut walked = 0;
    while let Some((node, from)) = waiting.pop_first() {
        for result in &graph.nodes[node].results {
            for user in edges.users[*result].iter().take_while(|user| **user <= last) {
                walked += from.len();
                if walked > MAX_WALK {
                    return all_paths(nodes, outputs, &makers);
                }
                let known = waiting.entry(*user).or_default();
                known.extend(&from);
                known.sort_unstable();
                known.dedup();
            }
        }
        reached.insert(node, from);
    }
    let mut found = vec![];
    for (input, maker) in makers {
        // A producer inside the segment is a constant, which is read from memory.
        let from = reached.get(&maker).into_iter().flatten();
        found.extend(from.filter(|at| nodes[**at] != maker).map(|at| (*at, input)));
    }
    found.sort_unstable();
    found
}

/// Every path that the order of the ops allows.
fn all_paths(
    nodes: &[NodeId],
    outputs: &[usize],
    makers: &[(usize, NodeId)],
) -> Vec<(usize, usize)> {
    let later = |output: &usize| {
        let (output, node) = (*output, nodes[*output]);
        makers
            .iter()
            .filter(move |(_, maker)| *maker > node)
            .map(move |(input, _)| (output, *input))
    };
    outputs.iter().flat_map(later).collect()
}

struct Placing<'g> {
    graph: &'g Graph,
    edges: &'g Edges,
    nodes: &'g [NodeId],
    inputs: Vec<ValueId>,
    /// The number of each input.
    numbers: BTreeMap<ValueId, usize>,
}

impl Placing<'_> {
    fn node(&mut self, node: NodeId) -> SegmentNode {
        let placed = &self.graph.nodes[node];
        let op = placed.op.clone().expect("segments hold tensor-level ops");
        let mut operands = Vec::new();
        for (operand, value) in placed.operands.iter().enumerate() {
            let cut = self.edges.cut(node, operand).map(str::to_owned);
            operands.push(Edge { source: self.source(*value, cut.is_some()), cut });
        }
        SegmentNode {
            flops: op.flops(&self.graph.operand_types(node)).unwrap_or(u64::MAX),
            op,
            operands,
            ty: self.graph.types[placed.results[0]].clone(),
            output: self.is_output(node),
        }
    }

    fn source(&mut self, value: ValueId, cut: bool) -> Source {
        let maker = self.graph.makers[value];
        // A constant that is read from memory comes from the constant's own segment.
        let maker = maker.filter(|maker| !(cut && is_constant(self.graph, *maker)));
        if let Some(at) = maker.and_then(|maker| self.nodes.binary_search(&maker).ok()) {
            return Source::Node(at);
        }
        let next = self.inputs.len();
        let at = *self.numbers.entry(value).or_insert(next);
        if at == next {
            self.inputs.push(value);
        }
        Source::Input(at)
    }

    /// Whether a value is used outside of the segment. A constant is an output only of its own segment.
    fn is_output(&self, node: NodeId) -> bool {
        if is_constant(self.graph, node) && self.nodes.len() > 1 {
            return false;
        }
        let result = self.graph.nodes[node].results[0];
        let outside = |user: &NodeId| self.nodes.binary_search(user).is_err();
        self.edges.returned[result] || self.edges.users[result].iter().any(outside)
    }
}
