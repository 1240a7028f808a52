//! Ops rewritten, with the same meaning, to what ARK's kernels compute rightly.
//!
//! | op | becomes | why |
//! |---|---|---|
//! | `Transpose` that moves nothing | `Copy` | there is no such kernel |
//! | reduction without `KeepDim` | with it, onto a view of the output with the axis as 1 | of fewer than 4 dimensions the kernel takes a wrong axis |
use irc_ark_format::model::{Arg, Model, Op, OpKind, Tensor};

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
    op.clone()
}

fn is_identity(op: &Op) -> bool {
    op.dims_arg("Permutation").is_some_and(|axes| axes.iter().copied().eq(0..axes.len() as i64))
}

fn keep_dim(op: &Op, next_id: &mut u64) -> Op {
    let axis = op.int_arg("Axis").and_then(|axis| usize::try_from(axis).ok()).unwrap_or(0);
    let mut kept = |tensor: &Tensor| {
        let mut tensor = tensor.clone();
        // A vector reduced to one element keeps its one dimension.
        if tensor.rank() < op.reads[0].rank() {
            for (list, value) in [
                (&mut tensor.shape, 1),
                (&mut tensor.strides, 1),
                (&mut tensor.offsets, 0),
                (&mut tensor.padded_shape, 1),
            ] {
                list.insert(axis, value);
            }
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
