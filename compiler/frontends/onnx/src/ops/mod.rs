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
mod image;
mod indexing;
mod like;
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
mod qdq;
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
mod strings;
mod text;
mod training;
mod withdrawn;

use crate::operator::{Operator, canonical};
use std::sync::LazyLock;

/// Every family.
const FAMILIES: &[&[Operator]] = &[
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
    image::OPERATORS,
    logic::OPERATORS,
    loss::OPERATORS,
    microsoft::activation::OPERATORS,
    microsoft::attention::decoder::OPERATORS,
    microsoft::attention::grouped::OPERATORS,
    microsoft::attention::multi_head::OPERATORS,
    microsoft::attention::projected::OPERATORS,
    microsoft::attention::rotary::OPERATORS,
    microsoft::blocks::OPERATORS,
    microsoft::channels_last::OPERATORS,
    microsoft::embedding::OPERATORS,
    microsoft::fused::OPERATORS,
    microsoft::search::OPERATORS,
    microsoft::images::OPERATORS,
    microsoft::lstm::OPERATORS,
    microsoft::normalise::OPERATORS,
    microsoft::quantized::OPERATORS,
    microsoft::quantized_products::OPERATORS,
    microsoft::renamed::OPERATORS,
    microsoft::tokenizer::OPERATORS,
    microsoft::tokens::OPERATORS,
    ml::ENCODERS,
    ml::FEATURES,
    ml::LINEAR,
    ml::MAPS,
    ml::SVM,
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
    spatial::conv_quantised::OPERATORS,
    spatial::conv_transpose::OPERATORS,
    spatial::deform::OPERATORS,
    spatial::grid::OPERATORS,
    spatial::pool::OPERATORS,
    spatial::resize::OPERATORS,
    spatial::roi::OPERATORS,
    spatial::unpool::OPERATORS,
    strings::OPERATORS,
    text::OPERATORS,
    training::OPERATORS,
    withdrawn::OPERATORS,
];

/// Operators by domain and name.
static TABLE: LazyLock<Vec<Operator>> = LazyLock::new(|| {
    let mut all: Vec<Operator> = FAMILIES.concat();
    all.sort_by_key(|operator| (operator.domain, operator.name));
    all
});

/// Finds an operator; an empty domain is ONNX's.
pub fn find(domain: &str, name: &str) -> Option<&'static Operator> {
    let wanted = (canonical(domain), name);
    let found = TABLE.binary_search_by(|operator| (operator.domain, operator.name).cmp(&wanted));
    found.ok().map(|index| &TABLE[index])
}

/// Whether an operator of ONNX is computed on integers between a dequantisation and a quantisation.
pub(crate) fn on_integers(name: &str) -> bool {
    qdq::has(name)
}

/// All operators, by domain and name.
pub fn operators() -> impl Iterator<Item = &'static Operator> {
    TABLE.iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_has_one_home() {
        let names: Vec<_> = operators().map(|operator| (operator.domain, operator.name)).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        for operator in operators() {
            assert!(operator.versions.is_sorted_by(|a, b| a < b), "{}", operator.name);
            assert!(!operator.versions.is_empty(), "{}", operator.name);
        }
    }
}
