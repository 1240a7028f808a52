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
    /// A string whose characters are needed, and that is not UTF-8.
    #[error("the string {0} is not UTF-8")]
    NotUtf8(String),
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

impl FunctionError {
    /// [`FunctionError::NotUtf8`] of a string.
    pub(crate) fn not_utf8(text: &[u8]) -> Self {
        Self::NotUtf8(shortened(&String::from_utf8_lossy(text)))
    }
}

/// The start of a string, in quotation marks.
pub(crate) fn shortened(text: &str) -> String {
    const MAX_SHOWN: usize = 40;
    let shown: String = text.chars().take(MAX_SHOWN).collect();
    format!("{shown:?}")
}
