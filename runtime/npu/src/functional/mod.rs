//! The functional simulator: what a program computes.
//!
//! Published rules come from the ISA document and the frontend's constants;
//! choices of this project are marked as such.
//!
//! * Activations in L2 are `[N, H, W, C]` with channels padded to eight bytes, and dense in DRAM.
//!   Padding channels are written as zero (chosen here).
//! * The weights of an output channel are `[R, S, C]` with padded channels, then 32 bytes: scale and
//!   bias as `f32`, offset as `i32`, the rest unused (order and location chosen here; the sizes are published).
//! * A convolution sums products of bytes in `i32`, with `PADV` outside of the input. The result is
//!   `scale (sum + offset) + bias`, activated; as `INT8` it is `round(result QK) + QB`, clamped to a byte; as
//!   `FP16` it is rounded to half precision. That `QB` is added after rounding, as ONNX adds zero points, and
//!   the offset are chosen here.
//! * A vector operation dequantises its operands and returns `round(result QK) + QB` as `INT8`, or `result QK
//!   + QB` as `FP16`. `IQK0 x + IQB0` applies to the operand at `STaddr1`, `IQK1 x + IQB1` to that at `STaddr`,
//!   as in every published sum. Intermediate results are in single precision, but the products of a
//!   dequantisation in double precision: a sum is `IQK0 x + (IQB0 + (IQK1 y + IQB1))` (chosen here).
//! * Bytes are signed or unsigned, as `IF` and `OF` state (published programs are signed).
//! * `GPMD` 69 is a sum with ReLU, as in every published sum; 5 is a sum without (chosen here).
//! * A copy of order 1 exchanges channels and rows (chosen here).
//! * Rounding is to nearest, ties to even (chosen here; not specified by `ROUND`).
//!
//! Instructions run in any order that tokens permit: if the verifier accepts a program, all orders
//! compute the same bytes.

mod convolve;
mod memory;
mod sign;
mod task;
mod tile;
mod vector;

use std::collections::BTreeMap;
use std::fmt;

use irc_npu::{Program, verify};

pub use memory::{CoreMemory, MAX_DRAM, Memory};
use task::Task;

/// Why a program cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Number of a core, index of an instruction, and what is wrong with it.
    Instruction(u32, usize, String),
    /// Some instructions never start; the verifier reports the reason.
    Stuck,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instruction(core, index, message) => {
                write!(f, "instruction {} of core {core}: {message}", index + 1)
            }
            Self::Stuck => f.write_str("some instructions never start"),
        }
    }
}

impl std::error::Error for Error {}

/// Runs a program on memories, which contain DRAM before and after the run.
///
/// # Errors
/// If an instruction accesses bytes outside of the memories, uses an unsupported feature, or never starts.
pub fn run(program: &Program, memory: &mut Memory) -> Result<(), Error> {
    let l2_bytes = memory.of(0).0.l2.len() as i64;
    let tasks = task::tasks(program, l2_bytes)?;
    let mut runner = Runner { program, tasks: &tasks, memory, sent: BTreeMap::new(), fault: None };
    let complete = verify::in_order(program, |core, index| runner.step(core, index));
    match (runner.fault, complete) {
        (Some(fault), _) => Err(fault),
        (None, false) => Err(Error::Stuck),
        (None, true) => Ok(()),
    }
}

/// The end of a transfer that was reached first.
enum TransferEnd {
    Sent(Vec<u8>),
    Awaited(tile::Tile),
}

struct Runner<'r> {
    program: &'r Program,
    tasks: &'r [Vec<Option<Task>>],
    memory: &'r mut Memory,
    /// By sender, receiver, transfer.
    sent: BTreeMap<(u32, u32, u32), TransferEnd>,
    fault: Option<Error>,
}

impl Runner<'_> {
    fn step(&mut self, core: usize, index: usize) {
        let Some(task) = &self.tasks[core][index] else { return };
        if self.fault.is_some() {
            return;
        }
        let result = match task {
            Task::Send { to, transfer, tile } => self.send(core, (*to, *transfer), tile),
            Task::Receive { from, transfer, tile } => self.receive(core, (*from, *transfer), tile),
            _ => self.compute(core, task),
        };
        if let Err(message) = result {
            let id = self.program.cores[core].id;
            self.fault = Some(Error::Instruction(id, index, message));
        }
    }

    fn compute(&mut self, core: usize, task: &Task) -> Result<(), String> {
        let (own, dram) = self.memory.of(core);
        match task {
            Task::Load(load) => load.run(own, dram),
            Task::Store(store) => store.run(own, dram),
            Task::LoadWeights(weights) => weights.to_l2(own, dram),
            Task::Weights(weights) => weights.to_wl0(own, dram),
            Task::Copy { from, to } => {
                let bytes = own.read_tile(from)?;
                own.write_tile(to, &bytes)
            }
            Task::Transpose(transpose) => transpose.run(own),
            Task::Convolve(convolution) => convolve::run(convolution, own),
            Task::Vector(vector) => vector::run(vector, own),
            Task::Send { .. } | Task::Receive { .. } => Ok(()),
        }
    }

    fn send(
        &mut self,
        core: usize,
        (to, transfer): (u32, u32),
        tile: &tile::Tile,
    ) -> Result<(), String> {
        let from = self.program.cores[core].id;
        let bytes = self.memory.of(core).0.read_tile(tile)?;
        match self.sent.remove(&(from, to, transfer)) {
            Some(TransferEnd::Awaited(target)) => {
                let place = self.program.cores.iter().position(|core| core.id == to);
                let place = place.ok_or("the receiving core is not there")?;
                self.memory.of(place).0.write_tile(&target, &bytes)
            }
            _ => {
                self.sent.insert((from, to, transfer), TransferEnd::Sent(bytes));
                Ok(())
            }
        }
    }

    fn receive(
        &mut self,
        core: usize,
        (from, transfer): (u32, u32),
        tile: &tile::Tile,
    ) -> Result<(), String> {
        let to = self.program.cores[core].id;
        match self.sent.remove(&(from, to, transfer)) {
            Some(TransferEnd::Sent(bytes)) => self.memory.of(core).0.write_tile(tile, &bytes),
            _ => {
                self.sent.insert((from, to, transfer), TransferEnd::Awaited(*tile));
                Ok(())
            }
        }
    }
}
