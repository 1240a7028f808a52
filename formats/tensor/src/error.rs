//! Errors of tensors.

use crate::{DType, TensorType};
use thiserror::Error;

/// A tensor that cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TensorError {
    /// A dimension below zero.
    #[error("dimension {axis} of {ty} is negative")]
    NegativeDimension {
        /// The type.
        ty: TensorType,
        /// The axis.
        axis: usize,
    },
    /// The size in bytes overflows.
    #[error("{ty} does not fit in memory: its size in bytes overflows")]
    TooLarge {
        /// The type.
        ty: TensorType,
    },
    /// The allocation failed.
    #[error("{ty} needs {bytes} bytes, which could not be allocated")]
    OutOfMemory {
        /// The type.
        ty: TensorType,
        /// Its size.
        bytes: usize,
    },
    /// Data whose length does not match the type.
    #[error("{ty} holds {expected} {unit}, found {found}")]
    WrongLength {
        /// The type.
        ty: TensorType,
        /// `bytes` or `elements`.
        unit: &'static str,
        /// The length that the type requires.
        expected: usize,
        /// The actual length.
        found: usize,
    },
    /// A bool byte that is neither 0 nor 1.
    #[error("element {index} of {ty} is the byte {byte}: expected 0 or 1")]
    InvalidBool {
        /// The type.
        ty: TensorType,
        /// Linear index of the element.
        index: usize,
        /// Its byte.
        byte: u8,
    },
    /// Bytes read as a type of another width.
    #[error("the bits of {from} cannot be read as {to}: the element sizes differ")]
    WidthMismatch {
        /// Type of the bytes.
        from: DType,
        /// Requested type.
        to: DType,
    },
}
