//! Segments: layers that exchange data on the chip.

use std::collections::BTreeMap;

use super::{Schedule, Transfers};

/// The segments of a schedule, in the order in which they begin.
///
/// A schedule does not state its segments. Here they are layers that are connected by transfers from core to
/// core, together with all layers that run between them. Each group of images of the root of the schedule's tree
/// is a run of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    /// The layers of each segment, in the order of their first workloads.
    pub layers: Vec<Vec<String>>,
    /// The number of runs of each segment.
    pub groups: usize,
    /// The run and the segment of each workload, by index of the core and index there.
    of: Vec<Vec<(usize, usize)>>,
}

impl Segments {
    /// The segments of a valid schedule.
    pub fn new(schedule: &Schedule) -> Self {
        let transfers = Transfers::new(schedule);
        let mut order: Vec<(i64, usize, usize)> = schedule
            .workloads()
            .map(|(core, index, workload)| (workload.workload_id, core, index))
            .collect();
        order.sort_unstable();
        let images = schedule.images();
        let groups = schedule.top_batch_cut.clamp(1, images);
        let each = (images / groups).max(1);
        let workload = |core: usize, index: usize| &schedule.cores[core].workloads[index];
        let group = |core: usize, index: usize| workload(core, index).extent.axis(0).0 / each;
        // Layers by number, in the order of their first workloads.
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let mut names = vec![];
        for (_, core, index) in &order {
            let name = workload(*core, *index).layer_name.as_str();
            numbers.entry(name).or_insert_with(|| {
                names.push(name);
                names.len() - 1
            });
        }
        // For each layer, the last one that it is connected with.
        let mut reach: Vec<usize> = (0..names.len()).collect();
        let number = |core: usize, index: usize| numbers[workload(core, index).layer_name.as_str()];
        for (core, index, user) in schedule.workloads() {
            let weights = user.weight.iter().flat_map(|weight| weight.transfers());
            let inputs = user.ifmaps().iter().flat_map(|ifmap| ifmap.transfer_id.iter());
            for transfer in inputs.chain(weights).filter(|id| transfers.dram_out(*id).is_none()) {
                let Some((from, at)) = transfers.producer(transfer) else { continue };
                let (a, b) = (number(from, at), number(core, index));
                let (first, last) = (a.min(b), a.max(b));
                reach[first] = reach[first].max(last);
            }
        }
        let mut segments = vec![0; names.len()];
        let (mut layers, mut until): (Vec<Vec<String>>, usize) = (vec![], 0);
        for (layer, name) in names.iter().enumerate() {
            if layer == 0 || layer > until {
                layers.push(vec![]);
            }
            until = until.max(reach[layer]);
            segments[layer] = layers.len() - 1;
            layers[segments[layer]].push((*name).to_owned());
        }
        let of = schedule.cores.iter().enumerate().map(|(core, own)| {
            let place = |index| (group(core, index).max(0) as usize, segments[number(core, index)]);
            (0..own.workloads.len()).map(place).collect()
        });
        Self { layers, groups: groups as usize, of: of.collect() }
    }

    /// The run and the segment of a workload, by index of its core and index there.
    pub fn of(&self, core: usize, workload: usize) -> (usize, usize) {
        self.of[core][workload]
    }

    /// The name of a segment: its first and its last layer, and the number of all.
    pub fn name(&self, segment: usize) -> String {
        match &self.layers[segment][..] {
            [] => String::new(),
            [only] => only.clone(),
            [first, last] => format!("{first}, {last}"),
            [first, .., last] => format!("{first} … {last} ({})", self.layers[segment].len()),
        }
    }
}
