//! Errors of preparing and running plans.

use std::path::PathBuf;

use irc_tensor::TensorType;

/// Why a plan cannot be prepared or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not a shared library that this machine can load.
    #[error("cannot load {path}: {reason}")]
    Load {
        /// The file.
        path: PathBuf,
        /// The loader's message.
        reason: String,
    },
    /// The code uses instructions that this processor lacks.
    #[error("the plan's code was compiled for another processor: this one lacks {missing}")]
    Processor {
        /// The features.
        missing: String,
    },
    /// The plan is invalid or unsupported.
    #[error("{place}: {reason}")]
    Plan {
        /// Rank and location in the plan.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The code does not match the plan.
    #[error("the compiled code does not fit the plan of rank {rank}: {reason}")]
    Code {
        /// Rank of the plan.
        rank: i64,
        /// The inconsistency.
        reason: String,
    },
    /// An input does not have the type of the buffer with its name.
    #[error("input '{name}': expected {expected}, found {found}")]
    InputType {
        /// The input.
        name: String,
        /// The buffer's type.
        expected: TensorType,
        /// The caller's type.
        found: TensorType,
    },
    /// No buffer of the plan has this name.
    #[error("no input is named '{name}'; the inputs are {known}")]
    UnknownInput {
        /// The caller's name.
        name: String,
        /// The plan's names.
        known: String,
    },
    /// A buffer could not be allocated.
    #[error("cannot allocate {name}: {reason}")]
    Allocate {
        /// The buffer.
        name: String,
        /// Why.
        reason: String,
    },
    /// The plans do not form one world.
    #[error("{0}")]
    World(String),
    /// A deadlock: no task can continue.
    #[error("deadlock: no task can make progress\n{waits}")]
    Deadlock {
        /// Which tasks wait for which, one per line.
        waits: String,
    },
    /// A kernel returned an error code.
    #[error("rank {rank}: task {task} of {op} failed with code {code}")]
    Kernel {
        /// Rank of the plan.
        rank: i64,
        /// Task info and index.
        task: String,
        /// The ops of the kernel.
        op: String,
        /// The value that the kernel returned.
        code: i32,
    },
    /// A race: two accesses to the same bytes are not ordered.
    #[error("{0}")]
    Race(Box<crate::Race>),
    /// The transport of messages between ranks failed.
    #[error("{0}")]
    Transport(String),
    /// The trace could not be written.
    #[error("cannot write the trace: {0}")]
    Trace(#[from] std::io::Error),
    /// The host failed to provide a resource.
    #[error("{0}")]
    System(String),
}
