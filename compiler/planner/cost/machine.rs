//! What each architecture can do, with the source of every number.
//!
//! The numbers are those of the largest device of each architecture; `docs/cost-model.md` lists them
//! with their sources.
use irc_ark_format::{model::DataType, plan::Architecture};

/// Rates and times of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Name of the device.
    pub device: &'static str,
    /// Processors: SMs or CUs.
    pub processors: i64,
    /// Cycles per nanosecond.
    pub clock: f64,
    /// Threads per warp.
    pub lanes: i64,
    /// 16-bit multiply-adds of a processor's matrix units per cycle.
    pub matrix_half: f64,
    /// 32-bit multiply-adds of a processor's matrix units per cycle.
    pub matrix_single: f64,
    /// 32-bit operations of a processor's vector units per cycle.
    pub vector: f64,
    /// Bytes a processor moves to and from the L2 cache per cycle.
    pub processor_bytes: f64,
    /// Bytes all processors together move to and from the L2 cache per nanosecond.
    pub cache_bytes: f64,
    /// Bytes of the last-level cache that all processors share.
    pub cache_size: f64,
    /// Bytes moved to and from device memory per nanosecond.
    pub memory_bytes: f64,
    /// Latency in cycles of a load that misses all caches.
    pub latency: f64,
    /// Latency in cycles of a load that hits the shared cache.
    pub cache_latency: f64,
    /// Cycles between two tasks of a warp: call, index and address computation.
    pub task: f64,
    /// Fixed cost of a barrier, in nanoseconds.
    pub barrier: f64,
    /// Cost of a barrier per processor that takes part, in nanoseconds: one atomic on one counter.
    pub barrier_processor: f64,
    /// Bytes to another rank per nanosecond.
    pub link_bytes: f64,
    /// Latency of a message, in nanoseconds.
    pub link_latency: f64,
}

impl Machine {
    /// Multiply-adds of a processor's matrix units per cycle for operands of a type.
    pub fn matrix(&self, dtype: DataType) -> f64 {
        if dtype.bytes() <= 2 { self.matrix_half } else { self.matrix_single }
    }
}

const A100: Machine = Machine {
    device: "A100-SXM4-40GB",
    processors: 108,
    clock: 1.41,
    lanes: 32,
    matrix_half: 1024.0,
    matrix_single: 512.0,
    vector: 64.0,
    processor_bytes: 64.0,
    cache_bytes: 5120.0 * 1.41,
    cache_size: 40e6,
    memory_bytes: 1555.0,
    latency: 466.0,
    cache_latency: 200.0,
    task: 100.0,
    barrier: 1000.0,
    barrier_processor: 5.0,
    link_bytes: 300.0,
    link_latency: 4300.0,
};

const V100: Machine = Machine {
    device: "V100-SXM2",
    processors: 80,
    clock: 1.53,
    matrix_half: 512.0,
    matrix_single: 64.0,
    cache_bytes: 2048.0 * 1.53,
    cache_size: 6e6,
    memory_bytes: 900.0,
    latency: 400.0,
    cache_latency: 193.0,
    link_bytes: 150.0,
    ..A100
};

const H100: Machine = Machine {
    device: "H100-SXM5",
    processors: 132,
    clock: 1.83,
    matrix_half: 2048.0,
    matrix_single: 1024.0,
    vector: 128.0,
    cache_bytes: 5632.0 * 1.83,
    cache_size: 50e6,
    memory_bytes: 3350.0,
    link_bytes: 450.0,
    ..A100
};

const MI250X: Machine = Machine {
    device: "MI250X, one die",
    processors: 110,
    clock: 1.7,
    lanes: 64,
    matrix_half: 512.0,
    matrix_single: 128.0,
    vector: 64.0,
    processor_bytes: 64.0,
    cache_bytes: 4096.0 * 1.7,
    cache_size: 8e6,
    memory_bytes: 1638.0,
    latency: 800.0,
    cache_latency: 300.0,
    link_bytes: 200.0,
    ..A100
};

const MI300X: Machine = Machine {
    device: "MI300X",
    processors: 304,
    clock: 2.1,
    lanes: 64,
    matrix_half: 1024.0,
    matrix_single: 256.0,
    vector: 128.0,
    processor_bytes: 64.0,
    cache_bytes: 17200.0,
    cache_size: 256e6,
    memory_bytes: 5300.0,
    latency: 800.0,
    cache_latency: 300.0,
    link_bytes: 448.0,
    ..A100
};

/// The machine that represents an architecture; an A100 where no device is meant in particular.
pub fn machine(architecture: Architecture) -> Machine {
    match architecture {
        Architecture::Any | Architecture::Cuda | Architecture::Cuda80 => A100,
        Architecture::Cuda70 => V100,
        Architecture::Cuda90 => H100,
        Architecture::Rocm90a => MI250X,
        Architecture::Rocm | Architecture::Rocm942 => MI300X,
    }
}
