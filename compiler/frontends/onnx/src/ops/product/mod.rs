//! Matrix products.

pub(super) mod block_scaled;
pub(super) mod determinant;
pub(super) mod einsum;
pub(super) mod inverse;
pub(super) mod matmul;
pub(super) mod quantized;
mod rows;
