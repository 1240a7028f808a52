//! The machine, with the source of every number.
//!
//! All numbers are those of the published configuration of SET-ISCA2023 (`main.cpp`, `init_core`), whose
//! core is that of the authors' test chip. Times are in cycles, sizes in bytes, energies in pJ, bandwidths
//! in bytes per cycle: at 1 GHz, a byte per cycle is 1 GB/s. The published energies of memories are per
//! bit; here they are per byte.

use crate::diagnostic::{Result, error};
use crate::mesh::Mesh;

/// Bits per element.
const BITS: f64 = 8.0;

// Above these limits, counts might not fit into 63 bits (see `network.rs`).

/// Maximum number of cores of a mesh.
const MAX_CORES: u64 = 1 << 8;
/// Maximum bytes of a memory, and bytes per cycle.
const MAX_BYTES: u64 = 1 << 27;
/// Maximum number of units along an axis of a core.
const MAX_UNITS: u64 = 1 << 8;

/// A memory of a core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// Size in bytes.
    pub size: u64,
    /// pJ to read a byte.
    pub read: f64,
    /// pJ to write a byte.
    pub write: f64,
}

impl Memory {
    /// A memory of `size` bytes, with pJ to read and write a bit.
    const fn new(size: u64, read: f64, write: f64) -> Self {
        Self { size, read: read * BITS, write: write * BITS }
    }
}

/// The core of the authors' chip: a grid of processing elements, of lanes, of multipliers.
///
/// A lane computes one output channel; its multipliers take as many input channels at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Polar {
    /// Rows and columns of processing elements.
    pub grid: [u64; 2],
    /// Lanes per processing element.
    pub lanes: u64,
    /// Multipliers per lane.
    pub vector: u64,
    /// pJ per multiply-accumulate.
    pub mac: f64,
    /// pJ per byte passed from one processing element to another.
    pub hop: f64,
    /// Bytes per cycle between processing elements.
    pub bus: u64,
    /// Input memory of a processing element.
    pub inputs: Memory,
    /// Weight memory of a lane group.
    pub weights: Memory,
    /// Partial sums of a processing element.
    pub sums: Memory,
    /// Memory for sums of all processing elements, before they leave the core.
    pub outputs: Memory,
    /// Bytes per cycle from the global buffer, and from a second level of weights.
    pub buffer_bandwidth: u64,
}

/// A core in the style of Eyeriss: an array of processing elements, each of which holds a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Eyeriss {
    /// Columns and rows of processing elements.
    pub array: [u64; 2],
    /// pJ per multiply-accumulate.
    pub mac: f64,
    /// pJ per byte on a bus.
    pub hop: f64,
    /// Bytes per cycle of each bus, for inputs, weights and sums.
    pub bus: u64,
    /// Input memory of a processing element.
    pub inputs: Memory,
    /// Weight memory of a processing element.
    pub weights: Memory,
    /// pJ per access to a partial sum in its processing element.
    pub sum: f64,
}

/// The multipliers of a core and their memories.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Array {
    /// The authors' core.
    Polar(Polar),
    /// A core in the style of Eyeriss.
    Eyeriss(Eyeriss),
}

impl Array {
    /// Multiply-accumulates per cycle.
    pub fn macs(&self) -> u64 {
        match self {
            Self::Polar(core) => core.grid[0] * core.grid[1] * core.lanes * core.vector,
            Self::Eyeriss(core) => core.array[0] * core.array[1],
        }
    }
}

/// Units for layers without weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VectorUnit {
    /// Operations per cycle.
    pub width: u64,
    /// pJ per operation.
    pub energy: f64,
}

/// A mesh of equal cores with DRAM at its edges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Where the cores are.
    pub mesh: Mesh,
    /// The multipliers of a core.
    pub array: Array,
    /// The units of a core for all other operations.
    pub vector: VectorUnit,
    /// The global buffer of a core.
    pub buffer: Memory,
    /// Bytes of the global buffer reserved for a layer's output, which leaves in tiles.
    pub output_tile: u64,
    /// Bytes per cycle of a link of the network on chip.
    pub link_bandwidth: u64,
    /// Bytes per cycle of all DRAM ports together.
    pub dram_bandwidth: u64,
    /// pJ per byte on a link.
    pub hop: f64,
    /// pJ per byte from or to DRAM.
    pub dram: f64,
    /// Minimum utilisation of cores when a cut divides them among its children.
    pub least_shared: f64,
    /// Minimum share of the cores' work that is not padding when a layer is partitioned.
    pub least_even: f64,
    /// Whether every run of a segment loads its constant weights again, as schedules do. SET's program counts them once
    /// for all images.
    pub reloads: bool,
}

impl Machine {
    /// The published machine with its own cores: 1024 multiply-accumulates and 1 MiB each.
    ///
    /// DRAM provides 0.5 GB/s per TOPS, counting a multiply-accumulate as two operations.
    pub fn polar(mesh: Mesh) -> Self {
        let core = Polar {
            grid: [4, 4],
            lanes: 8,
            vector: 8,
            mac: 0.018,
            hop: 0.018,
            bus: 16,
            inputs: Memory::new(8 << 10, 0.0485625, 0.0411625),
            weights: Memory::new(4 << 10, 0.0381625, 0.0308875),
            sums: Memory::new(2 << 10, 0.0802, 0.0709),
            outputs: Memory::new(28 << 10, 0.07648125, 0.0989875),
            buffer_bandwidth: 256,
        };
        Self::with(mesh, Array::Polar(core))
    }

    /// The published machine with cores in the style of Eyeriss: 32 by 32, and 1 MiB each.
    pub fn eyeriss(mesh: Mesh) -> Self {
        let core = Eyeriss {
            array: [32, 32],
            mac: 0.018,
            hop: 0.018,
            bus: 64,
            inputs: Memory::new(32, 0.0509, 0.0506),
            weights: Memory::new(128, 0.0545, 0.054),
            sum: 0.0,
        };
        Self::with(mesh, Array::Eyeriss(core))
    }

    fn with(mesh: Mesh, array: Array) -> Self {
        // Not `Mesh::cores`: the mesh has not been checked.
        let cores = mesh.width as f64 * mesh.height as f64;
        let tops = 2.0 * array.macs() as f64 * cores / 1024.0;
        Self {
            mesh,
            array,
            vector: VectorUnit { width: 64, energy: 0.0873 },
            buffer: Memory::new(1 << 20, 0.1317125, 0.234025),
            output_tile: 10 << 10,
            link_bandwidth: 24,
            dram_bandwidth: (0.5 * tops) as u64,
            hop: 0.7 * BITS,
            dram: 7.5 * BITS,
            least_shared: 0.75,
            least_even: 0.75,
            reloads: false,
        }
    }

    /// Validates the parameters.
    ///
    /// # Errors
    /// `cost-machine`: no cores or too many, a stripe that does not divide the width, or an invalid size,
    /// bandwidth or energy.
    pub fn check(&self) -> Result<()> {
        let Mesh { width, height, stride } = self.mesh;
        let is_few =
            width.checked_mul(height).is_some_and(|cores| (1..=MAX_CORES).contains(&cores));
        if !is_few {
            return reject(format!("expected a mesh of 1 to {MAX_CORES} cores"));
        }
        if stride == 0 || width % stride != 0 {
            return reject("expected a stride that divides the width of the mesh");
        }
        if !self.units().iter().all(|count| (1..=MAX_UNITS).contains(count)) {
            return reject(format!("expected 1 to {MAX_UNITS} units along each axis of a core"));
        }
        let (counts, energies) = self.numbers();
        if !counts.iter().all(|count| (1..=MAX_BYTES).contains(count)) {
            return reject(format!("expected sizes and bandwidths of 1 to {MAX_BYTES} bytes"));
        }
        let shares = [self.least_shared, self.least_even];
        match energies.iter().chain(&shares).all(|number| (0.0..1e9).contains(number)) {
            true => Ok(()),
            false => reject("expected finite energies and shares that are not negative"),
        }
    }

    fn units(&self) -> Vec<u64> {
        match self.array {
            Array::Polar(core) => {
                vec![core.grid[0], core.grid[1], core.lanes, core.vector, self.vector.width]
            }
            Array::Eyeriss(core) => vec![core.array[0], core.array[1], self.vector.width],
        }
    }

    /// Sizes and bandwidths, and energies.
    fn numbers(&self) -> (Vec<u64>, Vec<f64>) {
        let mut counts = vec![self.link_bandwidth, self.dram_bandwidth];
        let mut energies = vec![self.vector.energy, self.hop, self.dram];
        let mut memories = vec![self.buffer];
        match self.array {
            Array::Polar(core) => {
                counts.extend([core.bus, core.buffer_bandwidth]);
                energies.extend([core.mac, core.hop]);
                memories.extend([core.inputs, core.weights, core.sums, core.outputs]);
            }
            Array::Eyeriss(core) => {
                counts.push(core.bus);
                energies.extend([core.mac, core.hop, core.sum]);
                memories.extend([core.inputs, core.weights]);
            }
        }
        counts.push(self.output_tile);
        counts.extend(memories.iter().map(|memory| memory.size));
        energies.extend(memories.iter().flat_map(|memory| [memory.read, memory.write]));
        (counts, energies)
    }
}

fn reject(message: impl Into<String>) -> Result<()> {
    Err(error("cost-machine", message))
}
