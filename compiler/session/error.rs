//! Errors of queries.
use crate::codegen::{Cause, CodegenError};
use irc_diag::{Diagnostic, Source};
use irc_mlir::CapturedDiagnostic;
use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// An error of a query: diagnostics in the input's file.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryError {
    /// The diagnostics; at least one is an error.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether the error is internal to irc, rather than in the input.
    pub internal: bool,
}

impl QueryError {
    /// An internal error.
    pub fn internal(message: impl Into<String>) -> Self {
        QueryError { diagnostics: vec![Diagnostic::error("internal", message)], internal: true }
    }

    /// One error without location.
    pub fn at(code: &'static str, message: impl Into<String>) -> Self {
        Self::found(vec![Diagnostic::error(code, message)])
    }

    /// Errors of the input.
    pub fn found(diagnostics: Vec<Diagnostic>) -> Self {
        QueryError { diagnostics, internal: false }
    }

    /// The error of a cancelled query.
    pub fn cancelled() -> Self {
        Self::at("cancelled", "the compilation was cancelled")
    }
}

impl From<CodegenError> for QueryError {
    fn from(error: CodegenError) -> Self {
        match error.cause {
            Cause::Internal | Cause::Op => QueryError::internal(error.message),
            Cause::Environment => QueryError::at("environment", error.message),
            Cause::TemporaryFiles => {
                let found = Diagnostic::error("environment", error.message);
                QueryError::found(vec![found.help("set TMPDIR to another folder")])
            }
        }
    }
}

/// An error of a file: diagnostics, and the file that they refer to.
///
/// `Display` formats it for a terminal: each diagnostic with the lines that it refers to.
#[derive(Clone, PartialEq)]
pub struct Error {
    /// The file.
    pub file: Source,
    /// The diagnostics; at least one is an error.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether the error is internal to irc, rather than in the input.
    pub internal: bool,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Width of the terminal in columns.
        const WIDTH: usize = 100;
        let text = irc_diag::render(&self.file, &self.diagnostics, false, WIDTH);
        f.write_str(text.trim_end())
    }
}

impl fmt::Debug for Error {
    /// As `Display`, since Rust formats an error that `main` returns with `Debug`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// An error of a query on a file.
    pub(crate) fn new(file: Source, error: QueryError) -> Self {
        Error { file, diagnostics: error.diagnostics, internal: error.internal }
    }

    /// One error without location.
    pub(crate) fn at(code: &'static str, file: Source, message: impl Into<String>) -> Self {
        Self::found(file, vec![Diagnostic::error(code, message)])
    }

    pub(crate) fn found(file: Source, diagnostics: Vec<Diagnostic>) -> Self {
        Error { file, diagnostics, internal: false }
    }

    /// The diagnostics.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}

/// An error of compiling a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// A pass failed.
    Passes(Vec<CapturedDiagnostic>),
    /// The code generator failed.
    Codegen(CodegenError),
}

impl From<CompileError> for QueryError {
    /// The error of a module without locations.
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

/// Turns a panic into an error of its program, so that others are not affected.
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
