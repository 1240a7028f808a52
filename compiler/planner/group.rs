//! Which neighbours run in one task.
use super::{
    Finding, Target,
    configs::{self, is_elementwise, reduces_rows},
    tile::{arena, four, suits, tile},
};
use irc_ark_format::{
    model::{Op, OpKind},
    plan::{PlanOp, fuses},
};
use std::collections::BTreeMap;

/// Rows longer than this are too much for the one warp of a row task.
const LONGEST_ROW: i64 = 16_384;

/// Ops of one task, and the nodes they come from.
pub struct Draft {
    /// The ops with their configs.
    pub ops: Vec<PlanOp>,
    /// The index of each op's node.
    pub nodes: Vec<usize>,
}

/// Groups ops in list order: each joins the task before it when it may and uses what that made.
///
/// # Errors
/// Every node that the architecture has no kernel for.
pub fn group(ops: &[(usize, Op)], target: &Target) -> Result<Vec<Draft>, Vec<Finding>> {
    let arena = arena(ops);
    let mut drafts: Vec<Draft> = vec![];
    let mut errors = vec![];
    for (node, op) in ops {
        if let Some(last) = drafts.last_mut()
            && let Some(joined) = join(last, op, &arena)
        {
            last.ops = joined;
            last.nodes.push(*node);
            continue;
        }
        match alone(op, target, &arena) {
            Ok(plan_op) => drafts.push(Draft { ops: vec![plan_op], nodes: vec![*node] }),
            Err(message) => errors.push(Finding { node: Some(*node), message }),
        }
    }
    if errors.is_empty() { Ok(drafts) } else { Err(errors) }
}

fn alone(op: &Op, target: &Target, arena: &BTreeMap<u64, i64>) -> Result<PlanOp, String> {
    if is_elementwise(op) {
        return Ok(configs::tiled(op, tile(&[op], arena), 1));
    }
    if row_width(op).is_some_and(|width| suits(op, width, width, arena)) {
        return Ok(configs::row(op));
    }
    configs::alone(op, target)
}

/// The length of the rows an op reduces.
fn row_width(op: &Op) -> Option<i64> {
    reduces_rows(op).then(|| op.reads[0].shape.last().copied()).flatten()
}

/// The ops of a task with one more, when its tasks line up with theirs.
fn join(draft: &Draft, op: &Op, arena: &BTreeMap<u64, i64>) -> Option<Vec<PlanOp>> {
    if !uses(&draft.ops, op) {
        return None;
    }
    let first = &draft.ops[0];
    if first.op.kind == OpKind::Matmul {
        return epilogue(&draft.ops, op, arena);
    }
    let ops: Vec<&Op> = draft.ops.iter().map(|old| &old.op).chain([op]).collect();
    tiles(&ops, arena).or_else(|| rows(&ops, arena))
}

/// Whether an op reads what the task wrote; else nothing is gained by joining them.
fn uses(ops: &[PlanOp], op: &Op) -> bool {
    let written = |id: u64| ops.iter().any(|old| old.op.writes.iter().any(|w| w.buffer.id == id));
    op.reads.iter().any(|tensor| written(tensor.buffer.id))
}

/// A matmul's elementwise epilogue, on the tiles of the matmul and with its warps.
fn epilogue(ops: &[PlanOp], op: &Op, arena: &BTreeMap<u64, i64>) -> Option<Vec<PlanOp>> {
    let &[height, width, _] = ops[0].config.ints("TileShapeMNK")? else { return None };
    let extent = *op.results.first()?.shape.last()?;
    if !is_elementwise(op) || !suits(op, width, extent, arena) {
        return None;
    }
    let mut joined = ops.to_vec();
    joined.push(configs::tiled(op, [height, width], ops[0].config.int("NumWarps")?));
    fuses(&joined).then_some(joined)
}

/// A chain of elementwise ops on one grid of tiles.
fn tiles(ops: &[&Op], arena: &BTreeMap<u64, i64>) -> Option<Vec<PlanOp>> {
    let shape = |op: &Op| four(&op.results[0].shape);
    if !ops.iter().all(|op| is_elementwise(op) && shape(op) == shape(ops[0])) {
        return None;
    }
    let tile = tile(ops, arena);
    let joined: Vec<_> = ops.iter().map(|op| configs::tiled(op, tile, 1)).collect();
    fuses(&joined).then_some(joined)
}

/// Reductions along the last axis and elementwise ops, each task a row.
fn rows(ops: &[&Op], arena: &BTreeMap<u64, i64>) -> Option<Vec<PlanOp>> {
    let joined = ops.iter().map(|op| {
        let reduced = row_width(op);
        let width = reduced.or(op.results.first()?.shape.last().copied())?;
        let fits = width <= LONGEST_ROW && suits(op, width, width, arena);
        match reduced {
            _ if !fits => None,
            Some(_) => Some(configs::row(op)),
            None => is_elementwise(op).then(|| configs::tiled(op, [1, width], 1)),
        }
    });
    let joined: Vec<_> = joined.collect::<Option<_>>()?;
    fuses(&joined).then_some(joined)
}
