//! One processor of a rank: its position in the script.

use std::time::Instant;

use crate::distribution::TaskCursor;

/// The state of a processor.
#[derive(Debug, Default)]
pub(crate) struct Processor {
    /// Index of the next entry of the script.
    pub entry: usize,
    /// Its tasks of that entry, once started.
    pub cursor: Option<TaskCursor>,
    /// The task in which it waits.
    pub at: Option<Place>,
    /// The start and the reason of its wait, if a trace is written.
    pub waits: Option<(Instant, String)>,
    /// Number of tasks run.
    pub tasks: u64,
}

/// A position in a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Index of the task info.
    pub info: usize,
    /// The task index.
    pub task: i64,
    /// The next step.
    pub step: usize,
    /// The phase of that step.
    pub phase: usize,
}

/// Why a processor stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// It waits; whatever ends the wait wakes it.
    Parked,
    /// It has reached the end of the script.
    Finished,
}
