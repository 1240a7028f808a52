//! Runs one task of a communication op until it must wait.

use super::message::{Body, Inbox, Message, read_packets};
use super::op::{Action, CommOp, Place, Reduce, halved};
use super::reduce::accumulate;
use super::view::scaled;
use crate::Error;
use crate::memory::Addresses;

/// The resources that a task of a rank uses.
pub(crate) struct Port<'p> {
    pub rank: i64,
    pub memory: &'p Addresses,
    pub inbox: &'p Inbox,
    pub post: &'p dyn Fn(Message) -> Result<(), Error>,
}

impl CommOp {
    /// Continues a task from `phase`, which is initially 0; returns whether it is done. If not, it must
    /// be continued when a message has arrived.
    pub(crate) fn run(&self, task: i64, phase: &mut usize, port: &Port<'_>) -> Result<bool, Error> {
        match &self.action {
            Action::SendDone | Action::Recv { link: None } => Ok(true),
            Action::Recv { link: Some((link, count)) } => {
                Ok(port.inbox.take_signals(*link, *count))
            }
            Action::Send { from, to, cut, signal } => {
                let taken = cut.of(task);
                let bytes = port.memory.gather(from.slot, &from.view.runs(&taken));
                let (slot, runs, signal) = (to.slot, to.view.runs(&taken), *signal);
                port.send(to, Body::Put { slot, runs, bytes, signal })
            }
            Action::SendPacket { from, to, cut, flag } => {
                let packets = cut.of(task);
                let runs = from.view.runs(&halved(&packets));
                let bytes = port.memory.gather(from.slot, &runs);
                let (slot, runs, flag) = (to.slot, to.view.runs(&packets), *flag);
                port.send(to, Body::Packets { slot, runs, bytes, flag })
            }
            Action::RecvPacket { scratch, output, cut, flag } => {
                let taken = cut.of(task);
                let runs = scratch.view.runs(&scaled(&taken, 2, 0));
                let Some(bytes) = read_packets(port.memory, scratch.slot, &runs, *flag) else {
                    return Ok(false);
                };
                port.memory.scatter(output.slot, &output.view.runs(&taken), &bytes);
                Ok(true)
            }
            Action::Reduce(reduce) => reduce.run(task, port),
            Action::Sync { peers } => sync(peers, phase, port),
        }
    }
}

impl Reduce {
    fn run(&self, task: i64, port: &Port<'_>) -> Result<bool, Error> {
        let taken = self.cut.of(task);
        let mut slots = vec![];
        for peer in 0..self.peers {
            let runs = self.scratch.view.runs(&self.slot_of(&taken, peer));
            let bytes = match self.flag {
                None => Some(port.memory.gather(self.scratch.slot, &runs)),
                Some(flag) => read_packets(port.memory, self.scratch.slot, &runs, flag),
            };
            let Some(bytes) = bytes else { return Ok(false) };
            slots.push(bytes);
        }
        let mut sum = port.memory.gather(self.input.slot, &self.input.view.runs(&taken));
        for bytes in &slots {
            accumulate(self.dtype, &mut sum, bytes);
        }
        port.memory.scatter(self.output.slot, &self.output.view.runs(&taken), &sum);
        let sent = self.sent(&taken);
        for target in &self.targets {
            let (slot, runs, bytes) = (target.slot, target.view.runs(&sent), sum.clone());
            let body = match self.flag {
                None => Body::Put { slot, runs, bytes, signal: None },
                Some(flag) => Body::Packets { slot, runs, bytes, flag },
            };
            port.send(target, body)?;
        }
        Ok(true)
    }
}

impl Port<'_> {
    fn send(&self, target: &Place, body: Body) -> Result<bool, Error> {
        let to = target.peer.unwrap_or(self.rank);
        (self.post)(Message { from: self.rank, to, body })?;
        Ok(true)
    }
}

/// Notifies every peer, then waits for each in turn: phase 0 notifies, phase `1 + i` waits for peer `i`.
fn sync(peers: &[i64], phase: &mut usize, port: &Port<'_>) -> Result<bool, Error> {
    if *phase == 0 {
        for &to in peers {
            (port.post)(Message { from: port.rank, to, body: Body::Sync })?;
        }
        *phase = 1;
    }
    while let Some(&peer) = peers.get(*phase - 1) {
        if !port.inbox.take_sync(peer) {
            return Ok(false);
        }
        *phase += 1;
    }
    Ok(true)
}
