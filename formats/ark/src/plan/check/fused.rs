//! Ops of one task: each task index may use only results of the same index.
//!
//! The ops of a task info run consecutively for one task index, without waiting for other
//! indices in between.

use irc_diag::{Diagnostic, Sink};

use super::order::touch::{self, Spot, Witness};
use crate::json::OpPlace;
use crate::model::{Region, Tensor};
use crate::plan::{
    Plan, PlanOp, Range, TaskGroup,
    tiling::{self, Cover, Grid},
};

/// A tensor that an op of the task accesses, and the part of it that each task index accesses.
struct Access<'a> {
    op: usize,
    key: &'static str,
    index: usize,
    tensor: &'a Tensor,
    is_write: bool,
    grid: Option<Grid>,
    cover: Option<[Cover; 4]>,
}

/// Checks that no task uses data that another of its indices writes.
pub(super) fn check(plan: &Plan, sink: &mut Sink) {
    for (task, info) in plan.task_infos.iter().enumerate() {
        check_task(task, &info.ops, sink);
    }
}

/// Maximum number of ops of a task that are compared pairwise.
const MAX_OPS: usize = 512;

/// Checks the ops of one task.
pub(super) fn check_task(task: usize, ops: &[PlanOp], sink: &mut Sink) {
    if ops.len() > MAX_OPS {
        let message = format!("more than {MAX_OPS} ops in a task: they were not compared");
        let diagnostic = Diagnostic::warning("plan-fused-unproven", message);
        sink.push(diagnostic.path(format!("$.TaskInfos[{task}].Ops")));
        return;
    }
    let accesses: Vec<Access<'_>> =
        ops.iter().enumerate().flat_map(|(index, op)| accesses(index, op)).collect();
    for (position, later) in accesses.iter().enumerate() {
        for earlier in &accesses[..position] {
            // The rules of ops cover in-place use by a single op.
            if earlier.op != later.op {
                check_pair(task, ops, earlier, later, sink);
            }
        }
    }
}

/// Two different indices that access the same bytes, if such a pair is found.
fn strays(ops: &[PlanOp], a: &Access<'_>, b: &Access<'_>) -> Option<Witness> {
    let tasks = tiling::num_tasks(&ops[a.op])?;
    let group = TaskGroup { task_id: 0, task_range: Range::new(0, tasks), granularity: 1 };
    let spot = Spot { group: 0, resource: 0, index: 0 };
    let all = touch::accesses(ops, &group, spot, Range::new(0, 1));
    let same = |access: &&touch::Access<'_>, wanted: &Access<'_>| {
        access.index == wanted.op
            && access.is_write == wanted.is_write
            && std::ptr::eq(access.tensor, wanted.tensor)
    };
    let a = all.iter().find(|access| same(access, a))?;
    let b = all.iter().find(|access| same(access, b))?;
    a.strays(b)
}

fn accesses(op_index: usize, plan_op: &PlanOp) -> Vec<Access<'_>> {
    let op = &plan_op.op;
    let grid = tiling::grid(plan_op);
    let read = |(index, tensor)| Access {
        op: op_index,
        key: "ReadTensors",
        index,
        tensor,
        is_write: false,
        grid,
        cover: grid.and_then(|grid| tiling::reads(op, &grid, index)),
    };
    let write = |(index, tensor)| Access {
        op: op_index,
        key: "WriteTensors",
        index,
        tensor,
        is_write: true,
        grid,
        cover: grid.map(|grid| tiling::writes(&grid)),
    };
    let reads = op.reads.iter().enumerate().map(read);
    reads.chain(op.writes.iter().enumerate().map(write)).collect()
}

fn check_pair(
    task: usize,
    ops: &[PlanOp],
    earlier: &Access<'_>,
    later: &Access<'_>,
    sink: &mut Sink,
) {
    let conflict = earlier.is_write || later.is_write;
    if !conflict || !overlap(earlier.tensor, later.tensor) {
        return;
    }
    let proven = stays_within(earlier, later);
    if proven == Some(true) {
        return;
    }
    let witness = strays(ops, earlier, later);
    let what = if later.is_write { "overwrites" } else { "reads" };
    let diagnostic = match (proven, witness) {
        (_, Some(Witness { first, second, bytes })) => {
            let touched = if earlier.is_write { "makes" } else { "reads" };
            let message = format!(
                "a fused op {what} another task index than its own: index {second} byte {} of \
                 buffer {}, which index {first} {touched}",
                bytes.0, later.tensor.buffer.id
            );
            Diagnostic::error("plan-fused-dependency", message)
        }
        (Some(_), None) => {
            let message = format!("a fused op {what} another task index than its own");
            Diagnostic::error("plan-fused-dependency", message)
        }
        (None, None) => {
            let message = format!("a fused op {what} what may belong to another task index");
            Diagnostic::warning("plan-fused-unproven", message)
        }
    };
    let at = OpPlace::Task(task, later.op).at();
    let other = OpPlace::Task(task, earlier.op).at();
    let diagnostic = diagnostic
        .path(at.key(later.key).index(later.index).to_string())
        .related(other.key(earlier.key).index(earlier.index).to_string(), "touched here")
        .with_note("ops of one task run for one index without waiting for the others")
        .help("give the ops the same tiles, or put them in separate tasks");
    sink.push(diagnostic);
}

fn overlap(a: &Tensor, b: &Tensor) -> bool {
    Region::of(a).overlaps(&Region::of(b))
}

/// Whether the later access of an index is within the earlier access of the same index; `None` if
/// the two views of the memory cannot be compared.
fn stays_within(earlier: &Access<'_>, later: &Access<'_>) -> Option<bool> {
    let (a, b) = (earlier.grid?, later.grid?);
    let (a_cover, b_cover) = (earlier.cover?, later.cover?);
    if a.tasks() == 1 && b.tasks() == 1 {
        return Some(true);
    }
    if !same_box(earlier.tensor, later.tensor) {
        return None;
    }
    if a.counts != b.counts {
        // The same digits in other dimensions, as after a reduction that drops one, may be valid.
        let digits = |grid: &Grid| -> Vec<i64> {
            grid.counts.iter().copied().filter(|&count| count != 1).collect()
        };
        return if digits(&a) == digits(&b) { None } else { Some(false) };
    }
    // The writer's tiles must contain the other side's accesses, in each dimension.
    let (writer, other) = match earlier.is_write {
        true => (a_cover, b_cover),
        false => (b_cover, a_cover),
    };
    let shape = tiling::four(&earlier.tensor.shape);
    let within = |dim: usize| match (writer[dim], other[dim]) {
        _ if shape[dim] == 1 => fixed(writer[dim], &a),
        (writer, other) if writer == other => true,
        (writer, _) => fixed(writer, &a),
    };
    Some((0..4).all(within))
}

/// Whether every task accesses the whole dimension.
fn fixed(cover: Cover, grid: &Grid) -> bool {
    match cover {
        Cover::All => true,
        Cover::Tile { digit, .. } => grid.counts[digit] == 1,
    }
}

/// Whether two tensors are the same box of a buffer, except for leading extents of 1.
fn same_box(a: &Tensor, b: &Tensor) -> bool {
    let same = |f: fn(&Tensor) -> &[i64]| tiling::four(f(a)) == tiling::four(f(b));
    a.dtype == b.dtype && same(|tensor| &tensor.shape) && Region::of(a) == Region::of(b)
}
