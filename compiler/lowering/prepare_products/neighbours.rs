//! The nodes around values.
use irc_tl::{Graph, Node, ValueId};
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// The nodes that compute values and read them.
pub(super) struct Neighbours<'g> {
    graph: &'g Graph,
    /// By value; empty until they are needed.
    found: OnceCell<BTreeMap<ValueId, Neighbour<'g>>>,
}

#[derive(Default)]
struct Neighbour<'g> {
    maker: Option<&'g Node>,
    readers: Vec<&'g Node>,
}

impl<'g> Neighbours<'g> {
    pub(super) fn of(graph: &'g Graph) -> Self {
        Self { graph, found: OnceCell::new() }
    }

    /// The node that computes a value; `None` for an input.
    pub(super) fn maker(&self, value: ValueId) -> Option<&'g Node> {
        self.of_value(value)?.maker
    }

    /// The nodes that read a value.
    pub(super) fn readers(&self, value: ValueId) -> &[&'g Node] {
        self.of_value(value).map_or(&[], |found| &found.readers)
    }

    fn of_value(&self, value: ValueId) -> Option<&Neighbour<'g>> {
        let find = || {
            let mut found: BTreeMap<ValueId, Neighbour<'g>> = BTreeMap::new();
            for node in &self.graph.nodes {
                for value in &node.results {
                    found.entry(*value).or_default().maker = Some(node);
                }
                for value in &node.operands {
                    found.entry(*value).or_default().readers.push(node);
                }
            }
            found
        };
        self.found.get_or_init(find).get(&value)
    }
}
