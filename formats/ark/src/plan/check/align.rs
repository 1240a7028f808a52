//! Kernels that move several elements at a time require them to be aligned.

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use super::lanes::{Lanes, vector};
use super::memory::Memory;
use crate::model::{DataType, Family, Lane, Tensor};
use crate::plan::PlanOp;
use crate::plan::tiling::four;

/// Number of bytes that a matrix kernel moves at a time.
const MATMUL_BYTES: i64 = 16;

/// What a kernel moves of a tensor at a time, and the distances, in elements, between these.
struct Move<'a> {
    key: &'static str,
    index: usize,
    tensor: &'a Tensor,
    /// Number of elements at a time.
    width: i64,
    apart: Vec<i64>,
}

/// Checks the alignment of what an op moves at a time.
pub(super) fn check(plan_op: &PlanOp, memory: &Memory, at: &At<'_>, sink: &mut Sink) {
    for moved in moves(plan_op) {
        check_move(&moved, memory, at, sink);
    }
}

fn check_move(moved: &Move<'_>, memory: &Memory, at: &At<'_>, sink: &mut Sink) {
    let tensor = moved.tensor;
    let size = tensor.dtype.bytes() as i64;
    let bytes = moved.width * size;
    let list = at.key(moved.key);
    let tensor_at = list.index(moved.index);
    let start = memory.start(tensor.buffer.id) as i64 + first(tensor) * size;
    let apart = moved.apart.iter().map(|apart| apart * size).find(|apart| apart % bytes != 0);
    let (message, key, help) = match apart {
        Some(apart) => (
            format!("{bytes} bytes are moved at a time, from places {apart} bytes apart"),
            "Strides",
            "choose a tile width that only shorter vectors divide, or pad the rows",
        ),
        None if start % bytes != 0 => (
            format!("{bytes} bytes are moved at a time, from byte {start} of the memory on"),
            "Buffer",
            "give small buffers the highest ids, or pad them",
        ),
        None => return,
    };
    let diagnostic = Diagnostic::warning("plan-alignment", message)
        .path(tensor_at.key(key).to_string())
        .with_note("buffers are laid out by id, back to back; a device traps on such an access");
    sink.push(diagnostic.help(help));
}

/// Index of the first element of a tensor in its buffer.
fn first(tensor: &Tensor) -> i64 {
    let dims = tensor.strides.iter().zip(&tensor.offsets);
    dims.fold(0, |index, (view, offset)| index * view + offset)
}

fn moves(plan_op: &PlanOp) -> Vec<Move<'_>> {
    let op = &plan_op.op;
    let reads = op.reads.iter().enumerate().map(|(index, tensor)| ("ReadTensors", index, tensor));
    let writes =
        op.writes.iter().enumerate().map(|(index, tensor)| ("WriteTensors", index, tensor));
    let all = reads.chain(writes);
    if op.kind.family() == Family::Idle {
        return vec![];
    }
    let lanes = Lanes::of(plan_op);
    let row = op.kind.row();
    all.map(|(key, index, tensor)| {
        let is_write = key == "WriteTensors";
        let (width, apart) = match (&lanes, row.family) {
            _ if row.lane == Lane::CoupledPairs => (1, vec![]),
            (Some(lanes), _) => {
                let width = if is_write { lanes.stored } else { lanes.loaded[index] };
                let is_single = row.lane == Lane::Pairs && !is_moved_in_pairs(plan_op);
                (if is_single { 1 } else { width }, apart(tensor, lanes))
            }
            (None, Family::Product) => {
                let width = MATMUL_BYTES / tensor.dtype.bytes() as i64;
                (width, vec![tensor.strides.last().copied().unwrap_or(1)])
            }
            (None, Family::Reduction) if !is_write => reduced(plan_op, tensor),
            _ => (1, vec![]),
        };
        Move { key, index, tensor, width, apart }
    })
    .collect()
}

/// Whether elements are moved in pairs; those of one byte are not.
fn is_moved_in_pairs(plan_op: &PlanOp) -> bool {
    let is_wide = |tensor: &Tensor| {
        !matches!(tensor.dtype, DataType::Int8 | DataType::Uint8 | DataType::Byte)
    };
    plan_op.op.reads.iter().chain(&plan_op.op.writes).all(is_wide)
}

/// Distances between the elements at which lanes start in a tensor.
fn apart(tensor: &Tensor, lanes: &Lanes) -> Vec<i64> {
    let (shape, strides) = (four(&tensor.shape), four(&tensor.strides));
    let mut apart = rows_apart(tensor, lanes.dim);
    if lanes.is_linear && lanes.dim == 3 {
        // Lanes continue from row to row; only tiles restart.
        apart.retain(|&rows| rows != strides[3]);
        apart.extend((shape[2] > lanes.height).then_some(lanes.height * lanes.tile));
    }
    apart.extend((lanes.tiles() > 1).then_some(lanes.tile));
    apart
}

/// Distances between the rows of a tensor, along each of its dimensions before `dim`.
fn rows_apart(tensor: &Tensor, dim: usize) -> Vec<i64> {
    let (shape, strides) = (four(&tensor.shape), four(&tensor.strides));
    let outer = (0..dim).filter(|&outer| shape[outer] > 1);
    outer.map(|outer| strides[outer + 1..].iter().product()).collect()
}

/// What a reduction moves of its operand at a time: along the last axis, as many as its additions use.
fn reduced(plan_op: &PlanOp, tensor: &Tensor) -> (i64, Vec<i64>) {
    if plan_op.config.text("ImplType") != Some("WarpWise") {
        return (1, vec![]);
    }
    let size = tensor.dtype.bytes() as i64;
    let most = match size {
        2 => 2,
        4 => 4,
        _ => 1,
    };
    (vector(four(&tensor.shape)[3] * size, size).min(most), rows_apart(tensor, 3))
}
