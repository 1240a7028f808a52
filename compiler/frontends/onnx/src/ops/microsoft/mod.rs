//! Operators of the domain `com.microsoft`, written by tools of ONNX Runtime.
//!
//! They are composed of the functions that lower ONNX's own operators.

pub(super) mod activation;
pub(super) mod attention;
pub(super) mod blocks;
pub(super) mod channels_last;
pub(super) mod embedding;
pub(super) mod fused;
pub(super) mod images;
pub(super) mod lstm;
pub(super) mod normalise;
pub(super) mod quantized;
pub(super) mod quantized_products;
pub(super) mod renamed;
pub(super) mod search;
pub(super) mod tokenizer;
pub(super) mod tokens;

use crate::context::{Context, Lowered};
use crate::operator::{MICROSOFT, Operator};

/// An operator of the domain, which has one version.
const fn operator(name: &'static str, lower: fn(&mut Context<'_>) -> Lowered) -> Operator {
    Operator::new(name, &[1], lower).in_domain(MICROSOFT)
}
