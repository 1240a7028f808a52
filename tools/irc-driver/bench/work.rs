//! The arithmetic work of a plan.
use irc_ark_format::{
    model::{Family, Op},
    plan::Plan,
};

/// Number of floating-point operations of a plan.
pub fn of_plan(plan: &Plan) -> u64 {
    let ops = plan.task_infos.iter().flat_map(|task| &task.ops);
    ops.map(|plan_op| of_op(&plan_op.op)).fold(0, u64::saturating_add)
}

/// Number of floating-point operations of an op. A multiply-add counts as two; an elementwise op as one per
/// element of its result, whatever its cost (three for a rotary embedding); a reduction as one per element
/// of its operand; moves and conversions as zero.
fn of_op(op: &Op) -> u64 {
    let made = op.writes.first().map_or(0, |tensor| elements(&tensor.shape));
    let taken = op.reads.first().map_or(0, |tensor| elements(&tensor.shape));
    match op.kind.family() {
        Family::Product => made.saturating_mul(2).saturating_mul(inner(op)),
        Family::Reduction => taken,
        _ => made.saturating_mul(op.kind.row().flops.into()),
    }
}

/// The contracted extent of a matmul.
fn inner(op: &Op) -> u64 {
    let Some(shape) = op.reads.first().map(|tensor| &tensor.shape) else { return 0 };
    let transposed = op.bool_arg("TransposeInput").unwrap_or(false);
    let from_end = if transposed { 2 } else { 1 };
    let extent = shape.len().checked_sub(from_end).and_then(|index| shape.get(index));
    extent.map_or(1, |extent| (*extent).unsigned_abs())
}

fn elements(shape: &[i64]) -> u64 {
    shape.iter().map(|extent| extent.unsigned_abs()).fold(1, u64::saturating_mul)
}
