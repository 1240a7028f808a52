//! Errors of functions of hosts.

use irc_tensor::{DType, TensorError};
use thiserror::Error;

/// Why a function has no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FunctionError {
    /// A string that is not a number.
    #[error("the string {text} is not a number of type {to}")]
    NotANumber {
        /// The string, shortened.
        text: String,
        /// The type of the number.
        to: DType,
    },
    /// The strings of one run take too much memory.
    #[error("the strings of the program take more than {0} bytes")]
    TooLong(usize),
    /// An image cannot be decoded.
    #[error("{0}")]
    Image(String),
    /// The operands are not those of the function.
    #[error("{function}: expected {expected}, found {found}")]
    Operands {
        /// The function.
        function: &'static str,
        /// The types of its operands.
        expected: String,
        /// The given types.
        found: String,
    },
    /// A result cannot be allocated.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
