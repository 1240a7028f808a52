//! The distribution of a layer's operands and result over cores.

use crate::layer::Op;
use crate::mesh::Place;
use crate::network::Node;
use crate::partition::{Partition, Scheme};
use crate::shape::{Region, Span};

/// The parts of a layer's result.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Spans of each axis: channels, images, rows, columns.
    spans: [Vec<Span>; 4],
}

impl Parts {
    /// The parts of the result of `batch` images under a partition.
    pub fn new(node: &Node, partition: Partition, batch: u64) -> Self {
        Self { spans: partition.spans(node.layer.output, batch) }
    }

    /// The part at an index along each axis.
    pub fn part(&self, at: [usize; 4]) -> ScatteredPart {
        let [channels, images, rows, columns] =
            std::array::from_fn(|axis| self.spans[axis][at[axis]]);
        ScatteredPart { at, region: Region { channels, images, rows, columns } }
    }

    /// All parts, the last axis fastest.
    pub fn regions(&self) -> Vec<Region> {
        let [channels, images, rows, columns] = &self.spans;
        let mut regions = vec![];
        for &channels in channels {
            for &images in images {
                for &rows in rows {
                    let part = |&columns| Region { channels, images, rows, columns };
                    regions.extend(columns.iter().map(part));
                }
            }
        }
        regions
    }

    /// Calls `then` with the number and the region of each part that overlaps a region, disregarding
    /// images if `any_image`.
    pub fn meeting(&self, region: Region, any_image: bool, mut then: impl FnMut(usize, Region)) {
        let meet = |axis: usize, span: Span, any: bool| {
            let all = self.spans[axis].iter().copied().enumerate();
            all.filter(move |(_, part)| any || !part.overlap(span).is_empty())
        };
        let count = |axis: usize| self.spans[axis].len();
        for (k, channels) in meet(0, region.channels, false) {
            for (b, images) in meet(1, region.images, any_image) {
                for (h, rows) in meet(2, region.rows, false) {
                    let row = ((k * count(1) + b) * count(2) + h) * count(3);
                    for (w, columns) in meet(3, region.columns, false) {
                        then(row + w, Region { channels, images, rows, columns });
                    }
                }
            }
        }
    }
}

/// An operand: regions that are shared by several parts.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    /// A region, and the numbers of the parts that need it.
    pub regions: Vec<(Region, Vec<usize>)>,
    /// Number of such operands: those of an element-wise layer have the same extents.
    operands: u64,
}

impl Shares {
    /// The inputs of a layer's parts. In layers that need all channels, parts that differ in channels
    /// only share their regions.
    pub fn of_inputs(node: &Node, partition: Partition, parts: &[Region]) -> Self {
        let split = node.layer.splits_channels();
        let same = if split { parts.len() } else { parts.len() / partition.0[0] as usize };
        let needed = |first: usize| {
            let region = filled(parts[first], |part| node.input_region(part));
            (region, (first..parts.len()).step_by(same).collect())
        };
        let operands = if let Op::Eltwise { operands } = node.layer.op { operands } else { 1 };
        Self { regions: (0..same).map(needed).collect(), operands }
    }

    /// The weights of a layer's parts: one region for all parts that differ in rows, columns and, if
    /// the weights are constants, images. Empty for layers without weights.
    pub fn of_weights(node: &Node, partition: Partition, parts: &[Region]) -> Self {
        let [channels, images, ..] = partition.0;
        let made = node.has_made_weights();
        let regions = if made { channels * images } else { channels };
        let each = parts.len() / regions as usize;
        let needed = |block: usize| {
            let first = block * each;
            (weights_of(node, parts[first]), (first..first + each).collect())
        };
        match node.layer.weights() {
            Some(_) => Self { regions: (0..regions as usize).map(needed).collect(), operands: 1 },
            None => Self::default(),
        }
    }

    /// The inputs of parts that are in any order.
    ///
    /// As in Gemini's program, regions follow the order of the parts, but the cores that share a region are those that
    /// would if parts were in the order of channels.
    pub fn of_scattered_inputs(node: &Node, partition: Partition, parts: &[ScatteredPart]) -> Self {
        let operands = if let Op::Eltwise { operands } = node.layer.op { operands } else { 1 };
        let split = node.layer.splits_channels();
        let same = if split { parts.len() } else { parts.len() / partition.0[0] as usize };
        let first = parts.iter().filter(|part| split || part.at[0] == 0);
        let region = |(i, part): (usize, &ScatteredPart)| {
            let region = filled(part.region, |part| node.input_region(part));
            (region, (i..parts.len()).step_by(same).collect())
        };
        Self { regions: first.enumerate().map(region).collect(), operands }
    }

    /// The weights of parts that are in any order; as [`Shares::of_scattered_inputs`].
    pub fn of_scattered_weights(
        node: &Node,
        partition: Partition,
        parts: &[ScatteredPart],
    ) -> Self {
        let [_, images, rows, columns] = partition.0;
        let made = node.has_made_weights();
        let each = (rows * columns * if made { 1 } else { images }) as usize;
        let is_first = |part: &&ScatteredPart| part.at[2..] == [0, 0] && (made || part.at[1] == 0);
        let region = |(i, part): (usize, &ScatteredPart)| {
            (weights_of(node, part.region), (i * each..(i + 1) * each).collect())
        };
        match node.layer.weights() {
            Some(_) => {
                let regions = parts.iter().filter(is_first).enumerate().map(region).collect();
                Self { regions, operands: 1 }
            }
            None => Self::default(),
        }
    }

    /// Bytes that each part holds, of each region those that `held` states.
    pub fn each_held(&self, held: impl Fn(Region) -> u64) -> impl Iterator<Item = (usize, u64)> {
        self.regions.iter().filter(|(region, _)| region.volume() > 0).flat_map(
            move |(region, parts)| {
                let bytes = held(*region) * self.operands;
                parts.iter().map(move |part| (*part, bytes))
            },
        )
    }

    /// Bytes on all cores together.
    pub fn total(&self) -> u64 {
        let each = self.regions.iter().map(|(region, parts)| region.volume() * parts.len() as u64);
        each.sum::<u64>() * self.operands
    }

    /// Maximum number of bytes on a core.
    pub fn largest(&self) -> u64 {
        let each = self.regions.iter().map(|(region, _)| region.volume());
        each.max().unwrap_or(0) * self.operands
    }

    /// Bytes of some channels of the regions, each once.
    pub fn volume(&self, channels: Span) -> u64 {
        let each = self.regions.iter().map(|(region, _)| {
            Region { channels: region.channels.overlap(channels), ..*region }.volume()
        });
        each.sum()
    }

    /// Bytes that each part needs, by number.
    pub fn each(&self) -> impl Iterator<Item = (usize, u64)> {
        self.regions.iter().flat_map(|(region, parts)| {
            let bytes = region.volume() * self.operands;
            parts.iter().map(move |part| (*part, bytes))
        })
    }
}

/// A part at any place of a list of parts.
#[derive(Clone, Copy, Debug)]
pub struct ScatteredPart {
    /// Its index along channels, images, rows, columns.
    pub at: [usize; 4],
    /// Its region of the result.
    pub region: Region,
}

/// The weights that a part needs.
fn weights_of(node: &Node, part: Region) -> Region {
    filled(part, |part| {
        let images = if node.has_made_weights() { part.images } else { Span::upto(1) };
        Region { images, ..node.layer.weight_region(part).unwrap_or_default() }
    })
}

/// The region that a part needs; an empty part needs none.
fn filled(part: Region, needs: impl Fn(Region) -> Region) -> Region {
    if part.volume() == 0 { Region::default() } else { needs(part) }
}

/// The places of the parts of a layer's result.
#[derive(Clone, Debug)]
pub struct ProducedParts {
    /// The scheme.
    pub scheme: Scheme,
    /// The first core.
    pub first: u64,
    /// The parts.
    pub parts: Parts,
    /// The core of each part.
    pub places: Vec<Place>,
    /// Images of the result.
    pub batch: u64,
}
