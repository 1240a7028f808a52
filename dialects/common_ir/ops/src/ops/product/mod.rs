//! Products of matrices.

pub(super) mod matmul;
pub(super) mod quantized;
