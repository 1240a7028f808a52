//! The plan file: ops divided into tasks, and tasks distributed over processors.
//!
//! A [`TaskInfo`] is a chain of ops that run consecutively for one task index. A [`ProcessorGroup`] is
//! a range of processors that runs [`ResourceGroup`]s, each of which assigns a range of warps and of
//! on-chip memory to [`TaskGroup`]s. The executor inserts barriers between processor groups that share
//! processors, but none within a group.
//!
//! [`parse`] reads text, [`write()`] writes ARK's own layout, [`check`] checks a single plan,
//! and [`check_ranks`] checks the plans of all ranks together.

mod barriers;
mod check;
mod config;
mod parse;
pub mod tiling;
mod write;

pub use barriers::Barriers;
pub use check::{
    ConfigKey, MatmulKernel, check, check_model, check_ranks, config_keys, expected_config, fuses,
    matmul_kernels,
};
pub use config::{Config, ConfigValue};
pub use parse::parse;
pub use tiling::{derived_tasks, num_tasks};
pub use write::write;

use crate::model::Op;

/// The target of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Architecture {
    /// Any device.
    Any,
    /// Any NVIDIA device.
    Cuda,
    /// Volta.
    Cuda70,
    /// Ampere.
    Cuda80,
    /// Hopper.
    Cuda90,
    /// Any AMD device.
    Rocm,
    /// MI200 series.
    Rocm90a,
    /// MI300 series.
    Rocm942,
}

impl Architecture {
    /// All architectures of the format.
    pub const ALL: [Architecture; 8] = [
        Architecture::Any,
        Architecture::Cuda,
        Architecture::Cuda70,
        Architecture::Cuda80,
        Architecture::Cuda90,
        Architecture::Rocm,
        Architecture::Rocm90a,
        Architecture::Rocm942,
    ];

    /// Name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::Any => "ANY",
            Architecture::Cuda => "CUDA",
            Architecture::Cuda70 => "CUDA_70",
            Architecture::Cuda80 => "CUDA_80",
            Architecture::Cuda90 => "CUDA_90",
            Architecture::Rocm => "ROCM",
            Architecture::Rocm90a => "ROCM_90A",
            Architecture::Rocm942 => "ROCM_942",
        }
    }

    /// The architecture with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|architecture| architecture.name() == name)
    }

    /// Number of processors of the largest device of the architecture, if known.
    pub fn max_processors(self) -> Option<i64> {
        match self {
            Architecture::Cuda80 => Some(108),
            Architecture::Cuda90 => Some(132),
            Architecture::Rocm942 => Some(304),
            _ => None,
        }
    }

    /// Maximum number of bytes of on-chip memory of a block, if known.
    pub fn max_sram(self) -> Option<i64> {
        match self {
            Architecture::Cuda80 => Some(166_912),
            Architecture::Cuda90 => Some(232_448),
            _ => None,
        }
    }

    /// Number of threads of a warp.
    pub fn warp_threads(self) -> i64 {
        match self {
            Architecture::Rocm | Architecture::Rocm90a | Architecture::Rocm942 => 64,
            _ => 32,
        }
    }
}

/// A half-open range of integers, with a step that ARK accepts and ignores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// First element.
    pub begin: i64,
    /// One past the last element.
    pub end: i64,
    /// Distance between elements, if written.
    pub step: Option<i64>,
}

impl Range {
    /// The range `[begin, end)`.
    pub fn new(begin: i64, end: i64) -> Self {
        Self { begin, end, step: None }
    }

    /// Number of elements, as in ARK: the step is ignored.
    pub fn len(self) -> i64 {
        self.end.saturating_sub(self.begin).max(0)
    }

    /// Whether the range has no element.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether every element of `other` is in this range.
    pub fn contains(self, other: Range) -> bool {
        self.begin <= other.begin && other.end <= self.end
    }

    /// Whether the two have an element in common.
    pub fn overlaps(self, other: Range) -> bool {
        self.begin.max(other.begin) < self.end.min(other.end)
    }
}

/// A plan of one rank.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Rank this plan runs on.
    pub rank: i64,
    /// Number of ranks.
    pub world_size: i64,
    /// The target of the plan.
    pub architecture: Architecture,
    /// Number of processors used, from 0.
    pub num_processors: i64,
    /// Number of warps used on each processor.
    pub num_warps_per_processor: i64,
    /// Kinds of task.
    pub task_infos: Vec<TaskInfo>,
    /// The processor groups, in order.
    pub processor_groups: Vec<ProcessorGroup>,
}

/// A kind of task: ops that run consecutively for one task index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaskInfo {
    /// Index in the list of task infos.
    pub id: i64,
    /// Number of warps that run one task.
    pub num_warps: i64,
    /// Bytes of on-chip memory that one task needs.
    pub sram_bytes: i64,
    /// The ops.
    pub ops: Vec<PlanOp>,
}

/// An op and its config.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlanOp {
    /// What to compute.
    pub op: Op,
    /// How it is divided into tasks.
    pub config: Config,
}

/// Processors that run resource groups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProcessorGroup {
    /// The processors.
    pub processor_range: Range,
    /// The resource groups that they run.
    pub resource_groups: Vec<ResourceGroup>,
}

/// A part of the warps and of the on-chip memory of some processors of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResourceGroup {
    /// The processors.
    pub processor_range: Range,
    /// The warps of each; only their number matters.
    pub warp_range: Range,
    /// The bytes of on-chip memory of each; only their number matters.
    pub sram_range: Range,
    /// The task groups, in order.
    pub task_groups: Vec<TaskGroup>,
}

/// Number of tasks that a processor runs concurrently with `warps` and `sram` bytes of on-chip memory
/// of a resource group, if a task needs `task_warps` (at least one) and `task_sram`.
pub fn slots(warps: i64, sram: i64, (task_warps, task_sram): (i64, i64)) -> i64 {
    let by_warps = warps / task_warps;
    if task_sram > 0 { by_warps.min(sram / task_sram) } else { by_warps }
}

/// Tasks of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskGroup {
    /// Index of the task info.
    pub task_id: i64,
    /// The task indices to run.
    pub task_range: Range,
    /// Number of consecutive tasks assigned to one processor at a time.
    pub granularity: i64,
}
