//! Lower bounds of the energy and the delay of segments, whatever their trees.

use std::ops::Range;

use irc_npu_cost::{Array, Machine, Network, Node, Op};

/// What a segment costs at least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LowerBound {
    /// pJ.
    pub energy: f64,
    /// Cycles.
    pub latency: u64,
}

/// The lower bounds of the segments of a network.
pub struct Bounds<'a> {
    network: &'a Network,
    machine: &'a Machine,
    /// Images of the whole schedule.
    batch: u64,
    /// The last layer that reads each layer; the layer itself if none does.
    last_readers: Vec<usize>,
}

impl<'a> Bounds<'a> {
    /// The bounds for schedules of a batch.
    pub fn new(network: &'a Network, machine: &'a Machine, batch: u64) -> Self {
        let mut last_readers: Vec<usize> = (0..network.nodes().len()).collect();
        for (layer, node) in network.nodes().iter().enumerate() {
            node.reads().for_each(|made| last_readers[made] = layer);
        }
        Self { network, machine, batch, last_readers }
    }

    /// What a segment of consecutive layers costs at least, for `images` at a time.
    ///
    /// All cores compute all the time, and DRAM provides weights once for the whole batch, results of
    /// other segments once, and takes results that others read. Energies are those of computing, of
    /// reading the results from the global buffers, and of DRAM.
    pub fn of(&self, layers: Range<usize>, images: u64) -> LowerBound {
        let (network, machine) = (self.network, self.machine);
        let (mut energy, mut work, mut bytes) = (0.0, 0.0, 0);
        // The layers whose results are read from DRAM.
        let mut loaded: Vec<usize> = vec![];
        for layer in layers.clone() {
            let node = &network.nodes()[layer];
            let operations = (node.layer.operations() * images) as f64;
            let results = node.layer.output.volume() * images;
            match node.layer.weights() {
                Some(weights) => {
                    work += operations / machine.array.macs() as f64;
                    energy += operations * mac(machine);
                    if !node.has_made_weights() {
                        // Each run loads a share that is rounded down.
                        bytes += (weights.volume() * images / self.batch).saturating_sub(images);
                    }
                }
                None => {
                    work += operations / machine.vector.width as f64;
                    energy += operations * machine.vector.energy;
                }
            }
            energy += results as f64 * machine.buffer.read;
            bytes += node.external * area(node) * images;
            for made in node.reads().filter(|made| !layers.contains(made)) {
                if !loaded.contains(&made) {
                    bytes += read(network, node, made) * images;
                    loaded.push(made);
                }
            }
            if !node.is_read || self.last_readers[layer] >= layers.end {
                bytes += results;
            }
        }
        energy += bytes as f64 * machine.dram;
        let cores = machine.mesh.cores() as f64;
        // Rounding of sums of many terms must not raise the bound.
        let computing = (work / cores * (1.0 - 1e-9)) as u64;
        LowerBound {
            energy: energy * (1.0 - 1e-9),
            latency: computing.max(bytes / machine.dram_bandwidth),
        }
    }
}

fn mac(machine: &Machine) -> f64 {
    match machine.array {
        Array::Polar(core) => core.mac,
        Array::Eyeriss(core) => core.mac,
    }
}

/// Rows and columns of the input that are read whatever the partition.
fn area(node: &Node) -> u64 {
    if let Op::Transpose { .. } = node.layer.op {
        return node.input.rows * node.input.columns;
    }
    let window = node.layer.window();
    let output = [node.layer.output.rows, node.layer.output.columns];
    let input = [node.input.rows, node.input.columns];
    let along = |axis: usize| match window.kernel[axis] >= window.stride[axis] {
        true => input[axis],
        false => input[axis].min(output[axis] * window.kernel[axis]),
    };
    along(0) * along(1)
}

/// Elements of a result that a layer reads, as input or weights.
fn read(network: &Network, node: &Node, made: usize) -> u64 {
    let output = network.nodes()[made].layer.output;
    match node.inputs.contains(&made) {
        true => output.channels * area(node).min(output.rows * output.columns),
        false => output.volume(),
    }
}
