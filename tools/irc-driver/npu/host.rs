//! The steps of a model that the host computes, in text.
use crate::error::Error;
use irc::{Model, NpuDivision, NpuStep, npu::Place};
use irc_tl::{Graph, NodeKind};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

/// The names of the nodes of a model.
pub struct Names {
    /// The nodes of the graph of each node of the source.
    sizes: BTreeMap<Arc<str>, usize>,
    /// The nodes of the source that have each name.
    named: BTreeMap<String, usize>,
    /// Those of which the NPU computes nodes.
    of_npu: BTreeSet<Arc<str>>,
}

/// A step of the host.
pub struct HostStep {
    /// Its nodes of the source, in order.
    pub nodes: Vec<String>,
    outputs: Vec<String>,
}

impl Names {
    /// The names of the nodes of a model.
    ///
    /// # Errors
    /// Errors in the file.
    pub fn new(model: &Model<'_>, division: &NpuDivision<'_>) -> Result<Self, Error> {
        let whole = sizes(&model.imported()?.graph);
        let mut named: BTreeMap<String, usize> = BTreeMap::new();
        for origin in whole.keys() {
            *named.entry(parts(origin).1.to_owned()).or_default() += 1;
        }
        let mut of_npu = BTreeSet::new();
        // Of a model that is not divided, no step is the host's.
        for step in division.steps.iter().filter(|step| step.place == Place::Npu) {
            of_npu.extend(sizes(&step.model.imported()?.graph).into_keys());
        }
        Ok(Self { sizes: whole, named, of_npu })
    }

    /// A step of the host.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of(&self, step: &NpuStep<'_>) -> Result<HostStep, Error> {
        let imported = step.model.imported()?;
        let own = sizes(&imported.graph);
        let mut nodes = vec![];
        let mut seen = BTreeSet::new();
        for origin in computed(&imported.graph) {
            if seen.insert(origin) {
                // The host has the whole of a node, or what quantises its operands and undoes it for its readers.
                let is_part = own.get(origin) < self.sizes.get(origin);
                let name = self.name(origin);
                nodes.push(match is_part && self.of_npu.contains(origin) {
                    true => format!("quantisation of {name}"),
                    false => name,
                });
            }
        }
        let outputs = imported.graph.outputs.iter().map(|(name, _)| name.clone()).collect();
        Ok(HostStep { nodes, outputs })
    }

    /// The name of a node, with its path if it has none of its own.
    fn name(&self, origin: &str) -> String {
        match parts(origin) {
            (Some(path), name) if !name.ends_with('\'') || self.named.get(name) > Some(&1) => {
                format!("{name} ({path})")
            }
            (_, name) => name.to_owned(),
        }
    }
}

/// The path and the node of an origin, which is `path` or `path: node`.
fn parts(origin: &str) -> (Option<&str>, &str) {
    origin.split_once(": ").map_or((None, origin), |(path, node)| (Some(path), node))
}

/// The origins of the nodes of a graph that are no constants.
fn computed(graph: &Graph) -> impl Iterator<Item = &Arc<str>> {
    let nodes = graph.nodes.iter().filter(|node| !matches!(node.kind, NodeKind::Constant(_)));
    nodes.filter_map(|node| node.origin.as_ref())
}

/// How many nodes have each origin.
fn sizes(graph: &Graph) -> BTreeMap<Arc<str>, usize> {
    let mut sizes: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    computed(graph).for_each(|origin| *sizes.entry(origin.clone()).or_default() += 1);
    sizes
}

/// A line with the first nodes; the outputs of a step that computes nothing.
impl fmt::Display for HostStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_SHOWN: usize = 4;
        let (what, all) = match self.nodes.is_empty() {
            true => ("outputs that are inputs or constants: ", &self.outputs),
            false => ("", &self.nodes),
        };
        let shown = all[..all.len().min(MAX_SHOWN)].join(", ");
        match all.len().saturating_sub(MAX_SHOWN) {
            0 => writeln!(f, "on the host: {what}{shown}"),
            more => writeln!(f, "on the host: {what}{shown} and {more} more"),
        }
    }
}
