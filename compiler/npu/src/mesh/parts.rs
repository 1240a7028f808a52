//! The parts of what a workload reads, and their origins.

use std::collections::{BTreeMap, HashSet};

use irc_gemini_format::schedule::{
    Coords, Dialect, Extent, LayerKind, Place, PlaceKind, Resident, ResidentKind, Schedule, Source,
    Transfers, Workload,
};

use crate::diagnostic::{Result, error};
use crate::tensors::{corner, lengths};

/// The operands of a workload.
pub struct Reads<'s> {
    /// First element `[N, C, H, W]` read as activations.
    pub first: [i64; 4],
    /// Its operands; activations that serve as weights come last.
    pub operands: Vec<Operand>,
    /// Parts of all operands.
    pub parts: Vec<Part<'s>>,
    /// Number of operands that are not weights.
    pub inputs: usize,
}

/// A tensor that a workload reads.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// Lengths `[N, C, H, W]`.
    pub size: [i64; 4],
    /// Channels after its own: where parts are not whole words, every pixel needs space for the padding
    /// of the last one.
    pub slack: i64,
}

/// A part of an operand that one transfer brings. There are millions of them in long schedules, so it is small.
#[derive(Clone, Copy, Debug)]
pub struct Part<'s> {
    /// Its operand.
    operand: u32,
    at: [i32; 4],
    lower: [i32; 4],
    upper: [i32; 4],
    /// Coordinates of its corners; 0 for scalars.
    rank: u8,
    /// Its origin.
    pub origin: Origin<'s>,
}

/// The origin of a part.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'s> {
    /// A workload that computes it.
    Workload {
        /// The producer: the index of its core, and its index there.
        producer: [u32; 2],
        /// Its transfer.
        transfer: i64,
    },
    /// DRAM, from which a transfer loads it.
    Dram(&'s Source),
    /// DRAM, for an operand of this layer whose origin the schedule omits.
    Outside(&'s str),
}

/// A tensor of activations in DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DramKey<'s> {
    /// The result of a layer, or an input of the network by its name.
    Result(&'s str),
    /// An operand of a layer whose origin the schedule omits, in the layer's own
    /// concatenated channels.
    Outside(&'s str),
}

impl<'s> Origin<'s> {
    /// The workload that computes it, and its transfer.
    pub fn produced(&self) -> Option<(Place, i64)> {
        match self {
            Self::Workload { producer: [core, index], transfer } => {
                Some(((*core as usize, *index as usize), *transfer))
            }
            Self::Dram(_) | Self::Outside(_) => None,
        }
    }

    /// The tensor in DRAM.
    pub fn stored(&self) -> Option<DramKey<'s>> {
        match self {
            Self::Workload { .. } => None,
            Self::Dram(source) => {
                Some(DramKey::Result(source.layer_name.as_deref().unwrap_or_default()))
            }
            Self::Outside(layer) => Some(DramKey::Outside(layer)),
        }
    }

    /// The transfer from DRAM, if there is one.
    pub fn load(&self) -> Option<i64> {
        match self {
            Self::Dram(source) => Some(source.transfer_id),
            Self::Workload { .. } | Self::Outside(_) => None,
        }
    }
}

/// Coordinates as 32-bit numbers. [Limits](crate::limits) are lower; what exceeds them nevertheless is in no operand.
fn narrow(coordinates: [i64; 4]) -> [i32; 4] {
    coordinates.map(|at| at.clamp(i32::MIN.into(), i32::MAX.into()) as i32)
}

/// A result that serves as weights.
#[derive(Clone, Debug)]
pub struct Piece<'s> {
    /// The layer that makes it.
    pub layer: &'s str,
    /// First and last output channel of the weights.
    pub channels: (i64, i64),
    /// The parts that its readers list, each transfer once.
    pub sources: Vec<&'s Source>,
}

impl<'s> Part<'s> {
    /// The part `extent` of the origin's tensor, absolute, from the element `at`, `[N, C, H, W]`, of an operand.
    pub fn new(operand: usize, at: [i64; 4], extent: &Extent, origin: Origin<'s>) -> Self {
        let rank = match extent.lower.is_plain() {
            true => 0,
            false => extent.lower.values().len() as u8,
        };
        let (lower, upper) = (narrow(corner(extent)), narrow(last(extent)));
        Self { operand: operand as u32, at: narrow(at), lower, upper, rank, origin }
    }

    /// Its operand.
    pub fn operand(&self) -> usize {
        self.operand as usize
    }

    /// First element in the operand's tensor, `[N, C, H, W]`.
    pub fn at(&self) -> [i64; 4] {
        self.at.map(i64::from)
    }

    /// The corresponding part of the origin's tensor, absolute.
    pub fn extent(&self) -> Extent {
        let corner = |at: [i32; 4]| match self.rank {
            0 => Coords::plain(at[0].into()),
            // At most four coordinates are always a corner.
            rank => Coords::list(&at.map(i64::from)[..usize::from(rank)]).unwrap_or([0; 4].into()),
        };
        Extent { lower: corner(self.lower), upper: corner(self.upper) }
    }

    /// Elements along `[N, C, H, W]`.
    pub fn lengths(&self) -> [i64; 4] {
        lengths(&self.extent())
    }

    /// Whether its channels are whole words of an operand of `channels` channels.
    pub fn is_of_words(&self, channels: i64) -> bool {
        let first = self.at()[1];
        let end = first + self.lengths()[1];
        first % WORD == 0 && (end % WORD == 0 || end == channels)
    }
}

/// The channels of a part including the padding that moves with them: whole words.
pub fn padded(channels: i64) -> i64 {
    (channels + WORD - 1) / WORD * WORD
}

/// Channels per word of L2, for elements of a byte.
pub const WORD: i64 = 8;

/// A schedule with indices to find the origins of parts.
pub struct Origins<'s> {
    /// The schedule.
    pub schedule: &'s Schedule,
    /// Producers and users of transfers.
    pub transfers: Transfers<'s>,
    /// Workloads of every layer, by id.
    pub by_layer: BTreeMap<&'s str, Vec<Place>>,
    /// Workloads whose result goes to DRAM, and by which transfer.
    pub stored: BTreeMap<Place, i64>,
    /// Layers that read activations as weights, and their pieces.
    pub pieces: BTreeMap<&'s str, Vec<Piece<'s>>>,
}

impl<'s> Origins<'s> {
    /// Indexes a schedule.
    pub fn new(schedule: &'s Schedule) -> Result<Self> {
        let mut all = Self {
            schedule,
            transfers: Transfers::new(schedule),
            by_layer: BTreeMap::new(),
            stored: BTreeMap::new(),
            pieces: BTreeMap::new(),
        };
        for (core, index, workload) in schedule.workloads() {
            all.by_layer.entry(&workload.layer_name).or_default().push((core, index));
        }
        for places in all.by_layer.values_mut() {
            places.sort_by_key(|(core, index)| schedule.cores[*core].workloads[*index].workload_id);
        }
        for block in schedule.dram.iter().flat_map(|group| &group.ins) {
            let producer = all.transfers.producer(block.transfer_id);
            all.stored.extend(producer.map(|producer| (producer, block.transfer_id)));
        }
        all.pieces = all.find_pieces()?;
        Ok(all)
    }

    /// The workload at a place.
    pub fn workload(&self, (core, index): Place) -> &'s Workload {
        &self.schedule.cores[core].workloads[index]
    }

    /// The operands of a workload.
    pub fn reads(&self, place: Place) -> Result<Reads<'s>> {
        let path = self.schedule.workload_path(place);
        let inputs = self.inputs(place)?;
        let count = inputs.taken.iter().map(|taken| taken.part.operand() + 1).max().unwrap_or(0);
        let mut sizes = vec![lengths(&inputs.whole); count];
        let mut parts: Vec<Part> = inputs.taken.into_iter().map(|taken| taken.part).collect();
        if let Some((size, weights)) = self.weights(place, count)? {
            sizes.push(size);
            parts.extend(weights);
        }
        // Collected in the place of what has been taken, which is larger.
        parts.shrink_to_fit();
        for part in &parts {
            fits(part, sizes[part.operand()], &path)?;
        }
        let operand = |(operand, size): (usize, &[i64; 4])| {
            let own = parts.iter().filter(|part| part.operand() == operand);
            let slack = slack(size[1], own.clone());
            covered(size, own, &path).map(|()| Operand { size: *size, slack })
        };
        let mut operands = sizes.iter().enumerate().map(operand).collect::<Result<Vec<_>>>()?;
        // Vector operations have one layout for all operands.
        let slack = operands[..count].iter().map(|operand| operand.slack).max().unwrap_or(0);
        operands[..count].iter_mut().for_each(|operand| operand.slack = slack);
        Ok(Reads { first: corner(&inputs.whole), operands, parts, inputs: count })
    }

    /// The box that a workload reads as activations. Files written by hand state it only in the
    /// buffer.
    pub fn whole(&self, place: Place) -> Option<Extent> {
        let workload = self.workload(place);
        let stated = workload.ifmaps().first().map(|ifmap| ifmap.extent());
        stated.or_else(|| own_inputs(workload).next()?.extent())
    }

    /// Parts of what a workload reads as activations.
    ///
    /// Channels of parts count through all operands one after another, but in elementwise layers they
    /// start at 0 for every operand: there a part that overlaps another belongs to the next operand.
    fn inputs(&self, place: Place) -> Result<Inputs<'s>> {
        let workload = self.workload(place);
        let path = self.schedule.workload_path(place);
        let nothing = || error("emit-input", &path, "the workload reads nothing");
        let whole = self.whole(place).ok_or_else(nothing)?;
        let mut all = Inputs { whole, taken: vec![] };
        // Dialect C repeats tensors, including each of their parts.
        let mut tensors = HashSet::new();
        for resident in own_inputs(workload).filter(|each| tensors.insert(each.sources())) {
            let mut sources = HashSet::new();
            for source in resident.sources().iter().filter(|source| sources.insert(*source)) {
                let taken = self.input(place, source, &all)?;
                all.taken.push(taken);
            }
        }
        if all.taken.is_empty() {
            let message = "what the workload reads is not in its buffer";
            return Err(error("emit-input", &path, message));
        }
        all.taken.extend(self.outside(place, &all));
        Ok(all)
    }

    /// A part of what is read as activations.
    fn input(&self, place: Place, source: &'s Source, all: &Inputs<'s>) -> Result<InputPart<'s>> {
        let workload = self.workload(place);
        let path = self.schedule.workload_path(place);
        let transfer = source.transfer_id;
        let truth = || match source.kind {
            PlaceKind::Dram => self.transfers.dram_out(transfer).map(|block| block.extent()),
            PlaceKind::Core => self.transfers.extent(transfer),
        };
        let unknown = || error("emit-input", &path, "a part of what is read has no place");
        let extent = source.extent().or_else(truth).ok_or_else(unknown)?;
        let (mut lower, mut upper) = (corner(&extent), last(&extent));
        if let Some([low, high]) = source.channel {
            (lower[1], upper[1]) = (low, high);
        }
        let (taken, layer) = (Extent::new(lower, upper), source.layer_name.as_deref());
        let operand = match workload.layer_type {
            Some(LayerKind::ElementWise) => all.operand(layer, &taken),
            _ => 0,
        };
        let at = all.place(&taken);
        let part = Part::new(operand, at, &extent, self.origin(place, source)?);
        Ok(InputPart { part, extent: taken, layer })
    }

    /// The origin of a source.
    pub fn origin(&self, place: Place, source: &'s Source) -> Result<Origin<'s>> {
        let transfer = source.transfer_id;
        if source.kind == PlaceKind::Dram {
            return Ok(Origin::Dram(source));
        }
        let path = self.schedule.workload_path(place);
        let missing =
            || error("emit-input", &path, format!("no workload makes transfer {transfer}"));
        let producer = self.transfers.producer(transfer).ok_or_else(missing)?;
        let producer = [producer.0 as u32, producer.1 as u32];
        Ok(Origin::Workload { producer, transfer })
    }

    /// The workloads that have to store a part first.
    pub fn storers(&self, origin: &Origin<'_>) -> impl Iterator<Item = Place> {
        let loaded = origin.load();
        loaded.into_iter().flat_map(|transfer| self.transfers.storers(transfer))
    }

    /// Operands without an origin: inputs of the network that SET's main branch omits
    /// from layers that read something else as well. They are the last channels, or the second operand
    /// of an elementwise layer.
    fn outside(&self, place: Place, all: &Inputs<'s>) -> Option<InputPart<'s>> {
        let workload = self.workload(place);
        let boxes = || all.taken.iter().map(|taken| taken.extent);
        let brought = boxes().map(|each| each.volume()).fold(0, i64::saturating_add);
        let whole = all.whole;
        let (operand, extent) = match workload.layer_type {
            Some(LayerKind::ElementWise) => {
                let is_one = all.taken.iter().all(|taken| taken.part.operand() == 0);
                let lacks = self.schedule.dialect == Dialect::B && is_one;
                (1, (lacks && brought == whole.volume()).then_some(whole)?)
            }
            _ => {
                let hull = boxes().reduce(|a, b| a.joined(&b))?;
                let (end, channels) = (hull.axis(1).1, whole.axis(1).1);
                let begin = Extent::new(corner(&whole), with_channel(last(&whole), end));
                let is_begin = hull == begin && brought == hull.volume() && end < channels;
                let rest = Extent::new(with_channel(corner(&whole), end + 1), last(&whole));
                (0, is_begin.then_some(rest)?)
            }
        };
        let origin = Origin::Outside(&workload.layer_name);
        let part = Part::new(operand, all.place(&extent), &extent, origin);
        Some(InputPart { part, extent, layer: None })
    }
}

/// Tensors of the buffer that a workload reads as activations.
fn own_inputs(workload: &Workload) -> impl Iterator<Item = &Resident> {
    workload.buffer.iter().filter(|resident| {
        resident.kind == ResidentKind::Ifmap && resident.workload_id == Some(workload.workload_id)
    })
}

/// Part of what a workload reads as activations.
struct Inputs<'s> {
    whole: Extent,
    taken: Vec<InputPart<'s>>,
}

/// A part, its box in the operands' channels, and its layer.
struct InputPart<'s> {
    part: Part<'s>,
    extent: Extent,
    layer: Option<&'s str>,
}

impl Inputs<'_> {
    /// First element of a box relative to the first that is read.
    fn place(&self, extent: &Extent) -> [i64; 4] {
        let (at, first) = (corner(extent), corner(&self.whole));
        [0, 1, 2, 3].map(|axis| at[axis] - first[axis])
    }

    /// The operand of an elementwise layer that a box belongs to: that of its layer, or the first in
    /// which the box is free.
    fn operand(&self, layer: Option<&str>, extent: &Extent) -> usize {
        let is_free = |operand: &usize| {
            let mut own = self.taken.iter().filter(|taken| taken.part.operand() == *operand);
            !own.any(|taken| taken.extent.overlaps(extent))
        };
        let known = self.taken.iter().find(|taken| taken.layer == layer);
        let known = known.map(|taken| taken.part.operand()).filter(is_free);
        known.or_else(|| (0..).find(is_free)).unwrap_or(0)
    }
}

fn with_channel([n, _, h, w]: [i64; 4], channel: i64) -> [i64; 4] {
    [n, channel, h, w]
}

fn last(extent: &Extent) -> [i64; 4] {
    [0, 1, 2, 3].map(|axis| extent.axis(axis).1)
}

/// Whether a part is within its operand.
fn fits(part: &Part<'_>, sizes: [i64; 4], path: &str) -> Result<()> {
    let (at, size) = (part.at(), part.lengths());
    if (0..4).any(|axis| at[axis] < 0 || at[axis] + size[axis] > sizes[axis]) {
        let message = format!("{} exceeds what the workload reads", part.extent());
        return Err(error("emit-input", path, message));
    }
    Ok(())
}

/// Whether parts cover an operand completely.
fn covered<'p>(
    size: &[i64; 4],
    parts: impl Iterator<Item = &'p Part<'p>>,
    path: &str,
) -> Result<()> {
    let wanted: i64 = size.iter().product();
    let brought = parts.map(|part| part.extent().volume()).fold(0, i64::saturating_add);
    if brought < wanted {
        let message =
            format!("only {brought} of the {wanted} elements that are read have an origin");
        return Err(error("emit-input", path, message));
    }
    Ok(())
}

fn slack<'p>(channels: i64, mut parts: impl Iterator<Item = &'p Part<'p>>) -> i64 {
    let has_odd = parts.any(|part| !part.is_of_words(channels));
    if has_odd { padded(channels) - channels + WORD } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::Reader;

    /// Schedules of 256 cores have millions of parts: each is one of a workload, and one of its producer.
    #[test]
    fn a_part_takes_few_bytes() {
        assert!(size_of::<Part<'_>>() <= 80, "{} bytes", size_of::<Part<'_>>());
        assert!(size_of::<Reader>() <= 16, "{} bytes", size_of::<Reader>());
    }

    #[test]
    fn a_part_keeps_its_corners() {
        let corner = |values: &[i64]| Coords::list(values).expect("at most four coordinates");
        for (lower, upper) in [
            (Coords::plain(3), Coords::plain(7)),
            (corner(&[1, 2, 3]), corner(&[1, 4, 3])),
            (corner(&[0, 8, 5, 6]), corner(&[1 << 20, 9, 5, 7])),
        ] {
            let part = Part::new(1, [0, 8, 0, 2], &Extent { lower, upper }, Origin::Outside("a"));
            assert_eq!((part.extent(), part.at()), (Extent { lower, upper }, [0, 8, 0, 2]));
        }
    }
}
