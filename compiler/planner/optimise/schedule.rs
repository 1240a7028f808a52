//! Steps: independent tasks run side by side.
use super::{
    dependencies::is_seen,
    group::{Draft, Drafts},
    layout::Layout,
};
use irc_ark_format::model::{OpKind, Tensor};
use std::collections::{BTreeMap, BTreeSet};

/// Drafts of one step, by index, in the order in which they are listed.
pub type Step = Vec<usize>;

/// Puts every draft into the first step after all its dependencies. The number of steps is the length
/// of the longest chain of drafts, which is the minimum. Drafts of `Noop` only, which run nothing,
/// are in no step.
pub fn steps(drafts: &Drafts) -> Vec<Step> {
    by_level(drafts, &levels(drafts))
}

/// As many steps, but drafts run as late as their users allow, unless that lengthens the live ranges
/// of their operands by more than it shortens those of their results.
pub fn late(drafts: &Drafts, layout: &Layout) -> Vec<Step> {
    let mut levels = levels(drafts);
    let touched: Vec<BufferAccesses> =
        drafts.drafts.iter().map(|draft| BufferAccesses::of(draft, layout)).collect();
    let mut users: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (index, touched) in touched.iter().enumerate() {
        touched.all().for_each(|id| users.entry(id).or_default().push(index));
    }
    let mut latest = vec![usize::MAX; levels.len()];
    for index in drafts.order().into_iter().rev() {
        let own = latest[index];
        let ops = || drafts.drafts[index].ops.iter().map(|op| &op.op);
        if own != usize::MAX && own > levels[index] && !ops().any(is_seen) {
            let grows = |id: &u64| {
                let others = users[id].iter().filter(|other| **other != index);
                others.map(|other| levels[*other]).max().is_none_or(|last| last < own)
            };
            let bytes = |id: &u64| layout.pooled[id];
            let more: u64 = touched[index].reads.iter().filter(|id| grows(id)).map(bytes).sum();
            let less: u64 = touched[index].writes.iter().map(bytes).sum();
            if more <= less {
                levels[index] = own;
            }
        }
        if !is_idle(drafts, index) {
            for other in drafts.waits(index) {
                latest[other] = latest[other].min(levels[index].saturating_sub(1));
            }
        }
    }
    by_level(drafts, &levels)
}

/// Intermediate buffers that a draft reads from others, and those that it writes.
struct BufferAccesses {
    reads: BTreeSet<u64>,
    writes: BTreeSet<u64>,
}

impl BufferAccesses {
    fn of(draft: &Draft, layout: &Layout) -> Self {
        let pooled = |tensors: &[Tensor]| -> Vec<u64> {
            let ids = tensors.iter().map(|tensor| tensor.buffer.id);
            ids.filter(|id| layout.pooled.contains_key(id)).collect()
        };
        let ops = || draft.ops.iter().map(|op| &op.op);
        let writes: BTreeSet<u64> = ops().flat_map(|op| pooled(&op.writes)).collect();
        let reads = ops().flat_map(|op| pooled(&op.reads));
        Self { reads: reads.filter(|id| !writes.contains(id)).collect(), writes }
    }

    fn all(&self) -> impl Iterator<Item = u64> {
        self.reads.iter().chain(&self.writes).copied()
    }
}

/// By draft, its step: the first after all its dependencies.
fn levels(drafts: &Drafts) -> Vec<usize> {
    let mut levels = vec![0; drafts.drafts.len()];
    for index in drafts.order() {
        let before = drafts.waits(index).filter(|other| !is_idle(drafts, *other));
        levels[index] = before.map(|other| levels[other] + 1).max().unwrap_or(0);
    }
    levels
}

/// The drafts of each step, without those that run nothing.
fn by_level(drafts: &Drafts, levels: &[usize]) -> Vec<Step> {
    let mut steps: Vec<Step> = vec![];
    for index in drafts.order().into_iter().filter(|index| !is_idle(drafts, *index)) {
        if steps.len() <= levels[index] {
            steps.resize(levels[index] + 1, vec![]);
        }
        steps[levels[index]].push(index);
    }
    for step in &mut steps {
        // Sends come first, as a peer waits for them; waits for a peer come last.
        step.sort_by_key(|index| (rank(drafts, *index), drafts.drafts[*index].nodes[0]));
    }
    steps
}

/// Whether a draft runs nothing.
fn is_idle(drafts: &Drafts, index: usize) -> bool {
    drafts.drafts[index].ops.iter().all(|op| op.op.kind == OpKind::Noop)
}

fn rank(drafts: &Drafts, index: usize) -> u8 {
    match drafts.drafts[index].ops.iter().map(|op| &op.op).find(|op| is_seen(op)) {
        Some(op) if matches!(op.kind, OpKind::Send | OpKind::SendPacket) => 0,
        Some(op) if op.kind.is_communication() => 2,
        _ => 1,
    }
}
