//! What an op does to other ranks.

use crate::model::links::Link;
use crate::model::{OpKind, Tensor};
use crate::plan::PlanOp;

/// A way from one rank to another on which signals are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Channel {
    /// Rank that signals.
    pub from: usize,
    /// Rank that waits.
    pub to: usize,
    /// `Proxy`, `SecondaryProxy` or `Sm`.
    pub kind: String,
}

/// What an op does to other ranks.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// Nothing but writes that others order.
    Nothing,
    /// Puts data into a peer's memory, and signals when told to.
    Put { channel: Channel, tags: Vec<i64>, signals: bool },
    /// Waits until what was put has left.
    Flush { channel: Channel },
    /// Waits for a signal.
    Wait { channel: Channel, tags: Vec<i64> },
    /// Signals to every other rank and waits for each of them.
    Sync { kind: String },
    /// Waits for packets of all links, then sends packets on others.
    Packets { takes: Vec<Link>, sends: Vec<Link> },
}

impl Action {
    /// What an op of that rank does; `None` when it does not reach other ranks.
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

/// The links under which what a rank writes into a tensor reaches another.
pub(super) fn links(tensor: &Tensor, rank: usize) -> impl Iterator<Item = Link> + '_ {
    let to = tensor.buffer.rank;
    let tags = tensor.buffer.recv_tags.iter().filter(|[peer, _]| *peer < 0);
    let is_foreign = to >= 0 && to != rank as i64;
    tags.filter(move |_| is_foreign).map(move |&[_, tag]| Link { from: rank as i64, to, tag })
}
