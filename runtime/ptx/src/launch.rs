//! What is launched, and what comes back.

use crate::memory::{Buffer, Memory};
use crate::statistics::Statistics;
use crate::tensor_map::TensorMap;
use irc_diag::Diagnostic;
use std::sync::Arc;

/// An argument of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// The address of a buffer.
    Buffer(Buffer),
    /// An integer of 32 bits.
    U32(u32),
    /// An integer of 64 bits.
    U64(u64),
    /// A float of 32 bits.
    F32(f32),
    /// A float of 64 bits.
    F64(f64),
    /// The bytes of a structure.
    Bytes(Vec<u8>),
    /// A tensor map, by value.
    TensorMap(TensorMap),
}

/// The order in which threads run. Every order is deterministic: the same launch gives the same results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schedule {
    /// Warps take turns of many instructions.
    #[default]
    RoundRobin,
    /// Turns of random lengths, of random warps. Copies complete at random times.
    Random(u64),
    /// As `Random`, and some warps, and parts of warps, are delayed until little else can run.
    Adversarial(u64),
}

/// Which checks are made. What makes a launch fail, such as an access out of bounds, is always checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    /// Races: unordered accesses to the same bytes, of which one writes.
    pub races: bool,
    /// Reads of shared memory, and of buffers of [`Memory::add_unwritten`](crate::Memory::add_unwritten), that were not
    /// written.
    pub uninitialised: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self { races: true, uninitialised: true }
    }
}

/// A launch of a kernel.
#[derive(Debug, Clone)]
pub struct Launch {
    /// CTAs in each dimension.
    pub grid: [u32; 3],
    /// Threads of a CTA in each dimension.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u64,
    /// The arguments of the kernel.
    pub arguments: Vec<Argument>,
    /// Launches of the same kernel that run at the same time, as on other devices that share memory: the CTAs of each in the
    /// first dimension, and its arguments. In numbers of CTAs theirs follow.
    pub beside: Vec<(u32, Vec<Argument>)>,
    /// The order in which threads run.
    pub schedule: Schedule,
    /// Which checks are made.
    pub checks: Checks,
    /// CTAs that run at the same time; the others start as these end. By default as many as 128 processors of
    /// 2048 threads run.
    pub resident: Option<usize>,
    /// Instructions of all threads together after which the launch is stopped.
    pub max_instructions: u64,
    /// Bytes of shared memory of a CTA, static and dynamic, beyond which a launch is rejected.
    pub max_shared_bytes: u64,
    /// The value of the clocks at the start.
    pub clock: u64,
    /// What diagnostics of a warp say in addition, by the memory at that time.
    pub explain: Option<Explain>,
}

/// Words of the memory, the number of the CTA, and that of the warp in it.
type Words = dyn Fn(&Memory, u64, u32) -> Option<String>;

/// What a warp does, in words.
#[derive(Clone)]
pub struct Explain(pub Arc<Words>);

impl std::fmt::Debug for Explain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Explain")
    }
}

impl Default for Launch {
    fn default() -> Self {
        Self {
            grid: [1; 3],
            block: [32, 1, 1],
            shared_bytes: 0,
            arguments: vec![],
            beside: vec![],
            schedule: Schedule::default(),
            checks: Checks::default(),
            resident: None,
            max_instructions: 1 << 36,
            max_shared_bytes: 227 << 10,
            clock: 0,
            explain: None,
        }
    }
}

/// What a launch did.
#[derive(Debug)]
pub struct Report {
    /// Whether all threads ended. Memory is complete only then.
    pub completed: bool,
    /// What the checks found, at the instructions in the PTX text.
    pub diagnostics: Vec<Diagnostic>,
    /// Numbers of instructions and accesses.
    pub statistics: Statistics,
    /// What the kernel printed.
    pub output: Vec<u8>,
    /// The value of the clocks at the end.
    pub clock: u64,
}

/// What all orders of a launch did.
#[derive(Debug, Default)]
pub struct Exploration {
    /// Whether threads can always reach their ends, in every order.
    pub completed: bool,
    /// Different states, and the steps between them.
    pub states: usize,
    /// Steps from one state to another.
    pub transitions: usize,
    /// Different contents of memory at the end.
    pub ends: usize,
    /// What the checks found.
    pub diagnostics: Vec<Diagnostic>,
}

impl Report {
    /// Whether all threads ended, and nothing was diagnosed as an error.
    pub fn is_clean(&self) -> bool {
        self.completed && !self.diagnostics.iter().any(Diagnostic::is_error)
    }
}
