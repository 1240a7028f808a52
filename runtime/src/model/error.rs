//! Errors of opening and running models.
use crate::RunError;
use irc_diag::Severity;
use irc_mlf::Report;
use std::{fmt, path::PathBuf};

/// Why a model could not be opened, given memory, or run.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file cannot be read.
    #[error("cannot read {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The archive is damaged or contradicts itself.
    #[error("{0}")]
    Refused(RejectedArchive),
    /// The archive is valid, but nothing that runs here.
    #[error("cannot run {name}: {reason}")]
    Unsupported {
        /// The archive.
        name: String,
        /// What it lacks, or has.
        reason: String,
    },
    /// The code uses instructions that this processor lacks; nothing of it was loaded.
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
        /// The loader's words.
        reason: String,
    },
    /// The model takes more memory than it may, or than there is.
    #[error("the model needs {needed} bytes of memory: {reason}")]
    Memory {
        /// Bytes of a context.
        needed: u64,
        /// What is against it.
        reason: String,
    },
    /// No input or output has this name or number.
    #[error("no {kind} is named '{name}'; the {kind}s are {known}")]
    Unknown {
        /// `input` or `output`.
        kind: &'static str,
        /// What was asked for.
        name: String,
        /// The model's names.
        known: String,
    },
    /// Memory that does not fit an input or output.
    #[error("{port}: expected {expected}, found {found}")]
    Buffer {
        /// The input or output.
        port: String,
        /// What it takes.
        expected: String,
        /// What was given.
        found: String,
    },
    /// A call of the model failed.
    #[error("'{node}' failed: {message}")]
    Failed {
        /// The node of the graph.
        node: String,
        /// What the code said, or its status.
        message: String,
    },
    /// A compiled library could not be loaded or run.
    #[error(transparent)]
    Library(#[from] RunError),
}

/// Everything for which an archive is rejected.
#[derive(Debug)]
pub struct RejectedArchive(pub(crate) Report);

impl RejectedArchive {
    /// The diagnostics, with their files, for those who show where.
    pub fn report(&self) -> &Report {
        &self.0
    }
}

impl fmt::Display for RejectedArchive {
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
