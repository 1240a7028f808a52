//! A valid op of each kind, for tests that apply to every op.

use super::{Arg, ArgKind, Argument, Family, Float, Op, OpKind};
use crate::model::{Buffer, DataType, Tensor};

/// Extent of the dimensions of an example's tensors.
const EXTENT: i64 = 4;

/// Number of bytes of the packets of an example's tensor.
const PACKET_BYTES: i64 = 2 * 4 * EXTENT * EXTENT;

/// The tag that connects the buffers of two ranks.
const TAG: i64 = 0;

impl OpKind {
    /// A valid op of the kind, on rank 0 of 2: tests apply it to every op.
    pub fn example(self) -> Op {
        let row = self.row();
        let reads = (0..*row.reads.start()).map(|index| read(self, index)).collect();
        let count = row.writes.start() + usize::from(sums(self));
        let writes: Vec<Tensor> = (0..count).map(|index| written(self, index)).collect();
        let result = |index| Tensor {
            id: 20 + index,
            ..writes.first().cloned().unwrap_or_else(|| local(30, &[EXTENT, EXTENT]))
        };
        let argument = |argument: &Argument| (argument.name.to_owned(), value(argument));
        Op {
            kind: self,
            name: "example".to_owned(),
            is_virtual: self.is_virtual(),
            reads,
            results: (0..*row.results.start() as u64).map(result).collect(),
            writes,
            args: row.args.iter().map(argument).collect(),
        }
    }
}

/// Whether the op writes its own sum and sends it to its only peer.
fn sums(kind: OpKind) -> bool {
    matches!(kind, OpKind::RecvReduceSend | OpKind::RecvReduceSendPacket)
}

fn read(kind: OpKind, index: usize) -> Tensor {
    let id = index as u64;
    let whole = local(id, &[EXTENT, EXTENT]);
    match (kind, index) {
        (OpKind::Send, _) => tagged(whole, |buffer| buffer.send_tags.push([1, TAG])),
        (OpKind::Recv, _) => remote(whole, |buffer| buffer.send_tags.push([-1, TAG])),
        (OpKind::SendDone | OpKind::RecvPacket, 0) => remote(whole, |_| {}),
        (OpKind::RecvPacket | OpKind::RecvReduceSendPacket, 1) => packets(id),
        _ if kind.family() == Family::Lookup && index == 0 => {
            Tensor::dense(id, DataType::Int32, &[EXTENT], Buffer::local(id))
        }
        _ => whole,
    }
}

fn written(kind: OpKind, index: usize) -> Tensor {
    let id = 10 + index as u64;
    let whole = local(id, &[EXTENT, EXTENT]);
    match (kind, index) {
        (OpKind::Send, _) => remote(whole, |buffer| buffer.recv_tags.push([-1, TAG])),
        (OpKind::Recv, _) => tagged(whole, |buffer| buffer.recv_tags.push([1, TAG])),
        (OpKind::SendPacket, _) => remote(packets(id), |_| {}),
        _ if sums(kind) && index > 0 => remote(whole, |_| {}),
        _ if kind.is_reduce() => local(id, &[EXTENT, 1]),
        _ => whole,
    }
}

fn local(id: u64, shape: &[i64]) -> Tensor {
    Tensor::dense(id, DataType::Fp32, shape, Buffer::local(id))
}

fn packets(id: u64) -> Tensor {
    Tensor::dense(id, DataType::Uint8, &[PACKET_BYTES], Buffer::local(id))
}

fn tagged(mut tensor: Tensor, tag: impl FnOnce(&mut Buffer)) -> Tensor {
    tag(&mut tensor.buffer);
    tensor
}

/// The tensor on the other rank.
fn remote(mut tensor: Tensor, tag: impl FnOnce(&mut Buffer)) -> Tensor {
    tensor.buffer.rank = 1;
    tagged(tensor, tag)
}

fn value(argument: &Argument) -> Arg {
    match (argument.name, argument.kind) {
        // This rank, of two ranks.
        ("Rank", ArgKind::Int) => Arg::Int(0),
        // The number of peers, or the last axis.
        (_, ArgKind::Int) => Arg::Int(1),
        (_, ArgKind::Int64) => Arg::Int64(1),
        (_, ArgKind::Uint32) => Arg::Uint32(1),
        (_, ArgKind::Uint64) => Arg::Uint64(1),
        (_, ArgKind::Bool) => Arg::Bool(true),
        (_, ArgKind::Float) => Arg::Float(Float(2.0)),
        (_, ArgKind::Dims) => Arg::Dims(vec![1, 0]),
        (_, ArgKind::Tensor) => Arg::Tensor(Box::new(local(40, &[EXTENT]))),
        (_, ArgKind::Offset) => Arg::Offset { buffer_id: 0, value: 0 },
    }
}
