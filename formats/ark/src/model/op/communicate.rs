//! The checks in the rows of communication ops.

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use crate::model::{DataType, Op, Tensor};

/// Maximum number of peers of a reducing receive.
const MAX_PEERS: usize = 7;

/// Bytes of a packet for each byte of payload.
const PACKET_RATIO: u128 = 2;

/// Checks a tensor and its copy on a peer.
pub(super) fn send(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let (input, remote) = (&op.reads[0], &op.writes[0]);
    check_copy(input, remote, at, sink);
    check_tag(input, remote, ("WriteTensors", 0), at, sink);
}

/// Checks a tensor and its packets on a peer. ARK has no separate tag for these.
pub(super) fn send_packets(op: &Op, at: &At<'_>, sink: &mut Sink) {
    check_remote(&op.writes[0], ("WriteTensors", 0), at, sink);
    check_packets(&op.writes[0], &op.reads[0], 1, ("WriteTensors", 0), at, sink);
}

/// Checks what a peer sends, the received packets, and the tensor of their payload.
pub(super) fn receive_packets(op: &Op, at: &At<'_>, sink: &mut Sink) {
    // Packets carry elements in order, whatever shapes the two ends have.
    check_ends("DataType", op.reads[0].dtype == op.writes[0].dtype, at, sink);
    check_packets(&op.reads[1], &op.writes[0], 1, ("ReadTensors", 1), at, sink);
}

/// Checks that source and destination have the same shape and type.
fn check_copy(from: &Tensor, to: &Tensor, at: &At<'_>, sink: &mut Sink) {
    check_ends("DataType", from.dtype == to.dtype, at, sink);
    check_ends("Shape", from.shape == to.shape, at, sink);
}

fn check_ends(key: &str, is_equal: bool, at: &At<'_>, sink: &mut Sink) {
    if !is_equal {
        let (reads, writes) = (at.key("ReadTensors"), at.key("WriteTensors"));
        let message = format!("`{key}` of the two ends differs");
        let diagnostic = Diagnostic::error("ark-shape-mismatch", message)
            .path(writes.index(0).key(key).to_string())
            .related(reads.index(0).key(key).to_string(), "the source is here");
        sink.push(diagnostic);
    }
}

/// The rank of the remote end, which is required.
fn check_remote(
    remote: &Tensor,
    (list, index): (&str, usize),
    at: &At<'_>,
    sink: &mut Sink,
) -> Option<i64> {
    if remote.buffer.rank >= 0 {
        return Some(remote.buffer.rank);
    }
    let list = at.key(list);
    let message = "the buffer on the other rank must name that rank";
    let diagnostic = Diagnostic::error("ark-remote-rank", message);
    sink.push(diagnostic.path(format!("{}.Buffer.Rank", list.index(index))));
    None
}

/// Checks that the remote end has its rank, and that the local end sends to it under a tag it receives.
fn check_tag(
    local: &Tensor,
    remote: &Tensor,
    (list, index): (&str, usize),
    at: &At<'_>,
    sink: &mut Sink,
) {
    let Some(peer) = check_remote(remote, (list, index), at, sink) else { return };
    let list = at.key(list);
    let buffer = list.index(index);
    let buffer = buffer.key("Buffer");
    let mut received = remote.buffer.recv_tags.iter().filter(|[rank, _]| *rank == -1);
    let sent = |tag: &i64| local.buffer.send_tags.contains(&[peer, *tag]);
    if !received.any(|[_, tag]| sent(tag)) {
        let message = format!("no tag connects the buffer sent to its copy on rank {peer}");
        let diagnostic = Diagnostic::error("ark-tag", message)
            .path(buffer.key("RecvTags").to_string())
            .with_note(format!(
                "one tag t must be [-1, t] here and [{peer}, t] in `SendTags` of \
                                the tensor sent"
            ));
        sink.push(diagnostic);
    }
}

/// Checks what a peer sends, and the received tensor.
pub(super) fn receive(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let (remote, local) = (&op.reads[0], &op.writes[0]);
    check_copy(remote, local, at, sink);
    let Some(peer) = check_remote(remote, ("ReadTensors", 0), at, sink) else { return };
    let reads = at.key("ReadTensors");
    let buffer = reads.index(0);
    let buffer = buffer.key("Buffer");
    let mut sent = remote.buffer.send_tags.iter().filter(|[rank, _]| *rank == -1);
    let received = |tag: &i64| local.buffer.recv_tags.contains(&[peer, *tag]);
    if !sent.any(|[_, tag]| received(tag)) {
        let message = format!("no tag connects the buffer received to its source on rank {peer}");
        let diagnostic = Diagnostic::error("ark-tag", message)
            .path(buffer.key("SendTags").to_string())
            .with_note(format!(
                "one tag t must be [-1, t] here and [{peer}, t] in `RecvTags` of \
                                the tensor written"
            ));
        sink.push(diagnostic);
    }
}

fn elements(tensor: &Tensor) -> u128 {
    tensor.shape.iter().map(|&extent| extent as u128).product()
}

fn bytes(tensor: &Tensor) -> u128 {
    elements(tensor) * u128::from(tensor.dtype.bytes())
}

/// Checks that a packet buffer is UINT8 and contains every packet of `copies` tensors like `data`.
fn check_packets(
    packets: &Tensor,
    data: &Tensor,
    copies: u128,
    (list, index): (&str, usize),
    at: &At<'_>,
    sink: &mut Sink,
) {
    let needed = PACKET_RATIO * bytes(data) * copies;
    if packets.dtype != DataType::Uint8 || elements(packets) < needed {
        let found = elements(packets);
        let message = format!("the packet buffer must be UINT8 of at least {needed} elements");
        let list = at.key(list);
        let diagnostic = Diagnostic::error("ark-packet-buffer", message)
            .path(list.index(index).to_string())
            .with_note(format!("found {} of {found} elements", packets.dtype));
        sink.push(diagnostic);
    }
}

/// Checks the local summand, those written by peers, and the sum on this rank and on each peer.
pub(super) fn reduce(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let Some(copies) = peers(op, at, sink) else { return };
    let (input, scratch) = (&op.reads[0], &op.reads[1]);
    let needed = elements(input) * copies;
    if scratch.dtype != input.dtype || elements(scratch) < needed {
        let message = format!("scratch must be {} of at least {needed} elements", input.dtype);
        let reads = at.key("ReadTensors");
        let diagnostic = Diagnostic::error("ark-scratch", message);
        sink.push(diagnostic.path(reads.index(1).to_string()));
    }
}

/// Like [`reduce`], for packets.
pub(super) fn reduce_packets(op: &Op, at: &At<'_>, sink: &mut Sink) {
    let Some(copies) = peers(op, at, sink) else { return };
    check_packets(&op.reads[1], &op.reads[0], copies, ("ReadTensors", 1), at, sink);
}

/// The number of peers, to each of which the op writes.
fn peers(op: &Op, at: &At<'_>, sink: &mut Sink) -> Option<u128> {
    let peers = op.uint_arg("NPeers").unwrap_or(0) as usize;
    if !(1..=MAX_PEERS).contains(&peers) {
        let message = format!("`NPeers` must be 1 to {MAX_PEERS}, found {peers}");
        let diagnostic = Diagnostic::error("ark-peers", message);
        sink.push(diagnostic.path(at.key("Args").key("NPeers").to_string()));
        return None;
    }
    if op.writes.len() != peers + 1 {
        let message =
            format!("{peers} peers need {} tensors written, found {}", peers + 1, op.writes.len());
        let diagnostic = Diagnostic::error("ark-arity", message);
        sink.push(diagnostic.path(at.key("WriteTensors").to_string()));
        return None;
    }
    Some(peers as u128)
}
