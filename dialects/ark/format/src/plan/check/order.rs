//! What conflicts on memory is ordered by barriers.
//!
//! The executor keeps a list of processor ranges that have run without a barrier since. Before a
//! new group on range P, for each such range U that meets P: when U is not inside P there is a
//! barrier over U; when U is inside P, or neither is inside the other, there is one over P. A
//! group that meets no earlier range starts at once. This module follows that rule and keeps, for
//! each stretch of processors, which groups it knows to be finished on each other stretch.

use std::collections::{BTreeMap, BTreeSet};

use irc_diag::{Diagnostic, Sink};

use super::distribute::{advance, granules};
use super::resource_path;
use crate::model::{Region, Tensor};
use crate::plan::tiling::num_tasks;
use crate::plan::{Plan, ProcessorGroup, Range, ResourceGroup};

/// Most stretches of processors followed.
const MAX_STRETCHES: usize = 512;

/// Checks that conflicting accesses of different tasks are ordered.
pub(super) fn check(plan: &Plan, sink: &mut Sink) {
    let Some(mut clocks) = Clocks::new(plan) else {
        let message = format!("more than {MAX_STRETCHES} different processor ranges");
        let finding = Diagnostic::warning("plan-order-unproven", message)
            .path("$.ProcessorGroups")
            .with_note("the order of conflicting tasks was not checked");
        sink.push(finding);
        return;
    };
    let mut live: BTreeMap<u64, Vec<Access<'_>>> = BTreeMap::new();
    let mut reported = BTreeSet::new();
    for (index, group) in plan.processor_groups.iter().enumerate() {
        clocks.start(index, group.processor_range);
        for access in accesses(plan, index, group) {
            let earlier = live.entry(access.tensor.buffer.id).or_default();
            for old in earlier.iter().filter(|old| old.conflicts(&access)) {
                let pair = (old.group, old.task, access.group, access.task);
                if !clocks.ordered(old, &access) && reported.insert(pair) {
                    report(old, &access, sink);
                }
            }
            if access.is_write && access.is_whole {
                earlier.retain(|old| old.group == index || !access.region.covers(&old.region));
            }
            earlier.push(access);
        }
    }
}

/// A use of memory by the tasks of a task group.
struct Access<'a> {
    group: usize,
    task: i64,
    tensor: &'a Tensor,
    region: Region,
    is_write: bool,
    /// Whether all tasks of the kind are in the group.
    is_whole: bool,
    /// Processors that run at least one of the tasks.
    processors: Range,
    path: String,
}

impl Access<'_> {
    /// Tasks of one kind are checked elsewhere: they write tiles of their own.
    fn conflicts(&self, other: &Access<'_>) -> bool {
        let writes = self.is_write || other.is_write;
        writes && self.task != other.task && self.region.overlaps(&other.region)
    }
}

/// Every use of memory in a processor group.
fn accesses<'a>(plan: &'a Plan, outer: usize, group: &'a ProcessorGroup) -> Vec<Access<'a>> {
    let mut found = vec![];
    for (inner, resource) in group.resource_groups.iter().enumerate() {
        for (index, processors) in busy_processors(resource).into_iter().enumerate() {
            let tasks = &resource.task_groups[index];
            if tasks.task_range.is_empty() {
                continue;
            }
            let info = &plan.task_infos[tasks.task_id as usize];
            let total = info.ops.first().and_then(num_tasks);
            let is_whole = total.is_some_and(|n| tasks.task_range.contains(Range::new(0, n)));
            let path = format!("{}.TaskGroups[{index}]", resource_path(outer, inner));
            let uses = info.ops.iter().flat_map(|plan_op| {
                let reads = plan_op.op.reads.iter().map(|tensor| (tensor, false));
                reads.chain(plan_op.op.writes.iter().map(|tensor| (tensor, true)))
            });
            found.extend(uses.map(|(tensor, is_write)| Access {
                group: outer,
                task: tasks.task_id,
                tensor,
                region: Region::of(tensor),
                is_write,
                is_whole,
                processors,
                path: path.clone(),
            }));
        }
    }
    found
}

/// For each task group, the processors that run at least one of its tasks.
fn busy_processors(resource: &ResourceGroup) -> Vec<Range> {
    let whole = resource.processor_range;
    let mut current = whole.begin;
    let busy = |tasks: &crate::plan::TaskGroup| {
        let used = granules(tasks).min(whole.len());
        // From the middle of the range the tasks wrap round; then take the whole range.
        let range = match current + used <= whole.end {
            true => Range::new(current, current + used),
            false => whole,
        };
        current = advance(current, tasks, whole);
        range
    };
    resource.task_groups.iter().map(busy).collect()
}

/// What each stretch of processors knows of the others.
struct Clocks {
    /// First processors of the stretches, and the end of the last.
    bounds: Vec<i64>,
    /// `known[a][b]`: groups below this index that ran on stretch `b` are finished, as `a` knows.
    known: Vec<Vec<usize>>,
    /// One past the last group that ran on each stretch.
    progress: Vec<usize>,
    /// Ranges that ran without a barrier since.
    unsynced: Vec<Range>,
}

impl Clocks {
    /// Nothing has run; nothing is returned when there are too many stretches.
    fn new(plan: &Plan) -> Option<Self> {
        let mut bounds = BTreeSet::from([0, plan.num_processors]);
        for group in &plan.processor_groups {
            bounds.extend([group.processor_range.begin, group.processor_range.end]);
            for range in group.resource_groups.iter().flat_map(busy_processors) {
                bounds.extend([range.begin, range.end]);
            }
        }
        let count = bounds.len().saturating_sub(1);
        let bounds: Vec<i64> = bounds.into_iter().collect();
        (count <= MAX_STRETCHES).then(|| Clocks {
            bounds,
            known: vec![vec![0; count]; count],
            progress: vec![0; count],
            unsynced: vec![],
        })
    }

    /// The stretches a range is made of; its ends are bounds.
    fn stretches(&self, range: Range) -> std::ops::Range<usize> {
        let position = |at: i64| self.bounds.partition_point(|&bound| bound < at);
        position(range.begin)..position(range.end)
    }

    /// Runs the barriers before a group, then the group.
    fn start(&mut self, group: usize, range: Range) {
        if range.is_empty() {
            return;
        }
        let mut sync_range = false;
        for earlier in std::mem::take(&mut self.unsynced) {
            if !earlier.overlaps(range) {
                self.unsynced.push(earlier);
                continue;
            }
            let inside = range.contains(earlier);
            if !inside {
                self.barrier(earlier);
            }
            sync_range |= inside || !earlier.contains(range);
        }
        if sync_range {
            self.barrier(range);
        }
        self.unsynced.push(range);
        self.stretches(range).for_each(|stretch| self.progress[stretch] = group + 1);
    }

    /// Everyone in the range learns what anyone in it knows and has done.
    fn barrier(&mut self, range: Range) {
        let members = self.stretches(range);
        let mut joined = vec![0; self.progress.len()];
        for member in members.clone() {
            for (joined, &known) in joined.iter_mut().zip(&self.known[member]) {
                *joined = (*joined).max(known);
            }
            joined[member] = joined[member].max(self.progress[member]);
        }
        members.for_each(|member| self.known[member].clone_from(&joined));
    }

    /// Whether the earlier access is finished when the later one starts, its group being the one
    /// started last.
    fn ordered(&self, earlier: &Access<'_>, later: &Access<'_>) -> bool {
        let (before, after) =
            (self.stretches(earlier.processors), self.stretches(later.processors));
        earlier.group != later.group
            && after.clone().all(|b| before.clone().all(|a| self.known[b][a] > earlier.group))
    }
}

fn report(earlier: &Access<'_>, later: &Access<'_>, sink: &mut Sink) {
    let what = match (earlier.is_write, later.is_write) {
        (true, false) => "reads what",
        (false, true) => "overwrites what",
        _ => "overwrites too what",
    };
    let verb = if earlier.is_write { "writes" } else { "reads" };
    let buffer = later.tensor.buffer.id;
    let message = format!(
        "task {} {what} task {} {verb} in buffer {buffer}, and nothing orders them",
        later.task, earlier.task
    );
    let (code, help) = match earlier.group == later.group {
        true => ("plan-group-race", "put them in processor groups of their own"),
        false => ("plan-race", "let their processor groups share processors, so a barrier is put"),
    };
    let finding = Diagnostic::error(code, message)
        .path(&later.path)
        .related(&earlier.path, "the other task group is here")
        .help(help);
    sink.push(finding);
}
