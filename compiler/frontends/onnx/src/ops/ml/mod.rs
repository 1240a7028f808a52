//! Classical machine learning on numbers (`ai.onnx.ml`).

mod features;
mod trees;

use crate::operator::Operator;

pub(super) use features::OPERATORS as FEATURES;
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
