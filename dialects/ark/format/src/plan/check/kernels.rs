//! What ARK's kernels demand of the ops they run.

use irc_diag::{Diagnostic, Sink};

use super::{matmul, ops};
use crate::json::At;
use crate::model::{Op, OpKind, Tensor, buffer_bytes};
use crate::plan::{Plan, PlanOp};

/// Bytes a vector access may take.
const VECTOR_BYTES: i64 = 16;

/// Checks every op against the preconditions of its kernel.
pub(super) fn check(plan: &Plan, sink: &mut Sink) {
    check_arena(plan, sink);
    for (place, plan_op) in ops(plan) {
        let at = At::op(place);
        match plan_op.op.kind {
            OpKind::Matmul => matmul::check(plan, plan_op, &at, sink),
            OpKind::Transpose => check_transpose(&plan_op.op, &at, sink),
            OpKind::Cast | OpKind::Rope => check_pairs(plan_op, &at, sink),
            OpKind::ScalarAssign => check_fill(&plan_op.op, &at, sink),
            kind if kind.is_reduce() => check_reduce(plan_op, &at, sink),
            _ => {}
        }
        let kind = plan_op.op.kind;
        if kind.is_unary() || kind.is_binary() || kind == OpKind::ScalarAssign {
            check_rows(plan_op, &at, sink);
        }
    }
}

/// The executor lays local buffers back to back by id, without aligning them.
fn check_arena(plan: &Plan, sink: &mut Sink) {
    let local = |tensor: &&Tensor| tensor.buffer.rank < 0 || tensor.buffer.rank == plan.rank;
    let tensors = ops(plan).flat_map(|(_, plan_op)| plan_op.op.tensors()).filter(local);
    let mut offset = 0;
    for (buffer, bytes) in buffer_bytes(tensors) {
        if offset % VECTOR_BYTES as u64 != 0 {
            let message = format!(
                "buffer {buffer} and those after it start at {offset}, not aligned to \
                 {VECTOR_BYTES} bytes"
            );
            let finding = Diagnostic::warning("plan-alignment", message)
                .path("$.TaskInfos")
                .with_note("buffers are laid out by id, back to back");
            sink.push(finding.help("give small buffers the highest ids, or pad them"));
            return;
        }
        offset += bytes;
    }
}

/// Kernels that go through tiles take whole vectors of a tile's row, so each row of each operand
/// must start at a multiple of one.
fn check_rows(plan_op: &PlanOp, at: &At<'_>, sink: &mut Sink) {
    let op = &plan_op.op;
    let (Some(&[_, width]), Some(result)) = (plan_op.config.ints("Tile"), op.results.first())
    else {
        return;
    };
    let extent = result.shape.last().copied().unwrap_or(1);
    let lists = [("ReadTensors", &op.reads), ("WriteTensors", &op.writes)];
    for (key, tensors) in lists {
        let list = at.key(key);
        for (index, tensor) in tensors.iter().enumerate() {
            let size = tensor.dtype.bytes() as i64;
            let vector = power_of_two(width.min(extent) * size);
            let (start, row) = rows(tensor);
            let is_stretched = tensor.shape.last() == Some(&1);
            if is_stretched || (start % vector == 0 && row % vector == 0) {
                continue;
            }
            let message = format!(
                "rows start at {start} bytes and every {row} after; tiles are moved {vector} bytes \
                 at a time"
            );
            let tensor_at = list.index(index);
            let finding = Diagnostic::warning("plan-alignment", message)
                .path(tensor_at.key("Strides").to_string())
                .help("choose a tile width that only shorter vectors divide");
            sink.push(finding);
        }
    }
}

/// The largest power of two that divides a number of bytes, at most a vector.
fn power_of_two(bytes: i64) -> i64 {
    (bytes & bytes.wrapping_neg()).clamp(1, VECTOR_BYTES)
}

/// Where the rows of a tensor start in its buffer: the first, and the distance of others; both in
/// bytes, the distance zero when there is one row.
fn rows(tensor: &Tensor) -> (i64, i64) {
    let size = tensor.dtype.bytes() as i64;
    let (mut stride, mut start, mut row) = (size, 0, 0);
    let dims = tensor.strides.iter().zip(&tensor.offsets).zip(&tensor.shape).rev();
    for (index, ((view, offset), extent)) in dims.enumerate() {
        start += offset * stride;
        if index > 0 && *extent > 1 && row == 0 {
            row = stride;
        }
        stride *= view;
    }
    (start, row)
}

fn check_transpose(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let permutation = op.dims_arg("Permutation").unwrap_or_default();
    if permutation.iter().copied().eq(0..permutation.len() as i64) {
        let message = "there is no kernel for a transposition that moves nothing";
        let args = at.key("Args");
        let finding = Diagnostic::error("plan-transpose-identity", message)
            .path(args.key("Permutation").to_string())
            .help("drop the op, or use `Copy`");
        sink.push(finding);
    }
}

fn check_reduce(plan_op: &PlanOp, at: &At<'_>, sink: &mut Sink) {
    let op = &plan_op.op;
    let rank = op.reads[0].rank();
    let axis = op.int_arg("Axis").map_or(0, i64::from);
    if plan_op.config.text("ImplType") == Some("WarpWise") && axis + 1 != rank as i64 {
        let config = at.key("Config");
        let message = format!("`WarpWise` reduces the last axis only, found axis {axis} of {rank}");
        let finding = Diagnostic::error("plan-reduce-impl", message);
        sink.push(finding.path(config.key("ImplType").to_string()));
    }
    if op.bool_arg("KeepDim") == Some(false) && rank < 4 {
        let args = at.key("Args");
        let message = format!("ARK reduces a wrong axis of {rank} dimensions without `KeepDim`");
        let finding = Diagnostic::error("plan-reduce-keep-dim", message)
            .path(args.key("KeepDim").to_string())
            .help("keep the dimension and read the result through a view without it");
        sink.push(finding);
    }
}

/// Kernels that take two elements at a time skip the last of an odd row.
fn check_pairs(plan_op: &PlanOp, at: &At<'_>, sink: &mut Sink) {
    let width = plan_op.op.writes[0].shape.last().copied().unwrap_or(1);
    let tile = plan_op.config.ints("Tile").and_then(|tile| tile.get(1).copied()).unwrap_or(2);
    let config = at.key("Config");
    if width % 2 != 0 || tile % 2 != 0 {
        let kind = plan_op.op.kind;
        let message =
            format!("`{kind}` takes pairs of elements; rows are {width}, tiles {tile} wide");
        let finding = Diagnostic::warning("plan-odd-width", message);
        sink.push(finding.path(config.key("Tile").to_string()));
    }
}

fn check_fill(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let output = &op.writes[0];
    let width = output.shape.last().copied().unwrap_or(1);
    let bytes = width * output.dtype.bytes() as i64;
    if bytes % VECTOR_BYTES != 0 {
        let message = format!(
            "rows of {bytes} bytes are filled {VECTOR_BYTES} bytes at a time, past their end"
        );
        let writes = at.key("WriteTensors");
        let finding = Diagnostic::warning("plan-fill-overrun", message);
        sink.push(finding.path(writes.index(0).key("Shape").to_string()));
    }
}
