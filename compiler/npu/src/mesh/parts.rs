//! What a workload reads, part by part, and who makes it.

use std::collections::BTreeMap;

use irc_gemini_format::schedule::{
    Extent, LayerKind, PlaceKind, Resident, ResidentKind, Schedule, Source, Workload,
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

impl Part {
    /// Whether its channels are whole words of an operand of so many.
    pub fn is_of_words(&self, channels: i64) -> bool {
        let end = self.at[1] + lengths(&self.extent)[1];
        self.at[1] % WORD == 0 && (end % WORD == 0 || end == channels)
    }
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
    let is_own = |resident: &&Resident| {
        resident.kind == ResidentKind::Ifmap && resident.workload_id == Some(workload.workload_id)
    };
    let mut all: Vec<(Part, Extent)> = vec![];
    let residents: Vec<&Resident> = workload.buffer.iter().filter(is_own).collect();
    for (count, resident) in residents.iter().enumerate() {
        // Dialect C repeats tensors, down to each of their parts.
        if residents[..count].iter().any(|other| other.source == resident.source) {
            continue;
        }
        for (place, source) in resident.sources().iter().enumerate() {
            if resident.sources()[..place].contains(source) {
                continue;
            }
            let part = part(workload, source, first, &all, path)?;
            all.push(part);
        }
    }
    if all.is_empty() {
        return Err(fault("emit-input", path, "what the workload reads is not in its buffer"));
    }
    let operands = all.iter().map(|(part, _)| part.operand + 1).max().unwrap_or(0);
    let sizes = lengths(&whole);
    for (part, _) in &all {
        fits(part, sizes, path)?;
    }
    for operand in 0..operands {
        let own = all.iter().filter(|(part, _)| part.operand == operand);
        let brought: i64 = own.map(|(part, _)| part.extent.volume()).sum();
        if brought < whole.volume() {
            let wanted = whole.volume();
            let message =
                format!("of {wanted} elements that are read, {brought} come from anywhere");
            return Err(fault("emit-input", path, message));
        }
    }
    Ok((all.into_iter().map(|(part, _)| part).collect(), operands))
}

/// Whether a part is within its operand.
fn fits(part: &Part, sizes: [i64; 4], path: &str) -> Found<()> {
    let size = lengths(&part.extent);
    if (0..4).any(|axis| part.at[axis] < 0 || part.at[axis] + size[axis] > sizes[axis]) {
        let message = format!("transfer {} brings more than the workload reads", part.transfer);
        return Err(fault("emit-input", path, message));
    }
    Ok(())
}

/// Channels of a part with the padding that moves with them: whole words.
pub fn padded(channels: i64) -> i64 {
    (channels + WORD - 1) / WORD * WORD
}

/// Channels of a word of L2, of elements of a byte.
pub const WORD: i64 = 8;

/// A part, and the box it takes in the operands' channels.
fn part(
    workload: &Workload,
    source: &Source,
    first: [i64; 4],
    all: &[(Part, Extent)],
    path: &str,
) -> Found<(Part, Extent)> {
    let (Some(extent), Some([low, high])) = (source.extent(), source.channel) else {
        return Err(fault("emit-input", path, "a part of what is read has no place"));
    };
    let (mut lower, mut upper) = (corner(&extent), last(&extent));
    (lower[1], upper[1]) = (low, high);
    let taken = Extent::new(lower, upper);
    let layer = source.layer_name.clone().unwrap_or_default();
    let operand = match workload.layer_type {
        Some(LayerKind::ElementWise) => {
            let known = all.iter().find(|(part, _)| part.layer == layer);
            let is_free = |operand: &usize| {
                !all.iter().any(|(part, other)| part.operand == *operand && other.overlaps(&taken))
            };
            let known = known.map(|(part, _)| part.operand);
            known.or_else(|| (0..).find(is_free)).unwrap_or(0)
        }
        _ => 0,
    };
    let part = Part {
        transfer: source.transfer_id,
        operand,
        at: [0, 1, 2, 3].map(|axis| lower[axis] - first[axis]),
        extent,
        layer,
        is_dram: source.kind == PlaceKind::Dram,
    };
    Ok((part, taken))
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
        let mut all =
            Self { sent: BTreeMap::new(), stored: BTreeMap::new(), is_stored: BTreeMap::new() };
        let mut by_id = BTreeMap::new();
        for (core, index, workload) in schedule.workloads() {
            by_id.insert(workload.workload_id, (core, index));
            for part in workload.ofmaps() {
                all.sent.insert(part.transfer_id, (core, index));
            }
            // Dialect C lists what is sent beside the wrong workload at times: the maker is the one of
            // the core whose part it is.
            let results = workload.buffer.iter();
            let results = results.filter(|resident| resident.kind == ResidentKind::Ofmap);
            for resident in results {
                for sent in resident.destinations.iter().flatten() {
                    let extent = Extent { lower: sent.lower, upper: sent.upper };
                    let is_maker = |other: &Workload| {
                        Some(other.layer_name.as_str()) == resident.layer()
                            && other.extent.contains(&extent)
                    };
                    let own = &schedule.cores[core].workloads;
                    if let Some(maker) = own.iter().position(is_maker) {
                        all.sent.entry(sent.transfer_id).or_insert((core, maker));
                    }
                }
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
