//! Fusion groups: workloads that pass tensors to one another without DRAM.

use std::collections::BTreeMap;

use irc_gemini_format::schedule::{Core, Schedule, Transfers};

/// The group of every workload of a core, numbered from 0.
///
/// A group ends where a workload reads from DRAM a tensor that its own group has stored. Tensors stored
/// by earlier groups may be read at any time.
pub fn groups(schedule: &Schedule, transfers: &Transfers<'_>, core: &Core) -> Vec<u32> {
    let ins: BTreeMap<i64, i64> = schedule
        .dram
        .iter()
        .flat_map(|group| &group.ins)
        .filter(|block| block.core_id == core.id)
        .map(|block| (block.transfer_id, block.workload_id))
        .collect();
    let mut all: Vec<u32> = vec![];
    let mut group = 0;
    for workload in &core.workloads {
        let read = workload.ifmaps().iter().flat_map(|ifmap| ifmap.transfer_id.iter());
        let blocks = read.filter_map(|transfer| transfers.dram_out(transfer));
        let related = blocks.flat_map(|block| block.related_ifmap.iter().flatten());
        let producers = related.filter_map(|transfer| ins.get(transfer));
        let mut made = producers.filter_map(|producer| all.get(usize::try_from(*producer).ok()?));
        if made.any(|made| *made == group) {
            group += 1;
        }
        all.push(group);
    }
    all
}
