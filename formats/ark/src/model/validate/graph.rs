//! Edges between nodes.

use std::collections::{BTreeMap, BTreeSet};

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use crate::model::Node;

/// Id and edges of a node.
#[derive(Clone, Debug)]
pub(crate) struct Edges {
    /// Index of the node in the file.
    pub index: usize,
    /// Id of the node.
    pub id: u64,
    /// Ids of nodes that this one uses.
    pub producers: Vec<u64>,
    /// Ids of nodes that use this one.
    pub consumers: Vec<u64>,
}

impl Edges {
    /// Edges of the node at `index`.
    pub fn of((index, node): (usize, &Node)) -> Self {
        let (producers, consumers) = (node.producers.clone(), node.consumers.clone());
        Self { index, id: node.id, producers, consumers }
    }
}

/// One of the two lists of edges of a node.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Producers,
    Consumers,
}

impl Side {
    fn key(self) -> &'static str {
        match self {
            Side::Producers => "ProducerNodeIds",
            Side::Consumers => "ConsumerNodeIds",
        }
    }

    fn opposite(self) -> Self {
        match self {
            Side::Producers => Side::Consumers,
            Side::Consumers => Side::Producers,
        }
    }

    fn of(self, node: &Edges) -> &[u64] {
        match self {
            Side::Producers => &node.producers,
            Side::Consumers => &node.consumers,
        }
    }
}

/// Checks that ids are unique, that edges lead to existing nodes and agree at both ends, and that
/// there are no cycles.
pub(super) fn check(nodes: &[Edges], sink: &mut Sink) {
    let before = sink.error_count();
    let mut by_id: BTreeMap<u64, &Edges> = BTreeMap::new();
    for node in nodes {
        if let Some(first) = by_id.get(&node.id) {
            let message = format!("two nodes have the id {}", node.id);
            let diagnostic = Diagnostic::error("ark-duplicate-node", message)
                .path(path(node, "Id"))
                .related(path(first, "Id"), "the first one is here");
            sink.push(diagnostic);
            continue;
        }
        by_id.insert(node.id, node);
    }
    // If two nodes have one id, edges are ambiguous.
    if sink.error_count() > before {
        return;
    }
    // One set for each side, so that a long list of edges is not searched repeatedly.
    let edges = |side: Side| -> BTreeSet<(u64, u64)> {
        let of = |node: &Edges| side.of(node).iter().map(|&to| (node.id, to)).collect::<Vec<_>>();
        nodes.iter().flat_map(of).collect()
    };
    let (producers, consumers) = (edges(Side::Producers), edges(Side::Consumers));
    for node in nodes {
        check_side(node, Side::Producers, &by_id, &consumers, sink);
        check_side(node, Side::Consumers, &by_id, &producers, sink);
    }
    if sink.error_count() == before {
        check_cycles(nodes, &by_id, sink);
    }
}

fn path(node: &Edges, key: &str) -> String {
    At::ROOT.key("Nodes").index(node.index).key(key).to_string()
}

fn check_side(
    node: &Edges,
    side: Side,
    by_id: &BTreeMap<u64, &Edges>,
    opposite: &BTreeSet<(u64, u64)>,
    sink: &mut Sink,
) {
    let mut seen = BTreeSet::new();
    for (index, &id) in side.of(node).iter().enumerate() {
        let here = || format!("{}[{index}]", path(node, side.key()));
        if !seen.insert(id) {
            let message = format!("node {id} is listed twice");
            sink.push(Diagnostic::warning("ark-duplicate-edge", message).path(here()));
            continue;
        }
        let Some(other) = by_id.get(&id) else {
            let message = format!("no node has the id {id}");
            sink.push(Diagnostic::error("ark-dangling-node", message).path(here()));
            continue;
        };
        if id == node.id {
            let message = format!("node {id} depends on itself");
            sink.push(Diagnostic::error("ark-cycle", message).path(here()));
        } else if !opposite.contains(&(id, node.id)) {
            let other_key = side.opposite().key();
            let message = format!("node {id} does not list node {} in `{other_key}`", node.id);
            let diagnostic = Diagnostic::error("ark-asymmetric-edge", message)
                .path(here())
                .related(path(other, other_key), format!("{} is missing here", node.id));
            sink.push(diagnostic);
        }
    }
}

/// Finds cycles by removing nodes all of whose producers are removed; the remaining nodes are on a
/// cycle or depend on one.
fn check_cycles(nodes: &[Edges], by_id: &BTreeMap<u64, &Edges>, sink: &mut Sink) {
    let distinct = |ids: &[u64]| ids.iter().copied().collect::<BTreeSet<u64>>();
    let mut waiting: BTreeMap<u64, usize> =
        nodes.iter().map(|node| (node.id, distinct(&node.producers).len())).collect();
    let mut ready: Vec<u64> =
        waiting.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
    while let Some(id) = ready.pop() {
        waiting.remove(&id);
        for consumer in distinct(&by_id[&id].consumers) {
            let Some(count) = waiting.get_mut(&consumer) else { continue };
            *count -= 1;
            if *count == 0 {
                ready.push(consumer);
            }
        }
    }
    match waiting.keys().next() {
        Some(&start) => report_cycle(start, &waiting, by_id, sink),
        None => check_list_order(nodes, sink),
    }
}

/// Follows remaining producers until one repeats, which is a cycle.
fn report_cycle(
    start: u64,
    left: &BTreeMap<u64, usize>,
    by_id: &BTreeMap<u64, &Edges>,
    sink: &mut Sink,
) {
    let mut walk = vec![start];
    loop {
        let node = by_id[&walk[walk.len() - 1]];
        let Some(&next) = node.producers.iter().find(|id| left.contains_key(id)) else { return };
        if let Some(first) = walk.iter().position(|&id| id == next) {
            let cycle = &walk[first..];
            let names: Vec<String> = cycle.iter().chain([&next]).map(u64::to_string).collect();
            let message = format!("nodes depend on each other: {}", names.join(" needs "));
            let on_cycle = by_id[&cycle[0]];
            let diagnostic = Diagnostic::error("ark-cycle", message);
            sink.push(diagnostic.path(path(on_cycle, "ProducerNodeIds")));
            return;
        }
        walk.push(next);
    }
}

/// ARK runs nodes in list order, so a producer must precede its consumers.
fn check_list_order(nodes: &[Edges], sink: &mut Sink) {
    let index: BTreeMap<u64, usize> =
        nodes.iter().enumerate().map(|(index, node)| (node.id, index)).collect();
    for (position, node) in nodes.iter().enumerate() {
        for (edge, id) in node.producers.iter().enumerate() {
            if index[id] > position {
                let message = format!("node {id} runs after node {}, which needs it", node.id);
                let diagnostic = Diagnostic::error("ark-node-order", message)
                    .path(format!("{}[{edge}]", path(node, "ProducerNodeIds")))
                    .related(path(&nodes[index[id]], "Id"), "it is listed here")
                    .help("list producers before their consumers; nodes run in list order");
                sink.push(diagnostic);
            }
        }
    }
}
