//! The ground floor of kernels: what every way to write one stands on.
//!
//! `arithmetic` writes functions of numbers on `element`s, in a `scope`; `emit` appends ops of
//! loops, vectors and memory; `expand_math` has the polynomials of mathematical functions. What is
//! known of a kernel from outside is its [`KernelInfo`](crate::attributes::KernelInfo). The schedules above are
//! [`linalg_to_vector`](crate::lowering::linalg_to_vector) and
//! [`compute_to_loops`](crate::lowering::compute_to_loops); nothing here knows of them.

pub(crate) mod arithmetic;
pub(crate) mod declare;
pub(crate) mod element;
pub(crate) mod emit;
pub(crate) mod expand_math;
mod expand_wide;
pub(crate) mod scope;

pub use expand_math::MAX_ULP;
