//! Cuts a graph where fusion can never act, so that the pieces are decided one by one.
//!
//! A segment is a connected component of the edges that some rule may fuse. What is decided for it
//! depends on the [`Segment`] alone, which is plain data: equal segments are fused equally, in
//! whatever function they stand. An edge is cut when its consumer can take no producer of that
//! kind, or when the producer also reaches the consumer through memory: then they cannot share a
//! kernel, and keeping such long skips inside would tie a whole residual network together.
//! Constants (`fill`) are copied into every segment that uses them.
use super::{
    form::{Application, combine},
    graph::{Graph, NodeId, ValueId},
};
use irc_tl::{Op, TensorType};
use std::collections::BTreeMap;

/// A part of a graph that is fused on its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The ops, in an order in which they can run.
    pub nodes: Vec<SegmentNode>,
    /// The types of the values that come from outside.
    pub inputs: Vec<TensorType>,
    /// Node and input: the input is computed, outside the segment, from the node's value.
    pub paths: Vec<(usize, usize)>,
}

/// One op of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SegmentNode {
    /// The op.
    pub op: Op,
    /// What it reads.
    pub operands: Vec<Edge>,
    /// The type of its result.
    pub ty: TensorType,
    /// Its arithmetic operations.
    pub flops: u64,
    /// Whether its value is used outside the segment.
    pub output: bool,
}

/// An operand of a node of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// Where the value comes from.
    pub source: Source,
    /// Why no kernel may hold both ends; `None` when one may.
    pub cut: Option<String>,
}

/// Where an operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A value from outside the segment.
    Input(usize),
    /// Another node of the segment.
    Node(usize),
}

/// A segment and what it stands for in its graph.
#[derive(Clone, Debug)]
pub struct Placed {
    /// What is decided on.
    pub segment: Segment,
    /// The graph's node of each node of the segment.
    pub nodes: Vec<NodeId>,
    /// The graph's value of each input of the segment.
    pub inputs: Vec<ValueId>,
}

/// The segments of a graph, ordered by their first node. Every computing node whose value matters is
/// in one; constants may be in several.
pub fn segments(graph: &Graph) -> Vec<Placed> {
    let edges = Edges::of(graph);
    components(graph, &edges).iter().map(|nodes| place(graph, &edges, nodes)).collect()
}

/// What segments need to know of the edges of a graph.
pub struct Edges {
    cuts: Vec<Vec<Option<String>>>,
    users: Vec<Vec<NodeId>>,
    reach: Vec<Bits>,
    live: Vec<bool>,
}

impl Edges {
    /// The edges of a graph.
    pub fn of(graph: &Graph) -> Self {
        let live = graph.live();
        let mut users = vec![Vec::new(); graph.types.len()];
        for (index, node) in graph.nodes.iter().enumerate().filter(|(node, _)| live[*node]) {
            node.operands.iter().for_each(|value| users[*value].push(index));
        }
        let mut cuts: Vec<_> = (0..graph.nodes.len()).map(|node| local_cuts(graph, node)).collect();
        let (reach, through_memory) = reaches(graph, &cuts);
        cut_long_skips(graph, &mut cuts, &through_memory);
        Self { cuts, users, reach, live }
    }

    /// Why an operand is read from memory whatever the cost; `None` when a rule may fuse it.
    pub fn cut(&self, node: NodeId, operand: usize) -> Option<&str> {
        self.cuts[node][operand].as_deref()
    }
}

fn cut_long_skips(graph: &Graph, cuts: &mut [Vec<Option<String>>], through_memory: &[Bits]) {
    for (node, operands) in cuts.iter_mut().enumerate() {
        for (operand, cut) in operands.iter_mut().enumerate() {
            let maker = graph.makers[graph.nodes[node].operands[operand]];
            let Some(maker) = maker.filter(|_| cut.is_none()) else { continue };
            if !is_constant(graph, maker) && through_memory[maker].contains(node) {
                *cut = Some("the producer also reaches the consumer through memory".into());
            }
        }
    }
}

/// Per node: the nodes its value reaches, and those it reaches over at least one cut edge.
fn reaches(graph: &Graph, cuts: &[Vec<Option<String>>]) -> (Vec<Bits>, Vec<Bits>) {
    let count = graph.nodes.len();
    let mut all = vec![Bits::new(count); count];
    let mut through_memory = vec![Bits::new(count); count];
    for node in (0..count).rev() {
        let (mut own, own_memory) = (all[node].clone(), through_memory[node].clone());
        own.insert(node);
        for (operand, value) in graph.nodes[node].operands.iter().enumerate() {
            let Some(maker) = graph.makers[*value] else { continue };
            all[maker].union(&own);
            let cut = cuts[node][operand].is_some();
            through_memory[maker].union(if cut { &own } else { &own_memory });
        }
    }
    (all, through_memory)
}

/// A set of node numbers.
#[derive(Clone)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }
    fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }
    fn contains(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }
    fn union(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }
}

fn is_constant(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.nodes[node].op, Some(Op::Fill { .. }))
}

fn local_cuts(graph: &Graph, node: NodeId) -> Vec<Option<String>> {
    let operands = 0..graph.nodes[node].operands.len();
    operands.map(|operand| fusable(graph, node, operand).err()).collect()
}

/// Whether the producer of an operand, in a kernel of its own, could join the consumer.
fn fusable(graph: &Graph, node: NodeId, operand: usize) -> Result<(), String> {
    let consumer = &graph.nodes[node];
    let Some(maker) = graph.makers[consumer.operands[operand]] else {
        return Err("the value is an argument of the function".into());
    };
    let not_computed = |node: NodeId| match &graph.nodes[node].op {
        Some(view) => format!("{} is a view and stays outside kernels", view.name()),
        None => "the op is not of the tensor level".to_owned(),
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

fn with_types<R>(
    graph: &Graph,
    node: NodeId,
    run: impl FnOnce(&[&TensorType], &TensorType) -> R,
) -> R {
    let node = &graph.nodes[node];
    let operands: Vec<_> = node.operands.iter().map(|value| &graph.types[*value]).collect();
    run(&operands, &graph.types[node.results[0]])
}

/// The members of every segment, ascending, with the constants they use.
fn components(graph: &Graph, edges: &Edges) -> Vec<Vec<NodeId>> {
    let mut parents: Vec<NodeId> = (0..graph.nodes.len()).collect();
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
                (None, false) => join(&mut parents, maker, node),
            }
        }
    }
    let mut members: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    let computes = |node: &NodeId| edges.live[*node] && graph.compute(*node).is_some();
    for node in (0..graph.nodes.len()).filter(computes) {
        if !is_constant(graph, node) || needs_own[node] {
            members.entry(root(&mut parents, node)).or_default().push(node);
        }
    }
    for (user, constant) in constants {
        let nodes = members.entry(root(&mut parents, user)).or_default();
        if let Err(place) = nodes.binary_search(&constant) {
            nodes.insert(place, constant);
        }
    }
    members.into_values().collect()
}

fn root(parents: &mut [NodeId], mut node: NodeId) -> NodeId {
    while parents[node] != node {
        parents[node] = parents[parents[node]];
        node = parents[node];
    }
    node
}

/// The earlier root stays, so that segments are ordered by their first node.
fn join(parents: &mut [NodeId], one: NodeId, other: NodeId) {
    let (one, other) = (root(parents, one), root(parents, other));
    parents[one.max(other)] = one.min(other);
}

fn place(graph: &Graph, edges: &Edges, nodes: &[NodeId]) -> Placed {
    let mut placing = Placing { graph, edges, nodes, inputs: Vec::new() };
    let placed = nodes.iter().map(|node| placing.node(*node)).collect();
    let inputs = placing.inputs;
    let types = inputs.iter().map(|value| graph.types[*value].clone()).collect();
    let mut segment = Segment { nodes: placed, inputs: types, paths: Vec::new() };
    for (index, node) in nodes.iter().enumerate().filter(|(at, _)| segment.nodes[*at].output) {
        for (input, value) in inputs.iter().enumerate() {
            if graph.makers[*value].is_some_and(|maker| edges.reach[*node].contains(maker)) {
                segment.paths.push((index, input));
            }
        }
    }
    Placed { segment, nodes: nodes.to_vec(), inputs }
}

struct Placing<'g> {
    graph: &'g Graph,
    edges: &'g Edges,
    nodes: &'g [NodeId],
    inputs: Vec<ValueId>,
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
        // What reads a constant from memory reads the one of the constant's own segment.
        let maker = maker.filter(|maker| !(cut && is_constant(self.graph, *maker)));
        if let Some(at) = maker.and_then(|maker| self.nodes.binary_search(&maker).ok()) {
            return Source::Node(at);
        }
        let at = self.inputs.iter().position(|input| *input == value).unwrap_or_else(|| {
            self.inputs.push(value);
            self.inputs.len() - 1
        });
        Source::Input(at)
    }

    /// Whether a value leaves the segment. A constant leaves only the segment of its own.
    fn is_output(&self, node: NodeId) -> bool {
        if is_constant(self.graph, node) && self.nodes.len() > 1 {
            return false;
        }
        let result = self.graph.nodes[node].results[0];
        let outside = |user: &NodeId| self.nodes.binary_search(user).is_err();
        self.graph.results.contains(&result) || self.edges.users[result].iter().any(outside)
    }
}
