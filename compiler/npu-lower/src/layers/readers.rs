//! Which nodes read a value.

use irc_tl::{Graph, NodeKind, Op, ValueId};

/// A function of more nodes than this does not become part of a layer.
pub const MAX_NODES: usize = 64;

/// The readers of each value.
pub struct Readers<'g> {
    graph: &'g Graph,
    nodes: Vec<Vec<usize>>,
}

impl<'g> Readers<'g> {
    /// The readers of all values. An output of the graph is read by a node that does not exist.
    pub fn new(graph: &'g Graph) -> Self {
        let mut nodes = vec![vec![]; graph.types.len()];
        for (index, node) in graph.nodes.iter().enumerate() {
            node.operands.iter().for_each(|operand| nodes[operand.0].push(index));
        }
        graph.outputs.iter().for_each(|(_, value)| nodes[value.0].push(graph.nodes.len()));
        Self { graph, nodes }
    }

    /// Whether all that is computed from `value` is computed by the nodes `cone`, the last of which has the
    /// result: nothing else reads `value` or results of the others.
    pub fn are_covered(&self, value: ValueId, cone: &[usize]) -> bool {
        let Some((_, inner)) = cone.split_last() else { return false };
        if cone.len() > MAX_NODES {
            return false;
        }
        let mut budget = 4 * MAX_NODES;
        let results = inner.iter().flat_map(|node| &self.graph.nodes[*node].results);
        std::iter::once(&value)
            .chain(results)
            .all(|value| self.is_read_by(*value, cone, &mut budget))
    }

    fn is_read_by(&self, value: ValueId, cone: &[usize], budget: &mut usize) -> bool {
        self.nodes[value.0].iter().all(|reader| {
            let Some(left) = budget.checked_sub(1) else { return false };
            *budget = left;
            if cone.contains(reader) {
                return true;
            }
            let Some(node) = self.graph.nodes.get(*reader) else { return false };
            is_view(&node.kind) && self.is_read_by(node.results[0], cone, budget)
        })
    }
}

/// Whether a node only changes dimensions.
fn is_view(kind: &NodeKind) -> bool {
    matches!(kind, NodeKind::Op(Op::Reshape { .. } | Op::Transpose { .. }))
}
