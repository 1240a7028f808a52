//! The operators, by family: one list each.

mod branch;
mod constant;
mod elementwise;
mod gather;
mod generate;
mod indexing;
mod movement;
mod pad;
mod parts;
mod repeat;
mod scatter;
mod selection;
mod sequence;
mod shape;

use crate::operator::Operator;

/// Every family.
pub(crate) const FAMILIES: &[&[Operator]] = &[
    branch::OPERATORS,
    constant::OPERATORS,
    elementwise::OPERATORS,
    gather::OPERATORS,
    generate::OPERATORS,
    movement::OPERATORS,
    pad::OPERATORS,
    parts::OPERATORS,
    repeat::OPERATORS,
    scatter::OPERATORS,
    selection::OPERATORS,
    sequence::OPERATORS,
    shape::OPERATORS,
];
