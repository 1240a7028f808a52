//! What each segment of processors knows about the others: vector clocks.
//!
//! A segment is a maximal range of processors that the plan never distinguishes.
//! A clock stores, for each segment, the number of groups that are known to be finished. Barriers join
//! clocks, and all participants share one afterwards: so the cost of a join is the differences, and
//! thousands of groups cost little more than their barriers.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::plan::{Plan, Range};

use super::busy_processors;

/// For each segment, the number of groups that are finished; then one entry per event, which is one
/// after the event.
pub(in crate::plan::check) type Clock = Rc<Vec<u32>>;

/// The segments of the processors of a plan.
#[derive(Clone, Debug)]
pub(in crate::plan::check) struct Segments {
    /// First processors of the segments, and the end of the last.
    bounds: Vec<i64>,
}

impl Segments {
    /// The segments of a plan.
    pub fn new(plan: &Plan) -> Self {
        let mut bounds = BTreeSet::from([0, plan.num_processors]);
        for group in &plan.processor_groups {
            bounds.extend([group.processor_range.begin, group.processor_range.end]);
            for range in group.resource_groups.iter().flat_map(busy_processors) {
                bounds.extend([range.begin, range.end]);
            }
        }
        Self { bounds: bounds.into_iter().collect() }
    }

    /// Number of segments.
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// The segments of a range, whose ends are bounds.
    pub fn of(&self, range: Range) -> std::ops::Range<usize> {
        let position = |at: i64| self.bounds.partition_point(|&bound| bound < at);
        position(range.begin)..position(range.end)
    }
}

/// The clocks of segments, and the progress of each.
#[derive(Clone, Debug)]
pub(in crate::plan::check) struct Clocks {
    known: Vec<Clock>,
    progress: Vec<u32>,
}

impl Clocks {
    /// The state in which no segment has run and no event has happened.
    pub fn new(segments: usize, events: usize) -> Self {
        let none: Clock = Rc::new(vec![0; segments + events]);
        Self { known: vec![none; segments], progress: vec![0; segments] }
    }

    /// The clock of a segment.
    pub fn of(&self, segment: usize) -> &Clock {
        &self.known[segment]
    }

    /// The segment has finished the group.
    pub fn finish(&mut self, segment: usize, group: usize) {
        self.progress[segment] = group as u32 + 1;
    }

    /// Joins `other` into the segment's clock.
    pub fn learn(&mut self, segment: usize, other: &[u32]) {
        join(Rc::make_mut(&mut self.known[segment]).as_mut_slice(), other);
    }

    /// The segment learns that the event with that entry has happened.
    pub fn learn_event(&mut self, segment: usize, entry: usize) {
        if self.known[segment][entry] == 0 {
            Rc::make_mut(&mut self.known[segment])[entry] = 1;
        }
    }

    /// All segments of the range learn what any of them knows and has done.
    pub fn barrier(&mut self, members: std::ops::Range<usize>) {
        let Some(first) = members.clone().next() else { return };
        let mut joined = (*self.known[first]).clone();
        for (before, member) in members.clone().zip(members.clone().skip(1)) {
            if !Rc::ptr_eq(&self.known[before], &self.known[member]) {
                join(&mut joined, &self.known[member]);
            }
        }
        for member in members.clone() {
            joined[member] = joined[member].max(self.progress[member]);
        }
        let joined = Rc::new(joined);
        members.for_each(|member| self.known[member] = Rc::clone(&joined));
    }

    /// What all of the given segments know.
    pub fn common(&self, segments: std::ops::Range<usize>) -> Clock {
        common(segments.map(|segment| &self.known[segment]))
            .unwrap_or_else(|| Rc::new(vec![u32::MAX; self.known.first().map_or(0, |k| k.len())]))
    }

    /// What all segments know.
    pub fn floor(&self) -> Clock {
        self.common(0..self.known.len())
    }
}

/// The minimum of clocks; `None` if there are none.
pub(in crate::plan::check) fn common<'c>(
    mut clocks: impl Iterator<Item = &'c Clock>,
) -> Option<Clock> {
    let mut last = clocks.next()?;
    let mut common = Rc::clone(last);
    for clock in clocks {
        if !Rc::ptr_eq(last, clock) {
            let entries = Rc::make_mut(&mut common);
            entries.iter_mut().zip(clock.iter()).for_each(|(a, &b)| *a = (*a).min(b));
        }
        last = clock;
    }
    Some(common)
}

fn join(clock: &mut [u32], other: &[u32]) {
    clock.iter_mut().zip(other).for_each(|(own, &other)| *own = (*own).max(other));
}
