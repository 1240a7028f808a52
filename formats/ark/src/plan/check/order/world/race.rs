//! Conflicts between ops of several ranks on the memory of one.

use std::collections::BTreeMap;

use irc_diag::Diagnostic;

use super::act::{Action, links};
use super::run::{RunResult, World};
use crate::model::links::Link;
use crate::plan::Range;
use crate::plan::check::order::clocks::{Clock, common};
use crate::plan::check::order::task_groups;
use crate::plan::check::order::touch::{Access, Witness, accesses};

/// An access to a rank's memory.
struct Use<'a> {
    /// Rank whose processors access it.
    rank: usize,
    access: Access<'a>,
    /// The op, if it involves other ranks.
    op: Option<usize>,
    /// Whether a proxy does it asynchronously.
    is_proxied: bool,
    /// The common knowledge of its processors at the start.
    known: Clock,
}

/// A buffer of a rank.
type Memory = (usize, u64);

/// All conflicts that neither barriers nor signals order.
pub(super) fn check(world: &World<'_>, outcome: &RunResult) -> Vec<(usize, Diagnostic)> {
    let landings = landings(world);
    let mut uses: BTreeMap<Memory, Vec<Use<'_>>> = BTreeMap::new();
    for rank in 0..world.plans.len() {
        for (memory, found) in uses_of(world, outcome, rank, &landings) {
            uses.entry(memory).or_default().push(found);
        }
    }
    let mut found = vec![];
    for ((owner, buffer), uses) in &uses {
        let is_special = |one: &Use<'_>| one.rank != *owner || one.is_proxied;
        for (position, a) in uses.iter().enumerate().filter(|(_, one)| is_special(one)) {
            for (other, b) in uses.iter().enumerate() {
                // A pair of special accesses is encountered twice.
                if other == position || (is_special(b) && other < position) {
                    continue;
                }
                if let Some(witness) = conflict(world, outcome, a, b) {
                    found.push(report(world, (*owner, *buffer), a, b, witness));
                }
            }
        }
    }
    found.sort_by(|a, b| (a.0, &a.1.path, &a.1.message).cmp(&(b.0, &b.1.path, &b.1.message)));
    found.dedup();
    found
}

/// The destination buffer of each link.
fn landings(world: &World<'_>) -> BTreeMap<Link, u64> {
    let mut found = BTreeMap::new();
    for (rank, plan) in world.plans.iter().enumerate() {
        let ops = plan.task_infos.iter().flat_map(|info| &info.ops);
        for tensor in ops.flat_map(|plan_op| plan_op.op.tensors()) {
            let buffer = &tensor.buffer;
            if buffer.rank >= 0 && buffer.rank != rank as i64 {
                continue;
            }
            for &[from, tag] in buffer.recv_tags.iter().filter(|[from, _]| *from >= 0) {
                found.entry(Link { from, to: rank as i64, tag }).or_insert(buffer.id);
            }
        }
    }
    found
}

/// All memory accesses of the ops of a rank, to its own memory or that of others.
fn uses_of<'a>(
    world: &World<'a>,
    outcome: &RunResult,
    rank: usize,
    landings: &BTreeMap<Link, u64>,
) -> Vec<(Memory, Use<'a>)> {
    let plan = world.plans[rank];
    let mut found = vec![];
    for group in 0..plan.processor_groups.len() {
        for (spot, processors, tasks) in task_groups(plan, group) {
            let ops = &plan.task_infos[tasks.task_id as usize].ops;
            let starts = outcome.starts.get(&(rank, spot));
            let Some(known) = starts.and_then(|starts| common(starts.iter())) else { continue };
            for access in accesses(ops, tasks, spot, processors) {
                // These only wait or signal; they access no memory.
                if access.kind().only_signals() {
                    continue;
                }
                let (task, index) = (access.task, access.index);
                let is_it = |op: &super::run::CommOp<'_>| {
                    (op.rank, op.task, op.index) == (rank, task, index)
                };
                let op = world.ops.iter().position(is_it);
                let is_proxied = op.is_some_and(|op| match &world.ops[op].act {
                    Action::Put { channel, .. } => channel.kind != "Sm",
                    _ => false,
                });
                let tensor = access.tensor;
                let known = known.clone();
                let mut one = Some(Use { rank, access, op, is_proxied, known });
                let is_local = tensor.buffer.rank < 0 || tensor.buffer.rank == rank as i64;
                let memory = match is_local {
                    true => Some((rank, tensor.buffer.id)),
                    false => links(tensor, rank).find_map(|link| {
                        Some((usize::try_from(link.to).ok()?, *landings.get(&link)?))
                    }),
                };
                found.extend(memory.and_then(|memory| Some((memory, one.take()?))));
            }
        }
    }
    found
}

fn conflict(world: &World<'_>, outcome: &RunResult, a: &Use<'_>, b: &Use<'_>) -> Option<Witness> {
    let writes = a.access.is_write || b.access.is_write;
    let same_task = (a.rank, a.access.task) == (b.rank, b.access.task);
    if !writes || same_task || ordered(world, outcome, a, b) || ordered(world, outcome, b, a) {
        return None;
    }
    // A packet is read when its flag has arrived.
    let pair = |a: &Use<'_>, b: &Use<'_>| {
        a.op.zip(b.op).is_some_and(|pair| outcome.matched.contains(&pair))
    };
    if pair(a, b) || pair(b, a) {
        return None;
    }
    a.access.meets(&b.access)
}

/// Whether `earlier` is complete when `later` starts.
fn ordered(world: &World<'_>, outcome: &RunResult, earlier: &Use<'_>, later: &Use<'_>) -> bool {
    if earlier.op.is_some_and(|op| later.known[outcome.events + op] > 0) {
        return true;
    }
    let base = world.bases[earlier.rank];
    let ran = world.segments[earlier.rank].of(earlier.access.processors);
    let group = earlier.access.spot.group;
    !earlier.is_proxied
        && ran.into_iter().all(|segment| later.known[base + segment] as usize > group)
}

fn report(
    world: &World<'_>,
    (owner, buffer): Memory,
    a: &Use<'_>,
    b: &Use<'_>,
    witness: Witness,
) -> (usize, Diagnostic) {
    let verb = |one: &Use<'_>| if one.access.is_write { "writes" } else { "reads" };
    let (start, end) = witness.bytes;
    let message = format!(
        "race: index {} of task {} of rank {} (`{}`) {} bytes [{start}, {end}) of buffer {buffer} of \
         rank {owner}, which index {} of task {} of rank {} (`{}`) {}, and no signal or barrier \
         orders the two",
        witness.second,
        b.access.task,
        b.rank,
        b.access.kind(),
        verb(b),
        witness.first,
        a.access.task,
        a.rank,
        a.access.kind(),
        verb(a),
    );
    let processors = |one: &Use<'_>| -> Range {
        world.plans[one.rank].processor_groups[one.access.spot.group].processor_range
    };
    let missing = match (a.rank == b.rank, a.is_proxied) {
        (true, true) => "a `SendDone` between them: until then the proxy still reads what is sent",
        _ => "a `Recv` that waits for the signal, or a `DeviceSync`, between them",
    };
    let place = |one: &Use<'_>| {
        let range = processors(one);
        format!(
            "group {} on processors [{}, {}) of rank {}",
            one.access.spot.group, range.begin, range.end, one.rank
        )
    };
    let diagnostic = Diagnostic::error("plan-race", message)
        .path(b.access.spot.to_string())
        .with_note(format!("missing: {missing}"))
        .with_note(format!("the two are {} and {}", place(a), place(b)));
    (b.rank, diagnostic)
}
