//! Why a command stopped early, and its exit code.
use irc_diag::{Diagnostic, Source};
use irc_runtime::RunError;

/// Why a command stopped early.
#[derive(Debug)]
pub enum Stop {
    /// Diagnostics in an input.
    Diagnostics(Source, Vec<Diagnostic>),
    /// Diagnostics that have been shown on the console.
    Reported,
    /// An error outside of any file: a file that cannot be read, an unimplemented feature.
    Problem {
        /// The error.
        message: String,
        /// A hint.
        help: Option<String>,
    },
    /// Invalid combination of flags.
    Usage(String),
    /// Results differ from the expected ones; the differences have been shown on the console.
    Mismatch,
    /// An internal error.
    Internal(String),
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Self {
        Stop::problem(error.to_string())
    }
}

impl From<irc::Error> for Stop {
    fn from(error: irc::Error) -> Self {
        if error.internal {
            let messages: Vec<_> =
                error.diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect();
            return Stop::Internal(messages.join("; "));
        }
        Stop::Diagnostics(error.file, error.diagnostics)
    }
}

impl Stop {
    /// A problem without a hint.
    pub fn problem(message: impl Into<String>) -> Self {
        Stop::Problem { message: message.into(), help: None }
    }

    /// Adds a hint to a problem.
    pub fn help(self, advice: impl Into<String>) -> Self {
        match self {
            Stop::Problem { message, .. } => Stop::Problem { message, help: Some(advice.into()) },
            other => other,
        }
    }

    /// A feature that is designed but not implemented.
    pub fn not_built(what: &str) -> Self {
        Stop::problem(format!("not implemented yet: {what}"))
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Stop::Diagnostics(..) | Stop::Reported | Stop::Problem { .. } => 1,
            Stop::Usage(_) => 2,
            Stop::Mismatch => 3,
            Stop::Internal(_) => 70,
        }
    }
}
