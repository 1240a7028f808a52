//! Rewrites ops, preserving their meaning, to forms that ARK's kernels compute correctly.
//!
//! | op | becomes | why |
//! |---|---|---|
//! | `Transpose` that moves nothing | `Copy` | there is no such kernel |
//! | `Cast` of rows of odd length | on views with one more dimension, of 1, at the end | the kernel converts elements in pairs, but rows of one element singly |
//! | reduction without `KeepDim` | with it, into a view of the output with the axis as 1 | with fewer than 4 dimensions the kernel reduces a wrong axis |
use super::tile::takes_pairs;
use irc_ark_format::model::{Arg, Lane, Model, Op, OpKind, Tensor};

/// Rewrites ops, each with the index of its node. Tensors of new shapes get ids that the model does
/// not use.
pub fn rewrite(ops: &[(usize, &Op)], model: &Model) -> Vec<(usize, Op)> {
    let mut next_id = model.tensors().map(|tensor| tensor.id).max().map_or(0, |id| id + 1);
    ops.iter().map(|(node, op)| (*node, kernel_form(op, &mut next_id))).collect()
}

fn kernel_form(op: &Op, next_id: &mut u64) -> Op {
    if op.kind == OpKind::Transpose && is_identity(op) {
        return Op { kind: OpKind::Copy, args: Default::default(), ..op.clone() };
    }
    if op.kind.is_reduce() && op.bool_arg("KeepDim") == Some(false) {
        return keep_dim(op, next_id);
    }
    if op.kind.row().lane == Lane::Pairs && !takes_pairs(op) {
        return column(op, next_id).unwrap_or_else(|| op.clone());
    }
    op.clone()
}

fn is_identity(op: &Op) -> bool {
    op.dims_arg("Permutation").is_some_and(|axes| axes.iter().copied().eq(0..axes.len() as i64))
}

fn keep_dim(op: &Op, next_id: &mut u64) -> Op {
    let axis = op.int_arg("Axis").and_then(|axis| usize::try_from(axis).ok()).unwrap_or(0);
    let mut kept = |tensor: &Tensor| {
        let mut tensor = tensor.clone();
        // A vector reduced to one element keeps its dimension.
        if tensor.rank() < op.reads[0].rank() {
            insert(&mut tensor, axis);
            tensor.id = *next_id;
            *next_id += 1;
        }
        tensor
    };
    let mut rewritten = op.clone();
    rewritten.writes = op.writes.iter().map(&mut kept).collect();
    rewritten.results = op.results.iter().map(&mut kept).collect();
    rewritten.args.insert("KeepDim".to_owned(), Arg::Bool(true));
    rewritten
}

/// The op on views whose last dimension is 1. An op of four dimensions must have two that can be
/// merged; `None` if it has none.
fn column(op: &Op, next_id: &mut u64) -> Option<Op> {
    let mut column = op.clone();
    for tensor in column.reads.iter_mut().chain(&mut column.writes).chain(&mut column.results) {
        while tensor.rank() < op.results[0].rank() {
            insert(tensor, 0);
        }
        tensor.id = *next_id;
        *next_id += 1;
    }
    let extents = &op.results[0].shape;
    let tensors = || column.reads.iter().chain(&column.writes);
    let joint = (0..extents.len() - 1).find(|dim| {
        tensors().all(|tensor| {
            tensor.shape[*dim..*dim + 2] == extents[*dim..*dim + 2] && is_one(tensor, *dim)
        })
    });
    if extents.len() == 4 && joint.is_none() {
        return None;
    }
    for tensor in column.reads.iter_mut().chain(&mut column.writes).chain(&mut column.results) {
        if let Some(dim) = joint.filter(|_| extents.len() == 4) {
            join(tensor, dim);
        }
        let end = tensor.rank();
        insert(tensor, end);
    }
    Some(column)
}

/// Whether a dimension and the next are contiguous, so that they can be merged.
fn is_one(tensor: &Tensor, dim: usize) -> bool {
    tensor.shape[dim] == 1 || tensor.strides[dim + 1] == tensor.shape[dim + 1]
}

/// Merges two dimensions.
fn join(tensor: &mut Tensor, dim: usize) {
    let inner = tensor.strides.remove(dim + 1);
    tensor.strides[dim] *= inner;
    tensor.offsets[dim] = tensor.offsets[dim] * inner + tensor.offsets.remove(dim + 1);
    tensor.shape[dim] *= tensor.shape.remove(dim + 1);
    tensor.padded_shape.remove(dim + 1);
    tensor.padded_shape[dim] = tensor.shape[dim];
}

/// Adds a dimension of 1.
fn insert(tensor: &mut Tensor, dim: usize) {
    for (list, value) in [
        (&mut tensor.shape, 1),
        (&mut tensor.strides, 1),
        (&mut tensor.offsets, 0),
        (&mut tensor.padded_shape, 1),
    ] {
        list.insert(dim, value);
    }
}
