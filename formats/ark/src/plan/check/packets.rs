//! The addressing limits of ARK's kernels that send and receive packets, or reduce data of peers.
//!
//! A packet carries 4 or 8 bytes and takes twice as many. The kernels count packets along the
//! last dimension, and drop incomplete ones. A tensor of packets usually has one row; a
//! kernel then ignores the rows of what it sends, and reads the same row repeatedly for what
//! it receives. Reducing kernels do not check the end of a tensor.

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use crate::model::{OpKind, Tensor};
use crate::plan::PlanOp;
use crate::plan::tiling::four;

/// Checks an op of packets or peers.
pub(super) fn check(plan_op: &PlanOp, at: &At<'_>, sink: &mut Sink) {
    let op = &plan_op.op;
    let (reads, writes) = (at.key("ReadTensors"), at.key("WriteTensors"));
    match op.kind {
        OpKind::SendPacket => {
            let ends = (&op.reads[0], &op.writes[0]);
            check_packets(plan_op, ends, is_sent(plan_op, ends), &reads.index(0), sink);
            check_parts(plan_op, &op.writes[0], packet_bytes(plan_op), at, sink);
        }
        OpKind::RecvPacket => {
            let ends = (&op.writes[0], &op.reads[1]);
            check_packets(plan_op, ends, is_taken(plan_op, ends), &writes.index(0), sink);
            check_parts(plan_op, ends.0, elements(plan_op, ends.0), at, sink);
        }
        OpKind::RecvReduceSend | OpKind::RecvReduceSendPacket => check_reduce(plan_op, at, sink),
        _ => {}
    }
}

/// Number of bytes of payload of a packet.
fn payload(plan_op: &PlanOp) -> i64 {
    match plan_op.config.text("PacketType") {
        Some("mscclpp::LL8Packet") => 4,
        _ => 8,
    }
}

/// Number of bytes of a packet.
fn packet_bytes(plan_op: &PlanOp) -> i64 {
    2 * payload(plan_op)
}

/// Number of elements of a tensor in a packet.
fn elements(plan_op: &PlanOp, tensor: &Tensor) -> i64 {
    (payload(plan_op) / tensor.dtype.bytes() as i64).max(1)
}

/// Whether each row of data fills packets of a row of packets.
fn is_alike(plan_op: &PlanOp, (data, packets): (&Tensor, &Tensor)) -> bool {
    let (per_packet, bytes) = (elements(plan_op, data), packet_bytes(plan_op));
    let (shape, strides) = (four(&data.shape), four(&data.strides));
    let (rows, view) = (four(&packets.shape), four(&packets.strides));
    let is_whole = [shape, strides].iter().all(|dims| dims[3] % per_packet == 0)
        && [rows, view].iter().all(|dims| dims[3] % bytes == 0);
    is_whole && shape[..3] == rows[..3] && shape[3] / per_packet == rows[3] / bytes
}

/// Whether a sender reads the elements of a tensor in order.
fn is_sent(plan_op: &PlanOp, ends: (&Tensor, &Tensor)) -> bool {
    let (data, packets) = ends;
    let per_packet = elements(plan_op, data);
    let total: i64 = data.shape.iter().product();
    // A row of a single packet is treated as broadcast by the kernel.
    let is_stretched = four(&data.shape)[3] / per_packet == 1 && total > per_packet;
    let in_order = one_row(packets) && is_dense(data) && total % per_packet == 0 && !is_stretched;
    in_order || is_alike(plan_op, ends)
}

/// Whether a receiver reads each packet for the elements that it carries.
fn is_taken(plan_op: &PlanOp, ends: (&Tensor, &Tensor)) -> bool {
    let (data, _) = ends;
    let is_whole = four(&data.shape)[3] % elements(plan_op, data) == 0;
    (one_row(data) && is_whole) || is_alike(plan_op, ends)
}

fn one_row(tensor: &Tensor) -> bool {
    four(&tensor.shape)[..3] == [1; 3]
}

/// Whether the elements of a tensor are contiguous in memory.
fn is_dense(tensor: &Tensor) -> bool {
    let mut dims = tensor.shape.iter().zip(&tensor.strides).skip_while(|(extent, _)| **extent == 1);
    dims.next();
    dims.all(|(extent, view)| extent == view)
}

fn check_packets(
    plan_op: &PlanOp,
    (data, packets): (&Tensor, &Tensor),
    fits: bool,
    at: &At<'_>,
    sink: &mut Sink,
) {
    if fits {
        return;
    }
    let message = format!(
        "{:?} of {:?} does not go through packets of {} bytes in {:?}",
        data.shape,
        data.strides,
        payload(plan_op),
        packets.shape
    );
    let diagnostic = Diagnostic::error("plan-packet-shape", message)
        .path(at.key("Shape").to_string())
        .with_note(match plan_op.op.kind {
            OpKind::SendPacket => "the kernel takes elements from the first on, packet by packet",
            _ => "the kernel takes the same packets for each row, and only whole ones",
        })
        .help("send one dense row that consists of whole packets");
    sink.push(diagnostic);
}

/// Checks that tasks of packets cover the last dimension of a tensor, with `unit` elements per packet.
fn check_parts(plan_op: &PlanOp, tensor: &Tensor, unit: i64, at: &At<'_>, sink: &mut Sink) {
    let (Some(&[height, width]), Some(tasks)) =
        (plan_op.config.ints("Tile"), plan_op.config.int("NumTasks"))
    else {
        return;
    };
    let config = at.key("Config");
    if width < unit {
        let message = format!("packets have width {unit}, but tiles have width {width}");
        let diagnostic = Diagnostic::error("plan-peer-tile", message);
        sink.push(diagnostic.path(config.key("Tile").to_string()));
        return;
    }
    let [n, c, h, w] = four(&tensor.shape);
    let parts = |extent: i64, tile: i64| (extent + tile - 1) / tile;
    let needed = n * c * parts(h, height) * parts(w / unit, width / unit);
    if tasks < needed {
        let message = format!("`NumTasks` is {tasks}, the tiles of the packets are {needed}");
        let diagnostic = Diagnostic::error("plan-num-tasks", message);
        sink.push(diagnostic.path(config.key("NumTasks").to_string()));
    }
}

/// Checks that a reducing kernel has only full tiles, and a single row where it cannot address others.
fn check_reduce(plan_op: &PlanOp, at: &At<'_>, sink: &mut Sink) {
    let op = &plan_op.op;
    let config = at.key("Config");
    let output = &op.writes[0];
    let [.., rows, columns] = four(&output.shape);
    if let Some(&[height, width]) = plan_op.config.ints("Tile") {
        let tile_at = config.key("Tile").to_string();
        let is_packed = op.kind == OpKind::RecvReduceSendPacket;
        let unit = if is_packed { elements(plan_op, output) } else { 1 };
        if rows % height != 0 || columns % width != 0 {
            let message = format!("tiles of {height}x{width} do not divide {rows}x{columns}");
            let diagnostic = Diagnostic::error("plan-peer-tile", message).path(tile_at);
            sink.push(
                diagnostic.with_note("the kernel waits for data past the end, which no peer sends"),
            );
        } else if width % unit != 0 {
            let message = format!("packets carry {unit} elements, tiles are {width} wide");
            sink.push(Diagnostic::error("plan-peer-tile", message).path(tile_at));
        }
    }
    let (reads, writes) = (at.key("ReadTensors"), at.key("WriteTensors"));
    let peers = op.writes.iter().enumerate().skip(1).map(|(index, t)| (writes.index(index), t));
    for (tensor_at, tensor) in [(reads.index(1), &op.reads[1])].into_iter().chain(peers) {
        if !is_dense(tensor) {
            let message = "the kernel counts elements without gaps here";
            let diagnostic = Diagnostic::error("plan-packet-shape", message);
            sink.push(diagnostic.path(tensor_at.key("Strides").to_string()));
        }
    }
}
