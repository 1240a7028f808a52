//! Why something has no cost.

use irc_diag::Diagnostic;

/// A result, or what is wrong and where.
pub type Result<T, E = Box<Diagnostic>> = std::result::Result<T, E>;

/// A diagnostic without a place yet.
pub fn fault(code: &'static str, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, message))
}
