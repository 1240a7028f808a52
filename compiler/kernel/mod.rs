//! Building blocks shared by all lowerings of kernels.
//!
//! `arithmetic` emits functions of numbers on `element`s, in a `scope`; `emit` appends ops of
//! loops, vectors and memory; `expand_math` has the polynomials of mathematical functions. The
//! properties of a kernel that its callers use are its [`KernelInfo`](crate::attributes::KernelInfo). The
//! schedules that build on this are [`linalg_to_vector`](crate::lowering::linalg_to_vector) and
//! [`compute_to_loops`](crate::lowering::compute_to_loops).

pub(crate) mod arithmetic;
pub(crate) mod column_tail;
pub(crate) mod declare;
pub(crate) mod element;
pub(crate) mod emit;
pub(crate) mod expand_double;
pub(crate) mod expand_math;
mod expand_wide;
pub(crate) mod in_place;
pub(crate) mod scope;
pub(crate) mod transpose;

pub use expand_math::MAX_ULP;
