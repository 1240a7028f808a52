//! Machine code from the `llvm` dialect, by LLVM or by Cranelift.

pub mod cranelift;
mod isolate;
mod link;
mod llvm;
mod target;

use irc_mlir::Module;

pub use link::link_library;
pub use target::{Backend, Target};

/// Why code could not be generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodegenError {
    /// What failed, in the words of the code generator or the linker.
    pub message: String,
    /// A diagnostic at the op that it is about has been emitted too.
    pub diagnosed: bool,
}

impl CodegenError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        CodegenError { message: message.into(), diagnosed: false }
    }
}

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// A relocatable object.
    Object,
    /// LLVM IR as text, optimised.
    LlvmIr,
    /// Assembly.
    Assembly,
}

/// Compiles a module in the `llvm` dialect with the target's code generator.
///
/// # Errors
/// What the code generator could not translate or compile; text, of Cranelift.
pub fn compile(
    module: &Module<'_>,
    target: &Target,
    output: Output,
) -> Result<Vec<u8>, CodegenError> {
    match (target.backend, output) {
        (Backend::Llvm, _) => llvm::compile(module, target, output),
        (Backend::Cranelift, Output::Object) => cranelift::compile(module, target),
        (Backend::Cranelift, _) => Err(CodegenError::new("cranelift writes objects only")),
    }
}

impl std::fmt::Display for CodegenError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for CodegenError {}
