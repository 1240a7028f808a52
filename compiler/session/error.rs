//! Why a query has no answer.
use crate::codegen::{Cause, CodegenError};
use irc_diag::Diagnostic;
use irc_mlir::CapturedDiagnostic;
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Why a query has no answer: diagnostics in the input's file.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryError {
    /// The diagnostics; at least one is an error.
    pub diagnostics: Vec<Diagnostic>,
    /// The fault is irc's, not the input's.
    pub internal: bool,
}

impl QueryError {
    /// A fault of irc.
    pub fn internal(message: impl Into<String>) -> Self {
        QueryError { diagnostics: vec![Diagnostic::error("internal", message)], internal: true }
    }

    /// One error at no place.
    pub fn at(code: &'static str, message: impl Into<String>) -> Self {
        Self::found(vec![Diagnostic::error(code, message)])
    }

    /// Errors of the input.
    pub fn found(diagnostics: Vec<Diagnostic>) -> Self {
        QueryError { diagnostics, internal: false }
    }

    /// The work was stopped.
    pub fn cancelled() -> Self {
        Self::at("cancelled", "the compilation was cancelled")
    }
}

impl From<CodegenError> for QueryError {
    fn from(error: CodegenError) -> Self {
        match error.cause {
            Cause::Internal | Cause::Op => QueryError::internal(error.message),
            Cause::Environment => QueryError::at("environment", error.message),
        }
    }
}

/// Why a module did not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// A pass failed.
    Passes(Vec<CapturedDiagnostic>),
    /// The code generator failed.
    Codegen(CodegenError),
}

impl From<CompileError> for QueryError {
    /// The error of a module that carries no locations.
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Codegen(error) => error.into(),
            CompileError::Passes(captured) => QueryError::internal(messages(&captured)),
        }
    }
}

/// The messages of diagnostics.
pub fn messages(captured: &[CapturedDiagnostic]) -> String {
    let messages: Vec<&str> = captured.iter().map(|one| one.message.as_str()).collect();
    messages.join("; ")
}

/// A panic fails its own program, not those beside it.
pub fn catch<T>(work: impl FnOnce() -> Result<T, QueryError>) -> Result<T, QueryError> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|panic| Err(QueryError::internal(panic_text(&*panic))))
}

/// The message of a panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the compiler panicked: {}", text.unwrap_or("without a message"))
}
