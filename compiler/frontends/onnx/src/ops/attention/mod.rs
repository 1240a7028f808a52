//! Attention, and what goes with it.

pub(super) mod dot_product;
pub(super) mod flex;
pub(super) mod linear;
pub(super) mod rotary;
