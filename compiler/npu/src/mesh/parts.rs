//! What a workload reads, part by part, and who makes it.

use std::collections::BTreeMap;

use irc_gemini_format::schedule::{
    Extent, LayerKind, PlaceKind, ResidentKind, Schedule, Workload,
};

use crate::finding::{Found, fault};
use crate::tensors::{corner, lengths};

/// Place of a workload: of its core, of itself there.
pub type Place = (usize, usize);

/// A part of an operand that comes by one transfer.
#[derive(Clone, Debug)]
pub struct Part {
    /// The transfer.
    pub transfer: i64,
    /// The operand it is of.
    pub operand: usize,
    /// First element in the operand's tensor, `[N, C, H, W]`.
    pub at: [i64; 4],
    /// What it is of the tensor it comes from, absolute.
    pub extent: Extent,
    /// Layer that makes it; an input of the network has a name too.
    pub layer: String,
    /// Whether it comes from DRAM.
    pub is_dram: bool,
}

/// The parts of all operands of a workload, and how many operands there are.
///
/// Channels of parts are those of all operands one after the other, but elementwise layers have
/// those of every operand from 0 on: there a part that another covers is of the next operand.
pub fn parts(workload: &Workload, path: &str) -> Found<(Vec<Part>, usize)> {
    let Some(ifmap) = workload.ifmaps().first() else {
        return Err(fault("emit-input", path, "the workload reads nothing"));
    };
    let whole = ifmap.extent();
    let first = corner(&whole);
    let is_own = |resident: &&irc_gemini_format::schedule::Resident| {
        resident.kind == ResidentKind::Ifmap && resident.workload_id == Some(workload.workload_id)
    };
    let mut all: Vec<(Part, Extent)> = vec![];
    for source in workload.buffer.iter().filter(is_own).flat_map(|resident| resident.sources()) {
        let (Some(extent), Some([low, high])) = (source.extent(), source.channel) else {
            return Err(fault("emit-input", path, "a part of what is read has no place"));
        };
        let (mut lower, mut upper) = (corner(&extent), last(&extent));
        (lower[1], upper[1]) = (low, high);
        let taken = Extent::new(lower, upper);
        let is_free = |operand: &usize| {
            !all.iter().any(|(part, other)| part.operand == *operand && other.overlaps(&taken))
        };
        let operand = match workload.layer_type {
            Some(LayerKind::ElementWise) => (0..).find(is_free).unwrap_or(0),
            _ => 0,
        };
        let part = Part {
            transfer: source.transfer_id,
            operand,
            at: [0, 1, 2, 3].map(|axis| lower[axis] - first[axis]),
            extent,
            layer: source.layer_name.clone().unwrap_or_default(),
            is_dram: source.kind == PlaceKind::Dram,
        };
        all.push((part, taken));
    }
    if all.is_empty() {
        return Err(fault("emit-input", path, "what the workload reads is not in its buffer"));
    }
    let operands = all.iter().map(|(part, _)| part.operand + 1).max().unwrap_or(0);
    let sizes = lengths(&whole);
    let outside = all.iter().find(|(part, _)| {
        let size = lengths(&part.extent);
        (0..4).any(|axis| part.at[axis] < 0 || part.at[axis] + size[axis] > sizes[axis])
    });
    if let Some((part, _)) = outside {
        let message = format!("transfer {} brings more than the workload reads", part.transfer);
        return Err(fault("emit-input", path, message));
    }
    Ok((all.into_iter().map(|(part, _)| part).collect(), operands))
}

fn last(extent: &Extent) -> [i64; 4] {
    [0, 1, 2, 3].map(|axis| extent.axis(axis).1)
}

/// Who makes what, by transfer.
pub struct Makers {
    /// The maker of a transfer between cores.
    pub sent: BTreeMap<i64, Place>,
    /// The makers of what DRAM gives out.
    pub stored: BTreeMap<i64, Vec<Place>>,
    /// Whether a workload's result goes to DRAM.
    pub is_stored: BTreeMap<Place, bool>,
}

impl Makers {
    /// Looks through a schedule.
    pub fn new(schedule: &Schedule) -> Self {
        let mut all = Self {
            sent: BTreeMap::new(),
            stored: BTreeMap::new(),
            is_stored: BTreeMap::new(),
        };
        let mut by_id = BTreeMap::new();
        for (core, index, workload) in schedule.workloads() {
            by_id.insert(workload.workload_id, (core, index));
            for part in workload.ofmaps() {
                all.sent.insert(part.transfer_id, (core, index));
            }
            let own = workload.buffer.iter().filter(|resident| {
                resident.kind == ResidentKind::Ofmap
                    && resident.workload_id == Some(workload.workload_id)
            });
            for sent in own.flat_map(|resident| resident.destinations.iter().flatten()) {
                all.sent.insert(sent.transfer_id, (core, index));
            }
        }
        let ins = schedule.dram.iter().flat_map(|group| &group.ins);
        let mut maker_of = BTreeMap::new();
        for block in ins {
            if let Some(place) = by_id.get(&block.workload_id) {
                maker_of.insert(block.transfer_id, *place);
                all.is_stored.insert(*place, true);
            }
        }
        for block in schedule.dram.iter().flat_map(|group| &group.outs) {
            let related = block.related_ifmap.iter().flatten();
            let makers = related.filter_map(|transfer| maker_of.get(transfer).copied());
            all.stored.entry(block.transfer_id).or_default().extend(makers);
        }
        all
    }
}
