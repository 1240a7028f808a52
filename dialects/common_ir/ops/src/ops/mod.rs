//! The operators, by family: one list each.

mod attention;
mod constant;
mod elementwise;
mod microsoft;
mod pieces;
mod product;
mod recurrent;
mod shape;
mod signal;
mod spatial;

use crate::operator::Operator;

/// Every family.
pub(crate) const FAMILIES: &[&[Operator]] = &[
    attention::dot_product::OPERATORS,
    attention::flex::OPERATORS,
    attention::linear::OPERATORS,
    attention::rotary::OPERATORS,
    constant::OPERATORS,
    elementwise::OPERATORS,
    microsoft::fused::OPERATORS,
    microsoft::quantized::OPERATORS,
    product::determinant::OPERATORS,
    product::einsum::OPERATORS,
    product::matmul::OPERATORS,
    product::quantized::OPERATORS,
    recurrent::OPERATORS,
    shape::OPERATORS,
    signal::fourier::OPERATORS,
    signal::window::OPERATORS,
    spatial::blocks::OPERATORS,
    spatial::causal::OPERATORS,
    spatial::columns::OPERATORS,
    spatial::conv::OPERATORS,
    spatial::conv_transpose::OPERATORS,
    spatial::deform::OPERATORS,
    spatial::grid::OPERATORS,
    spatial::pool::OPERATORS,
    spatial::resize::OPERATORS,
    spatial::roi::OPERATORS,
    spatial::unpool::OPERATORS,
];
