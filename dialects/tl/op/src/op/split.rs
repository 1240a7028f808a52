//! Ops that consist of independent parts.

use super::Op;
use crate::{Dim, Type};

/// How an op is computed in blocks of items, none of which depends on another.
#[derive(Debug)]
pub struct Split {
    /// The op of a block.
    pub op: Op,
    /// The number of items.
    pub count: Dim,
    /// Numbers of items in a block, largest first.
    pub sizes: Vec<i64>,
    /// The operands of a block with a number of items, from those of the op.
    pub block: fn(&[Type], i64) -> Vec<Type>,
    /// Per operand: whether each item has its own part.
    pub own: [bool; 2],
}

/// Whether all extents are known and positive.
pub(super) fn is_known(dims: &[Dim]) -> bool {
    dims.iter().all(|dim| dim.known().is_some_and(|extent| extent > 0))
}
