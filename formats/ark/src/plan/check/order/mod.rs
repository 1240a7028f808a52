//! Checks that conflicting memory accesses are ordered by barriers.
//!
//! Two task groups conflict if a task of one writes bytes that a task of the other accesses. They must
//! be in processor groups with barriers in between ([`clocks`]); the accesses of each task group are
//! resolved to tiles ([`touch`]). Every diagnostic has a pair of tasks, the bytes that both access, and
//! the missing barrier.

pub(super) mod clocks;
pub(super) mod touch;
pub(super) mod world;

use std::collections::{BTreeMap, BTreeSet};

use irc_diag::{Diagnostic, Sink};

use super::distribute::{advance, granules};
use super::ops;
use crate::json::OpPlace;
use crate::model::OpKind;
use crate::plan::Barriers;
use crate::plan::{Plan, PlanOp, Range, ResourceGroup, TaskGroup};
use clocks::{Clock, Clocks, Segments};
use touch::{Access, Spot, Witness, accesses};

/// Number of accesses of a buffer that are stored before those known by all to be finished are dropped.
const MANY: usize = 64;

/// Maximum number of pairs of ops reported.
const MAX_REPORTED: usize = 256;

/// Checks that conflicting accesses of different tasks are ordered.
pub(super) fn check(plan: &Plan, sink: &mut Sink) {
    Checker::new(plan).run(plan, sink);
}

/// The accesses of a buffer with which later ones may conflict.
#[derive(Default)]
struct Live<'a> {
    accesses: Vec<Access<'a>>,
    /// Number of accesses at which to drop those that are finished for all.
    prune_at: usize,
}

/// An op, by the index of its task info and its own index in that.
type OpIndex = (usize, usize);

struct Checker<'a> {
    segments: Segments,
    clocks: Clocks,
    live: BTreeMap<u64, Live<'a>>,
    /// Clock entry of the event that a proxy has read what the op sends.
    sent: BTreeMap<OpIndex, usize>,
    /// Sends that have been started.
    started: Vec<OpIndex>,
    /// Pairs of ops that have been reported.
    reported: BTreeSet<[OpIndex; 2]>,
}

impl<'a> Checker<'a> {
    fn new(plan: &Plan) -> Self {
        let segments = Segments::new(plan);
        let sent = proxied(plan).zip(segments.len()..).collect::<BTreeMap<_, _>>();
        let clocks = Clocks::new(segments.len(), sent.len());
        let (live, started, reported) = (BTreeMap::new(), vec![], BTreeSet::new());
        Self { segments, clocks, live, sent, started, reported }
    }

    fn run(&mut self, plan: &'a Plan, sink: &mut Sink) {
        let mut barriers = Barriers::default();
        for (index, group) in plan.processor_groups.iter().enumerate() {
            for range in barriers.before(group.processor_range) {
                self.clocks.barrier(self.segments.of(range));
            }
            for (spot, processors, tasks) in task_groups(plan, index) {
                let info = &plan.task_infos[tasks.task_id as usize];
                let known = self.clocks.common(self.segments.of(processors));
                for access in accesses(&info.ops, tasks, spot, processors) {
                    self.meet(plan, access, &known, sink);
                }
            }
            for (_, processors, tasks) in task_groups(plan, index) {
                self.note_sends(plan, tasks.task_id as usize, processors);
            }
            for segment in self.segments.of(group.processor_range) {
                self.clocks.finish(segment, index);
            }
        }
    }

    /// Records which sends the ops of a task start, and which they know to be complete.
    fn note_sends(&mut self, plan: &Plan, task: usize, processors: Range) {
        for (index, plan_op) in plan.task_infos[task].ops.iter().enumerate() {
            let peer =
                |op: &PlanOp| op.op.reads.iter().chain(&op.op.writes).map(|t| t.buffer.rank).max();
            let done: Vec<OpIndex> = match plan_op.op.kind {
                OpKind::Send => {
                    self.started.extend(self.sent.get_key_value(&(task, index)).map(|(op, _)| *op));
                    continue;
                }
                OpKind::SendDone => {
                    let of_peer =
                        |op: &&OpIndex| peer(&plan.task_infos[op.0].ops[op.1]) == peer(plan_op);
                    self.started.iter().filter(of_peer).copied().collect()
                }
                // A peer that answers may have received all of it: only the plans of all ranks
                // determine this.
                OpKind::Recv
                | OpKind::DeviceSync
                | OpKind::RecvPacket
                | OpKind::RecvReduceSendPacket => self.started.clone(),
                _ => continue,
            };
            for op in done {
                let segments = self.segments.of(processors);
                segments.for_each(|segment| self.clocks.learn_event(segment, self.sent[&op]));
            }
        }
    }

    /// Whether the earlier access is finished when the later one starts with the knowledge `known`.
    fn ordered(&self, earlier: &Access<'_>, later: &Access<'_>, known: &Clock) -> bool {
        // These wait for an arrival, and write nothing themselves.
        let only_waits = matches!(later.kind(), OpKind::Recv | OpKind::DeviceSync);
        earlier.spot.group != later.spot.group
            && self.has_run(earlier, known)
            && (only_waits || self.has_left(earlier, known))
    }

    /// Whether the clock implies that the tasks of an access have run.
    fn has_run(&self, access: &Access<'_>, clock: &Clock) -> bool {
        let mut ran = self.segments.of(access.processors);
        ran.all(|segment| clock[segment] as usize > access.spot.group)
    }

    /// Whether the clock implies that a proxy has read what an access sends.
    fn has_left(&self, access: &Access<'_>, clock: &Clock) -> bool {
        let event = self.sent.get(&(access.task, access.index)).filter(|_| !access.is_write);
        event.is_none_or(|&event| clock[event] > 0)
    }

    /// Compares an access with earlier ones; `known` is what all its processors know.
    fn meet(&mut self, plan: &Plan, access: Access<'a>, known: &Clock, sink: &mut Sink) {
        let mut live = self.live.remove(&access.tensor.buffer.id).unwrap_or_default();
        for old in &live.accesses {
            if self.reported.len() >= MAX_REPORTED {
                break;
            }
            let conflict = (old.is_write || access.is_write) && old.task != access.task;
            if !conflict || !old.may_meet(&access) || self.ordered(old, &access, known) {
                continue;
            }
            let pair = [(old.task, old.index), (access.task, access.index)];
            if !self.reported.contains(&pair)
                && let Some(witness) = old.meets(&access)
            {
                self.reported.insert(pair);
                let is_sending = self.sent.contains_key(&pair[0]) && !old.is_write;
                sink.push(report(plan, old, &access, witness, is_sending));
            }
        }
        if live.accesses.len() > live.prune_at {
            let floor = self.clocks.floor();
            live.accesses.retain(|old| !self.has_run(old, &floor) || !self.has_left(old, &floor));
            live.prune_at = MANY.max(2 * live.accesses.len());
        }
        let buffer = access.tensor.buffer.id;
        live.accesses.push(access);
        self.live.insert(buffer, live);
    }
}

/// The ops of a plan whose data a proxy reads asynchronously.
fn proxied(plan: &Plan) -> impl Iterator<Item = OpIndex> + '_ {
    ops(plan).filter_map(|(place, plan_op)| {
        let OpPlace::Task(task, index) = place else { return None };
        let is_proxied = plan_op.config.text("ChannelType").is_some_and(|kind| kind != "Sm");
        (plan_op.op.kind == OpKind::Send && is_proxied).then_some((task, index))
    })
}

/// The nonempty task groups of a processor group, each with the processors that run its tasks.
fn task_groups(plan: &Plan, group: usize) -> impl Iterator<Item = (Spot, Range, &TaskGroup)> {
    let resources = plan.processor_groups[group].resource_groups.iter().enumerate();
    resources.flat_map(move |(resource, resources)| {
        let busy = busy_processors(resources).into_iter();
        let groups = resources.task_groups.iter().zip(busy).enumerate();
        groups
            .filter(|(_, (tasks, _))| !tasks.task_range.is_empty())
            .map(move |(index, (tasks, busy))| (Spot { group, resource, index }, busy, tasks))
    })
}

/// For each task group, the processors that run at least one of its tasks.
fn busy_processors(resource: &ResourceGroup) -> Vec<Range> {
    let whole = resource.processor_range;
    let mut current = whole.begin;
    let busy = |tasks: &TaskGroup| {
        let used = granules(tasks).min(whole.len());
        // From the middle of the range the tasks wrap around; then use the whole range.
        let range = match current + used <= whole.end {
            true => Range::new(current, current + used),
            false => whole,
        };
        current = advance(current, tasks, whole);
        range
    };
    resource.task_groups.iter().map(busy).collect()
}

fn report(
    plan: &Plan,
    earlier: &Access<'_>,
    later: &Access<'_>,
    witness: Witness,
    is_sending: bool,
) -> Diagnostic {
    let what = match (earlier.is_write, later.is_write) {
        (true, false) => ("reads", "writes"),
        (false, true) => ("overwrites", "reads"),
        _ => ("overwrites", "writes too"),
    };
    let (start, end) = witness.bytes;
    let message = format!(
        "index {} of task {} (`{}`) {} bytes [{start}, {end}) of buffer {}, which index {} of task \
         {} (`{}`) {}, and no barrier is between them",
        witness.second,
        later.task,
        later.kind(),
        what.0,
        later.tensor.buffer.id,
        witness.first,
        earlier.task,
        earlier.kind(),
        what.1,
    );
    let is_same = earlier.spot.group == later.spot.group;
    let code = if is_same { "plan-group-race" } else { "plan-race" };
    let diagnostic = diagnostic(code, message, earlier, later)
        .path(later.spot.to_string())
        .related(earlier.spot.to_string(), "the other task group is here");
    match is_same {
        _ if is_sending => diagnostic
            .with_note("missing: a `SendDone` between them; until then a proxy reads what is sent")
            .help("put the `SendDone` before it, followed by a barrier"),
        true => diagnostic
            .with_note("task groups of one processor group run without waiting for each other")
            .help("put them in separate processor groups"),
        false => {
            let range =
                |access: &Access<'_>| plan.processor_groups[access.spot.group].processor_range;
            let (a, b) = (range(earlier), range(later));
            diagnostic
                .with_note(format!(
                    "missing: a barrier over processors [{}, {}) and [{}, {}) between groups {} \
                     and {}",
                    a.begin, a.end, b.begin, b.end, earlier.spot.group, later.spot.group
                ))
                .help("let their processor groups share processors, so a barrier is put")
        }
    }
}

/// An error; a warning if packets order what barriers do not.
///
/// A packet is read once its flag has arrived, so of two ops that move packets, one may wait for the
/// other through a peer.
fn diagnostic(
    code: &'static str,
    message: String,
    earlier: &Access<'_>,
    later: &Access<'_>,
) -> Diagnostic {
    let are_packets = earlier.kind().uses_packets() && later.kind().uses_packets();
    if code == "plan-group-race" && are_packets {
        return Diagnostic::warning("plan-order-unproven", message)
            .with_note("packets may order them through a peer");
    }
    Diagnostic::error(code, format!("race: {message}"))
}
