//! The effects of an op on other ranks.

use crate::model::links::Link;
use crate::model::{OpKind, Tensor};
use crate::plan::PlanOp;

/// A channel from one rank to another on which signals are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Channel {
    /// The signalling rank.
    pub from: usize,
    /// The waiting rank.
    pub to: usize,
    /// `Proxy`, `SecondaryProxy` or `Sm`.
    pub kind: String,
}

/// The effect of an op on other ranks.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// Only writes that other ops order.
    Nothing,
    /// Puts data into a peer's memory, and signals if `signals`.
    Put { channel: Channel, tags: Vec<i64>, signals: bool },
    /// Waits until data that was put has been sent.
    Flush { channel: Channel },
    /// Waits for a signal.
    Wait { channel: Channel, tags: Vec<i64> },
    /// Signals to all other ranks and waits for each of them.
    Sync { kind: String },
    /// Waits for packets of all links, then sends packets on others.
    Packets { takes: Vec<Link>, sends: Vec<Link> },
}

impl Action {
    /// The effect of an op of a rank; `None` if it does not involve other ranks.
    pub fn of(plan_op: &PlanOp, rank: usize) -> Option<Action> {
        let op = &plan_op.op;
        let kind = || plan_op.config.text("ChannelType").unwrap_or("Proxy").to_owned();
        let flag = |key| plan_op.config.bool(key).unwrap_or(true);
        let foreign = |tensor: &Tensor| {
            let peer = usize::try_from(tensor.buffer.rank).ok()?;
            (peer != rank).then_some(peer)
        };
        let to = |tensor: &Tensor| Some(Channel { from: rank, to: foreign(tensor)?, kind: kind() });
        Some(match op.kind {
            OpKind::Send => Action::Put {
                channel: to(op.writes.first()?)?,
                tags: own_tags(&op.writes[0].buffer.recv_tags),
                signals: flag("Signal"),
            },
            OpKind::SendDone => Action::Flush { channel: to(op.reads.first()?)? },
            OpKind::Recv if !flag("Wait") => Action::Nothing,
            OpKind::Recv => {
                let from = foreign(op.reads.first()?)?;
                let channel = Channel { from, to: rank, kind: kind() };
                Action::Wait { channel, tags: own_tags(&op.reads[0].buffer.send_tags) }
            }
            OpKind::DeviceSync => Action::Sync { kind: kind() },
            OpKind::RecvReduceSend => Action::Nothing,
            OpKind::SendPacket | OpKind::RecvPacket | OpKind::RecvReduceSendPacket => {
                let landing = op.reads.get(1).map(|tensor| &tensor.buffer.recv_tags[..]);
                let to = rank as i64;
                let takes = landing.unwrap_or_default().iter().filter(|[peer, _]| *peer >= 0);
                let takes = takes.map(|&[from, tag]| Link { from, to, tag }).collect();
                let sends = op.writes.iter().flat_map(|tensor| links(tensor, rank)).collect();
                Action::Packets { takes, sends }
            }
            _ => return None,
        })
    }
}

/// Tags of the stand-in of a remote buffer.
fn own_tags(tags: &[[i64; 2]]) -> Vec<i64> {
    tags.iter().filter(|[peer, _]| *peer < 0).map(|[_, tag]| *tag).collect()
}

/// The links under which data that a rank writes to a tensor reaches another.
pub(super) fn links(tensor: &Tensor, rank: usize) -> impl Iterator<Item = Link> + '_ {
    let to = tensor.buffer.rank;
    let tags = tensor.buffer.recv_tags.iter().filter(|[peer, _]| *peer < 0);
    let is_foreign = to >= 0 && to != rank as i64;
    tags.filter(move |_| is_foreign).map(move |&[_, tag]| Link { from: rank as i64, to, tag })
}
