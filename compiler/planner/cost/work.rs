//! The work of one kind of task, derived from its tiles.
use super::Machine;
use irc_ark_format::{
    model::{Family, Op, Region, Tensor, shape},
    plan::{
        PlanOp,
        tiling::{self, Cover, Grid, four},
    },
};

/// Bytes of the widest access of a thread.
const VECTOR: i64 = 16;

/// An operand smaller than the result by this factor adds no latency.
const SMALL: f64 = 8.0;

/// Elements that one thread of an elementwise reduction has in flight: its loop is unrolled.
const UNROLLED: f64 = 4.0;

/// The mean work of a task of one op.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OpWork {
    /// Loads that depend on one another.
    pub rounds: f64,
    /// Whether the operands were written by the same task, and so are in the shared cache.
    pub is_cached: bool,
    /// Bytes moved to and from the shared cache.
    pub bytes: f64,
    /// Multiply-adds on matrix units, counted in those of the first operand's type.
    pub products: f64,
    /// Multiply-adds of a matrix unit per cycle.
    pub product_rate: f64,
    /// Operations on vector units.
    pub operations: f64,
    /// Bytes sent to other ranks.
    pub link: f64,
    /// Messages sent or waited for.
    pub messages: f64,
}

/// An operand of all tasks together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Traffic {
    /// Its bytes.
    pub unique: f64,
    /// Bytes that the tasks move, including repeated loads.
    pub moved: f64,
}

/// The work of a kind of task.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Work {
    pub(super) ops: Vec<OpWork>,
    pub(super) traffic: Vec<Traffic>,
    /// Number of tasks.
    pub(super) tasks: i64,
    /// Warps per task.
    pub(super) warps: i64,
    /// Bytes of on-chip memory per task.
    pub(super) sram: i64,
}

impl Work {
    /// The work of ops that run as one task with these warps and bytes of on-chip memory.
    pub(crate) fn of(ops: &[PlanOp], warps: i64, sram: i64, machine: &Machine) -> Self {
        let tasks = ops.first().and_then(tiling::num_tasks).unwrap_or(0);
        let (traffic, cached) = traffic(ops, tasks);
        let of = |(op, is_cached)| OpWork { is_cached, ..op_work(op, tasks, warps, machine) };
        Self { ops: ops.iter().zip(cached).map(of).collect(), traffic, tasks, warps, sram }
    }

    /// Number of tasks.
    pub(crate) fn tasks(&self) -> i64 {
        self.tasks
    }

    /// Warps per task.
    pub(crate) fn warps(&self) -> i64 {
        self.warps
    }

    /// Bytes of on-chip memory per task.
    pub(crate) fn sram(&self) -> i64 {
        self.sram
    }

    /// Floating-point operations of all tasks.
    pub(super) fn flops(&self) -> f64 {
        let of = |op: &OpWork| 2.0 * op.products + op.operations;
        self.ops.iter().map(of).sum::<f64>() * self.tasks as f64
    }
}

fn op_work(plan_op: &PlanOp, tasks: i64, warps: i64, machine: &Machine) -> OpWork {
    let op = &plan_op.op;
    let result = op.results.first().or(op.reads.first());
    let Some(result) = result.filter(|_| op.kind.family() != Family::Idle && tasks > 0) else {
        return OpWork::default();
    };
    let Some(grid) = tiling::grid(plan_op) else { return communication(op, tasks, warps, machine) };
    let read: f64 = (0..op.reads.len()).map(|index| read_bytes(op, &grid, index)).sum();
    let size = result.dtype.bytes() as f64;
    let elements = product(&four(&result.shape)) / grid.tasks() as f64;
    let mut work = OpWork { bytes: read + elements * size, ..OpWork::default() };
    let threads = (warps * machine.lanes) as f64;
    match op.kind.family() {
        Family::Product => {
            let depth = depth(op);
            let padded = product(&four(&result.padded_shape)) / grid.tasks() as f64;
            work.products = padded * depth;
            work.product_rate = machine.matrix(op.reads[0].dtype);
            // Loads of the first operands and the store of the result are exposed; other loads overlap.
            work.rounds = 2.0;
        }
        Family::Reduction => {
            let length = read / size / elements.max(1.0);
            work.operations = read / size;
            let is_warp_wise = plan_op.config.text("ImplType") == Some("WarpWise");
            work.rounds = match is_warp_wise {
                true => (length / (threads * lanes_of(read as i64, result))).ceil(),
                false => (length / UNROLLED).ceil(),
            };
        }
        family => {
            work.operations = f64::from(op.kind.row().work) * elements;
            let tile: i64 =
                (0..4).map(|dim| grid.tile[dim].min(four(&result.shape)[dim])).product();
            let vector = match family {
                Family::Transposition => loads_in_flight(grid.tile[3]),
                _ => lanes_of(row_bytes(&grid, result), result),
            };
            work.rounds = (tile as f64 / (threads * vector)).ceil();
        }
    }
    work
}

/// Elements that a thread of a transposition loads before it waits for any of them.
fn loads_in_flight(width: i64) -> f64 {
    [8, 4, 2].into_iter().find(|count| width % count == 0).unwrap_or(1) as f64
}

/// Elements per access when rows of `row` bytes are moved.
fn lanes_of(row: i64, result: &Tensor) -> f64 {
    let vector = if row == 0 { VECTOR } else { (row & -row).min(VECTOR) };
    (vector as f64 / result.dtype.bytes() as f64).max(1.0)
}

/// Bytes of a row of a tile; of a whole tile where it is one element wide.
fn row_bytes(grid: &Grid, result: &Tensor) -> i64 {
    let shape = four(&result.shape);
    let row = if shape[3] == 1 { grid.tile[2].min(shape[2]) } else { grid.tile[3].min(shape[3]) };
    row * result.dtype.bytes().cast_signed()
}

/// Mean number of bytes of an operand that a task reads.
fn read_bytes(op: &Op, grid: &Grid, index: usize) -> f64 {
    let tensor = &op.reads[index];
    // A task reads one row of a table, whatever the size of the table.
    if op.kind.family() == Family::Lookup && index == 1 {
        return (tensor.shape.last().copied().unwrap_or(1) as f64) * tensor.dtype.bytes() as f64;
    }
    let extents = tiling::extents(op, tensor);
    let Some(cover) = tiling::reads(op, grid, index) else { return bytes(tensor) };
    let mean = |dim: usize| match cover[dim] {
        Cover::All => extents[dim] as f64,
        Cover::Tile { digit, .. } => extents[dim] as f64 / grid.counts[digit] as f64,
    };
    (0..4).map(mean).product::<f64>() * tensor.dtype.bytes() as f64
}

/// The inner extent of a matrix product.
fn depth(op: &Op) -> f64 {
    let transposed = |name| op.bool_arg(name).unwrap_or(false);
    let (a, b) = (&op.reads[0].padded_shape, &op.reads[1].padded_shape);
    shape::mnk(a, b, transposed("TransposeInput"), transposed("TransposeOther")).k as f64
}

fn communication(op: &Op, tasks: i64, warps: i64, machine: &Machine) -> OpWork {
    let moved: f64 = op.writes.iter().map(bytes).sum::<f64>() / tasks as f64;
    let read: f64 = op.reads.iter().map(bytes).sum::<f64>() / tasks as f64;
    let foreign = op.writes.iter().filter(|tensor| tensor.buffer.rank >= 0);
    let threads = (warps * machine.lanes * VECTOR) as f64;
    OpWork {
        rounds: (moved / threads).ceil(),
        bytes: moved + read,
        link: foreign.map(bytes).sum::<f64>() / tasks as f64,
        messages: 1.0,
        ..OpWork::default()
    }
}

fn product(extents: &[i64]) -> f64 {
    extents.iter().map(|&extent| extent as f64).product()
}

fn bytes(tensor: &Tensor) -> f64 {
    product(&tensor.shape) * tensor.dtype.bytes() as f64
}

/// The traffic of all tasks together, each region counted once, without what a task wrote itself.
/// Also, for each op, whether it reads only what its task wrote.
fn traffic(ops: &[PlanOp], tasks: i64) -> (Vec<Traffic>, Vec<bool>) {
    let mut seen: Vec<(Region, bool)> = vec![];
    let mut found = vec![];
    let mut cached = vec![];
    for plan_op in ops {
        let op = &plan_op.op;
        cached.push(!op.reads.is_empty());
        if op.kind.family() == Family::Idle {
            continue;
        }
        let grid = tiling::grid(plan_op);
        for (index, tensor) in op.reads.iter().enumerate() {
            let region = Region::of(tensor);
            if seen.iter().any(|(old, _)| old.covers(&region)) {
                continue;
            }
            let each = grid.as_ref().map(|grid| read_bytes(op, grid, index));
            let all = each.map_or_else(|| bytes(tensor), |each| each * tasks as f64);
            let unique = (region.bytes() as f64).min(all);
            found.push(Traffic { unique, moved: all });
            // A broadcast row is in the cache after its first use.
            let is_large = unique * SMALL > op.writes.first().map_or(0.0, bytes);
            cached.last_mut().into_iter().for_each(|cached| *cached &= !is_large);
            seen.push((region, false));
        }
        for tensor in &op.writes {
            let region = Region::of(tensor);
            if !seen.iter().any(|(old, is_write)| *is_write && old.covers(&region)) {
                let unique = region.bytes() as f64;
                found.push(Traffic { unique, moved: unique });
                seen.push((region, true));
            }
        }
    }
    (found, cached)
}
