//! Which tasks of a task group each processor runs, and in which of its slots.
//!
//! The generated code of processor `b` in `[PB, PE)` runs in slot `k` of `slots`, for
//! `t = k, k + slots, ...`, the task `TB + p*g + t%g + (t/g)*g*(PE-PB)` with
//! `p = (b + grid - cur) mod grid`, until one is past the end. Over all slots these are the granules
//! of `g` tasks with index `p`, `p + R`, `p + 2R`, ... where `R = PE-PB`. The modulus is
//! the whole grid although it should be `R`, so a group that starts in the middle of a range smaller
//! than the grid loses tasks and runs others twice; this is reproduced, because plans rely on it.

use irc_ark_format::plan::{self, Range, TaskGroup};

/// How a task group is distributed over the processors of a resource group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// The processors.
    pub processors: Range,
    /// The task indices.
    pub tasks: Range,
    /// Number of tasks in a granule.
    pub granularity: i64,
    /// The processor that runs the first granule.
    pub current: i64,
    /// Number of processors of the kernel.
    pub grid: i64,
    /// Number of tasks that one processor runs concurrently.
    pub slots: i64,
    /// Number of slots that have warps; tasks of the others are lost.
    pub active_slots: i64,
}

impl Distribution {
    /// The processor at which the next task group of the resource group starts.
    pub(crate) fn next_current(&self) -> i64 {
        let (begin, len) = (self.processors.begin, self.processors.len());
        let (tasks, g) = (self.tasks.len(), self.granularity);
        let granules = tasks / g + i64::from(tasks % g != 0);
        if len == 0 { begin } else { begin + (self.current - begin + granules) % len }
    }

    /// The tasks of a processor, in ascending order of `t`.
    pub(crate) fn of(&self, processor: i64) -> TaskCursor {
        let place = (processor + self.grid - self.current).rem_euclid(self.grid);
        let next = place.saturating_mul(self.granularity);
        TaskCursor { next, left: self.granularity, turn: 0, jump: self.jump() }
    }

    /// Distance from the last task of a granule to the first of the processor's next granule.
    pub(crate) fn jump(&self) -> i64 {
        self.granularity.saturating_mul(self.processors.len() - 1).saturating_add(1)
    }

    /// Advances a cursor to its next task index, skipping lost tasks.
    #[inline]
    pub(crate) fn advance(&self, cursor: &mut TaskCursor) -> Option<i64> {
        while cursor.next < self.tasks.len() {
            let (task, turn) = (cursor.next, cursor.turn);
            cursor.turn += 1;
            cursor.left -= 1;
            if cursor.left > 0 {
                cursor.next += 1;
            } else {
                cursor.next = task.saturating_add(cursor.jump);
                cursor.left = self.granularity;
            }
            if self.active_slots == self.slots || turn % self.slots < self.active_slots {
                return Some(self.tasks.begin + task);
            }
        }
        None
    }
}

/// The tasks of a task group that a processor has not run yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskCursor {
    /// The next task, counted from the start of the range.
    next: i64,
    /// Number of tasks left in its granule, including the next.
    left: i64,
    /// The `t` of the next task.
    turn: i64,
    /// See [`Distribution::jump`].
    jump: i64,
}

/// Number of slots of a processor for a group, and the number of those that have warps.
///
/// # Errors
/// If not even one task fits, which ARK's code generator rejects.
pub(crate) fn slots(
    warps: Range,
    sram: Range,
    task: (i64, i64),
    warps_per_processor: i64,
) -> Result<(i64, i64), String> {
    let (task_warps, task_sram) = task;
    if task_warps < 1 {
        return Err(format!("`NumWarps` of the task is {task_warps}"));
    }
    let slots = plan::slots(warps.len(), sram.len(), task);
    if slots < 1 {
        return Err(format!(
            "a task needs {task_warps} warps and {task_sram} bytes of SRAM, but there are {} and {}",
            warps.len(),
            sram.len()
        ));
    }
    Ok((slots, slots.min(warps_per_processor / task_warps)))
}

/// The distribution of a task group that starts at processor `current`.
pub(crate) fn distribute(
    group: &TaskGroup,
    processors: Range,
    current: i64,
    grid: i64,
    (slots, active_slots): (i64, i64),
) -> Distribution {
    Distribution {
        processors,
        tasks: group.task_range,
        granularity: group.granularity,
        current,
        grid,
        slots,
        active_slots,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The formula, slot by slot.
    fn formula(distribution: &Distribution, processor: i64) -> Vec<i64> {
        let (g, len) = (distribution.granularity, distribution.processors.len());
        let p = (processor + distribution.grid - distribution.current) % distribution.grid;
        let mut found = vec![];
        for slot in 0..distribution.active_slots {
            for t in (slot..).step_by(distribution.slots as usize) {
                let task = distribution.tasks.begin + p * g + t % g + (t / g) * g * len;
                if task >= distribution.tasks.end {
                    break;
                }
                found.push(task);
            }
        }
        found.sort_unstable();
        found
    }

    fn tasks_of(distribution: &Distribution, processor: i64) -> Vec<i64> {
        let mut cursor = distribution.of(processor);
        std::iter::from_fn(|| distribution.advance(&mut cursor)).collect()
    }

    proptest! {
        #[test]
        fn tasks_are_those_of_the_formula(
            grid in 1i64..12, begin in 0i64..12, len in 1i64..12, first in 0i64..4,
            count in 0i64..60, granularity in 1i64..5, start in 0i64..12, slots in 1i64..4,
            missing in 0i64..3,
        ) {
            let begin = begin % grid;
            let processors = Range::new(begin, (begin + len).min(grid));
            let distribution = Distribution {
                processors,
                tasks: Range::new(first, first + count),
                granularity,
                current: begin + start % processors.len(),
                grid,
                slots,
                active_slots: (slots - missing).max(0),
            };
            for processor in processors.begin..processors.end {
                prop_assert_eq!(tasks_of(&distribution, processor), formula(&distribution, processor));
            }
        }
    }

    /// The distribution of the second of two task groups of one granule each, on `[0, 2)` of a grid of 4.
    fn second(grid: i64) -> Distribution {
        let group = |end| TaskGroup { task_id: 0, task_range: Range::new(0, end), granularity: 1 };
        let processors = Range::new(0, 2);
        let first = distribute(&group(1), processors, 0, grid, (1, 1));
        distribute(&group(4), processors, first.next_current(), grid, (1, 1))
    }

    #[test]
    fn the_modulo_of_the_grid_loses_tasks() {
        let all =
            |distribution: Distribution| [tasks_of(&distribution, 0), tasks_of(&distribution, 1)];
        assert_eq!(all(second(2)), [vec![1, 3], vec![0, 2]]);
        // Processor 0 takes position 3 of the grid instead of position 1 of the range.
        assert_eq!(all(second(4)), [vec![3], vec![0, 2]]);
    }

    #[test]
    fn warps_and_sram_give_the_slots() {
        let of = |warps, sram, task| slots(Range::new(0, warps), Range::new(0, sram), task, 4);
        assert_eq!(of(8, 0, (2, 0)), Ok((4, 2)));
        assert_eq!(of(4, 300, (1, 100)), Ok((3, 3)));
        assert!(of(1, 0, (2, 0)).is_err() && of(4, 50, (1, 100)).is_err());
    }
}
