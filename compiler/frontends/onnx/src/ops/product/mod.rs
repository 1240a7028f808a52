//! Matrix products.

pub(super) mod determinant;
pub(super) mod einsum;
pub(super) mod matmul;
pub(super) mod quantized;
