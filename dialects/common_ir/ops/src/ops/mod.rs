//! The operators, by family: one list each.

mod activation;
mod batch_norm;
mod cast;
mod constant;
mod elementwise;
mod formula;
mod logic;
mod loss;
mod normalise;
mod quantise;
mod random;
mod reduce;
mod scan;
mod shape;
mod softmax;
mod withdrawn;

use crate::operator::Operator;

/// Every family.
pub(crate) const FAMILIES: &[&[Operator]] = &[
    activation::OPERATORS,
    batch_norm::OPERATORS,
    cast::OPERATORS,
    constant::OPERATORS,
    elementwise::OPERATORS,
    logic::OPERATORS,
    loss::OPERATORS,
    normalise::OPERATORS,
    quantise::OPERATORS,
    random::OPERATORS,
    reduce::OPERATORS,
    scan::OPERATORS,
    shape::OPERATORS,
    softmax::OPERATORS,
    withdrawn::OPERATORS,
];
