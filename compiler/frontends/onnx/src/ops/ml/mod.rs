//! Classical machine learning (`ai.onnx.ml`).

mod encoders;
mod features;
mod labels;
mod linear;
mod maps;
mod rows;
mod scores;
mod svm;
mod trees;

use crate::operator::Operator;

pub(super) use encoders::OPERATORS as ENCODERS;
pub(super) use features::OPERATORS as FEATURES;
pub(super) use linear::OPERATORS as LINEAR;
pub(super) use maps::OPERATORS as MAPS;
pub(super) use svm::OPERATORS as SVM;
pub(super) use trees::OPERATORS as TREES;

const DOMAIN: &str = "ai.onnx.ml";

/// An operator of that domain.
const fn operator(
    name: &'static str,
    versions: &'static [i64],
    lower: fn(&mut crate::Context<'_>) -> crate::Lowered,
) -> Operator {
    Operator::new(name, versions, lower).in_domain(DOMAIN)
}
