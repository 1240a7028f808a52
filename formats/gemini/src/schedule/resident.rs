//! Snapshots of the buffers of a core, taken before a workload starts.

use super::{Coords, Extent, Ids, PlaceKind, Target};
use crate::record::{Nullable, names, record};

names! {
    /// What a tensor in the L2 buffer is.
    pub enum ResidentKind {
        /// To be read as activations.
        Ifmap = "ifmap",
        /// Made here, to be sent.
        Ofmap = "ofmap",
        /// To be read as weights.
        Weight = "weight",
    }

    /// Where WL0 takes a weight from.
    pub enum Wl0Source {
        /// The L2 buffer.
        Core = "CORE",
        /// DRAM.
        Ddr = "DDR",
    }
}

record! {
    /// A tensor in the L2 buffer.
    pub struct Resident {
        /// Where it starts: a byte in dialect A, a block modulo the allocated height in dialect C.
        address: Option<i64>,
        /// Channels are padded to a multiple of this.
        align: Option<i64>,
        /// Bits of an element.
        bitwidth: Option<i64>,
        /// KiB, in dialects B and C.
        block: Option<i64>,
        /// Whether the current workload reads it as activations.
        cur_wl_ifmap: Option<bool>,
        /// Who takes a result, in dialect C.
        destinations: Option<Vec<SentTo>>,
        /// Whether loading ends before this workload.
        end_loading: Option<bool>,
        /// Whether sending ends before this workload.
        end_sending: Option<bool>,
        /// Layer that reads or makes it, in dialects B and C.
        layer: Option<String>,
        /// Layer that reads or makes it, in dialect A; published files leave it out for `ifmap`.
        layer_name: Option<String>,
        /// First corner; in dialect A counted from the tensor's own.
        lower: Option<Coords>,
        /// Whether it comes in with this workload.
        newly_added: Option<bool>,
        /// The part of the result it serves, in dialect C.
        ofmap_range: Option<CornerRange>,
        /// Workload that wants it first, in dialect C.
        priority: Option<i64>,
        /// Bytes in dialect A, bits in the others.
        size: Option<i64>,
        /// What it consists of; SET writes `null` for a matrix product of activations.
        source: Option<Nullable<Vec<Source>>>,
        /// A misspelling of `start_sending` or `end_sending` in published files.
        start_ending: Option<bool>,
        /// Whether loading starts before this workload.
        start_loading: Option<bool>,
        /// Whether its store into DRAM starts with this workload.
        start_send: Option<bool>,
        /// Whether sending starts before this workload.
        start_sending: Option<bool>,
        /// Its id, unique on the core, in dialect A.
        tensor_id: Option<i64>,
        /// Place in the order of DRAM accesses, in dialect A; one past the last for tensors that
        /// stay on chip.
        tensor_order: Option<i64>,
        /// Transfers it consists of.
        transfer_id: Option<Ids>,
        /// What it is.
        "type" as kind: ResidentKind,
        /// Last corner.
        upper: Option<Coords>,
        /// Workload that reads or makes it, in dialects B and C.
        workload_id: Option<i64>,
    }

    /// A part of a tensor in the L2 buffer, that came by one transfer.
    pub struct Source {
        /// Where it lies in the concatenated channels, in dialects B and C.
        channel: Option<[i64; 2]>,
        /// Core it comes from, in dialect A; -1 is DRAM.
        core_id: Option<i64>,
        /// Core or DRAM ports it comes from, in dialects B and C.
        id: Option<Ids>,
        /// Layer that made it.
        layer_name: Option<String>,
        /// First corner; in dialect A counted from the tensor's own.
        lower: Option<Coords>,
        /// Bytes in dialect A, bits in the others.
        size: i64,
        /// Its transfer.
        transfer_id: i64,
        /// Where it comes from.
        "type" as kind: PlaceKind,
        /// Last corner.
        upper: Option<Coords>,
    }

    /// A part of a result and who takes it, in dialect C.
    pub struct SentTo {
        /// Who takes it.
        destination: Vec<Target>,
        /// First corner in the layer's result.
        lower: Coords,
        /// Bits.
        size: i64,
        /// Its transfer.
        transfer_id: i64,
        /// Last corner in the layer's result.
        upper: Coords,
    }

    /// Two corners.
    pub struct CornerRange {
        /// First corner.
        lower: Coords,
        /// Last corner.
        upper: Coords,
    }

    /// Weights in the WL0 buffer, in dialect A.
    pub struct Wl0Row {
        /// Where they start, in units of 64 bytes.
        address: i64,
        /// Input channels are padded to a multiple of this.
        align: i64,
        /// Bits of an element.
        bitwidth: i64,
        /// Layer that reads them.
        layer_name: String,
        /// First corner, for weights from DRAM.
        lower: Option<Coords>,
        /// Units of 64 bytes.
        size: i64,
        /// Where they come from.
        source: Wl0Source,
        /// Place in the order of DRAM accesses; `null` for weights from L2.
        tensor_order: Option<Nullable<i64>>,
        /// Their transfer.
        transfer_id: Ids,
        /// Last corner, for weights from DRAM.
        upper: Option<Coords>,
    }
}

impl Resident {
    /// The box it is, where it is told.
    pub fn extent(&self) -> Option<Extent> {
        Some(Extent { lower: self.lower?, upper: self.upper? })
    }

    /// What it consists of; empty for results made here.
    pub fn sources(&self) -> &[Source] {
        match &self.source {
            Some(Nullable(Some(sources))) => sources,
            _ => &[],
        }
    }

    /// Transfers it consists of.
    pub fn transfers(&self) -> impl Iterator<Item = i64> + use<'_> {
        self.transfer_id.iter().flat_map(Ids::iter)
    }

    /// The layer it belongs to, whichever key tells it.
    pub fn layer(&self) -> Option<&str> {
        self.layer_name.as_deref().or(self.layer.as_deref())
    }
}

impl Source {
    /// The box it is, where it is told.
    pub fn extent(&self) -> Option<Extent> {
        Some(Extent { lower: self.lower?, upper: self.upper? })
    }

    /// The core it comes from, when it comes from one that is named.
    pub fn core(&self) -> Option<i64> {
        let id = self.core_id.or_else(|| self.id.as_ref().and_then(Ids::first));
        id.filter(|_| self.kind == PlaceKind::Core)
    }
}
