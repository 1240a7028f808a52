//! The shared memory of the blocks of plans.
//!
//! A processor group has all of it, as all threads of a block wait for each other before the next one. It holds tiles of
//! products, [`SHARED_BYTES`] for each warp, if a task of the group has any; and behind them the scratch of tasks, as many
//! bytes for each warp as the task that needs most for each of its warps. A slot has the bytes of its own warps: tasks that
//! run side by side, of one resource group or of several, have no byte in common.
//!
//! The scratch of a task is in shared memory if it fits the SRAM of its slot, an equal part of that of the resource group,
//! and what the tiles leave of the memory of a block. Other scratch is in global memory.
use super::RankCode;
use crate::lowering::compute_to_loops::simt::{SHARED_BYTES, shared_bytes};
use irc_ark_format::plan::{Plan, slots};
use irc_executor::{
    code::{Step, TaskCode},
    script::{Entry, Share, script},
};
use std::collections::BTreeMap;

/// What the scratch of a warp is aligned to.
const ALIGNMENT: u64 = 64;

/// The code of a kernel for a team.
#[derive(Clone, Debug)]
pub struct TeamCode {
    /// The types of its memory: of operands, results and scratch.
    pub parameters: Vec<String>,
    /// Bytes of its scratch.
    pub scratch: u64,
    /// Whether its scratch is in shared memory.
    pub is_shared: bool,
    /// Whether it has tiles in shared memory.
    pub has_tiles: bool,
}

/// The bytes of SRAM of a slot, by task info: the fewest of all resource groups that run it.
pub fn slot_bytes(plan: &Plan) -> Vec<u64> {
    let mut found: Vec<Option<i64>> = vec![None; plan.task_infos.len()];
    for resource in plan.processor_groups.iter().flat_map(|group| &group.resource_groups) {
        for tasks in &resource.task_groups {
            let Ok(task) = usize::try_from(tasks.task_id) else { continue };
            let Some(info) = plan.task_infos.get(task) else { continue };
            let (warps, sram) = (resource.warp_range.len(), resource.sram_range.len());
            let count = slots(warps, sram, (info.num_warps.max(1), info.sram_bytes));
            let own = sram / count.max(1);
            found[task] = Some(found[task].map_or(own, |least| least.min(own)));
        }
    }
    found.into_iter().map(|bytes| bytes.unwrap_or(0).max(0).cast_unsigned()).collect()
}

/// The shared memory of a block in a processor group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Carve {
    /// Bytes of tiles of products.
    pub(super) tiles: u64,
    /// Bytes of scratch of a warp, and the number of warps that have some.
    pub(super) scratch: u64,
    warps: u64,
}

impl Carve {
    pub(super) fn bytes(&self) -> u64 {
        self.tiles + self.scratch * self.warps
    }

    /// Adds what a share of tasks needs, which have so many warps each.
    fn add<'k>(&mut self, share: &Share, warps: i64, kernels: impl Iterator<Item = &'k TeamCode>) {
        let end = share.warps.begin + share.distribution.active_slots * warps;
        let last = end - warps;
        for kernel in kernels {
            if kernel.has_tiles {
                let tiles = last * SHARED_BYTES + shared_bytes(32 * warps, false);
                self.tiles = self.tiles.max(tiles.cast_unsigned());
            }
            if kernel.is_shared {
                let own = kernel.scratch.div_ceil(warps.cast_unsigned());
                self.scratch = self.scratch.max(own.next_multiple_of(ALIGNMENT));
                self.warps = self.warps.max(end.cast_unsigned());
            }
        }
    }
}

/// The shared memory of each processor group of a rank.
pub(super) fn carves(
    entries: &[Entry],
    rank: &RankCode<'_>,
    kernels: &BTreeMap<String, TeamCode>,
) -> BTreeMap<usize, Carve> {
    let mut found: BTreeMap<usize, Carve> = BTreeMap::new();
    for entry in entries {
        let Entry::Tasks(share) = entry else { continue };
        let warps = rank.plan.task_infos[share.task].num_warps;
        if share.distribution.active_slots > 0 && !share.distribution.processors.is_empty() {
            let own = kernels_of(&rank.tasks[share.task], kernels);
            found.entry(share.group).or_default().add(share, warps, own);
        }
    }
    found
}

/// The kernels of a task.
pub(super) fn kernels_of<'k>(
    task: &'k TaskCode,
    kernels: &'k BTreeMap<String, TeamCode>,
) -> impl Iterator<Item = &'k TeamCode> {
    let variants = task.steps.iter().flat_map(|step| match step {
        Step::Kernel(kernel) => &kernel.variants[..],
        Step::Communicate(_) => &[],
    });
    variants.filter_map(|variant| kernels.get(&variant.symbol))
}

/// The most bytes of scratch of a warp with which the blocks of all ranks have at most so many bytes of shared memory;
/// `None` if that is so already.
///
/// # Errors
/// If a plan is not valid.
pub fn scratch_limit(
    ranks: &[RankCode<'_>],
    kernels: &BTreeMap<String, TeamCode>,
    most: u64,
) -> Result<Option<u64>, String> {
    let mut limit: Option<u64> = None;
    for rank in ranks {
        let entries = script(rank.plan).map_err(|error| error.to_string())?;
        for carve in carves(&entries, rank, kernels).values() {
            if carve.bytes() > most && carve.warps > 0 {
                let own = most.saturating_sub(carve.tiles) / carve.warps;
                let own = own / ALIGNMENT * ALIGNMENT;
                limit = Some(limit.map_or(own, |least| least.min(own)));
            }
        }
    }
    Ok(limit)
}
