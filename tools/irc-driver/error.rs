//! The error of a command, and its exit code.
use irc_diag::{Diagnostic, Source};
use irc_runtime::RunError;
use std::path::Path;

/// What to do on a machine without a GPU.
pub const WITHOUT_GPU: &str = "irc run --backend emulate runs the kernel without a GPU";

/// The error of a command.
#[derive(Debug)]
pub enum Error {
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

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        let problem = Error::problem(error.to_string());
        match error {
            RunError::Device(_) => problem.help(WITHOUT_GPU),
            RunError::NoMetadata { path } => Error::problem(format!(
                "{} is a shared library that irc did not compile: it has no irc_metadata",
                path.display()
            ))
            .help("irc compile MODEL -o MODEL.so compiles a model to one"),
            _ => problem,
        }
    }
}

impl From<irc::Error> for Error {
    fn from(error: irc::Error) -> Self {
        if error.internal {
            let messages: Vec<_> =
                error.diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect();
            return Error::Internal(messages.join("; "));
        }
        Error::Diagnostics(error.file, error.diagnostics)
    }
}

impl Error {
    /// A problem without a hint.
    pub fn problem(message: impl Into<String>) -> Self {
        Error::Problem { message: message.into(), help: None }
    }

    /// Adds a hint to a problem.
    pub fn help(self, advice: impl Into<String>) -> Self {
        match self {
            Error::Problem { message, .. } => Error::Problem { message, help: Some(advice.into()) },
            other => other,
        }
    }

    /// Names the file that a problem is in.
    pub fn in_file(self, path: &Path) -> Self {
        match self {
            Error::Problem { message, help } => {
                Error::Problem { message: format!("{}: {message}", path.display()), help }
            }
            other => other,
        }
    }

    /// A feature that is designed but not implemented.
    pub fn unimplemented(what: &str) -> Self {
        Error::problem(format!("not implemented yet: {what}"))
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Error::Diagnostics(..) | Error::Reported | Error::Problem { .. } => 1,
            Error::Usage(_) => 2,
            Error::Mismatch => 3,
            Error::Internal(_) => 70,
        }
    }
}
