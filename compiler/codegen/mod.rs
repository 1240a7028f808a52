//! Code from the `llvm` dialect: machine code or C source.

mod backend;
mod blocks;
pub mod c;
mod constant;
mod cranelift;
mod data;
mod inst;
mod intrinsic;
mod isolate;
mod layout;
mod link;
mod llvm;
pub mod nvptx;
mod requirements;
mod saturate;
mod target;
mod unroll;

use irc_mlir::{Module, OperationRef, PassError, read};

pub use backend::{Backend, Row};
pub use data::{SymbolScope, data_object};
pub use link::{Linked, hide_inner, join_objects, link_library, link_shared};
pub use requirements::{UsedFeatures, restrict_metadata};
pub use target::{GpuForm, Target};

/// Why code could not be generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodegenError {
    /// The error message of the code generator or the linker.
    pub message: String,
    /// The cause.
    pub cause: Cause,
}

impl From<object::read::Error> for CodegenError {
    fn from(error: object::read::Error) -> Self {
        CodegenError::new(format!("an object cannot be read: {error}"))
    }
}

/// The cause of an error of code generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// irc, or the code generator.
    Internal,
    /// An op, at which a diagnostic has been emitted.
    Op,
    /// The machine: it has no linker.
    Environment,
    /// The machine: it has no folder or no space for temporary files.
    TemporaryFiles,
}

impl CodegenError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        CodegenError { message: message.into(), cause: Cause::Internal }
    }

    /// An error at an op: emits a diagnostic there, and returns its message for callers without locations.
    pub(crate) fn at(op: &OperationRef<'_, '_>, message: &str) -> Self {
        let _ = PassError::at(op, message);
        let message = format!("'{}': {message}", read::op_name(op));
        CodegenError { message, cause: Cause::Op }
    }

    /// An error of the machine.
    pub(crate) fn environment(message: impl Into<String>) -> Self {
        CodegenError { message: message.into(), cause: Cause::Environment }
    }

    /// An error of temporary files.
    pub(crate) fn temporary_files(message: impl Into<String>) -> Self {
        CodegenError { message: message.into(), cause: Cause::TemporaryFiles }
    }
}

/// The output to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// A relocatable object.
    Object,
    /// LLVM IR as text, optimised.
    LlvmIr,
    /// Assembly.
    Assembly,
    /// C source, the only output of the C code generator.
    C,
    /// PTX, the main output of the code generator for NVIDIA GPUs.
    Ptx,
}

impl Output {
    /// The description in messages.
    const fn words(self) -> &'static str {
        match self {
            Self::Object => "objects",
            Self::LlvmIr => "LLVM IR",
            Self::Assembly => "assembly",
            Self::C => "C source",
            Self::Ptx => "PTX",
        }
    }
}

/// Compiles a module in the `llvm` dialect with the target's code generator.
///
/// # Errors
/// If the code generator cannot translate or compile the module, or does not write this output.
pub fn compile(
    module: &Module<'_>,
    target: &Target,
    output: Output,
) -> Result<Vec<u8>, CodegenError> {
    let backend = target.backend;
    if !backend.writes(output) {
        let writes: Vec<_> = backend.outputs.iter().map(|output| output.words()).collect();
        let (name, writes) = (backend.name, writes.join(", "));
        let message = format!("the backend {name} writes {writes}, not {}", output.words());
        return Err(CodegenError::new(message));
    }
    (backend.compile)(module, target, output)
}

impl std::fmt::Display for CodegenError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for CodegenError {}
