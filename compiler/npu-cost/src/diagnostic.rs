//! Diagnostics of schedules that have no cost.

use irc_diag::Diagnostic;

/// The result of this crate's functions.
pub type Result<T, E = Box<Diagnostic>> = std::result::Result<T, E>;

/// A diagnostic without a span.
pub fn error(code: &'static str, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, message))
}
