//! Errors of opening and running models.
use crate::RunError;
use irc_diag::Severity;
use irc_mlf::Report;
use std::{fmt, path::PathBuf};

/// Why a model cannot be opened or run, or a context created.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file cannot be read.
    #[error("cannot read {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's message.
        reason: String,
    },
    /// The archive is invalid.
    #[error("{0}")]
    InvalidArchive(InvalidArchive),
    /// The archive is valid, but this runtime cannot run it.
    #[error("cannot run {name}: {reason}")]
    Unsupported {
        /// The archive.
        name: String,
        /// Why.
        reason: String,
    },
    /// The code uses features that this processor lacks; none of it was loaded.
    #[error("{name} was compiled for another processor: this one lacks {missing}")]
    Processor {
        /// The file.
        name: String,
        /// The features, by LLVM's names.
        missing: String,
    },
    /// The system cannot load the code, or it lacks a function.
    #[error("cannot load the code of {name}: {reason}")]
    Load {
        /// The file.
        name: String,
        /// The loader's message.
        reason: String,
    },
    /// The model needs more memory than permitted or available.
    #[error("the model needs {needed} bytes of memory: {reason}")]
    Memory {
        /// Number of bytes of a context.
        needed: u64,
        /// Why they are not available.
        reason: String,
    },
    /// No input or output has this name or number.
    #[error("no {kind} is named '{name}'; the {kind}s are {known}")]
    Unknown {
        /// `input` or `output`.
        kind: &'static str,
        /// The name or number that was requested.
        name: String,
        /// The model's names.
        known: String,
    },
    /// Memory that does not match an input or output.
    #[error("{port}: expected {expected}, found {found}")]
    Buffer {
        /// The input or output.
        port: String,
        /// What the input or output requires.
        expected: String,
        /// What the caller provided.
        found: String,
    },
    /// A call of the model failed.
    #[error("'{node}' failed: {message}")]
    Failed {
        /// The node of the graph.
        node: String,
        /// The message of the code, or its status.
        message: String,
    },
    /// A compiled library could not be loaded or run.
    #[error(transparent)]
    Library(#[from] RunError),
}

/// The diagnostics for which an archive is rejected.
#[derive(Debug)]
pub struct InvalidArchive(pub(crate) Report);

impl InvalidArchive {
    /// The diagnostics, by file of the archive.
    pub fn report(&self) -> &Report {
        &self.0
    }
}

impl fmt::Display for InvalidArchive {
    /// One line for each error: the file in the archive, the message, the code of the diagnostic.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for file in self.0.files() {
            let errors =
                file.found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
            for diagnostic in errors {
                let (name, message, code) =
                    (file.source.name(), &diagnostic.message, diagnostic.code);
                write!(f, "{separator}{name}: {message} [{code}]")?;
                separator = "\n";
            }
        }
        Ok(())
    }
}
