//! Host tensors: element types, values, npz files, comparison.
//!
//! A [`Tensor`] owns its bytes, dense and row-major, aligned for any vector unit. It is independent
//! of devices, graphs or MLIR: importers' tests, the reference evaluator, the runtime and the
//! command line all use it.

mod check;
mod compare;
mod dtype;
mod element;
mod error;
pub mod memory;
mod npy;
mod npy_strings;
mod npz;
mod random;
mod small;
mod strings;
mod tensor;
mod tensor_type;

pub use check::check_text;
pub use compare::{Comparison, Mismatch, Tolerance, compare};
pub use dtype::DType;
pub use element::Element;
pub use error::TensorError;
pub use half::{bf16, f16};
pub use npz::{Npz, NpzError, read_npz, read_npz_file, write_npz};
pub use random::seed_for;
pub use small::{
    F4E2M1, F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0, I2, I4, SmallFloat, Special, U2, U4,
};
pub use strings::{Strings, escape, unescape};
pub use tensor::{ALIGNMENT, Tensor, append_aligned};
pub use tensor_type::TensorType;
