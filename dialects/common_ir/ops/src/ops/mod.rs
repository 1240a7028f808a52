//! The operators, by family: one list each.

mod activation;
mod attention;
mod batch_norm;
mod cast;
mod constant;
mod elementwise;
mod formula;
mod logic;
mod loss;
mod normalise;
mod pieces;
mod product;
mod quantise;
mod random;
mod recurrent;
mod reduce;
mod scan;
mod shape;
mod signal;
mod softmax;
mod spatial;
mod withdrawn;

use crate::operator::Operator;

/// Every family.
pub(crate) const FAMILIES: &[&[Operator]] = &[
    activation::OPERATORS,
    attention::dot_product::OPERATORS,
    attention::flex::OPERATORS,
    attention::linear::OPERATORS,
    attention::rotary::OPERATORS,
    batch_norm::OPERATORS,
    cast::OPERATORS,
    constant::OPERATORS,
    elementwise::OPERATORS,
    logic::OPERATORS,
    loss::OPERATORS,
    normalise::OPERATORS,
    product::determinant::OPERATORS,
    product::einsum::OPERATORS,
    product::matmul::OPERATORS,
    product::quantized::OPERATORS,
    quantise::OPERATORS,
    random::OPERATORS,
    recurrent::OPERATORS,
    reduce::OPERATORS,
    scan::OPERATORS,
    shape::OPERATORS,
    signal::fourier::OPERATORS,
    signal::window::OPERATORS,
    softmax::OPERATORS,
    spatial::blocks::OPERATORS,
    spatial::columns::OPERATORS,
    spatial::conv::OPERATORS,
    spatial::conv_transpose::OPERATORS,
    spatial::pool::OPERATORS,
    spatial::unpool::OPERATORS,
    withdrawn::OPERATORS,
];
