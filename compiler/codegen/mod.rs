//! Code from the `llvm` dialect: machine code by LLVM or by Cranelift, or C source.

mod blocks;
pub mod c;
mod constant;
pub mod cranelift;
mod data;
mod intrinsic;
mod isolate;
mod layout;
mod link;
mod llvm;
mod target;

use irc_mlir::{Module, OperationRef, PassError, read};

pub use data::data_object;
pub use link::{hide_inner, join_objects, link_library, link_shared};
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

    /// An error at an op: a diagnostic there, and its words for who has no locations.
    pub(crate) fn at(op: &OperationRef<'_, '_>, message: &str) -> Self {
        let _ = PassError::at(op, message);
        CodegenError { message: format!("'{}': {message}", read::op_name(op)), diagnosed: true }
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
    /// C source: what the C code generator writes, and only that.
    C,
}

/// Compiles a module in the `llvm` dialect with the target's code generator.
///
/// # Errors
/// What the code generator could not translate or compile; an output that another one writes.
pub fn compile(
    module: &Module<'_>,
    target: &Target,
    output: Output,
) -> Result<Vec<u8>, CodegenError> {
    match (target.backend, output) {
        (Backend::C, Output::C) => c::compile(module).map(String::into_bytes),
        (Backend::C, _) => Err(CodegenError::new("the C code generator writes C source only")),
        (_, Output::C) => Err(CodegenError::new("only the C code generator writes C source")),
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
