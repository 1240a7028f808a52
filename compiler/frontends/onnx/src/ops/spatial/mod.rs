//! Operators on spatial neighbourhoods.

pub(super) mod blocks;
pub(super) mod causal;
pub(super) mod columns;
pub(super) mod conv;
pub(super) mod conv_quantised;
pub(super) mod conv_transpose;
pub(super) mod deform;
pub(super) mod grid;
mod phases;
pub(super) mod pool;
pub(super) mod resize;
pub(super) mod roi;
pub(super) mod unpool;
pub(super) mod window;
