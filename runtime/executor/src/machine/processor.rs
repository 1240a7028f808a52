//! One processor of a rank: its position in the script.

use std::time::Instant;

use crate::deal::TaskCursor;

/// Where a processor stands.
#[derive(Debug, Default)]
pub(crate) struct Processor {
    /// Index of the next entry of the script.
    pub entry: usize,
    /// Its tasks of that entry, once begun.
    pub hand: Option<TaskCursor>,
    /// The task it waits in.
    pub at: Option<Place>,
    /// Since when it waits, and for what, when a trace is written.
    pub waits: Option<(Instant, String)>,
    /// Tasks run.
    pub tasks: u64,
}

/// A place in a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Index of the task info.
    pub info: usize,
    /// The task index.
    pub task: i64,
    /// The next step.
    pub step: usize,
    /// How far it is in that step.
    pub phase: usize,
}

/// Why a processor stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// It waits; who ends the wait wakes it.
    Parked,
    /// It is at the end of the script.
    Finished,
}
