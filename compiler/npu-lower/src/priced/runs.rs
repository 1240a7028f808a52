//! The runs of the layers of a schedule.

use irc_gemini_format::schedule::{Extent, Place, Schedule, Workload};
use irc_npu_cost::{Node, Partition, Region, Span};
use std::collections::{BTreeMap, BTreeSet};

/// Workloads of a layer that run at once, each on a core.
pub struct Run<'s> {
    /// The layer.
    pub layer: &'s str,
    /// The workloads, in the order of their ids; of layers whose weights are results one for each image of a part.
    pub workloads: Vec<(Place, &'s Workload)>,
}

impl Run<'_> {
    /// The parts of each axis: channels, images, rows, columns.
    pub fn partition(&self) -> Partition {
        let by_image = self.is_by_image();
        let count = |axis: usize| {
            let spans: BTreeSet<(i64, i64)> =
                self.workloads.iter().map(|(_, workload)| workload.extent.axis(axis)).collect();
            spans.len() as u64
        };
        let cores = self.cores().len() as u64;
        let [channels, rows, columns] = [1, 2, 3].map(count);
        let images = match by_image {
            true => cores / (channels * rows * columns).max(1),
            false => count(0),
        };
        Partition([channels, images.max(1), rows, columns])
    }

    /// Its images.
    pub fn batch(&self) -> u64 {
        let first = self.workloads.iter().map(|(_, workload)| workload.extent.axis(0).0).min();
        let last = self.workloads.iter().map(|(_, workload)| workload.extent.axis(0).1).max();
        (last.unwrap_or(0) - first.unwrap_or(0) + 1).max(1) as u64
    }

    /// Its cores, by index in the schedule.
    pub fn cores(&self) -> BTreeSet<usize> {
        self.workloads.iter().map(|((core, _), _)| *core).collect()
    }

    /// Whether every image has a workload of its own, as its weights differ.
    fn is_by_image(&self) -> bool {
        let weight = self.workloads.first().and_then(|(_, workload)| workload.weight.as_ref());
        weight.is_some_and(|weight| weight.from_ofmap == Some(true))
    }

    /// Whether its workloads take as long as a mapping of a part does.
    pub fn takes(&self, node: &Node, cycles: u64) -> bool {
        self.time().abs_diff(cycles) < self.workloads_of_core().max(1)
            || !node.has_made_weights() && self.time() == cycles
    }

    /// Cycles of its busiest core.
    pub fn time(&self) -> u64 {
        let mut times: BTreeMap<usize, u64> = BTreeMap::new();
        for ((core, _), workload) in &self.workloads {
            *times.entry(*core).or_default() += workload.time.max(0) as u64;
        }
        times.into_values().max().unwrap_or(0)
    }

    fn workloads_of_core(&self) -> u64 {
        (self.workloads.len() / self.cores().len().max(1)) as u64
    }
}

/// The runs of all layers, in the order of their workloads.
pub fn runs(schedule: &Schedule) -> Vec<Run<'_>> {
    let mut order: Vec<(i64, Place, &Workload)> = schedule
        .workloads()
        .map(|(core, index, workload)| (workload.workload_id, (core, index), workload))
        .collect();
    order.sort_by_key(|(id, ..)| *id);
    let mut runs: Vec<Run<'_>> = vec![];
    for (_, place, workload) in order {
        let layer = workload.layer_name.as_str();
        let continues = runs.last().is_some_and(|run| {
            let (Some((first, _)), Some((last, _))) = (run.workloads.first(), run.workloads.last())
            else {
                return false;
            };
            // A run begins again at its first core.
            let again = place.0 == first.0 && !(run.is_by_image() && last.0 == first.0);
            run.layer == layer && !again
        });
        match runs.last_mut().filter(|_| continues) {
            Some(run) => run.workloads.push((place, workload)),
            None => runs.push(Run { layer, workloads: vec![(place, workload)] }),
        }
    }
    runs
}

/// A box as a region.
pub fn region(of: &Extent) -> Region {
    let span = |axis: usize| {
        let (low, high) = of.axis(axis);
        Span { from: low.max(0) as u64, to: (high + 1).max(0) as u64 }
    };
    Region { images: span(0), channels: span(1), rows: span(2), columns: span(3) }
}
