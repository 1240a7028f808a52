//! Reports of races.

use std::fmt;

use irc_ark_format::plan::Range;

use super::shadow::{Access, Conflict};
use crate::Rank;

/// Two unordered tasks that access the same bytes, at least one of them writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// Rank of the buffer.
    pub rank: i64,
    /// Id of the buffer.
    pub buffer: u64,
    /// Start and end of the bytes that both access.
    pub bytes: (u64, u64),
    /// The task that ran first in this execution.
    pub earlier: Side,
    /// The other task.
    pub later: Side,
    /// What could order them.
    pub missing: String,
}

/// One of the two tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// Rank it runs on.
    pub rank: i64,
    /// Index of the task info.
    pub info: usize,
    /// The task index.
    pub task: i64,
    /// Type and name of the op.
    pub op: String,
    /// The processor.
    pub processor: i64,
    /// Index of the processor group.
    pub group: usize,
    /// Whether the task writes.
    pub writes: bool,
}

impl Race {
    pub(super) fn new(
        ranks: &[&Rank],
        first: &[usize],
        (rank, buffer): (usize, u64),
        conflict: Conflict,
        (later, writes): (&Access, bool),
    ) -> Self {
        let side = |access: &Access, writes| {
            let home = first.partition_point(|&first| first <= access.processor) - 1;
            let (info, task, op) = access.task;
            let named = &ranks[home].plan.task_infos[info].ops[op].op;
            Side {
                rank: ranks[home].plan.rank,
                info,
                task,
                op: format!("{} '{}'", named.kind, named.name),
                processor: (access.processor - first[home]) as i64,
                group: access.group as usize,
                writes,
            }
        };
        let earlier = side(&conflict.earlier, conflict.is_earlier_write);
        let later = side(later, writes);
        let plan = |side: &Side| ranks.iter().find(|rank| rank.plan.rank == side.rank);
        let range = |side: &Side| {
            let group = plan(side).and_then(|rank| rank.plan.processor_groups.get(side.group));
            group.map_or(Range::new(0, 0), |group| group.processor_range)
        };
        let missing = missing(&earlier, range(&earlier), &later, range(&later));
        let bytes = (conflict.begin, conflict.end);
        Self { rank: ranks[rank].plan.rank, buffer, bytes, earlier, later, missing }
    }
}

fn missing(earlier: &Side, before: Range, later: &Side, after: Range) -> String {
    if earlier.rank != later.rank {
        return format!(
            "no signal, packet or synchronisation from rank {} to rank {} comes between them",
            earlier.rank, later.rank
        );
    }
    if earlier.group == later.group {
        return format!(
            "nothing orders tasks of processor group {}: put them in separate groups",
            earlier.group
        );
    }
    let (begin, end) = (before.begin.min(after.begin), before.end.max(after.end));
    format!(
        "no barrier comes between processor group {} on [{}, {}) and processor group {} on \
         [{}, {}): one over [{begin}, {end}) is missing before group {}",
        earlier.group, before.begin, before.end, later.group, after.begin, after.end, later.group
    )
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.writes { "writes" } else { "reads" };
        write!(
            f,
            "task {}[{}], {}, {verb} them on processor {} of rank {}",
            self.info, self.task, self.op, self.processor, self.rank
        )
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (begin, end) = self.bytes;
        writeln!(
            f,
            "race on bytes [{begin}, {end}) of buffer {} of rank {}",
            self.buffer, self.rank
        )?;
        writeln!(f, "  {}", self.earlier)?;
        writeln!(f, "  {}", self.later)?;
        write!(f, "  {}", self.missing)
    }
}
