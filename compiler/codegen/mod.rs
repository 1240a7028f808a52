//! Machine code from the `llvm` dialect.

mod isolate;
mod link;
mod llvm;
mod target;

pub use link::link_library;
pub use llvm::{Output, compile};
pub use target::Target;

/// Why code could not be generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodegenError {
    /// What failed, in LLVM's or the linker's words.
    pub message: String,
}

impl CodegenError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        CodegenError { message: message.into() }
    }
}

impl std::fmt::Display for CodegenError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for CodegenError {}
