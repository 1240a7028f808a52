//! The machine, with the source of every number.
//!
//! All are the published configuration of SET-ISCA2023 (`main.cpp`, `init_core`), whose core is that
//! of the authors' test chip. Times are cycles, sizes bytes, energies pJ, bandwidths bytes a cycle: at
//! 1 GHz, a byte a cycle is 1 GB/s. The published energies of memories are for a bit; here they are
//! for a byte.

use crate::diagnostic::{Result, fault};
use crate::mesh::Mesh;

/// Bits of an element.
const BITS: f64 = 8.0;

// Beyond these, counts might not fit into 63 bits (see `network.rs`).

/// Cores of a mesh.
const MAX_CORES: u64 = 1 << 8;
/// Bytes of a memory, and bytes a cycle.
const MAX_BYTES: u64 = 1 << 27;
/// Units along an axis of a core.
const MAX_UNITS: u64 = 1 << 8;

/// A memory of a core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// Bytes.
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
/// A lane makes one output channel; its multipliers take as many input channels at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Polar {
    /// Rows and columns of processing elements.
    pub grid: [u64; 2],
    /// Lanes of a processing element.
    pub lanes: u64,
    /// Multipliers of a lane.
    pub vector: u64,
    /// pJ of a multiply-accumulate.
    pub mac: f64,
    /// pJ to pass a byte from one processing element to another.
    pub hop: f64,
    /// Bytes a cycle between processing elements.
    pub bus: u64,
    /// Input memory of a processing element.
    pub inputs: Memory,
    /// Weight memory of a lane group.
    pub weights: Memory,
    /// Partial sums of a processing element.
    pub sums: Memory,
    /// Sums of all processing elements, on their way out.
    pub outputs: Memory,
    /// Bytes a cycle from the global buffer, and from a second level of weights.
    pub buffer_bandwidth: u64,
}

/// A core in the way of Eyeriss: an array of processing elements that each keep a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Eyeriss {
    /// Columns and rows of processing elements.
    pub array: [u64; 2],
    /// pJ of a multiply-accumulate.
    pub mac: f64,
    /// pJ to bring a byte over a bus.
    pub hop: f64,
    /// Bytes a cycle of each of the buses, for inputs, weights and sums.
    pub bus: u64,
    /// Input memory of a processing element.
    pub inputs: Memory,
    /// Weight memory of a processing element.
    pub weights: Memory,
    /// pJ to read or write a partial sum where it is made.
    pub sum: f64,
}

/// Multipliers of a core, with what feeds them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Array {
    /// The authors' core.
    Polar(Polar),
    /// One in the way of Eyeriss.
    Eyeriss(Eyeriss),
}

impl Array {
    /// Multiply-accumulates a cycle.
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
    /// Operations a cycle.
    pub width: u64,
    /// pJ of an operation.
    pub energy: f64,
}

/// A mesh of equal cores with DRAM at its edges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Where the cores are.
    pub mesh: Mesh,
    /// What a core multiplies with.
    pub array: Array,
    /// What a core does everything else with.
    pub vector: VectorUnit,
    /// The global buffer of a core.
    pub buffer: Memory,
    /// Bytes of the global buffer that a layer takes for its output, which leaves in tiles.
    pub output_tile: u64,
    /// Bytes a cycle of a link of the network on chip.
    pub link_bandwidth: u64,
    /// Bytes a cycle of all DRAM ports together.
    pub dram_bandwidth: u64,
    /// pJ to bring a byte over a link.
    pub hop: f64,
    /// pJ to bring a byte from or to DRAM.
    pub dram: f64,
    /// Share of the time that cores must be busy when a cut shares them out.
    pub least_shared: f64,
    /// Share of the cores' work that must not be padding when a layer is cut for them.
    pub least_even: f64,
}

impl Machine {
    /// The published machine with its own cores: 1024 multiply-accumulates and 1 MiB each.
    ///
    /// DRAM brings 0.5 GB/s for each TOPS, a multiply-accumulate being two operations.
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

    /// The published machine with cores in the way of Eyeriss: 32 by 32, and 1 MiB each.
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
        }
    }

    /// Whether the machine can be counted with.
    ///
    /// # Errors
    /// `cost-machine`: no cores or too many, a stripe that does not divide the width, or a size,
    /// bandwidth or energy that is none.
    pub fn check(&self) -> Result<()> {
        let Mesh { width, height, stride } = self.mesh;
        let is_few =
            width.checked_mul(height).is_some_and(|cores| (1..=MAX_CORES).contains(&cores));
        if !is_few {
            return refuse(format!("a mesh has from 1 to {MAX_CORES} cores"));
        }
        if stride == 0 || width % stride != 0 {
            return refuse("the stride of a mesh divides its width");
        }
        if !self.units().iter().all(|count| (1..=MAX_UNITS).contains(count)) {
            return refuse(format!("a core has from 1 to {MAX_UNITS} units along an axis"));
        }
        let (counts, energies) = self.numbers();
        if !counts.iter().all(|count| (1..=MAX_BYTES).contains(count)) {
            return refuse(format!("sizes and bandwidths are from 1 to {MAX_BYTES} bytes"));
        }
        let shares = [self.least_shared, self.least_even];
        match energies.iter().chain(&shares).all(|number| (0.0..1e9).contains(number)) {
            true => Ok(()),
            false => refuse("energies and shares are finite and not negative"),
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

    /// Bytes and bytes a cycle, and energies.
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

fn refuse(message: impl Into<String>) -> Result<()> {
    Err(fault("cost-machine", message))
}
