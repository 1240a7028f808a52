//! Hand-written ops between ranks.

use std::collections::BTreeMap;

use super::{TILE, sequence, vector};
use irc_ark_format::model::{Arg, Buffer, DataType, Op, OpKind, Tensor};
use irc_ark_format::plan::{Config, ConfigValue, Plan, PlanOp};

/// An op of one warp with these operands; its result is the first tensor that it writes.
pub fn op(
    kind: OpKind,
    reads: &[&Tensor],
    writes: &[&Tensor],
    args: &[(&str, Arg)],
    config: &[(&str, ConfigValue)],
) -> PlanOp {
    let own = |tensors: &[&Tensor]| tensors.iter().map(|&tensor| tensor.clone()).collect();
    let writes: Vec<Tensor> = own(writes);
    let results = writes.first().or(reads.first().copied()).cloned().into_iter().collect();
    let args = args.iter().map(|(name, arg)| ((*name).to_owned(), arg.clone())).collect();
    let base = Config::default()
        .with("NumWarps", ConfigValue::Int(1))
        .with("SramBytes", ConfigValue::Int(0));
    let config = config.iter().fold(base, |config, (key, value)| config.with(key, value.clone()));
    let name = kind.name().to_lowercase();
    let op = Op { kind, name, is_virtual: false, reads: own(reads), writes, results, args };
    PlanOp { op, config }
}

/// The tensor with tags on its buffer.
pub fn tagged(tensor: &Tensor, sends: &[[i64; 2]], receives: &[[i64; 2]]) -> Tensor {
    let mut tensor = tensor.clone();
    (tensor.buffer.send_tags, tensor.buffer.recv_tags) = (sends.to_vec(), receives.to_vec());
    tensor
}

/// A stand-in for a tensor of a peer that is written under a tag.
pub fn target(tensor: &Tensor, buffer: u64, peer: i64, tag: i64) -> Tensor {
    let mut tensor = tensor.clone();
    tensor.buffer =
        Buffer { id: buffer, rank: peer, send_tags: vec![], recv_tags: vec![[-1, tag]] };
    tensor
}

/// A stand-in for a tensor that a peer sends under a tag.
pub fn source(tensor: &Tensor, buffer: u64, peer: i64, tag: i64) -> Tensor {
    let mut tensor = tensor.clone();
    tensor.buffer =
        Buffer { id: buffer, rank: peer, send_tags: vec![[-1, tag]], recv_tags: vec![] };
    tensor
}

/// Copies to a peer and signals.
pub fn send(from: &Tensor, to: &Tensor) -> PlanOp {
    let config = [
        ("ChannelType", ConfigValue::Text("Proxy".into())),
        ("Signal", ConfigValue::Bool(true)),
        ("NumTasks", ConfigValue::Int(1)),
    ];
    op(OpKind::Send, &[from], &[to], &[], &config)
}

/// Copies to a peer by tiles of `tile` elements, with a signal for each or none at all.
pub fn send_tiles(from: &Tensor, to: &Tensor, tile: i64, signal: bool) -> PlanOp {
    let config = [
        ("ChannelType", ConfigValue::Text("Sm".into())),
        ("Signal", ConfigValue::Bool(signal)),
        ("Tile", ConfigValue::Ints(vec![1, tile])),
    ];
    op(OpKind::Send, &[from], &[to], &[], &config)
}

/// Waits for a signal.
pub fn recv(from: &Tensor, to: &Tensor, wait: bool) -> PlanOp {
    let config = [
        ("ChannelType", ConfigValue::Text("Proxy".into())),
        ("Wait", ConfigValue::Bool(wait)),
        ("NumTasks", ConfigValue::Int(1)),
    ];
    op(OpKind::Recv, &[from], &[to], &[], &config)
}

/// Waits for all other ranks of the world.
pub fn device_sync(tensor: &Tensor, rank: i64, world: i64) -> PlanOp {
    let args = [("PeerNum", Arg::Int((world - 1) as i32)), ("Rank", Arg::Int(rank as i32))];
    let config = [("ChannelType", ConfigValue::Text("Sm".into()))];
    op(OpKind::DeviceSync, &[tensor], &[tensor], &args, &config)
}

fn packet_config(tile: i64) -> [(&'static str, ConfigValue); 2] {
    [
        ("PacketType", ConfigValue::Text("mscclpp::LL16Packet".into())),
        ("Tile", ConfigValue::Ints(vec![1, tile])),
    ]
}

const FLAG: (&str, Arg) = ("Flag", Arg::Uint32(1));

/// Sends packets; the tile counts bytes of packets.
pub fn send_packet(from: &Tensor, to: &Tensor, tile: i64) -> PlanOp {
    op(OpKind::SendPacket, &[from], &[to], &[FLAG], &packet_config(tile))
}

/// Stores the payload of packets; the tile counts elements.
pub fn recv_packet(from: &Tensor, scratch: &Tensor, to: &Tensor, tile: i64) -> PlanOp {
    op(OpKind::RecvPacket, &[from, scratch], &[to], &[FLAG], &packet_config(tile))
}

/// Adds what peers wrote into scratch and sends the sum to all.
pub fn reduce(
    kind: OpKind,
    rank: i64,
    (input, scratch): (&Tensor, &Tensor),
    writes: &[&Tensor],
    tile: i64,
) -> PlanOp {
    let peers = Arg::Uint32(writes.len() as u32 - 1);
    let args = [FLAG, ("NPeers", peers), ("Rank", Arg::Int(rank as i32))];
    op(kind, &[input, scratch], writes, &args, &packet_config(tile))
}

/// Bytes of packets that carry `len` floats for each of `peers` peers.
pub fn packets(buffer: u64, len: i64, peers: i64) -> Tensor {
    Tensor::dense(buffer, DataType::Uint8, &[len * 8 * peers], Buffer::local(buffer))
}

/// A part of a vector.
pub fn part(whole: &Tensor, begin: i64, len: i64) -> Tensor {
    let mut tensor = whole.clone();
    (tensor.offsets, tensor.shape, tensor.padded_shape) = (vec![begin], vec![len], vec![len]);
    tensor
}

/// Buffers by name.
pub fn given(buffers: &[(String, irc_tensor::Tensor)]) -> BTreeMap<String, irc_tensor::Tensor> {
    buffers.iter().cloned().collect()
}

/// Number of elements of each rank's part of the sums.
pub const LEN: i64 = 4 * TILE;

/// Sums the vectors of all ranks: each rank reduces its own part and sends it to all.
pub fn all_reduce(rank: i64, world: i64) -> Plan {
    let whole = vector(0, LEN * world);
    let share = |rank: i64| part(&whole, rank * LEN, LEN);
    let place = |rank: i64, other: i64| if other < rank { other } else { other - 1 };
    let others: Vec<i64> = (0..world).filter(|&other| other != rank).collect();
    let mut ops = vec![];
    for &other in &others {
        // The slot of this rank among the peers of the other.
        let slot = place(other, rank);
        let to = part(&packets(0, LEN, world - 1), slot * LEN * 8, LEN * 8);
        let to = target(&to, 100 + other as u64, other, 1);
        ops.push((send_packet(&share(other), &to, 64), LEN / 8));
    }
    let tags: Vec<[i64; 2]> = others.iter().map(|&other| [other, 1]).collect();
    let scratch = tagged(&packets(1, LEN, world - 1), &[], &tags);
    let result = |other: i64| target(&packets(0, LEN, 1), 200 + other as u64, other, 2 + rank);
    let results: Vec<_> = others.iter().map(|&other| result(other)).collect();
    let writes: Vec<_> = std::iter::once(&whole).chain(&results).collect();
    let mine = share(rank);
    let writes = [&[&mine], &writes[1..]].concat();
    let kind = OpKind::RecvReduceSendPacket;
    ops.push((reduce(kind, rank, (&mine, &scratch), &writes, 4), LEN / 4));
    for &other in &others {
        let scratch = tagged(&packets(10 + other as u64, LEN, 1), &[], &[[other, 2 + other]]);
        let from = source(&share(other), 300 + other as u64, other, 2 + other);
        ops.push((recv_packet(&from, &scratch, &share(other), 8), LEN / 8));
    }
    sequence(rank, world, 3, ops)
}

/// As `all_reduce`, with plain stores and synchronisations.
pub fn all_reduce_stores(rank: i64, world: i64) -> Plan {
    let others: Vec<i64> = (0..world).filter(|&other| other != rank).collect();
    let tags: Vec<[i64; 2]> = others.iter().map(|&other| [other, 2]).collect();
    let whole = tagged(&vector(0, LEN * world), &[], &tags);
    let share = |rank: i64| part(&whole, rank * LEN, LEN);
    let slot = |rank: i64, other: i64| if other < rank { other } else { other - 1 };
    let mut ops = vec![];
    for &other in &others {
        let to = part(&vector(0, LEN * (world - 1)), slot(other, rank) * LEN, LEN);
        let to = target(&to, 100 + other as u64, other, 1);
        ops.push((send_tiles(&share(other), &to, TILE, false), LEN / TILE));
    }
    ops.push((device_sync(&whole, rank, world), 1));
    let received: Vec<[i64; 2]> = others.iter().map(|&other| [other, 1]).collect();
    let scratch = tagged(&vector(1, LEN * (world - 1)), &[], &received);
    let mine = share(rank);
    let results: Vec<_> =
        others.iter().map(|&other| target(&mine, 200 + other as u64, other, 2)).collect();
    let writes: Vec<_> = std::iter::once(&mine).chain(&results).collect();
    let kind = OpKind::RecvReduceSend;
    ops.push((reduce(kind, rank, (&mine, &scratch), &writes, TILE), LEN / TILE));
    for &other in &others {
        let from = source(&share(other), 300 + other as u64, other, 2);
        ops.push((recv(&from, &share(other), false), 1));
    }
    ops.push((device_sync(&whole, rank, world), 1));
    sequence(rank, world, 2, ops)
}
