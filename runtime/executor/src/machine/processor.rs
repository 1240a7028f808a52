//! One processor of a rank: how far it is in the script.

use super::deal::Hand;

/// Where a processor stands.
#[derive(Debug, Default)]
pub(crate) struct Processor {
    /// Index of the next entry of the script.
    pub entry: usize,
    /// Its tasks of that entry, once begun.
    pub hand: Option<Hand>,
    /// The task it is in, and the next step of it.
    pub task: Option<(i64, usize)>,
    /// Tasks run.
    pub tasks: u64,
}

/// Why a processor stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It waits; who ends the wait wakes it.
    Parked,
    /// It is at the end of the script.
    Finished,
}
