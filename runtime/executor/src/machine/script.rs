//! What the processors of a rank do, in order: barriers, and shares of task groups.
//!
//! Every processor goes through the same list and takes part where it is in the range. Between
//! processor groups the rule of ARK's code generator holds: of the ranges that ran without a barrier
//! since, each that meets the new range P and is not inside it gets a barrier over itself; when one
//! is inside P, or neither is inside the other, there is one over P.

use irc_ark_format::plan::{Plan, ProcessorGroup, Range, ResourceGroup};

use super::deal::{Deal, deal, slots};
use crate::Error;

/// Most processors of a plan: more is a mistake, and would only exhaust memory.
const MAX_PROCESSORS: i64 = 1 << 20;

/// One entry of the list.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// All processors of the range wait for each other.
    Barrier {
        /// Who takes part.
        range: Range,
        /// Index of the processor group that it stands before.
        before: usize,
    },
    /// The processors of the range run their tasks.
    Tasks(Share),
}

/// A task group, as its processors see it.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    /// Index of the processor group.
    pub group: usize,
    /// Index of the task group among all of the plan.
    pub number: usize,
    /// Index of the task info.
    pub task: usize,
    /// Who runs what.
    pub deal: Deal,
}

impl Entry {
    /// Who takes part.
    pub(crate) fn range(&self) -> Range {
        match self {
            Entry::Barrier { range, .. } => *range,
            Entry::Tasks(share) => share.deal.processors,
        }
    }
}

/// The list of a plan.
///
/// # Errors
/// What the code generator refuses, and ranges that are none.
pub(crate) fn script(plan: &Plan) -> Result<Vec<Entry>, Error> {
    let problem = |place: &str, reason: String| Error::Plan {
        place: format!("rank {}, {place}", plan.rank),
        reason,
    };
    if !(1..=MAX_PROCESSORS).contains(&plan.num_processors) {
        let reason = format!("expected 1 to {MAX_PROCESSORS}, found {}", plan.num_processors);
        return Err(problem("$.NumProcessors", reason));
    }
    let mut entries = vec![];
    let mut count = 0;
    let mut unsynced = vec![];
    for (index, group) in plan.processor_groups.iter().enumerate() {
        let place = format!("$.ProcessorGroups[{index}]");
        check_range(group.processor_range, "ProcessorRange")
            .map_err(|reason| problem(&place, reason))?;
        let barriers = barriers(&mut unsynced, group.processor_range);
        entries.extend(barriers.into_iter().map(|range| Entry::Barrier { range, before: index }));
        for (inner, resource) in group.resource_groups.iter().enumerate() {
            let place = format!("{place}.ResourceGroups[{inner}]");
            let shares = shares(plan, (index, count), group, resource);
            let shares = shares.map_err(|reason| problem(&place, reason))?;
            count += shares.len();
            entries.extend(shares.into_iter().map(Entry::Tasks));
        }
    }
    Ok(entries)
}

fn check_range(range: Range, what: &str) -> Result<(), String> {
    if 0 <= range.begin && range.begin <= range.end {
        return Ok(());
    }
    Err(format!("`{what}` is [{}, {}]: expected 0 <= begin <= end", range.begin, range.end))
}

/// The barriers before a group on `range`, in order.
fn barriers(unsynced: &mut Vec<Range>, range: Range) -> Vec<Range> {
    if range.is_empty() {
        return vec![];
    }
    let mut found = vec![];
    let mut sync_range = false;
    for earlier in std::mem::take(unsynced) {
        if !earlier.overlaps(range) {
            unsynced.push(earlier);
            continue;
        }
        let inside = range.contains(earlier);
        if !inside {
            found.push(earlier);
        }
        sync_range |= inside || !earlier.contains(range);
    }
    if sync_range {
        found.push(range);
    }
    unsynced.push(range);
    found
}

fn shares(
    plan: &Plan,
    (index, first): (usize, usize),
    group: &ProcessorGroup,
    resource: &ResourceGroup,
) -> Result<Vec<Share>, String> {
    let processors = resource.processor_range;
    check_range(processors, "ProcessorRange")?;
    check_range(resource.warp_range, "WarpRange")?;
    check_range(resource.sram_range, "SramRange")?;
    if !processors.is_empty() && !group.processor_range.contains(processors) {
        return Err("its processors are not all in the processor group".into());
    }
    let mut current = processors.begin;
    let mut found = vec![];
    for tasks in &resource.task_groups {
        let task = usize::try_from(tasks.task_id).unwrap_or(usize::MAX);
        let Some(info) = plan.task_infos.get(task) else {
            return Err(format!("there is no task info {}", tasks.task_id));
        };
        check_range(tasks.task_range, "TaskRange")?;
        if tasks.granularity < 1 {
            return Err(format!("`Granularity` is {}: expected at least 1", tasks.granularity));
        }
        let slots = slots(
            resource.warp_range,
            resource.sram_range,
            (info.num_warps, info.sram_bytes),
            plan.num_warps_per_processor,
        )?;
        let deal = deal(tasks, processors, current, plan.num_processors, slots);
        current = deal.next_current();
        found.push(Share { group: index, number: first + found.len(), task, deal });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_barriers(ranges: &[(i64, i64)]) -> Vec<Vec<(i64, i64)>> {
        let mut unsynced = vec![];
        let of = |&(begin, end): &(i64, i64)| {
            let found = barriers(&mut unsynced, Range::new(begin, end));
            found.iter().map(|range| (range.begin, range.end)).collect()
        };
        ranges.iter().map(of).collect()
    }

    #[test]
    fn barriers_are_over_the_ranges_that_meet() {
        assert_eq!(all_barriers(&[(0, 4), (0, 4)]), [vec![], vec![(0, 4)]]);
        assert_eq!(all_barriers(&[(0, 4), (0, 2)]), [vec![], vec![(0, 4)]]);
        assert_eq!(all_barriers(&[(0, 2), (0, 4)]), [vec![], vec![(0, 4)]]);
        assert_eq!(all_barriers(&[(0, 4), (2, 6)]), [vec![], vec![(0, 4), (2, 6)]]);
        assert_eq!(all_barriers(&[(0, 2), (2, 4)]), [vec![], vec![]]);
        assert_eq!(all_barriers(&[(0, 2), (2, 4), (0, 4)])[2], [(0, 4)]);
        assert_eq!(all_barriers(&[(0, 4), (1, 1), (0, 4)])[2], [(0, 4)]);
    }
}
