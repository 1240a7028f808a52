//! Snapshots of the buffers of a core, taken before a workload starts.

use std::collections::HashSet;
use std::iter::Map;
use std::ops::Index;
use std::slice;
use std::sync::Arc;

use irc_json::{At, Json, Node, Reader};

use super::{Coords, Extent, Ids, PlaceKind, Target};
use crate::record::{Field, Nullable, names, record};

names! {
    /// The kind of a tensor in the L2 buffer.
    pub enum ResidentKind {
        /// An operand, read as activations.
        Ifmap = "ifmap",
        /// A result, to be sent.
        Ofmap = "ofmap",
        /// An operand, read as weights.
        Weight = "weight",
    }

    /// The source of a weight in WL0.
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
        /// Its address: a byte in dialect A, a block modulo the allocated height in dialect C.
        address: Option<i64>,
        /// Channels are padded to a multiple of this.
        align: Option<i64>,
        /// Bits per element.
        bitwidth: Option<i64>,
        /// KiB, in dialects B and C.
        block: Option<i64>,
        /// Whether the current workload reads it as activations.
        cur_wl_ifmap: Option<bool>,
        /// The users of a result, in dialect C.
        destinations: Option<Vec<SentTo>>,
        /// Whether loading ends before this workload.
        end_loading: Option<bool>,
        /// Whether sending ends before this workload.
        end_sending: Option<bool>,
        /// Layer that reads or computes it, in dialects B and C.
        layer: Option<String>,
        /// Layer that reads or computes it, in dialect A; published files omit it for `ifmap`.
        layer_name: Option<String>,
        /// First corner; in dialect A relative to the tensor's own.
        lower: Option<Coords>,
        /// Whether it enters the buffer with this workload.
        newly_added: Option<bool>,
        /// The part of the result that it serves, in dialect C.
        ofmap_range: Option<CornerRange>,
        /// Workload that uses it first, in dialect C.
        priority: Option<i64>,
        /// Bytes in dialect A, bits in the others.
        size: Option<i64>,
        /// Its sources; SET writes `null` for a matrix product of activations.
        source: Option<Nullable<Vec<Source>>>,
        /// A misspelling of `start_sending` or `end_sending` in published files.
        start_ending: Option<bool>,
        /// Whether loading starts before this workload.
        start_loading: Option<bool>,
        /// Whether its store to DRAM starts with this workload.
        start_send: Option<bool>,
        /// Whether sending starts before this workload.
        start_sending: Option<bool>,
        /// Its id, unique on the core, in dialect A.
        tensor_id: Option<i64>,
        /// Place in the order of DRAM accesses, in dialect A; one past the last for tensors that
        /// stay on chip.
        tensor_order: Option<i64>,
        /// Its transfers.
        transfer_id: Option<Ids>,
        /// Its kind.
        "type" as kind: ResidentKind,
        /// Last corner.
        upper: Option<Coords>,
        /// Workload that reads or computes it, in dialects B and C.
        workload_id: Option<i64>,
    }

    /// A part of a tensor in the L2 buffer that was brought by one transfer.
    pub struct Source {
        /// Its place in the concatenated channels, in dialects B and C.
        channel: Option<[i64; 2]>,
        /// Source core, in dialect A; -1 for DRAM.
        core_id: Option<i64>,
        /// Source core or DRAM ports, in dialects B and C.
        id: Option<Ids>,
        /// Layer of the producer.
        layer_name: Option<Arc<str>>,
        /// First corner; in dialect A relative to the tensor's own.
        lower: Option<Coords>,
        /// Bytes in dialect A, bits in the others.
        size: i64,
        /// Its transfer.
        transfer_id: i64,
        /// The kind of its source.
        "type" as kind: PlaceKind,
        /// Last corner.
        upper: Option<Coords>,
    }

    /// A part of a result and its users, in dialect C.
    pub struct SentTo {
        /// The users.
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
        /// Their address, in units of 64 bytes.
        address: i64,
        /// Input channels are padded to a multiple of this.
        align: i64,
        /// Bits per element.
        bitwidth: i64,
        /// Layer that reads them.
        layer_name: String,
        /// First corner, for weights from DRAM.
        lower: Option<Coords>,
        /// Units of 64 bytes.
        size: i64,
        /// Their source.
        source: Wl0Source,
        /// Place in the order of DRAM accesses; `null` for weights from L2.
        tensor_order: Option<Nullable<i64>>,
        /// Their transfer.
        transfer_id: Ids,
        /// Last corner, for weights from DRAM.
        upper: Option<Coords>,
    }
}

/// The tensors in the L2 buffer. Snapshots share those that stay from one to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Buffer(Vec<Arc<Resident>>);

/// The tensors of a buffer, in order.
pub type Residents<'b> = Map<slice::Iter<'b, Arc<Resident>>, fn(&'b Arc<Resident>) -> &'b Resident>;

impl Buffer {
    /// The tensors, in order.
    pub fn iter(&self) -> Residents<'_> {
        self.0.iter().map(|resident| resident)
    }

    /// The tensors, in order; those that snapshots share are copied.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Resident> {
        self.0.iter_mut().map(Arc::make_mut)
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a tensor.
    pub fn push(&mut self, resident: impl Into<Arc<Resident>>) {
        self.0.push(resident.into());
    }

    /// Keeps those tensors for which `is_kept` holds.
    pub fn retain(&mut self, is_kept: impl Fn(&Resident) -> bool) {
        self.0.retain(|resident| is_kept(resident));
    }

    /// Shares the tensors that are equal to those of snapshots before, which are in `known`, and adds the others to them.
    pub(crate) fn share(&mut self, known: &mut HashSet<Arc<Resident>>) {
        self.0.shrink_to_fit();
        for resident in &mut self.0 {
            match known.get(&*resident) {
                Some(same) => *resident = Arc::clone(same),
                None => drop(known.insert(Arc::clone(resident))),
            }
        }
    }
}

impl Index<usize> for Buffer {
    type Output = Resident;

    fn index(&self, index: usize) -> &Resident {
        &self.0[index]
    }
}

impl<'b> IntoIterator for &'b Buffer {
    type Item = &'b Resident;
    type IntoIter = Residents<'b>;

    fn into_iter(self) -> Residents<'b> {
        self.iter()
    }
}

impl FromIterator<Arc<Resident>> for Buffer {
    fn from_iter<I: IntoIterator<Item = Arc<Resident>>>(residents: I) -> Self {
        Self(residents.into_iter().collect())
    }
}

impl Field for Buffer {
    fn read(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<Self> {
        let residents: Vec<Resident> = Vec::read(reader, node, at)?;
        Some(residents.into_iter().map(Arc::new).collect())
    }

    fn write(&self) -> Option<Json> {
        Some(Json::Array(self.iter().filter_map(Field::write).collect()))
    }
}

impl Resident {
    /// Its box, if it is stated.
    pub fn extent(&self) -> Option<Extent> {
        Some(Extent { lower: self.lower?, upper: self.upper? })
    }

    /// Its sources; empty for results of this core.
    pub fn sources(&self) -> &[Source] {
        match &self.source {
            Some(Nullable(Some(sources))) => sources,
            _ => &[],
        }
    }

    /// Its transfers.
    pub fn transfers(&self) -> impl Iterator<Item = i64> + use<'_> {
        self.transfer_id.iter().flat_map(Ids::iter)
    }

    /// Its layer, from whichever key states it.
    pub fn layer(&self) -> Option<&str> {
        self.layer_name.as_deref().or(self.layer.as_deref())
    }
}

impl Source {
    /// Its box, if it is stated.
    pub fn extent(&self) -> Option<Extent> {
        Some(Extent { lower: self.lower?, upper: self.upper? })
    }

    /// The source core, if it is a core and is stated.
    pub fn core(&self) -> Option<i64> {
        let id = self.core_id.or_else(|| self.id.as_ref().and_then(Ids::first));
        id.filter(|_| self.kind == PlaceKind::Core)
    }
}

#[cfg(test)]
mod tests {
    use irc_diag::{Sink, Source};

    #[test]
    fn snapshots_share_what_stays() {
        let text = include_str!("../../tests/data/rings.json");
        let source = Source::new("rings.json", text);
        let read = super::super::parse(&source, &crate::Options::default(), &mut Sink::new());
        let workloads = &read.expect("a valid schedule").cores[0].workloads;
        let mut shared = 0;
        for pair in workloads.windows(2) {
            for (a, b) in
                pair[0].buffer.iter().flat_map(|a| pair[1].buffer.iter().map(move |b| (a, b)))
            {
                assert_eq!(a == b, std::ptr::eq(a, b));
                shared += usize::from(a == b);
            }
        }
        assert_ne!(shared, 0);
    }
}
