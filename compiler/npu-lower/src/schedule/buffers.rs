//! Snapshots of the buffers of cores.
//!
//! What a workload reads is in the buffer of its core from when the first part of it is computed, or from the
//! workload before if all of it comes from DRAM. Constant weights are in the buffer from when DRAM has to begin to load them,
//! so that they are there in time after all that is loaded before them, as far as there is room; they stay until their last
//! use. So the weights of a segment are loaded while those before it compute (SoMa, Cai et al., HPCA 2025).

use irc_gemini_format::Nullable;
use irc_gemini_format::schedule::{
    Extent, Ids, PlaceKind, Resident, ResidentKind, Source, Target, Workload,
};

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
    /// Whether it is constant weights, which can be loaded at any time.
    is_constant: bool,
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
        let sources: Vec<Source> = sources.into_iter().map(|(source, _)| source).collect();
        let bytes = sources.iter().map(|source| source.size / 8).sum();
        let ids = sources.iter().map(|source| source.transfer_id).collect();
        let resident = Resident {
            source: Some(Nullable(Some(sources))),
            transfer_id: Some(Ids::List(ids)),
            workload_id: Some(workload),
            ..resident(ResidentKind::Ifmap, layer, &extent, blocks(bytes))
        };
        Self { first: index, last: index, producers, is_constant: false, resident }
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
        Self { first: index, last: index, producers: vec![], is_constant: true, resident }
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

/// The buffer of a core, and the rate at which it is filled.
#[derive(Clone, Copy)]
pub struct Buffer {
    /// KiB.
    pub capacity: i64,
    /// Bytes per cycle from DRAM when all cores load.
    pub rate: f64,
}

/// Writes the snapshots of a core.
pub fn fill(core: i64, workloads: &mut [Workload], held: Vec<LiveTensor>, buffer: Buffer) {
    let capacity = buffer.capacity;
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
    let mut firsts: Vec<usize> = spans.iter().map(|(first, _)| *first).collect();
    for (held, first) in held.iter().zip(&mut firsts) {
        // What comes from DRAM is loaded while the workload before runs, if there is room.
        let is_early = held.producers.is_empty() && *first > 0;
        if is_early && used[*first - 1] + held.blocks() <= capacity {
            *first -= 1;
            used[*first] += held.blocks();
        }
    }
    for (tensor, begin) in begins(workloads, &held, buffer.rate) {
        let (first, blocks) = (&mut firsts[tensor], held[tensor].blocks());
        while *first > begin && used[*first - 1] + blocks <= capacity {
            *first -= 1;
            used[*first] += blocks;
        }
    }
    for ((held, (_, last)), first) in held.iter().zip(spans).zip(firsts) {
        for workload in &mut workloads[first..=last] {
            workload.buffer.push(held.resident.clone());
        }
    }
    for (workload, result) in workloads.iter_mut().zip(results) {
        workload.buffer.extend(result);
    }
}

/// The constant weights of a core, in the order in which they are needed: each with the workload that runs when DRAM has
/// to begin to load it, at the latest.
fn begins(workloads: &[Workload], held: &[LiveTensor], rate: f64) -> Vec<(usize, usize)> {
    let mut start = 0.0;
    let mut starts = vec![];
    for workload in workloads {
        starts.push(start);
        start += workload.time as f64;
    }
    let mut loaded: Vec<usize> = (0..held.len()).filter(|at| held[*at].producers.is_empty()).collect();
    loaded.sort_by_key(|at| held[*at].first);
    // Backwards: a load ends before the next one has to begin.
    let (mut next, mut all) = (f64::INFINITY, vec![]);
    for &at in loaded.iter().rev() {
        let cycles = held[at].blocks() as f64 * 1024.0 / rate;
        next = next.min(starts[held[at].first]) - cycles;
        if held[at].is_constant {
            let running = starts.partition_point(|start| *start <= next).saturating_sub(1);
            all.push((at, running));
        }
    }
    all.reverse();
    all
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
