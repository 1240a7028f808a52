//! What DRAM takes in and gives out.

use super::{Coords, Extent, Ids};
use crate::record::{names, record};

/// The blocks of one group of DRAM ports.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DramGroup {
    /// Name of the interleaving in dialect C; 0 elsewhere.
    pub id: i64,
    /// Blocks that DRAM takes in.
    pub ins: Vec<DramIn>,
    /// Blocks that DRAM gives out.
    pub outs: Vec<DramOut>,
    /// Unknown keys, and the order of keys.
    pub extra: crate::record::Extra,
}

names! {
    /// What is at the other end of a transfer.
    pub enum PlaceKind {
        /// A core.
        Core = "core",
        /// DRAM.
        Dram = "DRAM",
    }
}

record! {
    /// A block that DRAM takes in: a result.
    pub struct DramIn {
        /// Core that makes it.
        core_id: i64,
        /// Layer that makes it.
        layer_name: Option<String>,
        /// First corner in the layer's result.
        lower: Option<Coords>,
        /// Last corner in the layer's result.
        upper: Option<Coords>,
        /// Transfers out of DRAM that give out some of it; absent for results of the network.
        related_ofmap: Option<Vec<i64>>,
        /// Its transfer.
        transfer_id: i64,
        /// What it is, in some files of dialect B.
        "type" as kind: Option<String>,
        /// Workload that makes it.
        workload_id: i64,
    }

    /// A block that DRAM gives out: a weight, or what a layer reads.
    pub struct DramOut {
        /// Who takes it.
        destination: Vec<Target>,
        /// Layer that takes it, in dialects B and C.
        layer_name: Option<String>,
        /// First corner; absolute, K alone for weights of dialects B and C.
        lower: Coords,
        /// Last corner.
        upper: Coords,
        /// Workload that wants it first, in dialect C.
        priority: Option<i64>,
        /// Transfers into DRAM that it consists of; empty for inputs of the network.
        related_ifmap: Option<Vec<i64>>,
        /// Bytes in dialect A, bits in the others.
        size: i64,
        /// Its transfer.
        transfer_id: i64,
        /// `weight` or `fmap`.
        "type" as kind: String,
    }

    /// Where a tensor goes.
    pub struct Target {
        /// The core, in dialect A; -1 is DRAM.
        core_id: Option<i64>,
        /// The core, or the DRAM ports, in dialects B and C.
        id: Option<Ids>,
        /// Layer that takes it.
        layer_name: Option<String>,
        /// What it is.
        "type" as kind: PlaceKind,
        /// Workload that takes it; in dialect A the first of them.
        workload_id: Option<i64>,
    }
}

impl DramIn {
    /// The box of the layer's result that it is, where it is told.
    pub fn extent(&self) -> Option<Extent> {
        Some(Extent { lower: self.lower?, upper: self.upper? })
    }
}

impl DramOut {
    /// The box that it is.
    pub fn extent(&self) -> Extent {
        Extent { lower: self.lower, upper: self.upper }
    }

    /// Whether it is a weight.
    pub fn is_weight(&self) -> bool {
        self.kind == "weight"
    }
}

impl Target {
    /// The core, when it is one and is named.
    pub fn core(&self) -> Option<i64> {
        let id = self.core_id.or_else(|| self.id.as_ref().and_then(Ids::first));
        id.filter(|_| self.kind == PlaceKind::Core)
    }
}
