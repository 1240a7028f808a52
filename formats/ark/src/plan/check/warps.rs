//! Constraints of tasks with several warps on their ops and on concurrent tasks.
//!
//! The warps of a task wait for each other at a barrier of the block whose number is the slot of
//! the task, independently of its number of warps. So of two tasks with the same slot but
//! different warps, the later one may start only if all its warps come from the earlier one. The same
//! applies to on-chip memory: within a processor group nothing waits except the warps
//! themselves.

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use super::distribute::advance;
use super::ops;
use crate::json::OpPlace;
use crate::model::{Op, OpKind, Region};
use crate::plan::{Plan, PlanOp, Range, ResourceGroup, TaskGroup, TaskInfo, slots};

/// Maximum number of processors on which two task groups are compared; no device has more.
const MAX_PROCESSORS: i64 = 4096;

/// Checks the warps of ops against those of their tasks, and of tasks against each other.
pub(super) fn check(plan: &Plan, sink: &mut Sink) {
    for (place, plan_op) in ops(plan) {
        let OpPlace::Task(task, index) = place else { continue };
        check_op(&plan.task_infos[task], index, plan_op, &place.at(), sink);
    }
    for group in 0..plan.processor_groups.len() {
        check_group(plan, group, sink);
    }
}

/// The warps of an op must be those of its task, or its work may be repeated.
fn check_op(info: &TaskInfo, index: usize, plan_op: &PlanOp, at: &At<'_>, sink: &mut Sink) {
    let (kind, has) = (plan_op.op.kind, info.num_warps);
    // Signals are the work of one warp, whatever their config.
    let own = if kind.only_signals() { 1 } else { plan_op.config.int("NumWarps").unwrap_or(has) };
    if own >= has || kind == OpKind::Noop {
        return;
    }
    let Some(why) = repeat_fault(info, index, plan_op, own) else { return };
    let config = at.key("Config");
    let message =
        format!("the op takes {own} of the {has} warps of its task: it is executed several times");
    let diagnostic = Diagnostic::error("plan-warps", message)
        .path(config.key("NumWarps").to_string())
        .with_note(format!("`{kind}` {why}"))
        .help(match kind.only_signals() {
            true => "give it a task of one warp",
            false => "give the op and its task the same `NumWarps`",
        });
    sink.push(diagnostic);
}

/// Why an op must not be repeated for each `own` warps of its task; `None` if it may be.
fn repeat_fault(info: &TaskInfo, index: usize, plan_op: &PlanOp, own: i64) -> Option<&'static str> {
    let op = &plan_op.op;
    let overlaps_written = |other: &Op, touches_reads: bool| {
        other.writes.iter().map(Region::of).any(|write| {
            let writes = op.writes.iter().filter(|_| touches_reads);
            op.reads.iter().chain(writes).any(|tensor| Region::of(tensor).overlaps(&write))
        })
    };
    if op.kind.only_signals() {
        return Some("waits or signals once for each warp of its task");
    }
    if op.kind == OpKind::Matmul || op.kind.is_communication() {
        return Some("works with shared memory or signals, so it must be done once");
    }
    if overlaps_written(op, false) {
        return Some("works in place, so it must be done once");
    }
    if own > 1 {
        return Some("would use barriers that other concurrent tasks use");
    }
    let is_later =
        |later: &PlanOp| later.op.kind != OpKind::Noop && overlaps_written(&later.op, true);
    let later = info.ops.iter().skip(index + 1);
    later.clone().any(is_later).then_some("may be done again after a later op of the task wrote")
}

/// A task group on the processors of a processor group.
struct Use<'a> {
    path: String,
    info: &'a TaskInfo,
    tasks: &'a TaskGroup,
    processors: Range,
    /// Processor at which its distribution starts.
    current: i64,
    /// Number of concurrent tasks.
    slots: i64,
    /// Bytes of on-chip memory between tasks of one warp; multiplied by the number of warps for larger tasks.
    share: i64,
    /// Bytes of on-chip memory that its ops use.
    used: i64,
}

impl Use<'_> {
    /// Number of slots that have a task on a processor.
    fn busy(&self, processor: i64, grid: i64) -> i64 {
        let (total, step) = (self.tasks.task_range.len(), self.tasks.granularity);
        let round = step * self.processors.len();
        let first = (processor + grid - self.current).rem_euclid(grid) * step;
        let rest = total - first;
        if rest <= 0 {
            return 0;
        }
        let tasks = (rest / round) * step + (rest % round).min(step);
        tasks.min(self.slots)
    }

    fn bytes(&self, slot: i64) -> Range {
        let begin = slot * self.info.num_warps * self.share;
        Range::new(begin, begin + self.used)
    }

    fn warps(&self, slot: i64) -> Range {
        Range::new(slot * self.info.num_warps, (slot + 1) * self.info.num_warps)
    }
}

fn check_group(plan: &Plan, group: usize, sink: &mut Sink) {
    let resources = plan.processor_groups[group].resource_groups.iter().enumerate();
    let uses: Vec<Use<'_>> = resources
        .flat_map(|(index, resource)| uses(plan, resource, super::resource_path(group, index)))
        .collect();
    for (position, later) in uses.iter().enumerate() {
        // One diagnostic for each task group is enough.
        let fault = uses[..position].iter().find_map(|earlier| fault(plan, earlier, later));
        fault.into_iter().for_each(|diagnostic| sink.push(diagnostic));
    }
}

/// The task groups of a resource group whose warps wait for each other.
fn uses<'a>(plan: &'a Plan, resource: &'a ResourceGroup, path: String) -> Vec<Use<'a>> {
    let processors = resource.processor_range;
    let mut current = processors.begin;
    let mut found = vec![];
    for (index, tasks) in resource.task_groups.iter().enumerate() {
        let info = &plan.task_infos[tasks.task_id as usize];
        let (warps, sram) = (resource.warp_range.len(), resource.sram_range.len());
        let slots = slots(warps, sram, (info.num_warps, info.sram_bytes));
        let waits = info.ops.iter().any(waits) && info.num_warps > 1;
        if waits && slots > 0 && !tasks.task_range.is_empty() {
            let share = sram / slots / info.num_warps;
            let used = info.ops.iter().map(|op| used_sram(plan, op)).max().unwrap_or(0);
            let path = format!("{path}.TaskGroups[{index}]");
            found.push(Use { path, info, tasks, processors, current, slots, share, used });
        }
        current = advance(current, tasks, processors);
    }
    found
}

/// Whether the kernel of an op ends with a barrier of its warps, if it has several.
fn waits(plan_op: &PlanOp) -> bool {
    let is_many = plan_op.config.int("NumWarps").is_some_and(|warps| warps > 1);
    is_many
        && match plan_op.op.kind {
            OpKind::Send => plan_op.config.text("ChannelType") == Some("Sm"),
            OpKind::Noop | OpKind::RecvReduceSend | OpKind::RecvReduceSendPacket => false,
            kind => !kind.only_signals(),
        }
}

/// Number of bytes of on-chip memory that the kernel of an op uses, from the start of its part.
fn used_sram(plan: &Plan, plan_op: &PlanOp) -> i64 {
    let op = &plan_op.op;
    match op.kind {
        OpKind::Matmul => plan_op.config.int("SramBytes").unwrap_or(0),
        kind if kind.is_reduce() && waits(plan_op) => {
            // One sum per warp, for as many warps as a warp has threads.
            let is_warp_wise = plan_op.config.text("ImplType") == Some("WarpWise");
            let bytes = plan.architecture.warp_threads() * op.reads[0].dtype.bytes() as i64;
            if is_warp_wise { bytes } else { 0 }
        }
        _ => 0,
    }
}

/// The error if `later` starts before `earlier` is finished, if any.
fn fault(plan: &Plan, earlier: &Use<'_>, later: &Use<'_>) -> Option<Diagnostic> {
    let (a, b) = (earlier.info.num_warps, later.info.num_warps);
    let has_memory = earlier.used > 0 && later.used > 0;
    if a == b && (earlier.share == later.share || !has_memory) {
        return None;
    }
    // With fewer tasks on a processor than slots there can only be fewer conflicts.
    clash(earlier, later, earlier.slots, later.slots)?;
    let begin = earlier.processors.begin.max(later.processors.begin);
    let end = earlier.processors.end.min(later.processors.end);
    let busy = |group: &Use<'_>, processor| group.busy(processor, plan.num_processors);
    (begin..end.min(begin + MAX_PROCESSORS)).find_map(|processor| {
        let clash = clash(earlier, later, busy(earlier, processor), busy(later, processor))?;
        Some(match clash {
            Conflict::Warps => mixed_warps(earlier, later, processor),
            Conflict::Memory(other, slot) => shared_memory(earlier, later, other, slot),
        })
    })
}

/// A resource that two task groups use concurrently.
enum Conflict {
    /// A barrier.
    Warps,
    /// On-chip memory, by these slots of the earlier and of the later one.
    Memory(i64, i64),
}

/// The resource that the first slots of two task groups use concurrently.
fn clash(earlier: &Use<'_>, later: &Use<'_>, first: i64, second: i64) -> Option<Conflict> {
    let is_mixed = earlier.info.num_warps != later.info.num_warps;
    let pairs = (0..second).flat_map(|slot| (0..first).map(move |other| (other, slot)));
    // A task all of whose warps come from another starts after that one's last barrier.
    let mut loose =
        pairs.filter(|&(other, slot)| !earlier.warps(other).contains(later.warps(slot)));
    loose.find_map(|(other, slot)| {
        let has_memory = earlier.used > 0 && later.used > 0;
        match (other, slot) {
            _ if is_mixed && other == slot => Some(Conflict::Warps),
            _ if has_memory && earlier.bytes(other).overlaps(later.bytes(slot)) => {
                Some(Conflict::Memory(other, slot))
            }
            _ => None,
        }
    })
}

fn mixed_warps(earlier: &Use<'_>, later: &Use<'_>, processor: i64) -> Diagnostic {
    let message = format!(
        "tasks of {} warps follow tasks of {} on processor {processor} without a barrier",
        later.info.num_warps, earlier.info.num_warps
    );
    Diagnostic::error("plan-group-warps", message)
        .path(&later.path)
        .related(&earlier.path, "the others are here")
        .with_note("warps of both would wait at one barrier with different counts")
        .help("put them in separate processor groups, or give both the same `NumWarps`")
}

fn shared_memory(earlier: &Use<'_>, later: &Use<'_>, other: i64, slot: i64) -> Diagnostic {
    let (a, b) = (earlier.bytes(other), later.bytes(slot));
    let message = format!(
        "on-chip bytes [{}, {}) of place {slot} are used while place {other} of task {} may still \
         use [{}, {})",
        b.begin, b.end, earlier.info.id, a.begin, a.end
    );
    Diagnostic::error("plan-group-sram", message)
        .path(&later.path)
        .related(&earlier.path, "it runs here")
        .with_note("only a barrier between processor groups waits for all warps")
        .help("put them in separate processor groups, or give both the same share of memory")
}
