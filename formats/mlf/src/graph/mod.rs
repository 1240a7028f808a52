//! Graphs of TVM's GraphExecutor: `graph.json`.
//!
//! Nodes run in the order in which they are listed. Each has entries: an input one, a call one per
//! output. Entries are in storages, which later entries may reuse.

mod check;
mod read;
mod storage;
mod subset;
mod write;

pub use check::check;
pub use read::read;
pub(crate) use storage::largest;
pub use storage::{is_temporary, storages};
pub use subset::outside_subset;
pub use write::write;

use std::collections::BTreeMap;

use crate::types::Type;

/// A function without effect: its output aliases its input.
pub const NOP: &str = "__nop";

/// A function built into TVM's C++ runtime.
pub const COPY: &str = "__copy";

/// A graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Nodes, in execution order.
    pub nodes: Vec<Node>,
    /// Indices of the nodes that are inputs or parameters, in the order in which clients count
    /// them.
    pub inputs: Vec<usize>,
    /// Outputs, in order.
    pub outputs: Vec<Edge>,
    /// Entries of nodes, node by node.
    pub entries: Vec<Entry>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, by which inputs are set.
    pub name: String,
    /// The call; `None` for an input or parameter.
    pub call: Option<Call>,
}

/// A call of a function of the library, with the inputs, then the outputs, as arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Name of the function.
    pub function: String,
    /// Its operands.
    pub inputs: Vec<Edge>,
    /// Number of its outputs.
    pub outputs: usize,
    /// Whether tensors are passed as if they had one dimension.
    pub flatten: bool,
    /// Further attributes, which clients ignore: layouts, hashes.
    pub attributes: BTreeMap<String, String>,
}

/// An output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The node.
    pub node: usize,
    /// Index of the output.
    pub output: usize,
}

/// A tensor defined by a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its type.
    pub ty: Type,
    /// Its storage.
    pub storage: i64,
    /// Its device type (DLPack's), if the graph states it.
    pub device: Option<i64>,
}

impl Node {
    /// Number of entries of the node.
    pub fn outputs(&self) -> usize {
        self.call.as_ref().map_or(1, |call| call.outputs)
    }
}

impl Graph {
    /// Index of the first entry of each node, followed by the total number of entries.
    pub fn first_entries(&self) -> Vec<usize> {
        let mut first = vec![0];
        first.extend(self.nodes.iter().scan(0usize, |sum, node| {
            *sum = sum.saturating_add(node.outputs());
            Some(*sum)
        }));
        first
    }

    /// Name and index of the entry of each input, in the order of clients; for a graph without
    /// errors.
    pub fn named_inputs(&self) -> Vec<(&str, usize)> {
        let first = self.first_entries();
        let named = |node: &usize| Some((self.nodes.get(*node)?.name.as_str(), *first.get(*node)?));
        self.inputs.iter().filter_map(named).collect()
    }

    /// Indices of the output entries, in order; for a graph without errors.
    pub fn output_entries(&self) -> Vec<usize> {
        let first = self.first_entries();
        let entry = |edge: &Edge| Some(first.get(edge.node)?.saturating_add(edge.output));
        self.outputs.iter().filter_map(entry).collect()
    }

    /// Nodes that call functions, with their indices.
    pub fn calls(&self) -> impl Iterator<Item = (usize, &Call)> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter_map(|(index, node)| Some((index, node.call.as_ref()?)))
    }

    /// Functions of the library that are called, with the first node that calls each.
    pub fn functions(&self) -> BTreeMap<&str, usize> {
        let of_library = |call: &Call| ![NOP, COPY].contains(&call.function.as_str());
        let calls = self.calls().filter(|(_, call)| of_library(call));
        let mut functions = BTreeMap::new();
        for (index, call) in calls {
            functions.entry(call.function.as_str()).or_insert(index);
        }
        functions
    }
}
