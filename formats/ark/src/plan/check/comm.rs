//! Checks of the communication of a single plan.

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use super::{ops, packets};
use crate::json::OpPlace;
use crate::model::{OpKind, Tensor};
use crate::plan::tiling::four;
use crate::plan::{Plan, PlanOp};

/// Checks ranks, channels and the layout of sent data.
pub(super) fn check(plan: &Plan, sink: &mut Sink) {
    for (place, plan_op) in ops(plan) {
        let at = place.at();
        check_tags(plan, plan_op, &at, sink);
        match plan_op.op.kind {
            OpKind::Send => {
                check_contiguous(plan_op, &at, sink);
                check_tiles(plan_op, &at, sink);
            }
            OpKind::SendDone => check_done(plan, plan_op, &at, sink),
            OpKind::RecvReduceSend => {
                check_peers(plan, plan_op, &at, sink);
                check_tiles(plan_op, &at, sink);
            }
            OpKind::RecvReduceSendPacket => {
                check_peers(plan, plan_op, &at, sink);
                check_tiles(plan_op, &at, sink);
            }
            _ => {}
        }
        packets::check(plan_op, &at, sink);
    }
}

/// Checks that tags refer to ranks of the world.
fn check_tags(plan: &Plan, plan_op: &PlanOp, at: &At<'_>, sink: &mut Sink) {
    let op = &plan_op.op;
    let lists =
        [("ReadTensors", &op.reads), ("WriteTensors", &op.writes), ("ResultTensors", &op.results)];
    for (key, tensors) in lists {
        let list = at.key(key);
        for (index, tensor) in tensors.iter().enumerate() {
            let tensor_at = list.index(index);
            let buffer_at = tensor_at.key("Buffer");
            let buffer = &tensor.buffer;
            let tags = buffer.send_tags.iter().map(|[peer, _]| ("SendTags", *peer));
            let tags = tags.chain(buffer.recv_tags.iter().map(|[peer, _]| ("RecvTags", *peer)));
            for (key, rank) in tags {
                if rank >= plan.world_size {
                    let world = plan.world_size;
                    let message = format!("rank {rank} is not in a world of {world}");
                    let diagnostic = Diagnostic::error("plan-ranks", message);
                    sink.push(diagnostic.path(buffer_at.key(key).to_string()));
                }
            }
        }
    }
}

/// A proxy copies one run of bytes for each outermost index.
fn check_contiguous(plan_op: &PlanOp, at: &At<'_>, sink: &mut Sink) {
    if plan_op.config.text("ChannelType") == Some("Sm") {
        return;
    }
    let op = &plan_op.op;
    for (key, tensors) in [("ReadTensors", &op.reads), ("WriteTensors", &op.writes)] {
        let is_strided = |tensor: &&Tensor| four(&tensor.strides)[1..] != four(&tensor.shape)[1..];
        if let Some(tensor) = tensors.first().filter(is_strided) {
            let list = at.key(key);
            let (shape, strides) = (&tensor.shape, &tensor.strides);
            let message = format!("a proxy sends whole rows, found {shape:?} of {strides:?}");
            let diagnostic = Diagnostic::error("plan-send-strided", message)
                .path(list.index(0).key("Strides").to_string())
                .with_note("only the outermost of four dimensions may be part of a view")
                .help("copy it to a separate buffer, or send with `ChannelType` `Sm`");
            sink.push(diagnostic);
        }
    }
}

/// Tasks of a send by the processors' own stores are tiles of the sent tensor.
fn check_tiles(plan_op: &PlanOp, at: &At<'_>, sink: &mut Sink) {
    let Some(&[height, width]) = plan_op.config.ints("Tile") else { return };
    let (Some(tasks), Some(tensor)) = (plan_op.config.int("NumTasks"), plan_op.op.writes.first())
    else {
        return;
    };
    let [n, c, h, w] = four(&tensor.shape);
    let tiles = n * c * ((h + height - 1) / height) * ((w + width - 1) / width);
    if tiles != tasks {
        let config = at.key("Config");
        let message = format!("`NumTasks` is {tasks}, the tiles of the result are {tiles}");
        let diagnostic = Diagnostic::error("plan-num-tasks", message);
        sink.push(diagnostic.path(config.key("NumTasks").to_string()));
    }
}

/// Checks that a send is completed on its own channel.
fn check_done(plan: &Plan, done: &PlanOp, at: &At<'_>, sink: &mut Sink) {
    let Some(sent) = done.op.reads.first() else { return };
    let is_it = |(_, plan_op): &(OpPlace, &PlanOp)| {
        let writes = &plan_op.op.writes;
        plan_op.op.kind == OpKind::Send && writes.iter().any(|w| w.buffer.id == sent.buffer.id)
    };
    let mut sends = ops(plan).filter(is_it).peekable();
    if sends.peek().is_none() {
        let message = "no `Send` of the plan sends what this waits for";
        let reads = at.key("ReadTensors");
        let diagnostic = Diagnostic::error("plan-channel", message);
        sink.push(diagnostic.path(reads.index(0).to_string()));
        return;
    }
    let channel = done.config.text("ChannelType");
    if let Some((place, _)) = sends.find(|(_, op)| op.config.text("ChannelType") != channel) {
        let config = at.key("Config");
        let send = place.at();
        let diagnostic = Diagnostic::error("plan-channel", "the send uses another channel")
            .path(config.key("ChannelType").to_string())
            .related(send.key("Config").key("ChannelType").to_string(), "it is here");
        sink.push(diagnostic);
    }
}

/// The kernel numbers peers by rank, skipping its own.
fn check_peers(plan: &Plan, plan_op: &PlanOp, at: &At<'_>, sink: &mut Sink) {
    let args = at.key("Args");
    let rank = plan_op.op.int_arg("Rank").map(i64::from);
    if rank != Some(plan.rank) {
        let message = format!("`Rank` must be that of the plan, {}", plan.rank);
        let diagnostic = Diagnostic::error("ark-arg-value", message);
        sink.push(diagnostic.path(args.key("Rank").to_string()));
        return;
    }
    let writes = at.key("WriteTensors");
    for (index, tensor) in plan_op.op.writes.iter().enumerate().skip(1) {
        let peer = index as i64 - 1;
        let expected = if peer < plan.rank { peer } else { peer + 1 };
        let found = tensor.buffer.rank;
        if found != expected {
            let message = format!("peer {peer} of rank {} is {expected}, found {found}", plan.rank);
            let tensor_at = writes.index(index);
            let buffer_at = tensor_at.key("Buffer");
            let diagnostic = Diagnostic::error("plan-peers", message);
            sink.push(diagnostic.path(buffer_at.key("Rank").to_string()));
        }
    }
}
