//! Transfers: blocks of DRAM, and parts of results that go from core to core.

use irc_gemini_format::schedule::{
    Coords, DramGroup, DramIn, DramOut, Extent, Ids, Ofmap, PlaceKind, Target,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The id of DRAM.
pub const DRAM: i64 = 0;

/// A box as a key.
type Corners = (Vec<i64>, Vec<i64>);

fn corners(extent: &Extent) -> Corners {
    (extent.lower.values().to_vec(), extent.upper.values().to_vec())
}

/// What a block of DRAM is a part of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stored {
    /// The weights of a layer, loaded once in each segment.
    Weights(usize),
    /// A tensor, by name.
    Tensor(String),
}

/// All transfers of a schedule.
#[derive(Default)]
pub struct AllTransfers {
    next: i64,
    outs: Vec<DramOut>,
    ins: Vec<DramIn>,
    /// Blocks that are loaded: by what they are, the layer that reads them, and corners.
    known_outs: BTreeMap<(Stored, usize, Corners), usize>,
    /// Blocks that are stored, by the workload that computes them, and by their transfer.
    known_ins: BTreeMap<i64, usize>,
    ins_by_id: BTreeMap<i64, usize>,
    /// Parts of results, by the workload that computes them.
    sent: BTreeMap<i64, Vec<Ofmap>>,
    known_sent: HashMap<(i64, Extent), usize>,
}

/// A workload that reads something.
#[derive(Clone, Debug)]
pub struct Reader {
    /// Its id.
    pub workload: i64,
    /// The id of its core.
    pub core: i64,
    /// Its layer, by index and name.
    pub layer: (usize, Arc<str>),
}

impl Reader {
    fn target(&self, layer_name: Option<Arc<str>>) -> Target {
        Target {
            core_id: None,
            id: Some(Ids::Plain(self.core)),
            layer_name,
            kind: PlaceKind::Core,
            workload_id: Some(self.workload),
            extra: Default::default(),
        }
    }
}

fn bits(extent: &Extent) -> i64 {
    8 * extent.volume()
}

impl AllTransfers {
    fn id(&mut self) -> i64 {
        self.next += 1;
        self.next - 1
    }

    /// The transfer by which a workload loads a block of DRAM. `bytes` is its size if its corners do not state
    /// it, `stored` are the blocks that it consists of.
    pub fn load(
        &mut self,
        what: Stored,
        extent: Extent,
        bytes: Option<i64>,
        stored: &[i64],
        reader: &Reader,
    ) -> i64 {
        let is_weight = matches!(what, Stored::Weights(_));
        let key = (what, reader.layer.0, corners(&extent));
        if let Some(known) = self.known_outs.get(&key) {
            let block = &mut self.outs[*known];
            // Weights stay in the buffer: only the first workload of a core loads them.
            let same_core = |target: &Target| target.id == Some(Ids::Plain(reader.core));
            if !is_weight || !block.destination.iter().any(same_core) {
                block.destination.push(reader.target(None));
            }
            return block.transfer_id;
        }
        let transfer_id = self.id();
        self.known_outs.insert(key, self.outs.len());
        for id in stored {
            if let Some(block) = self.ins_by_id.get(id) {
                self.ins[*block].related_ofmap.get_or_insert_default().push(transfer_id);
            }
        }
        self.outs.push(DramOut {
            destination: vec![reader.target(None)],
            layer_name: Some(reader.layer.1.to_string()),
            lower: extent.lower,
            upper: extent.upper,
            priority: None,
            related_ifmap: Some(stored.to_vec()),
            size: bytes.map_or_else(|| bits(&extent), |bytes| 8 * bytes),
            transfer_id,
            kind: if is_weight { "weight".into() } else { "fmap".into() },
            extra: Default::default(),
        });
        transfer_id
    }

    /// The transfer by which a workload stores its result, at the workload `workload` of a core.
    pub fn store(&mut self, workload: i64, core: i64, layer: &str, extent: Extent) -> i64 {
        let transfer_id = self.id();
        self.known_ins.insert(workload, self.ins.len());
        self.ins_by_id.insert(transfer_id, self.ins.len());
        self.ins.push(DramIn {
            core_id: core,
            layer_name: Some(layer.to_owned()),
            lower: Some(extent.lower),
            upper: Some(extent.upper),
            related_ofmap: Some(vec![]),
            transfer_id,
            kind: None,
            workload_id: workload,
            extra: Default::default(),
        });
        let target = Target {
            core_id: None,
            id: Some(Ids::Plain(DRAM)),
            layer_name: None,
            kind: PlaceKind::Dram,
            workload_id: None,
            extra: Default::default(),
        };
        self.add_sent(workload, part_of(extent, target, transfer_id));
        transfer_id
    }

    /// The block that a workload has stored.
    pub fn stored(&self, workload: i64) -> Option<i64> {
        self.known_ins.get(&workload).map(|block| self.ins[*block].transfer_id)
    }

    /// The transfer of a part of the result of a workload to another; that of the same part to all readers.
    pub fn send(&mut self, workload: i64, extent: Extent, reader: &Reader) -> i64 {
        let target = reader.target(Some(reader.layer.1.clone()));
        let key = (workload, extent);
        let known = self.known_sent.get(&key).copied();
        let known = known.and_then(|known| self.sent.get_mut(&workload)?.get_mut(known));
        if let Some(part) = known {
            if !part.destination.contains(&target) {
                part.destination.push(target);
            }
            return part.transfer_id;
        }
        let transfer_id = self.id();
        let number = self.add_sent(workload, part_of(extent, target, transfer_id));
        self.known_sent.insert(key, number);
        transfer_id
    }

    /// Adds what a workload sends; returns its number.
    fn add_sent(&mut self, workload: i64, part: Ofmap) -> usize {
        let all = self.sent.entry(workload).or_default();
        all.push(part);
        all.len() - 1
    }

    /// What a workload sends.
    pub fn take_sent(&mut self, workload: i64) -> Vec<Ofmap> {
        let mut all = self.sent.remove(&workload).unwrap_or_default();
        all.iter_mut().for_each(|part| part.destination.shrink_to_fit());
        all.shrink_to_fit();
        all
    }

    /// All blocks of DRAM.
    pub fn into_dram(self) -> DramGroup {
        DramGroup { id: DRAM, ins: self.ins, outs: self.outs, extra: Default::default() }
    }
}

/// A part of a result that is sent to a target.
fn part_of(extent: Extent, target: Target, transfer_id: i64) -> Ofmap {
    Ofmap {
        destination: vec![target],
        size: bits(&extent),
        lower: extent.lower,
        upper: extent.upper,
        transfer_id,
        extra: Default::default(),
    }
}

/// Corners of a scalar range.
pub fn range(from: u64, to: u64) -> Extent {
    Extent { lower: Coords::plain(from as i64), upper: Coords::plain(to as i64 - 1) }
}
