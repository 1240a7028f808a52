//! The compiled code of a plan's tasks: the interface between the compiler and the executor.
//!
//! A task is a list of steps, run in order for one task index. A kernel has one function per
//! combination of partial tiles at the ends of its dimensions; its arguments are, for each operand, the
//! address of the first element that the task accesses. Extents and strides are part of the code.

use irc_ark_format::plan::tiling::Grid;
use serde::{Deserialize, Serialize};
use std::ffi::c_void;

/// A kernel in the library. `operands` has as many addresses as [`Kernel::operands`], followed by the
/// address of its [shared value](Variant::keeps); `scratch` has [`PlanCode::scratch_bytes`] bytes, is
/// aligned to 64 and not shared with another running task. Returns 0.
pub type Entry = unsafe extern "C" fn(operands: *const *mut c_void, scratch: *mut c_void) -> i32;

/// The code of every task of one plan, except for the library that contains it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanCode {
    /// Indexed like the plan's task infos.
    pub tasks: Vec<TaskCode>,
    /// Maximum number of bytes of scratch memory of a kernel.
    pub scratch_bytes: u64,
    /// Processor features that the code uses, by LLVM's names.
    pub requires: Vec<String>,
}

/// The code of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCode {
    /// The steps for one task index, in order.
    pub steps: Vec<Step>,
}

/// One step of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Computes.
    Kernel(Kernel),
    /// Moves data between ranks: the executor runs the op at this index of the task info.
    Communicate(usize),
}

/// A compiled kernel: one op, or several that use only each other's results of the same task index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Indices of its ops in the task info, ascending.
    pub ops: Vec<usize>,
    /// The radices of the task index's digits ([`Grid::counts`]).
    pub counts: [i64; 4],
    /// The memory that it accesses, in the order of its address arguments.
    pub operands: Vec<Operand>,
    /// The functions: the first one whose condition holds is called.
    pub variants: Vec<Variant>,
}

/// The part of a buffer that a kernel accesses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operand {
    /// Id of the buffer.
    pub buffer: u64,
    /// Offset in the buffer of the first byte that the task with digits 0 accesses.
    pub offset: u64,
    /// The stride of each digit, in bytes.
    pub steps: [u64; 4],
}

/// A function of a kernel, for the tasks at certain edges of the grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Digits that must be the last of their dimension for this variant.
    pub last: [bool; 4],
    /// Name of the [`Entry`] in the library.
    pub symbol: String,
    /// The value that tasks can share, if any.
    pub keeps: Option<Keeps>,
}

/// A value that a function computes only from some of its operands, so that tasks that read the same
/// elements of these can share it.
///
/// The last address argument of the function is the memory of the value, aligned to 64. The first eight
/// bytes, which the function does not write, are zero if it must compute the value into the rest, and nonzero if
/// another call with the same operands has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeps {
    /// Bytes of memory.
    pub bytes: u64,
    /// Indices in [`Kernel::operands`] of the operands from which it is computed.
    pub operands: Vec<usize>,
}

impl Kernel {
    /// The variant that computes the task with these digits.
    pub fn variant(&self, digits: [i64; 4]) -> Option<usize> {
        let is_last = |dim: usize| digits[dim] + 1 == self.counts[dim];
        self.variants
            .iter()
            .position(|variant| (0..4).all(|dim| !variant.last[dim] || is_last(dim)))
    }

    /// The digits of a task index.
    pub fn digits(&self, task: i64) -> [i64; 4] {
        Grid { counts: self.counts, tile: [1; 4] }.digits(task)
    }
}

impl Operand {
    /// The first byte in the buffer that the task with these digits accesses.
    pub fn byte(&self, digits: [i64; 4]) -> u64 {
        let steps = self.steps.iter().zip(digits);
        self.offset + steps.map(|(step, digit)| step * digit.cast_unsigned()).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_have_variants_of_their_own() {
        let variant = |last, symbol: &str| Variant { last, symbol: symbol.into(), keeps: None };
        let kernel = Kernel {
            ops: vec![0],
            counts: [1, 1, 3, 2],
            operands: vec![Operand { buffer: 7, offset: 16, steps: [0, 0, 800, 128] }],
            variants: vec![
                variant([false, false, true, true], "corner"),
                variant([false, false, false, true], "right"),
                variant([false, false, true, false], "bottom"),
                variant([false; 4], "inner"),
            ],
        };
        let symbol = |task: i64| {
            let index = kernel.variant(kernel.digits(task));
            index.map(|index| kernel.variants[index].symbol.clone())
        };
        let found: Vec<_> = (0..6).map(|task| symbol(task).unwrap()).collect();
        assert_eq!(found, ["inner", "right", "inner", "right", "bottom", "corner"]);
        assert_eq!(kernel.operands[0].byte(kernel.digits(5)), 16 + 2 * 800 + 128);
    }
}
