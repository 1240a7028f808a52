//! Errors of tensors.

use crate::{DType, TensorType};
use thiserror::Error;

/// A tensor that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TensorError {
    /// A dimension below zero.
    #[error("dimension {axis} of {ty} is negative")]
    NegativeDimension {
        /// The type as given.
        ty: TensorType,
        /// Which dimension.
        axis: usize,
    },
    /// More bytes than an address can count.
    #[error("{ty} does not fit in memory: its size in bytes overflows")]
    TooLarge {
        /// The type as given.
        ty: TensorType,
    },
    /// The allocation failed.
    #[error("{ty} needs {bytes} bytes, which could not be allocated")]
    OutOfMemory {
        /// The type as given.
        ty: TensorType,
        /// Its size.
        bytes: usize,
    },
    /// Data whose length is not that of the type.
    #[error("{ty} holds {expected} {unit}, found {found}")]
    WrongLength {
        /// The type as given.
        ty: TensorType,
        /// `bytes` or `elements`.
        unit: &'static str,
        /// What the type asks for.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// A bool byte that is neither 0 nor 1.
    #[error("element {index} of {ty} is the byte {byte}: expected 0 or 1")]
    InvalidBool {
        /// The type as given.
        ty: TensorType,
        /// Linear index of the element.
        index: usize,
        /// What it holds.
        byte: u8,
    },
    /// Bytes read as a type of another width.
    #[error("the bits of {from} cannot be read as {to}: the element sizes differ")]
    WidthMismatch {
        /// Type of the bytes.
        from: DType,
        /// Type asked for.
        to: DType,
    },
}
