//! Blocks that are stored to and loaded from DRAM.

use std::sync::Arc;

use super::{Coords, Extent, Ids};
use crate::record::{names, record};

/// The blocks of one group of DRAM ports.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DramGroup {
    /// Name of the interleaving in dialect C; 0 elsewhere.
    pub id: i64,
    /// Blocks that are stored to DRAM.
    pub ins: Vec<DramIn>,
    /// Blocks that are loaded from DRAM.
    pub outs: Vec<DramOut>,
    /// Unknown keys, and the order of keys.
    pub extra: crate::record::Extra,
}

names! {
    /// The kind of the other end of a transfer.
    pub enum PlaceKind {
        /// A core.
        Core = "core",
        /// DRAM.
        Dram = "DRAM",
    }
}

record! {
    /// A block that is stored to DRAM: a result.
    pub struct DramIn {
        /// Core of its producer.
        core_id: i64,
        /// Layer of its producer.
        layer_name: Option<String>,
        /// First corner in the layer's result.
        lower: Option<Coords>,
        /// Last corner in the layer's result.
        upper: Option<Coords>,
        /// Transfers from DRAM that load some of it; absent for results of the network.
        related_ofmap: Option<Vec<i64>>,
        /// Its transfer.
        transfer_id: i64,
        /// Its kind, in some files of dialect B.
        "type" as kind: Option<String>,
        /// Workload of its producer.
        workload_id: i64,
    }

    /// A block that is loaded from DRAM: a weight, or an operand.
    pub struct DramOut {
        /// Its users.
        destination: Vec<Target>,
        /// Layer of its users, in dialects B and C.
        layer_name: Option<String>,
        /// First corner; absolute, K alone for weights of dialects B and C.
        lower: Coords,
        /// Last corner.
        upper: Coords,
        /// Workload that uses it first, in dialect C.
        priority: Option<i64>,
        /// Transfers to DRAM that it consists of; empty for inputs of the network.
        related_ifmap: Option<Vec<i64>>,
        /// Bytes in dialect A, bits in the others.
        size: i64,
        /// Its transfer.
        transfer_id: i64,
        /// `weight` or `fmap`.
        "type" as kind: String,
    }

    /// The destination of a tensor.
    pub struct Target {
        /// The core, in dialect A; -1 for DRAM.
        core_id: Option<i64>,
        /// The core, or the DRAM ports, in dialects B and C.
        id: Option<Ids>,
        /// Layer of the user.
        layer_name: Option<Arc<str>>,
        /// Its kind.
        "type" as kind: PlaceKind,
        /// Workload of the user; in dialect A the first of them.
        workload_id: Option<i64>,
    }
}

impl DramIn {
    /// Its box in the layer's result, if it is stated.
    pub fn extent(&self) -> Option<Extent> {
        Some(Extent { lower: self.lower?, upper: self.upper? })
    }
}

impl DramOut {
    /// Its box.
    pub fn extent(&self) -> Extent {
        Extent { lower: self.lower, upper: self.upper }
    }

    /// Whether it is a weight.
    pub fn is_weight(&self) -> bool {
        self.kind == "weight"
    }
}

impl Target {
    /// The core, if it is one and is stated.
    pub fn core(&self) -> Option<i64> {
        let id = self.core_id.or_else(|| self.id.as_ref().and_then(Ids::first));
        id.filter(|_| self.kind == PlaceKind::Core)
    }
}
