//! Errors of applying an op.

use irc_host::FunctionError;
use irc_tensor::TensorError;
use thiserror::Error;

/// Operands that an op does not accept: the op, what it expected and what it found.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{op}: {message}")]
pub struct InferError {
    /// Name of the op.
    pub op: &'static str,
    /// What was expected and what was found.
    pub message: String,
}

/// Why an op could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EvalError {
    /// The operands have the wrong types.
    #[error(transparent)]
    Infer(#[from] InferError),
    /// The result cannot be allocated.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A function of the host has no result.
    #[error(transparent)]
    Host(#[from] FunctionError),
    /// An index outside of the table.
    #[error("gather: index {index} is {value}: expected -{rows} to {rows} (exclusive)")]
    IndexOutOfRange {
        /// Linear position in the index tensor.
        index: usize,
        /// The index.
        value: i64,
        /// Number of rows of the table.
        rows: i64,
    },
    /// A load of a compute op outside of its operand.
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
