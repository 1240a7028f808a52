//! Matrix products.

pub(super) mod determinant;
pub(super) mod einsum;
pub(super) mod inverse;
pub(super) mod matmul;
pub(super) mod quantized;
