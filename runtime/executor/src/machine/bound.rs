//! Tasks bound to the memory of a run.

use std::collections::BTreeMap;

use irc_ark_format::plan::tiling::Grid;

use crate::comm::manifest::Manifest;
use crate::comm::{self, CommOp};
use crate::memory::Addresses;
use crate::task::{Function, SharedValue, Task, TaskKernel, TaskStep};
use crate::{Error, Rank};

/// A task info bound to the memory of a run.
pub(crate) struct BoundTask {
    pub steps: Vec<BoundStep>,
    /// Whether a task may wait.
    pub communicates: bool,
    /// Maximum number of bytes of the values that its tasks share.
    pub shared_bytes: u64,
}

/// One step of a task.
pub(crate) enum BoundStep {
    Kernel(Box<BoundKernel>),
    /// Moves data between ranks.
    Communicate(Box<CommOp>),
}

/// A kernel bound to the memory of a run.
pub(crate) struct BoundKernel {
    pub(super) counts: [i64; 4],
    pub(super) functions: [Option<Function>; 16],
    pub(super) shared_values: Vec<SharedValue>,
    pub(super) operands: Vec<BoundOperand>,
}

/// The first address that the task with digits 0 accesses, and the stride of each digit, in bytes.
pub(super) struct BoundOperand {
    pub(super) base: *mut u8,
    pub(super) steps: [usize; 4],
}

// Safety: as for `Addresses`, which these come from.
unsafe impl Send for BoundOperand {}
// Safety: as above.
unsafe impl Sync for BoundOperand {}

impl BoundTask {
    /// Binds the tasks of a rank to memory.
    ///
    /// # Errors
    /// If a communication op is unsupported.
    pub(crate) fn all(
        rank: &Rank,
        addresses: &Addresses,
        manifests: &BTreeMap<i64, Manifest>,
    ) -> Result<Vec<Self>, Error> {
        let bind = |(index, task): (usize, &Task)| {
            let step = |step: &TaskStep| -> Result<BoundStep, Error> {
                Ok(match step {
                    TaskStep::Kernel(kernel) => {
                        BoundStep::Kernel(Box::new(BoundKernel::new(kernel, addresses)))
                    }
                    TaskStep::Communicate(op) => {
                        let plan = (&rank.plan, &rank.layout, &rank.script[..]);
                        let ready = comm::prepare(plan, (index, *op), manifests)?;
                        BoundStep::Communicate(Box::new(ready))
                    }
                })
            };
            let steps = task.steps.iter().map(step).collect::<Result<Vec<_>, _>>()?;
            let communicates = steps.iter().any(|step| matches!(step, BoundStep::Communicate(_)));
            let shared_bytes = if communicates { 0 } else { shared_bytes(&steps) };
            Ok(Self { steps, communicates, shared_bytes })
        };
        rank.tasks.iter().enumerate().map(bind).collect()
    }
}

impl BoundKernel {
    fn new(kernel: &TaskKernel, addresses: &Addresses) -> Self {
        let operands = kernel.operands.iter().map(|operand| BoundOperand {
            base: addresses.at(operand.slot, operand.offset),
            steps: operand.steps.map(|step| step as usize),
        });
        Self {
            counts: kernel.counts,
            functions: kernel.functions,
            shared_values: kernel.shared_values.clone(),
            operands: operands.collect(),
        }
    }

    /// The radices of the task index.
    pub(crate) fn counts(&self) -> [i64; 4] {
        self.counts
    }

    /// The shared values of its functions.
    pub(crate) fn shared_values(&self) -> &[SharedValue] {
        &self.shared_values
    }

    /// The digits of a task index.
    pub(crate) fn digits(&self, task: i64) -> [i64; 4] {
        Grid { counts: self.counts, tile: [1; 4] }.digits(task)
    }
}

/// Maximum number of bytes of the shared values of a task group.
fn shared_bytes(steps: &[BoundStep]) -> u64 {
    let values = steps.iter().flat_map(shared);
    values.fold(0, |sum, (windows, bytes)| sum.saturating_add(windows.saturating_mul(bytes)))
}

/// For each function of a step with a shared value, the number of different values and the bytes of
/// each.
pub(super) fn shared(step: &BoundStep) -> Vec<(u64, u64)> {
    let BoundStep::Kernel(kernel) = step else { return vec![] };
    kernel
        .shared_values()
        .iter()
        .map(|value| (value.windows(kernel.counts()), value.bytes))
        .collect()
}
