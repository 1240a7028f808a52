//! Determines which tasks the generated code runs, without simulating it.
//!
//! Processor `b` of a range `[PB, PE)` runs, for `t = 0, 1, ...`, the task
//! `TB + p*g + t%g + (t/g)*g*(PE-PB)` with `p = (b + grid - cur) mod grid`, until one is past the
//! end. These are the granules of `g` tasks with index `p`, `p + R`, `p + 2R`, ...
//! where `R = PE-PB`. So it is enough to consider each processor's `p`, instead of each task.

use std::collections::BTreeMap;

use crate::plan::{Range, TaskGroup};

/// The numbers of granules that are not run exactly once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RunCounts {
    /// Granules that no processor runs.
    pub lost: i64,
    /// Runs of granules beyond the first.
    pub repeated: i64,
}

/// Number of granules of a task group.
pub(super) fn granules(tasks: &TaskGroup) -> i64 {
    (tasks.task_range.len() + tasks.granularity - 1) / tasks.granularity
}

/// The start of the next task group of a resource group, after `tasks` started at `current`.
pub(super) fn advance(current: i64, tasks: &TaskGroup, processors: Range) -> i64 {
    match processors.len() {
        0 => current,
        len => processors.begin + (current - processors.begin + granules(tasks)) % len,
    }
}

/// Errors of a task group whose distribution starts at processor `current`, on a kernel of `grid`
/// processors.
pub(super) fn faults(tasks: &TaskGroup, processors: Range, current: i64, grid: i64) -> RunCounts {
    let (total, len) = (granules(tasks), processors.len());
    if total == 0 {
        return RunCounts::default();
    }
    if len == 0 {
        return RunCounts { lost: total, repeated: 0 };
    }
    // From the start of the range, each processor's index is its position in the range, and over the
    // whole kernel the indices are only rotated: every granule runs once.
    if current == processors.begin || len == grid {
        return RunCounts::default();
    }
    // Granules of index c, c + len, c + 2*len, ... of the total.
    let from = |c: i64| if c < total { (total - c + len - 1) / len } else { 0 };
    let mut starts: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for processor in processors.begin..processors.end {
        let start = (processor + grid - current).rem_euclid(grid);
        starts.entry(start % len).or_default().push(start);
    }
    let mut faults = RunCounts::default();
    for residue in 0..len.min(total) {
        let needed = from(residue);
        let starts = starts.get(&residue).map_or(&[][..], Vec::as_slice);
        let covered = starts.iter().map(|&start| from(start)).max().unwrap_or(0);
        let runs: i64 = starts.iter().map(|&start| from(start)).sum();
        faults.lost += needed - covered;
        faults.repeated += runs - covered;
    }
    faults
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The formula, task by task.
    fn simulate(tasks: &TaskGroup, processors: Range, current: i64, grid: i64) -> RunCounts {
        let (g, len) = (tasks.granularity, processors.len());
        let mut runs = vec![0i64; granules(tasks) as usize];
        for b in processors.begin..processors.end {
            let p = (b + grid - current) % grid;
            for t in (0..).step_by(g as usize) {
                let task = tasks.task_range.begin + p * g + t % g + (t / g) * g * len;
                if task >= tasks.task_range.end {
                    break;
                }
                runs[((task - tasks.task_range.begin) / g) as usize] += 1;
            }
        }
        let lost = runs.iter().filter(|&&count| count == 0).count() as i64;
        let repeated = runs.iter().map(|&count| (count - 1).max(0)).sum();
        RunCounts { lost, repeated }
    }

    proptest! {
        #[test]
        fn faults_agree_with_the_formula(
            grid in 1i64..12, begin in 0i64..12, len in 1i64..12, count in 0i64..40, g in 1i64..4,
            start in 0i64..12,
        ) {
            let begin = begin % grid;
            let processors = Range::new(begin, (begin + len).min(grid));
            let current = begin + start % processors.len();
            let task_range = Range::new(3, 3 + count);
            let tasks = TaskGroup { task_id: 0, task_range, granularity: g };
            prop_assert_eq!(
                faults(&tasks, processors, current, grid),
                simulate(&tasks, processors, current, grid)
            );
        }
    }

    #[test]
    fn millions_of_tasks_are_counted_at_once() {
        let task_range = Range::new(0, 2_000_000_000);
        let tasks = TaskGroup { task_id: 0, task_range, granularity: 1 };
        assert_eq!(faults(&tasks, Range::new(0, 108), 57, 108), RunCounts::default());
        assert_ne!(faults(&tasks, Range::new(0, 54), 27, 108), RunCounts::default());
    }
}
