//! Values of a graph that are known when it is compiled.

use irc_tl::{Graph, NodeKind, Tensor, ValueId};
use std::collections::BTreeMap;

/// The nodes of a graph by the values that they define, and constants, each evaluated once.
pub struct Constants<'g> {
    graph: &'g Graph,
    producers: BTreeMap<ValueId, usize>,
    /// Values that do not depend on inputs.
    known: BTreeMap<ValueId, bool>,
}

impl<'g> Constants<'g> {
    pub fn new(graph: &'g Graph) -> Self {
        let mut all = Self { graph, producers: BTreeMap::new(), known: BTreeMap::new() };
        for (index, node) in graph.nodes.iter().enumerate() {
            let is_known = match &node.kind {
                NodeKind::Constant(_) => true,
                NodeKind::Op(_) => {
                    let are_known = |value: &ValueId| all.known.get(value) == Some(&true);
                    let is_sized =
                        node.results.iter().all(|value| graph.ty(*value).known().is_some());
                    is_sized && node.operands.iter().all(are_known)
                }
                _ => false,
            };
            for result in &node.results {
                all.producers.insert(*result, index);
                all.known.insert(*result, is_known);
            }
        }
        all
    }

    /// The index of the node that defines a value; `None` of an input.
    pub fn producer(&self, value: ValueId) -> Option<usize> {
        self.producers.get(&value).copied()
    }

    /// Whether a value is a constant.
    pub fn is_constant(&self, value: ValueId) -> bool {
        self.known.get(&value) == Some(&true)
    }

    /// The elements of a constant; `None` of other values.
    ///
    /// # Errors
    /// If it cannot be computed.
    pub fn get(&self, value: ValueId) -> Result<Option<Tensor>, String> {
        if !self.is_constant(value) {
            return Ok(None);
        }
        let Some(node) = self.producer(value).map(|index| &self.graph.nodes[index]) else {
            return Ok(None);
        };
        match &node.kind {
            NodeKind::Constant(constant) => {
                constant.tensor().map(Some).map_err(|error| error.to_string())
            }
            NodeKind::Op(op) => {
                let mut operands = vec![];
                for operand in &node.operands {
                    operands.extend(self.get(*operand)?);
                }
                let operands: Vec<&Tensor> = operands.iter().collect();
                op.eval(&operands).map(Some).map_err(|error| error.to_string())
            }
            _ => Ok(None),
        }
    }
}
