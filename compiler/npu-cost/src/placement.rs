//! Placements as Gemini encodes them: a core for each part of a layer, and DRAM for each operand.

use crate::diagnostic::{Result, error};
use crate::layer::{Layer, Op};
use crate::layout::{Parts, ScatteredPart};
use crate::machine::{Machine, Package};
use crate::partition::{Partition, Scheme};
use crate::shape::Region;
use crate::traffic::Dram;
use irc_diag::counted;

/// The placement of a layer (Gemini, "layer-centric spatial mapping").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Parts of each axis.
    pub partition: Partition,
    /// The core of each part, in the order of images, channels, rows, columns.
    pub cores: Vec<u64>,
    /// The DRAM of inputs from outside the network, of weights, and of the result, as far as they are in DRAM.
    pub drams: [Option<Dram>; 3],
    /// The pieces in which a core computes its part, if its buffer does not hold the operands of all.
    pub pieces: Option<Pieces>,
}

/// The pieces of a core's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Pieces along channels, images, rows, columns.
    pub parts: Partition,
    /// How often weights are fetched.
    pub fetches: u64,
}

/// Axes in Gemini's order of parts: images, channels, rows, columns.
const ORDER: [usize; 4] = [1, 0, 2, 3];

impl Placement {
    /// Validates the placement for a machine.
    ///
    /// # Errors
    /// `cost-placement` if the parts are not on so many different cores of the mesh, or a controller does not exist.
    pub fn check(&self, machine: &Machine) -> Result<()> {
        let wrong = |message: String| Err(error("cost-placement", message));
        let mut sorted = self.cores.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return wrong(format!("core {} has two parts", twice[0]));
        }
        let (parts, count) = (self.partition.parts(), sorted.len() as u64);
        if parts != count {
            let (parts, cores) = (counted(parts, "part"), counted(count, "core"));
            return wrong(format!("the partition has {parts} for {cores}"));
        }
        if let Some(core) = sorted.last().filter(|core| **core >= machine.mesh.cores()) {
            return wrong(format!("there is no core {core}"));
        }
        for dram in self.drams.into_iter().flatten() {
            match dram {
                Dram::Controller(number) if number >= Package::CONTROLLERS => {
                    return wrong(format!("there is no DRAM controller {number}"));
                }
                _ => {}
            }
        }
        let counts = self.pieces.map_or([1; 4], |pieces| pieces.parts.0);
        let fetches = self.pieces.map_or(1, |pieces| pieces.fetches);
        match counts.into_iter().chain([fetches]).all(|count| (1..=1 << 20).contains(&count)) {
            true => Ok(()),
            false => wrong("expected 1 to 1048576 pieces".into()),
        }
    }

    /// The partition, with its axes in the order of the parts.
    pub fn scheme(&self) -> Scheme {
        Scheme { partition: self.partition, order: ORDER }
    }

    /// Parts with their cores, in the order of cores.
    pub(crate) fn scattered(&self, parts: &Parts) -> Vec<(u64, ScatteredPart)> {
        let [channels, _, rows, columns] = self.partition.0.map(|count| count as usize);
        let part = |number: usize| {
            let (row, column) = (number / columns, number % columns);
            let (plane, row) = (row / rows, row % rows);
            parts.part([plane % channels, plane / channels, row, column])
        };
        let all = self.cores.iter().enumerate();
        let mut all: Vec<_> = all.map(|(number, core)| (*core, part(number))).collect();
        all.sort_unstable_by_key(|(core, _)| *core);
        all
    }

    /// The core of each part, in the order of channels, images, rows, columns.
    pub(crate) fn cores_by_channel(&self) -> impl Iterator<Item = u64> {
        let [channels, images, rows, columns] = self.partition.0.map(|count| count as usize);
        let plane = rows * columns;
        let first = move |channel: usize, image: usize| (image * channels + channel) * plane;
        let all = (0..channels)
            .flat_map(move |channel| (0..images).map(move |image| first(channel, image)));
        all.flat_map(move |first| self.cores[first..first + plane].iter().copied())
    }

    /// Parses the words after the scheme: cores, the DRAM of inputs, weights and result, and possibly pieces.
    ///
    /// # Errors
    /// `cost-tree-scheme`, without a span.
    pub(crate) fn parse(partition: Partition, words: &[&str]) -> Result<Self> {
        let wrong = || {
            let message = "expected cores such as 3,0,1, and for inputs, weights and result - (not in DRAM), * (all \
                controllers) or a number, then possibly pieces such as 1,2,1,1,1";
            error("cost-tree-scheme", message)
        };
        let numbers = |text: &str| -> Result<Vec<u64>> {
            text.split(',').map(|number| number.parse().map_err(|_| wrong())).collect()
        };
        let dram = |text: &str| match text {
            "-" => Ok(None),
            "*" => Ok(Some(Dram::Interleaved)),
            number => {
                number.parse().map(|number| Some(Dram::Controller(number))).map_err(|_| wrong())
            }
        };
        let [cores, inputs, weights, result, rest @ ..] = words else { return Err(wrong()) };
        let pieces = match rest {
            [] => None,
            [pieces] => {
                let [images, channels, rows, columns, fetches] = numbers(pieces)?[..] else {
                    return Err(wrong());
                };
                Some(Pieces { parts: Partition([channels, images, rows, columns]), fetches })
            }
            _ => return Err(wrong()),
        };
        let drams = [dram(inputs)?, dram(weights)?, dram(result)?];
        Ok(Self { partition, cores: numbers(cores)?, drams, pieces })
    }
}

impl std::fmt::Display for Placement {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cores: Vec<String> = self.cores.iter().map(u64::to_string).collect();
        write!(out, "{} {}", self.scheme(), cores.join(","))?;
        for dram in self.drams {
            match dram {
                None => write!(out, " -")?,
                Some(Dram::Interleaved) => write!(out, " *")?,
                Some(Dram::Controller(number)) => write!(out, " {number}")?,
            }
        }
        let Some(Pieces { parts: Partition([channels, images, rows, columns]), fetches }) =
            self.pieces
        else {
            return Ok(());
        };
        write!(out, " {images},{channels},{rows},{columns},{fetches}")
    }
}

impl Pieces {
    /// All of a part at once.
    pub(crate) const WHOLE: Self = Self { parts: Partition([1; 4]), fetches: 1 };

    /// Number of pieces.
    pub(crate) fn count(self) -> u64 {
        self.parts.parts()
    }

    /// The extents of a piece of a part.
    pub(crate) fn of(self, part: [u64; 4]) -> [u64; 4] {
        std::array::from_fn(|axis| part[axis].div_ceil(self.parts.0[axis]))
    }

    /// Bytes of a region of the input that a core holds at a time.
    pub(crate) fn input(self, layer: &Layer, region: Region) -> u64 {
        let [filters, images, rows, columns] = self.parts.0;
        if !matches!(layer.op, Op::Conv { .. } | Op::GroupedConv { .. }) {
            return Region { channels: region.channels, ..region }.volume() / region.channels.len()
                * region.channels.len().div_ceil(filters);
        }
        let window = layer.window();
        let along = |axis: usize, extent: u64, pieces: u64| {
            let (kernel, stride) = (window.kernel[axis], window.stride[axis]);
            if pieces == 1 {
                return extent;
            }
            // The results of the region, in pieces.
            let reach = (extent + stride).saturating_sub(kernel);
            (reach.div_ceil(stride * pieces) * stride + kernel).saturating_sub(stride)
        };
        let channels = match layer.op {
            Op::GroupedConv { channels, groups, .. } if filters > 1 => channels / groups,
            _ => region.channels.len(),
        };
        let (rows, columns) =
            (along(0, region.rows.len(), rows), along(1, region.columns.len(), columns));
        region.images.len().div_ceil(images) * channels * rows * columns
    }

    /// Bytes of a region of the weights that a core holds at a time.
    pub(crate) fn weights(self, region: Region) -> u64 {
        let [filters, images, ..] = self.parts.0;
        let each = region.rows.len() * region.columns.len();
        region.images.len().div_ceil(images) * region.channels.len().div_ceil(filters) * each
    }
}
