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
/// Energy of a memory in Gemini's model, in relation to the published figures.
const SWITCHING: f64 = 0.3 / 0.5;
/// Bytes of the buffer to which Gemini's energies of buffers refer.
const MEBIBYTE: f64 = 1048576.0;

// Above these limits, counts might not fit into 63 bits (see `network.rs`).

/// Maximum number of cores of a mesh.
pub const MAX_CORES: u64 = 1 << 8;
/// Maximum bytes of a memory, and bytes per cycle.
pub const MAX_BYTES: u64 = 1 << 27;
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

/// The dies of a package: a grid of dies that divides the mesh, and dies beside it with the controllers of DRAM, to which
/// the links at the left and the right edge lead (Gemini, Cai et al., HPCA 2024).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Package {
    /// Columns and rows of dies; divisors of those of cores. A single die has its controllers on itself.
    pub dies: [u64; 2],
    /// Bytes per cycle of a link between dies.
    pub link_bandwidth: u64,
    /// pJ per byte on a link between dies.
    pub hop: f64,
    /// pJ per unit of delay of all transceivers between dies, whatever they carry.
    pub idle: u64,
    /// Clock in GHz: the delay is in ns.
    pub clock: f64,
}

impl Package {
    /// Number of DRAM controllers: at the upper and the lower half of the left edge, and of the right edge. Each has an
    /// equal part of the bandwidth.
    pub const CONTROLLERS: u64 = 4;

    /// Whether there is one die.
    pub fn is_single(&self) -> bool {
        self.dies == [1, 1]
    }
}

/// A machine of Gemini's experiments: cores of 1024 multiply-accumulates on dies, in a package with GDDR6X or HBM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chiplets {
    /// Where the cores are.
    pub mesh: Mesh,
    /// Columns and rows of dies.
    pub dies: [u64; 2],
    /// Bytes of the global buffer of a core.
    pub buffer: u64,
    /// Bytes per cycle of DRAM; the published program drops what is not divisible by four.
    pub dram: u64,
    /// Bytes per cycle of a link of the network on chip.
    pub link: u64,
    /// Bytes per cycle of a link between dies.
    pub die_link: u64,
    /// The kind of links between dies.
    pub interface: Interface,
    /// The kind of DRAM.
    pub memory: DramKind,
    /// Whether the process is 7 nm, with a clock of 1.3 GHz, instead of 12 nm and 1 GHz.
    pub is_7nm: bool,
}

/// A kind of links between dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Transceivers that take power all the time.
    Xsr,
    /// Transceivers in a substrate.
    Usr,
    /// UCIe in an organic substrate.
    UcieSubstrate,
    /// UCIe in a redistribution layer.
    UcieFanOut,
    /// UCIe on an interposer of silicon.
    UcieInterposer,
}

impl Interface {
    /// The kind with a name: `xsr`, `usr`, `ucie-substrate`, `ucie-fan-out`, `ucie-interposer`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "xsr" => Self::Xsr,
            "usr" => Self::Usr,
            "ucie-substrate" => Self::UcieSubstrate,
            "ucie-fan-out" => Self::UcieFanOut,
            "ucie-interposer" => Self::UcieInterposer,
            _ => return None,
        })
    }
}

impl DramKind {
    /// The kind with a name: `gddr6x`, `hbm`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "gddr6x" => Some(Self::Gddr6x),
            "hbm" => Some(Self::Hbm),
            _ => None,
        }
    }
}

/// A kind of DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DramKind {
    /// Graphics memory.
    Gddr6x,
    /// High-bandwidth memory.
    Hbm,
}

impl Chiplets {
    /// Cores in 12 nm on these dies, with GDDR6X, links of 32 bytes per cycle, and USR of 16.
    pub fn new(mesh: Mesh, dies: [u64; 2], buffer: u64, dram: u64) -> Self {
        let (interface, memory) = (Interface::Usr, DramKind::Gddr6x);
        Self { mesh, dies, buffer, dram, link: 32, die_link: 16, interface, memory, is_7nm: false }
    }

    /// The machine (GEMINI-HPCA2024, `main.cpp`).
    pub fn machine(&self) -> Machine {
        let power = if self.is_7nm { 0.7 } else { 1.0 };
        // Three tenths of the bits of a memory change, where the published figures of memories assume a half.
        let scaled = |energy: f64| energy * BITS * SWITCHING * power;
        let memory = |size, read, write| Memory { size, read: scaled(read), write: scaled(write) };
        let of_buffer =
            |energy: f64| energy * BITS * self.buffer as f64 / MEBIBYTE * SWITCHING * power;
        let core = Polar {
            grid: [4, 4],
            lanes: 8,
            vector: 8,
            mac: 0.018,
            hop: 0.018,
            bus: 64,
            inputs: memory(8 << 10, 0.0740875 + 0.1 * 8.0 / 8.0, 0.0722625),
            weights: memory(4 << 10, 0.0703625, 0.0626625),
            sums: memory(2 << 10, 0.06025625, 0.06025625),
            outputs: Memory {
                size: 28 << 10,
                read: of_buffer(0.07648125),
                write: of_buffer(0.0989875),
            },
            buffer_bandwidth: 256,
        };
        let clock = if self.is_7nm { 1.3 } else { 1.0 };
        let (hop, idle) = self.between();
        let base = Machine::with(self.mesh, Array::Polar(core));
        Machine {
            vector: VectorUnit { energy: base.vector.energy * power, ..base.vector },
            buffer: Memory {
                size: self.buffer,
                read: of_buffer(0.217125),
                write: of_buffer(0.234025),
            },
            link_bandwidth: self.link,
            dram_bandwidth: self.dram / Package::CONTROLLERS * Package::CONTROLLERS,
            hop: 0.4 * BITS * power,
            dram: if self.memory == DramKind::Hbm { 5.5 } else { 10.5 } * BITS,
            least_shared: 0.0,
            package: Some(Package {
                dies: self.dies,
                link_bandwidth: self.die_link,
                hop,
                idle,
                clock,
            }),
            ..base
        }
    }

    /// pJ per byte on a link between dies, and pJ per ns of all of them.
    fn between(&self) -> (f64, u64) {
        let each = match self.interface {
            Interface::Xsr => return (0.0, self.transceivers()),
            Interface::Usr => {
                if self.is_7nm {
                    1.7
                } else {
                    2.4
                }
            }
            Interface::UcieSubstrate => 1.0,
            Interface::UcieFanOut => 0.6,
            Interface::UcieInterposer => 0.3,
        };
        (each * BITS, 0)
    }

    /// mW of all XSR transceivers: lanes of 112 Gbit/s at all edges of dies.
    fn transceivers(&self) -> u64 {
        let (Mesh { width, height, .. }, [across, down]) = (self.mesh, self.dies);
        let edges = match across.saturating_mul(down) {
            1 => 0,
            2 => 6 * height,
            _ => 2 * height + 2 * height * across + 2 * width * down,
        };
        let lanes = self.die_link.saturating_mul(8) / 112;
        lanes.saturating_mul(edges).saturating_mul(if self.is_7nm { 69 } else { 97 })
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
    /// The dies of the package, if the costs are those of Gemini's model; SET's has none.
    pub package: Option<Package>,
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
            package: None,
        }
    }

    /// Units of delay of so many cycles.
    pub(crate) fn delay(&self, cycles: u64) -> u64 {
        self.package.map_or(cycles, |package| (cycles as f64 / package.clock) as u64)
    }

    /// pJ of transceivers between dies for a segment of this delay.
    pub(crate) fn idle_energy(&self, delay: u64) -> f64 {
        self.package.map_or(0.0, |package| delay.saturating_mul(package.idle) as f64)
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
        self.check_package()?;
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

    fn check_package(&self) -> Result<()> {
        let (Mesh { width, height, .. }, Some(package)) = (self.mesh, self.package) else {
            return Ok(());
        };
        let [across, down] = package.dies;
        let divides = |of: u64, by: u64| by > 0 && of.is_multiple_of(by);
        if !divides(width, across) || !divides(height, down) {
            return reject("expected dies that divide the rows and columns of cores");
        }
        if !height.is_multiple_of(2) || !divides(self.dram_bandwidth, Package::CONTROLLERS) {
            return reject(
                "expected an even number of rows, and a DRAM bandwidth for four controllers",
            );
        }
        if !(1..=MAX_BYTES).contains(&package.link_bandwidth) || package.idle > MAX_BYTES {
            return reject(format!("expected links between dies of 1 to {MAX_BYTES} bytes"));
        }
        match (0.0..1e9).contains(&package.hop) && (0.01..100.0).contains(&package.clock) {
            true => Ok(()),
            false => {
                reject("expected an energy that is not negative, and a clock of 0.01 to 100 GHz")
            }
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
