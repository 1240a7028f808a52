//! Snapshots of the buffers of cores.
//!
//! What a workload reads is in the buffer of its core from when the first part of it is computed, or from the
//! workload before if all of it comes from DRAM; weights are loaded as early, and stay until their last use.

use irc_gemini_format::Nullable;
use irc_gemini_format::schedule::{
    Extent, Ids, PlaceKind, Resident, ResidentKind, Source, Target, Workload,
};
use std::sync::Arc;

/// KiB that a result takes before it leaves the core.
const RESULT_BLOCKS: i64 = 10;

/// A tensor that a core holds while some of its workloads run.
pub struct LiveTensor {
    /// The index of the first workload that reads it.
    first: usize,
    /// The index of the last.
    pub last: usize,
    /// Workloads that compute some of it, if they send it.
    producers: Vec<i64>,
    resident: Resident,
}

/// KiB of some bytes.
fn blocks(bytes: i64) -> i64 {
    (bytes + 1023) / 1024
}

/// A tensor with these blocks.
pub fn resident(kind: ResidentKind, layer: &str, extent: &Extent, block: i64) -> Resident {
    Resident {
        address: None,
        align: None,
        bitwidth: None,
        block: Some(block),
        cur_wl_ifmap: None,
        destinations: None,
        end_loading: None,
        end_sending: None,
        layer: Some(layer.to_owned()),
        layer_name: None,
        lower: Some(extent.lower),
        newly_added: None,
        ofmap_range: None,
        priority: None,
        size: None,
        source: None,
        start_ending: None,
        start_loading: None,
        start_send: None,
        start_sending: None,
        tensor_id: None,
        tensor_order: None,
        transfer_id: None,
        kind,
        upper: Some(extent.upper),
        workload_id: None,
        extra: Default::default(),
    }
}

impl LiveTensor {
    /// What a workload reads, with the workloads that compute each part.
    pub fn input(
        layer: &str,
        workload: i64,
        index: usize,
        extent: Extent,
        sources: Vec<(Source, Vec<i64>)>,
    ) -> Self {
        let sent = |(source, producers): &(Source, Vec<i64>)| match source.kind {
            PlaceKind::Core => producers.clone(),
            PlaceKind::Dram => vec![],
        };
        let producers = sources.iter().flat_map(sent).collect();
        let mut sources: Vec<Source> = sources.into_iter().map(|(source, _)| source).collect();
        sources.shrink_to_fit();
        let bytes = sources.iter().map(|source| source.size / 8).sum();
        let ids = sources.iter().map(|source| source.transfer_id).collect();
        let resident = Resident {
            source: Some(Nullable(Some(sources))),
            transfer_id: Some(Ids::List(ids)),
            workload_id: Some(workload),
            ..resident(ResidentKind::Ifmap, layer, &extent, blocks(bytes))
        };
        Self { first: index, last: index, producers, resident }
    }

    /// The same as weights.
    #[must_use]
    pub fn into_weights(mut self) -> Self {
        self.resident.kind = ResidentKind::Weight;
        self
    }

    /// Constant weights.
    pub fn weights(layer: &str, index: usize, extent: Extent, bytes: u64, transfer: i64) -> Self {
        let source = Source {
            channel: None,
            core_id: None,
            id: Some(Ids::Plain(super::transfers::DRAM)),
            layer_name: None,
            lower: Some(extent.lower),
            size: 8 * bytes as i64,
            transfer_id: transfer,
            kind: PlaceKind::Dram,
            upper: Some(extent.upper),
            extra: Default::default(),
        };
        let resident = Resident {
            source: Some(Nullable(Some(vec![source]))),
            transfer_id: Some(Ids::Nested(vec![vec![transfer]])),
            ..resident(ResidentKind::Weight, layer, &extent, blocks(bytes as i64))
        };
        Self { first: index, last: index, producers: vec![], resident }
    }

    /// The first workload of a core, by its index, that runs while some of it is there.
    fn begin(&self, ids: &[i64]) -> usize {
        let arrives = |producer: &i64| ids.partition_point(|id| id < producer);
        self.producers.iter().map(arrives).min().unwrap_or(self.first).min(self.first)
    }

    fn blocks(&self) -> i64 {
        self.resident.block.unwrap_or(0)
    }
}

/// Writes the snapshots of a core whose buffer has `capacity` KiB.
pub fn fill(core: i64, workloads: &mut [Workload], held: Vec<LiveTensor>, capacity: i64) {
    let ids: Vec<i64> = workloads.iter().map(|workload| workload.workload_id).collect();
    let results: Vec<Option<Resident>> =
        workloads.iter().map(|workload| result(core, workload)).collect();
    let spans: Vec<(usize, usize)> =
        held.iter().map(|held| (held.begin(&ids), held.last)).collect();
    let mut used: Vec<i64> =
        results.iter().map(|held| if held.is_some() { RESULT_BLOCKS } else { 0 }).collect();
    for (held, (first, last)) in held.iter().zip(&spans) {
        used[*first..=*last].iter_mut().for_each(|used| *used += held.blocks());
    }
    for (held, (mut first, last)) in held.into_iter().zip(spans) {
        // What comes from DRAM is loaded while the workload before runs, if there is room.
        let is_early = held.producers.is_empty() && first > 0;
        if is_early && used[first - 1] + held.blocks() <= capacity {
            first -= 1;
            used[first] += held.blocks();
        }
        let resident = Arc::new(held.resident);
        for workload in &mut workloads[first..=last] {
            workload.buffer.push(Arc::clone(&resident));
        }
    }
    for (workload, result) in workloads.iter_mut().zip(results) {
        if let Some(result) = result {
            workload.buffer.push(result);
        }
    }
}

/// The result of a workload that leaves its core.
fn result(core: i64, workload: &Workload) -> Option<Resident> {
    let leaves = |target: &Target| target.id.as_ref().and_then(Ids::first) != Some(core);
    let mut targets = workload.ofmaps().iter().flat_map(|part| &part.destination);
    targets.any(leaves).then(|| {
        let extent = workload.extent;
        Resident {
            size: Some(8 * extent.volume()),
            ..resident(ResidentKind::Ofmap, &workload.layer_name, &extent, RESULT_BLOCKS)
        }
    })
}
