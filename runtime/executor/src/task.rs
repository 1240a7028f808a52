//! The tasks of a plan with their code, checked against each other.
//!
//! The compiler guarantees the accesses of a kernel beyond the first element of each operand.
//! Everything else is checked here, so that a wrong description is an error and not an invalid access.

use irc_ark_format::model::OpKind;
use irc_ark_format::plan::Plan;

use crate::code::{Entry, Keeps, Kernel, Operand, PlanCode, Step, TaskCode, Variant};
use crate::kernels::Kernels;
use crate::layout::Layout;

/// Maximum number of operands of a kernel.
const MAX_OPERANDS: usize = 1 << 10;

/// A task info with its code.
pub(crate) struct Task {
    pub steps: Vec<TaskStep>,
}

/// One step of a task.
pub(crate) enum TaskStep {
    /// Calls a function.
    Kernel(Box<TaskKernel>),
    /// Runs the op at this index.
    Communicate(usize),
}

/// A kernel with its functions.
pub(crate) struct TaskKernel {
    /// Indices of its ops.
    pub ops: Vec<usize>,
    /// Radices of the task index.
    pub counts: [i64; 4],
    /// The functions, indexed by which digits are the last of their dimension: bit `d` for digit `d`.
    pub functions: [Option<Function>; 16],
    /// The shared values of the functions.
    pub shared_values: Vec<SharedValue>,
    /// The memory that it accesses.
    pub operands: Vec<TaskOperand>,
}

/// A function of a kernel.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    /// The function.
    pub entry: Entry,
    /// Its shared value, as an index of [`TaskKernel::shared_values`].
    pub shared_value: Option<usize>,
}

/// The shared value of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedValue {
    /// Bytes of memory, in whole cache lines.
    pub bytes: u64,
    /// Digits on which it depends.
    pub digits: [bool; 4],
    /// Digits that are the last of their dimension wherever the function is called.
    pub last: [bool; 4],
}

impl SharedValue {
    /// Number of different values that the tasks of a grid compute; zero if no two tasks share one.
    pub(crate) fn windows(&self, counts: [i64; 4]) -> u64 {
        let count = |dim: usize| if self.last[dim] { 1 } else { counts[dim].cast_unsigned() };
        let tasks = (0..4).map(count).product();
        let windows = (0..4).map(|dim| if self.digits[dim] { count(dim) } else { 1 }).product();
        if windows < tasks { windows } else { 0 }
    }

    /// The index of the value that the task with these digits uses.
    pub(crate) fn window(&self, counts: [i64; 4], digits: [i64; 4]) -> u64 {
        let moves = |dim: &usize| self.digits[*dim] && !self.last[*dim];
        (0..4).filter(moves).fold(0, |sum, dim| sum * counts[dim] + digits[dim]).cast_unsigned()
    }
}

/// The part of a buffer that a kernel accesses.
pub(crate) struct TaskOperand {
    /// The index of the buffer among those of the rank.
    pub slot: usize,
    /// The first byte that the task with digits 0 accesses.
    pub offset: u64,
    /// The stride of each digit, in bytes.
    pub steps: [u64; 4],
}

impl TaskStep {
    /// Whether it calls a kernel.
    pub(crate) fn computes(&self) -> bool {
        matches!(self, TaskStep::Kernel(_))
    }

    /// Indices of its ops in the task info.
    pub(crate) fn ops(&self) -> &[usize] {
        match self {
            TaskStep::Kernel(kernel) => &kernel.ops,
            TaskStep::Communicate(op) => std::slice::from_ref(op),
        }
    }
}

impl Task {
    /// Maximum number of bytes of a shared value of its functions.
    pub(crate) fn shared_bytes(&self) -> u64 {
        let kernels = self.steps.iter().filter_map(|step| match step {
            TaskStep::Kernel(kernel) => Some(&kernel.shared_values),
            TaskStep::Communicate(_) => None,
        });
        kernels.flatten().map(|value| value.bytes).max().unwrap_or_default()
    }

    /// Number of tasks for which its kernels have code; `None` if it has no kernel.
    pub(crate) fn tasks(&self) -> Option<i64> {
        let kernels = self.steps.iter().filter_map(|step| match step {
            TaskStep::Kernel(kernel) => Some(kernel.counts.iter().product()),
            TaskStep::Communicate(_) => None,
        });
        kernels.min()
    }
}

/// Combines the tasks of a plan with their code.
///
/// # Errors
/// If they are inconsistent.
pub(crate) fn tasks(
    plan: &Plan,
    layout: &Layout,
    code: &PlanCode,
    kernels: &Kernels,
) -> Result<Vec<Task>, String> {
    let (expected, found) = (plan.task_infos.len(), code.tasks.len());
    if expected != found {
        return Err(format!("expected code of {expected} task infos, found {found}"));
    }
    let prepare = |(index, code): (usize, &TaskCode)| {
        task(plan, index, layout, code, kernels)
            .map_err(|reason| format!("task info {index}: {reason}"))
    };
    code.tasks.iter().enumerate().map(prepare).collect()
}

fn task(
    plan: &Plan,
    index: usize,
    layout: &Layout,
    code: &TaskCode,
    kernels: &Kernels,
) -> Result<Task, String> {
    check_ops(plan, index, code)?;
    let prepare = |(place, step): (usize, &Step)| match step {
        Step::Communicate(op) => Ok(TaskStep::Communicate(*op)),
        Step::Kernel(kernel) => self::kernel(layout, kernel, kernels)
            .map(|kernel| TaskStep::Kernel(Box::new(kernel)))
            .map_err(|reason| format!("step {place}: {reason}")),
    };
    let steps = code.steps.iter().enumerate().map(prepare).collect::<Result<_, _>>()?;
    Ok(Task { steps })
}

/// Checks that every op with an effect is in one step of the right kind.
fn check_ops(plan: &Plan, index: usize, code: &TaskCode) -> Result<(), String> {
    let ops = &plan.task_infos[index].ops;
    let mut runs = vec![0; ops.len()];
    for step in &code.steps {
        let (indices, communicates) = match step {
            Step::Kernel(kernel) => (&kernel.ops[..], false),
            Step::Communicate(op) => (std::slice::from_ref(op), true),
        };
        for &op in indices {
            let Some(found) = ops.get(op) else { return Err(format!("there is no op {op}")) };
            if found.op.kind.is_communication() != communicates {
                return Err(format!("op {op} is a {}, not what its step runs", found.op.kind));
            }
            runs[op] += 1;
        }
    }
    for (op, runs) in ops.iter().zip(runs) {
        let idle = op.op.is_virtual || op.op.kind == OpKind::Noop;
        if runs > 1 || (runs == 0) != idle {
            let name = &op.op.name;
            return Err(format!("{} '{name}' is in {runs} steps", op.op.kind));
        }
    }
    Ok(())
}

fn kernel(layout: &Layout, kernel: &Kernel, kernels: &Kernels) -> Result<TaskKernel, String> {
    let counts = kernel.counts;
    let total = counts.iter().try_fold(1i64, |product, &count| product.checked_mul(count));
    if counts.iter().any(|&count| count < 1) || total.is_none() {
        return Err(format!("{counts:?} are not numbers of tiles"));
    }
    if kernel.operands.len() > MAX_OPERANDS {
        return Err(format!("{} operands: more than {MAX_OPERANDS}", kernel.operands.len()));
    }
    let mut shared_values = vec![];
    let mut find = |variant: &Variant| {
        let entry = kernels.entry(&variant.symbol);
        let entry =
            entry.ok_or_else(|| format!("the library has no function '{}'", variant.symbol))?;
        let value = variant.keeps.as_ref().map(|keeps| shared_value(kernel, variant.last, keeps));
        let value = value.transpose()?;
        shared_values.extend(value);
        let shared_value = value.map(|_| shared_values.len() - 1);
        Ok::<_, String>(Function { entry, shared_value })
    };
    let found = kernel.variants.iter().map(&mut find).collect::<Result<Vec<_>, _>>()?;
    let operand = |operand: &Operand| self::operand(layout, operand, counts);
    Ok(TaskKernel {
        ops: kernel.ops.clone(),
        counts,
        functions: functions(kernel, &found)?,
        shared_values,
        operands: kernel.operands.iter().map(operand).collect::<Result<_, _>>()?,
    })
}

/// A shared value depends on the digits that select its operands.
fn shared_value(kernel: &Kernel, last: [bool; 4], keeps: &Keeps) -> Result<SharedValue, String> {
    let mut digits = [false; 4];
    for &index in &keeps.operands {
        let Some(operand) = kernel.operands.get(index) else {
            return Err(format!("a shared value depends on operand {index}, which does not exist"));
        };
        for (dim, step) in operand.steps.iter().enumerate() {
            digits[dim] |= *step != 0;
        }
    }
    let bytes = keeps.bytes.max(1).checked_next_multiple_of(64);
    let bytes = bytes.ok_or_else(|| format!("a shared value has {} bytes", keeps.bytes))?;
    Ok(SharedValue { bytes, digits, last })
}

/// The function for each edge of the grid.
fn functions(kernel: &Kernel, found: &[Function]) -> Result<[Option<Function>; 16], String> {
    let mut functions = [None; 16];
    for (mask, function) in functions.iter_mut().enumerate() {
        let is_last = |dim: usize| mask >> dim & 1 == 1;
        // A digit that is not the last requires a second tile.
        if !(0..4).all(|dim| is_last(dim) || kernel.counts[dim] > 1) {
            continue;
        }
        let digits = [0, 1, 2, 3].map(|dim| if is_last(dim) { kernel.counts[dim] - 1 } else { 0 });
        let Some(variant) = kernel.variant(digits) else {
            return Err(format!("no function computes the task of digits {digits:?}"));
        };
        *function = Some(found[variant]);
    }
    Ok(functions)
}

fn operand(layout: &Layout, operand: &Operand, counts: [i64; 4]) -> Result<TaskOperand, String> {
    let Operand { buffer, offset, steps } = operand;
    let Some(slot) = layout.slot(*buffer) else {
        return Err(format!("buffer {buffer} is none of this rank's"));
    };
    let size = layout.buffers[slot].bytes;
    let furthest = steps.iter().zip(counts).try_fold(*offset, |sum, (&step, count)| {
        sum.checked_add(step.checked_mul((count - 1).cast_unsigned())?)
    });
    match furthest {
        Some(byte) if byte < size => Ok(TaskOperand { slot, offset: *offset, steps: *steps }),
        _ => Err(format!("an operand starts beyond the {size} bytes of buffer {buffer}")),
    }
}
