//! Checks that the sending and the receiving op of a link agree.

use std::collections::BTreeMap;

use irc_diag::Diagnostic;

use super::ops;
use crate::json::OpPlace;
use crate::model::links::Link;
use crate::model::{OpKind, Tensor};
use crate::plan::{Plan, PlanOp};

/// One end of a link.
struct LinkEnd<'a> {
    plan: usize,
    place: OpPlace,
    op: &'a PlanOp,
    tensor: &'a Tensor,
}

/// Checks each link that has one sender and one receiver.
pub(super) fn check(plans: &[Plan]) -> Vec<(usize, Diagnostic)> {
    let mut links: BTreeMap<Link, (Vec<LinkEnd<'_>>, Vec<LinkEnd<'_>>)> = BTreeMap::new();
    for (index, plan) in plans.iter().enumerate() {
        for (place, op) in ops(plan).filter(|(_, op)| op.op.kind.is_communication()) {
            for tensor in op.op.writes.iter().filter(|tensor| is_foreign(tensor, plan.rank)) {
                for &[_, tag] in &tensor.buffer.recv_tags {
                    let link = Link { from: plan.rank, to: tensor.buffer.rank, tag };
                    let end = LinkEnd { plan: index, place, op, tensor };
                    links.entry(link).or_default().0.push(end);
                }
            }
            let Some(tensor) = landing(op) else { continue };
            for &[peer, tag] in tensor.buffer.recv_tags.iter().filter(|[peer, _]| *peer >= 0) {
                let link = Link { from: peer, to: plan.rank, tag };
                let end = LinkEnd { plan: index, place, op, tensor };
                links.entry(link).or_default().1.push(end);
            }
        }
    }
    let single = |(senders, receivers): &(Vec<LinkEnd<'_>>, Vec<LinkEnd<'_>>)| match (
        &senders[..],
        &receivers[..],
    ) {
        ([sender], [receiver]) => compare(sender, receiver),
        // Several ops may alternate on a link; the files do not determine how they are paired.
        _ => vec![],
    };
    links.values().flat_map(single).collect()
}

fn is_foreign(tensor: &Tensor, rank: i64) -> bool {
    tensor.buffer.rank >= 0 && tensor.buffer.rank != rank
}

/// The destination of the data that an op receives.
fn landing(op: &PlanOp) -> Option<&Tensor> {
    match op.op.kind {
        OpKind::Recv => op.op.writes.first(),
        OpKind::RecvPacket | OpKind::RecvReduceSend | OpKind::RecvReduceSendPacket => {
            op.op.reads.get(1)
        }
        _ => None,
    }
}

fn compare(sender: &LinkEnd<'_>, receiver: &LinkEnd<'_>) -> Vec<(usize, Diagnostic)> {
    let at = receiver.place.at();
    let mut found = vec![];
    let mut report = |path: String, what: &str| {
        let message = format!("the op that sends this uses {what}");
        let diagnostic = Diagnostic::error("plan-channel", message)
            .path(path)
            .with_note(format!("it is {} of the sender's plan", sender.place));
        found.push((receiver.plan, diagnostic));
    };
    let uses_packets = |end: &LinkEnd<'_>| end.op.op.kind.uses_packets();
    if uses_packets(sender) != uses_packets(receiver) {
        report(at.key("Type").to_string(), "another protocol");
        return found;
    }
    for (key, what) in [("ChannelType", "another channel"), ("PacketType", "another packet")] {
        let both = sender.op.config.get(key).zip(receiver.op.config.get(key));
        if both.is_some_and(|(a, b)| a != b) {
            report(at.key("Config").key(key).to_string(), what);
        }
    }
    let flags = sender.op.op.uint_arg("Flag").zip(receiver.op.op.uint_arg("Flag"));
    if flags.is_some_and(|(a, b)| a != b) {
        report(at.key("Args").key("Flag").to_string(), "another flag");
    }
    let plain = |kind| matches!(kind, OpKind::Recv | OpKind::RecvPacket);
    if plain(receiver.op.op.kind) && bytes(sender.tensor) != bytes(receiver.tensor) {
        report(at.to_string(), &format!("{} bytes", bytes(sender.tensor)));
    }
    found
}

fn bytes(tensor: &Tensor) -> u128 {
    let elements: u128 = tensor.shape.iter().map(|&extent| extent as u128).product();
    elements * u128::from(tensor.dtype.bytes())
}
