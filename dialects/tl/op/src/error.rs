//! What can be wrong with an application of an op.

use irc_tensor::TensorError;
use thiserror::Error;

/// Operands an op does not accept: which op, what it expected, what it found.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{op}: {message}")]
pub struct InferError {
    /// Name of the op.
    pub op: &'static str,
    /// What was expected and what was found.
    pub message: String,
}

/// An op that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EvalError {
    /// The operands have the wrong types.
    #[error(transparent)]
    Infer(#[from] InferError),
    /// The result cannot be allocated.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// An index that names no row of the table.
    #[error("gather: index {index} is {value}: expected -{rows} to {rows} (exclusive)")]
    IndexOutOfRange {
        /// Linear position in the index tensor.
        index: usize,
        /// The index found there.
        value: i64,
        /// Rows of the table.
        rows: i64,
    },
    /// A load of a compute op lies outside its operand.
    #[error(
        "compute: index {value} of operand {operand} in dimension {dimension}: expected 0 to {extent} (exclusive)"
    )]
    LoadOutside {
        /// Position of the operand.
        operand: usize,
        /// Dimension of the operand.
        dimension: usize,
        /// The index.
        value: i64,
        /// Extent of the dimension.
        extent: i64,
    },
}
