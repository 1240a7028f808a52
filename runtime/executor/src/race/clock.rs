//! Vector clocks: which processor groups of other processors each processor knows to be finished.
//!
//! Tasks of a processor group are unordered, so knowledge increases only between groups: at a
//! barrier every member learns what any member knows and has done. Knowledge from a message belongs
//! to the task that received it, and to its processor after its next barrier.

use std::sync::Arc;

/// For each processor of the world, the number of groups that are known to be finished there;
/// then, for each link, the number of signals known to have been received.
pub(super) type Clock = Arc<Vec<u32>>;

/// Takes the maximum of each entry.
pub(super) fn join(into: &mut Clock, other: &Clock) {
    if Arc::ptr_eq(into, other) {
        return;
    }
    for (mine, theirs) in Arc::make_mut(into).iter_mut().zip(other.iter()) {
        *mine = (*mine).max(*theirs);
    }
}

/// The clock of one processor.
#[derive(Clone, Debug)]
pub(super) struct ProcessorClock {
    /// The knowledge of its tasks when they start.
    pub clock: Clock,
    /// The knowledge from messages since its last barrier.
    pub gained: Option<Clock>,
    /// The knowledge of its current task, if messages have added to it.
    pub task: Option<Clock>,
    /// One past the last group whose tasks it ran.
    pub progress: u32,
}

impl ProcessorClock {
    /// A clock without knowledge.
    pub(super) fn new(len: usize) -> Self {
        Self { clock: Arc::new(vec![0; len]), gained: None, task: None, progress: 0 }
    }

    /// The knowledge of its current task.
    pub(super) fn now(&self) -> &Clock {
        self.task.as_ref().unwrap_or(&self.clock)
    }

    /// Adds to the knowledge of the current task.
    pub(super) fn learn(&mut self, brought: &Clock) {
        join(self.task.get_or_insert_with(|| self.clock.clone()), brought);
    }

    /// Ends the current task; its knowledge is the processor's after the next barrier.
    pub(super) fn end_task(&mut self) {
        if let Some(task) = self.task.take() {
            join(self.gained.get_or_insert_with(|| self.clock.clone()), &task);
        }
    }
}

/// A barrier among some processors, all of which have arrived.
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
