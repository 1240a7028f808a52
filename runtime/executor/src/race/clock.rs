//! Vector clocks: which processor groups of the others each processor knows to be finished.
//!
//! Within a processor group nothing orders two tasks, so knowledge grows only between groups: at a
//! barrier every member learns what any member knows and has done. What a message brings belongs
//! to the task that received it, and to its processor from its next barrier on.

use std::sync::Arc;

/// For each processor of the world, groups below this number that are known to be finished there;
/// then, for each link, signals known to have been received.
pub(super) type Clock = Arc<Vec<u32>>;

/// Takes the larger of each entry.
pub(super) fn join(into: &mut Clock, other: &Clock) {
    if Arc::ptr_eq(into, other) {
        return;
    }
    for (mine, theirs) in Arc::make_mut(into).iter_mut().zip(other.iter()) {
        *mine = (*mine).max(*theirs);
    }
}

/// One processor.
#[derive(Clone, Debug)]
pub(super) struct ProcessorClock {
    /// What its tasks know when they start.
    pub clock: Clock,
    /// What messages have brought since its last barrier.
    pub gained: Option<Clock>,
    /// What the task that it is in knows, when messages have brought it more.
    pub task: Option<Clock>,
    /// One past the last group it ran tasks of.
    pub progress: u32,
}

impl ProcessorClock {
    /// Knows nothing.
    pub(super) fn new(len: usize) -> Self {
        Self { clock: Arc::new(vec![0; len]), gained: None, task: None, progress: 0 }
    }

    /// What its present task knows.
    pub(super) fn now(&self) -> &Clock {
        self.task.as_ref().unwrap_or(&self.clock)
    }

    /// The present task learns.
    pub(super) fn learn(&mut self, brought: &Clock) {
        join(self.task.get_or_insert_with(|| self.clock.clone()), brought);
    }

    /// The present task is done; what it learnt is its processor's at the next barrier.
    pub(super) fn end_task(&mut self) {
        if let Some(task) = self.task.take() {
            join(self.gained.get_or_insert_with(|| self.clock.clone()), &task);
        }
    }
}

/// A barrier among some processors, all of which have come.
pub(super) fn barrier(all: &mut [ProcessorClock], members: std::ops::Range<usize>) {
    let mut joined = all[members.start].clock.clone();
    for member in members.clone() {
        join(&mut joined, &all[member].clock);
        if let Some(gained) = all[member].gained.take() {
            join(&mut joined, &gained);
        }
    }
    let known = Arc::make_mut(&mut joined);
    for member in members.clone() {
        known[member] = known[member].max(all[member].progress);
    }
    members.for_each(|member| all[member].clock = joined.clone());
}
