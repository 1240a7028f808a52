//! Why a command ended early, and with which exit code.
use irc_diag::{Diagnostic, Source};
use irc_runtime::RunError;

/// Why a command ended early.
#[derive(Debug)]
pub enum Stop {
    /// Diagnostics in an input.
    Diagnostics(Source, Vec<Diagnostic>),
    /// Diagnostics that are on the console already.
    Reported,
    /// An error outside of any file: a file that cannot be read, a feature that is not implemented.
    Problem {
        /// What is wrong.
        message: String,
        /// What to do.
        help: Option<String>,
    },
    /// The flags do not fit together.
    Usage(String),
    /// Results differ from what was expected; how is on the console already.
    Mismatch,
    /// The fault is ours.
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
    /// A problem without advice.
    pub fn problem(message: impl Into<String>) -> Self {
        Stop::Problem { message: message.into(), help: None }
    }

    /// Adds advice to a problem.
    pub fn help(self, advice: impl Into<String>) -> Self {
        match self {
            Stop::Problem { message, .. } => Stop::Problem { message, help: Some(advice.into()) },
            other => other,
        }
    }

    /// Something that the design has and the program has not.
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
