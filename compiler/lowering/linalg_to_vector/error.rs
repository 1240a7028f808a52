//! Errors of the lowering of a kernel.
use irc_mlir::{OperationLike, OperationRef};

/// The op that could not be lowered, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{op}' at {location}: {reason}")]
pub struct LowerError {
    /// The name of the op.
    pub op: String,
    /// Its location.
    pub location: String,
    /// What was expected and what was found.
    pub reason: String,
}

impl LowerError {
    /// An error at an op.
    pub fn at<'c: 'a, 'a>(op: OperationRef<'c, 'a>, reason: impl Into<String>) -> Self {
        let op_name = op.name().as_string_ref().as_str().unwrap_or("?").to_owned();
        Self { op: op_name, location: op.location().to_string(), reason: reason.into() }
    }
}

/// The result of every step of the lowering.
pub type Result<T, E = LowerError> = std::result::Result<T, E>;
