//! Semantic checks of a model.
//!
//! Diagnostics have JSON paths, not locations in a text, so that models without a text can be
//! checked too.

mod graph;
mod identity;
mod op;
mod overlap;
mod ranks;
mod tensor;

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use super::{Model, Op, Tensor};
use crate::json::OpPlace;

pub(crate) use graph::Edges;

/// Maximum size of a buffer of a model, in bytes: one tebibyte.
pub(crate) const MAX_BUFFER_BYTES: u128 = 1 << 40;

/// All diagnostics of a model.
///
/// Paths refer to the model in its current form, `$.Nodes[i].Op`; `i` is the index of the node.
pub fn validate(model: &Model) -> Vec<Diagnostic> {
    let ops = model.nodes.iter().enumerate();
    let ops: Vec<(OpPlace, &Op)> = ops.map(|(i, node)| (OpPlace::Node(i), &node.op)).collect();
    let edges: Vec<Edges> = model.nodes.iter().enumerate().map(Edges::of).collect();
    check(Some((model.rank, model.world_size)), &ops, Some(&edges))
}

/// All diagnostics of a single op; paths begin with `$`, the op.
pub fn validate_op(op: &Op) -> Vec<Diagnostic> {
    let mut sink = Sink::new();
    op::check(op, &At::ROOT, &mut sink);
    sink.into_diagnostics()
}

/// All diagnostics of a model whose ops are valid by themselves: ranks, edges, shared ids, order.
pub fn validate_graph(model: &Model) -> Vec<Diagnostic> {
    let ops = model.nodes.iter().enumerate();
    let ops: Vec<(OpPlace, &Op)> = ops.map(|(i, node)| (OpPlace::Node(i), &node.op)).collect();
    let edges: Vec<Edges> = model.nodes.iter().enumerate().map(Edges::of).collect();
    let mut sink = Sink::new();
    check_ranks(model.rank, model.world_size, &mut sink);
    graph::check(&edges, &mut sink);
    identity::check(&ops, &mut sink);
    check_foreign(Some((model.rank, model.world_size)), &ops, &mut sink);
    identity::check_order(&ops, &mut sink);
    sink.into_diagnostics()
}

/// Checks the known parts of a model: the rank and world size, ops, and edges if all could be read.
pub(crate) fn check(
    ranks: Option<(i64, i64)>,
    ops: &[(OpPlace, &Op)],
    edges: Option<&[Edges]>,
) -> Vec<Diagnostic> {
    let mut sink = Sink::new();
    if let Some((rank, world_size)) = ranks {
        check_ranks(rank, world_size, &mut sink);
    }
    check_ops(ops, &mut sink);
    check_foreign(ranks, ops, &mut sink);
    if let Some(edges) = edges {
        graph::check(edges, &mut sink);
    }
    identity::check_order(ops, &mut sink);
    sink.into_diagnostics()
}

/// Checks the references of ops to ranks, and shared buffers and tags, if the rank and the
/// world are valid.
pub(crate) fn check_foreign(world: Option<(i64, i64)>, ops: &[(OpPlace, &Op)], sink: &mut Sink) {
    if let Some(world) = world.filter(|(rank, world_size)| (0..*world_size).contains(rank)) {
        ranks::check_syncs(ops, world, sink);
        ranks::check(ops, world, sink);
        ranks::check_tags(ops, world.0, sink);
    }
}

/// Checks each op, and that ops agree on shared tensors and buffers.
pub(crate) fn check_ops(ops: &[(OpPlace, &Op)], sink: &mut Sink) {
    ops.iter().for_each(|(place, op)| op::check(op, &place.at(), sink));
    identity::check(ops, sink);
}

/// Checks one tensor by itself; paths are relative to the tensor.
pub(crate) fn check_tensor(tensor: &Tensor) -> Vec<Diagnostic> {
    let mut sink = Sink::new();
    tensor::check(tensor, &At::ROOT, &mut sink);
    sink.into_diagnostics()
}

/// Checks that the rank is in the world.
pub(crate) fn check_ranks(rank: i64, world_size: i64, sink: &mut Sink) {
    if world_size < 1 {
        let message = format!("`WorldSize` must be at least 1, found {world_size}");
        sink.push(Diagnostic::error("ark-world-size", message).path("$.WorldSize"));
    } else if !(0..world_size).contains(&rank) {
        let message = format!("`Rank` must be in [0, {world_size}), found {rank}");
        sink.push(Diagnostic::error("ark-world-size", message).path("$.Rank"));
    }
}
