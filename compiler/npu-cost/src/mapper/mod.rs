//! The mapping of a layer's part to a core.

mod eyeriss;
mod polar;

use crate::layer::{Layer, Op};
use crate::machine::{Array, Machine};
use crate::network::Node;
use crate::objective::Objective;
use crate::partition::Partition;

/// A convolution on one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Conv {
    /// Input channels per group.
    channels: i64,
    /// Output channels per group.
    filters: i64,
    /// Rows and columns of the window.
    kernel: [i64; 2],
    /// Strides of rows and columns.
    stride: [i64; 2],
    /// Rows of the result.
    rows: i64,
    /// Columns of the result.
    columns: i64,
    /// Images.
    images: i64,
    /// Groups, which run in turn; if each image has its own weights, images as well.
    groups: i64,
}

impl Conv {
    /// Multiply-accumulates per group.
    fn macs(&self) -> i64 {
        self.filter() * self.rows * self.columns * self.images
    }

    /// Weights per group.
    fn filter(&self) -> i64 {
        self.channels * self.filters * self.kernel[0] * self.kernel[1]
    }

    /// Results per group.
    fn results(&self) -> i64 {
        self.filters * self.rows * self.columns * self.images
    }
}

/// Energy and time of one core for its part of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mapping {
    /// Total energy in pJ.
    pub energy: f64,
    /// Cycles.
    pub time: u64,
    /// pJ of the global buffer.
    pub global: f64,
    /// pJ of the smaller memories.
    pub local: f64,
    /// pJ of moving data between processing elements.
    pub bus: f64,
    /// pJ of computing.
    pub compute: f64,
}

impl Mapping {
    /// The mapping repeated `times`, which takes `turns` times as long.
    pub(crate) fn repeated(self, times: i64, turns: i64) -> Self {
        let by = times as f64;
        Self {
            energy: self.energy * by,
            time: self.time * turns as u64,
            global: self.global * by,
            local: self.local * by,
            bus: self.bus * by,
            compute: self.compute * by,
        }
    }
}

/// The best mapping; the first of equal ones.
struct BestMapping {
    objective: Objective,
    value: f64,
    mapping: Option<Mapping>,
}

impl BestMapping {
    fn new(objective: Objective) -> Self {
        Self { objective, value: f64::INFINITY, mapping: None }
    }

    fn offer(&mut self, mapping: Mapping) {
        let value = self.objective.of(mapping.energy, mapping.time);
        if value < self.value {
            self.value = value;
            self.mapping = Some(mapping);
        }
    }
}

/// The best mapping of the largest part of a layer; `None` if the core's memories hold no tile.
pub fn map(
    node: &Node,
    partition: Partition,
    batch: u64,
    machine: &Machine,
    objective: Objective,
) -> Option<Mapping> {
    map_part(node, partition.largest(node.layer.output, batch), machine, objective)
}

/// The best mapping of a part with these extents: channels, images, rows, columns.
pub fn map_part(
    node: &Node,
    extents: [u64; 4],
    machine: &Machine,
    objective: Objective,
) -> Option<Mapping> {
    match conv(node, extents) {
        None => Some(vector(&node.layer, extents, machine)),
        Some(work) => match &machine.array {
            Array::Polar(core) => polar::map(&work, core, machine.buffer, objective),
            Array::Eyeriss(core) => eyeriss::map(&work, core, machine.buffer, objective),
        },
    }
}

/// Cycles of one core for one image, by which cores are divided ("normalised processing time").
pub fn unit_time(layer: &Layer, machine: &Machine) -> f64 {
    match (&layer.op, &machine.array) {
        (Op::Conv { .. } | Op::GroupedConv { .. }, Array::Polar(core)) => {
            polar::padded_macs(layer, core) / machine.array.macs() as f64
        }
        (Op::Conv { .. } | Op::GroupedConv { .. }, Array::Eyeriss(_)) => {
            layer.operations() as f64 / machine.array.macs() as f64
        }
        _ => layer.operations() as f64 / machine.vector.width as f64,
    }
}

/// A part of a layer as a convolution; `None` for layers of vector units.
fn conv(node: &Node, [filters, images, rows, columns]: [u64; 4]) -> Option<Conv> {
    let layer = &node.layer;
    let (channels, of_group) = match layer.op {
        Op::Conv { channels, .. } => (channels, None),
        Op::GroupedConv { channels, groups, .. } => {
            (channels / groups, Some(layer.output.channels / groups))
        }
        _ => return None,
    };
    let groups = of_group.map_or(1, |size| filters.div_ceil(size));
    let window = layer.window();
    let signed = |pair: [u64; 2]| pair.map(|number| number as i64);
    let made = node.has_made_weights();
    Some(Conv {
        channels: channels as i64,
        filters: of_group.filter(|_| groups > 1).unwrap_or(filters) as i64,
        kernel: signed(window.kernel),
        stride: signed(window.stride),
        rows: rows as i64,
        columns: columns as i64,
        images: if made { 1 } else { images as i64 },
        groups: if made { groups * images } else { groups } as i64,
    })
}

/// A layer on vector units: an operation for each element of each window.
fn vector(
    layer: &Layer,
    [channels, images, rows, columns]: [u64; 4],
    machine: &Machine,
) -> Mapping {
    let each = layer.operations() / layer.output.volume();
    let operations = channels * images * rows * columns * each;
    let energy = operations as f64 * machine.vector.energy;
    let time = operations.div_ceil(machine.vector.width);
    Mapping { energy, time, compute: energy, ..Mapping::default() }
}
