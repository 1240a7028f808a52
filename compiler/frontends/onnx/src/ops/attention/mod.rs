//! Attention operators.

pub(super) mod dot_product;
pub(super) mod flex;
pub(super) mod linear;
pub(super) mod rotary;
