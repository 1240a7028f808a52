//! The operators, by family: one list each.

mod constant;
mod elementwise;
mod shape;

use crate::operator::Operator;

/// Every family.
pub(crate) const FAMILIES: &[&[Operator]] =
    &[constant::OPERATORS, elementwise::OPERATORS, shape::OPERATORS];
