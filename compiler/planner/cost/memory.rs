//! Bytes of buffers that are visible only inside the plan.
use irc_ark_format::{
    model::{OpKind, buffer_bytes},
    plan::Plan,
};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of intermediate buffers: written before they are read, read after they are last written,
/// and neither preserved by a `Noop` nor seen by another rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Of all of them together.
    pub arena: u64,
    /// The maximum that processor groups need at a time.
    pub live_peak: u64,
}

/// When a buffer is used.
struct Use {
    first: usize,
    last: usize,
    is_read_first: bool,
    is_written_last: bool,
    is_visible: bool,
}

/// The memory of a plan's intermediate buffers.
pub fn memory(plan: &Plan) -> Memory {
    let ops = || plan.task_infos.iter().flat_map(|info| &info.ops);
    let sizes = buffer_bytes(ops().flat_map(|plan_op| plan_op.op.tensors()));
    let uses = uses(plan);
    let hidden = uses
        .iter()
        .filter(|(_, used)| !used.is_read_first && !used.is_written_last && !used.is_visible);
    let mut arena = 0;
    let mut changes: BTreeMap<usize, i128> = BTreeMap::new();
    for (id, used) in hidden {
        let size = sizes.get(id).copied().unwrap_or_default();
        arena += size;
        *changes.entry(used.first).or_default() += i128::from(size);
        *changes.entry(used.last + 1).or_default() -= i128::from(size);
    }
    let mut live = 0;
    let mut peak = 0;
    for change in changes.values() {
        live += change;
        peak = live.max(peak);
    }
    Memory { arena, live_peak: u64::try_from(peak).unwrap_or_default() }
}

fn uses(plan: &Plan) -> BTreeMap<u64, Use> {
    let mut uses: BTreeMap<u64, Use> = BTreeMap::new();
    for (step, group) in plan.processor_groups.iter().enumerate() {
        let mut seen = BTreeSet::new();
        let tasks = group.resource_groups.iter().flat_map(|resources| &resources.task_groups);
        for task in tasks.filter(|task| seen.insert(task.task_id)) {
            let info = usize::try_from(task.task_id).ok().and_then(|id| plan.task_infos.get(id));
            for plan_op in info.into_iter().flat_map(|info| &info.ops) {
                let reads = plan_op.op.reads.iter().map(|tensor| (tensor, false));
                let writes = plan_op.op.writes.iter().map(|tensor| (tensor, true));
                for (tensor, is_write) in reads.chain(writes) {
                    let buffer = &tensor.buffer;
                    let used = uses.entry(buffer.id).or_insert(Use {
                        first: step,
                        last: step,
                        is_read_first: !is_write,
                        is_written_last: is_write,
                        is_visible: false,
                    });
                    used.last = step;
                    used.is_written_last = is_write;
                    used.is_visible |= buffer.rank >= 0
                        || !(buffer.send_tags.is_empty() && buffer.recv_tags.is_empty())
                        || plan_op.op.kind == OpKind::Noop;
                }
            }
        }
    }
    uses
}
