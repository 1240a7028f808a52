//! The operators, by family: one list each.

mod activation;
mod attention;
mod batch_norm;
mod branch;
mod cast;
mod constant;
mod elementwise;
mod era;
mod formula;
mod gather;
mod generate;
mod indexing;
mod logic;
mod loss;
mod microsoft;
mod ml;
mod movement;
mod normalise;
mod pad;
mod parts;
mod pieces;
mod product;
mod quantise;
mod random;
mod recurrent;
mod reduce;
mod repeat;
mod scan;
mod scatter;
mod selection;
mod sequence;
mod shape;
mod signal;
mod softmax;
mod spatial;
mod text;
mod training;
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
    branch::OPERATORS,
    cast::OPERATORS,
    constant::OPERATORS,
    elementwise::OPERATORS,
    era::OPERATORS,
    gather::OPERATORS,
    generate::OPERATORS,
    logic::OPERATORS,
    loss::OPERATORS,
    microsoft::fused::OPERATORS,
    microsoft::quantized::OPERATORS,
    ml::FEATURES,
    ml::TREES,
    movement::OPERATORS,
    normalise::OPERATORS,
    pad::OPERATORS,
    parts::OPERATORS,
    product::determinant::OPERATORS,
    product::einsum::OPERATORS,
    product::matmul::OPERATORS,
    product::quantized::OPERATORS,
    quantise::OPERATORS,
    random::OPERATORS,
    recurrent::OPERATORS,
    reduce::OPERATORS,
    repeat::OPERATORS,
    scan::OPERATORS,
    scatter::OPERATORS,
    selection::OPERATORS,
    sequence::OPERATORS,
    shape::OPERATORS,
    signal::fourier::OPERATORS,
    signal::window::OPERATORS,
    softmax::OPERATORS,
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
    text::OPERATORS,
    training::OPERATORS,
    withdrawn::OPERATORS,
];
