//! Producers, receivers and users of transfers: the index of the checks, for code generators.

use std::collections::BTreeMap;

use super::check::{Facts, arrivals};
use super::{DramIn, DramOut, Extent, Schedule};

/// A workload: the index of its core in the schedule, and its index there.
pub type Place = (usize, usize);

/// The transfers of a valid schedule; for others, incomplete.
pub struct Transfers<'s>(Facts<'s>);

impl<'s> Transfers<'s> {
    /// Indexes the transfers of a schedule.
    pub fn new(schedule: &'s Schedule) -> Self {
        Transfers(Facts::new(schedule))
    }

    /// The workload with an id on the core with an id.
    pub fn workload(&self, core: i64, id: i64) -> Option<Place> {
        self.0.workload(core, id)
    }

    /// The layer of a workload.
    pub fn layer(&self, (core, index): Place) -> Option<&'s str> {
        let workload = self.0.schedule.cores.get(core)?.workloads.get(index)?;
        Some(&workload.layer_name)
    }

    /// The workload that computes a transfer; `None` if it is only loaded from DRAM.
    pub fn producer(&self, transfer: i64) -> Option<Place> {
        self.0.result_of(transfer).map(|made| made.place)
    }

    /// The box of a transfer in its layer's result, absolute in every dialect.
    pub fn extent(&self, transfer: i64) -> Option<Extent> {
        self.0.result_of(transfer).map(|made| made.extent)
    }

    /// Workloads that use a transfer, in the order of the file.
    pub fn users(&self, transfer: i64) -> &[Place] {
        self.0.users(transfer)
    }

    /// Whether a transfer is stored to DRAM.
    pub fn is_stored(&self, transfer: i64) -> bool {
        self.dram_in(transfer).is_some()
    }

    /// The block that a transfer loads from DRAM.
    pub fn dram_out(&self, transfer: i64) -> Option<&'s DramOut> {
        self.0.outs.get(&transfer).map(|(_, _, out)| *out)
    }

    /// The block that a transfer stores to DRAM.
    pub fn dram_in(&self, transfer: i64) -> Option<&'s DramIn> {
        self.0.ins.get(&transfer).map(|(_, _, block)| *block)
    }

    /// The workloads that store the block that a transfer loads from DRAM.
    pub fn storers(&self, transfer: i64) -> impl Iterator<Item = Place> {
        let out = self.dram_out(transfer);
        let related = out.into_iter().flat_map(|out| out.related_ifmap.iter().flatten());
        related.filter_map(|stored| self.producer(*stored))
    }

    /// For each use of a transfer, the index on that core of the first of the consecutive
    /// snapshots up to it that contain the transfer: it may arrive after the workload before.
    pub fn arrivals(&self) -> BTreeMap<(Place, i64), usize> {
        arrivals(&self.0).into_iter().collect()
    }
}
