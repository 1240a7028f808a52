//! Graph attributes that are lowered to graphs of their own.

use irc_tl::{Builder, ValueId};
use std::collections::BTreeMap;

/// A graph attribute that is being lowered: its own inputs first, then captured values.
pub struct Region {
    /// The graph to write to.
    pub b: Builder,
    /// The captured values that are its last inputs: operands of the node.
    pub captured: Vec<ValueId>,
    known: BTreeMap<ValueId, ValueId>,
}

impl Region {
    pub(crate) fn new(b: Builder) -> Self {
        Self { b, captured: vec![], known: BTreeMap::new() }
    }

    /// Captures a value of the enclosing graph.
    pub fn capture(&mut self, around: &Builder, value: ValueId) -> ValueId {
        if let Some(within) = self.known.get(&value) {
            return *within;
        }
        let (within, operand) = self.b.capture(around, value, &captured_name(value));
        self.captured.extend(operand.then_some(value));
        self.known.insert(value, within);
        within
    }

    /// The value of the enclosing graph that an input captures.
    pub(crate) fn captured_as(&self, name: &str) -> Option<ValueId> {
        self.known.keys().copied().find(|value| captured_name(*value) == name)
    }
}

fn captured_name(value: ValueId) -> String {
    format!("captured_{}", value.0)
}
