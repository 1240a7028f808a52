//! Prepared communication ops: which bytes are sent where, and under which tag.

use std::collections::BTreeMap;

use irc_ark_format::model::{DataType, OpKind, Tensor};
use irc_ark_format::plan::tiling::Grid;
use irc_ark_format::plan::{Plan, PlanOp};

use super::manifest::{Manifest, sources, stand_ins};
use super::view::{View, grid, scaled, stretches};
use crate::layout::Layout;
use crate::memory::Run;

/// A tensor in a buffer of a rank.
#[derive(Clone, Debug)]
pub struct Place {
    /// The rank; `None` for the local rank.
    pub peer: Option<i64>,
    /// The index of the buffer among those of that rank.
    pub slot: usize,
    /// The elements of the tensor in it.
    pub view: View,
}

/// How the tasks of an op tile a tensor.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The tensor.
    pub tensor: Tensor,
    /// Its tiles.
    pub grid: Grid,
}

impl Cut {
    /// The bytes of the tensor, in row-major order, that belong to a task.
    pub(crate) fn of(&self, task: i64) -> Vec<Run> {
        stretches(&self.tensor, &self.grid, task)
    }
}

/// The effect of an op.
#[derive(Clone, Debug)]
pub enum Action {
    /// Copies into a peer's buffer, then signals under a tag.
    Send {
        /// What is copied.
        from: Place,
        /// Where it is copied to.
        to: Place,
        /// The bytes of each task.
        cut: Cut,
        /// The tag of the signal.
        signal: Option<i64>,
    },
    /// No effect: the data has been sent when `Send` completes.
    SendDone,
    /// Waits for a number of signals under a tag.
    Recv {
        /// Peer and tag, and the number of signals for which a task waits.
        link: Option<((i64, i64), u64)>,
    },
    /// Copies into a peer's buffer as packets.
    SendPacket {
        /// The payload.
        from: Place,
        /// The packets.
        to: Place,
        /// The bytes of packets of each task.
        cut: Cut,
        /// The flag of the packets.
        flag: u32,
    },
    /// Waits for packets, and stores their payload.
    RecvPacket {
        /// The packets.
        scratch: Place,
        /// The payload.
        output: Place,
        /// The bytes of payload of each task.
        cut: Cut,
        /// The flag of the packets.
        flag: u32,
    },
    /// Adds what peers have written into consecutive parts of scratch, and sends the sum to all.
    Reduce(Box<Reduce>),
    /// Waits until peers reach a synchronisation too.
    Sync {
        /// The ranks of the peers.
        peers: Vec<i64>,
    },
}

/// See [`Action::Reduce`].
#[derive(Clone, Debug)]
pub struct Reduce {
    /// What this rank adds.
    pub input: Place,
    /// What the peers add, one after the other.
    pub scratch: Place,
    /// The sum.
    pub output: Place,
    /// Where the sum is sent.
    pub targets: Vec<Place>,
    /// The bytes of the sum of each task.
    pub cut: Cut,
    /// The number of peers.
    pub peers: u64,
    /// The type of the sum.
    pub dtype: DataType,
    /// The flag of packets, if packets are received and sent.
    pub flag: Option<u32>,
}

/// An op with its name and its links, for messages.
#[derive(Clone, Debug)]
pub struct CommOp {
    /// Its type and name.
    pub name: String,
    /// What it does.
    pub action: Action,
    /// Peer and tag of each link whose data the op uses.
    pub sources: Vec<(i64, i64)>,
}

/// The bytes that one step of a task accesses, for reports of races.
#[derive(Clone, Debug)]
pub(crate) struct Touch {
    pub peer: Option<i64>,
    pub slot: usize,
    pub runs: Vec<Run>,
    pub is_write: bool,
    /// Whether the bytes are packets, whose flags order their payload.
    pub is_packets: bool,
}

impl Place {
    fn touch(&self, stretches: &[Run], is_write: bool, is_packets: bool) -> Touch {
        let runs = self.view.runs(stretches);
        Touch { peer: self.peer, slot: self.slot, runs, is_write, is_packets }
    }
}

impl Reduce {
    /// The part of a peer's scratch whose data a task adds.
    pub(crate) fn slot_of(&self, stretches: &[Run], peer: u64) -> Vec<Run> {
        let factor = if self.flag.is_some() { 2 } else { 1 };
        scaled(stretches, factor, peer * self.input.view.bytes() * factor)
    }

    /// The part of a target that a task sends to.
    pub(crate) fn sent(&self, stretches: &[Run]) -> Vec<Run> {
        scaled(stretches, if self.flag.is_some() { 2 } else { 1 }, 0)
    }

    fn touches(&self, task: i64) -> Vec<Touch> {
        let (taken, packets) = (self.cut.of(task), self.flag.is_some());
        let mut found = vec![self.input.touch(&taken, false, false)];
        found.extend(
            (0..self.peers)
                .map(|peer| self.scratch.touch(&self.slot_of(&taken, peer), false, packets)),
        );
        found.push(self.output.touch(&taken, true, false));
        let sent = self.sent(&taken);
        found.extend(self.targets.iter().map(|target| target.touch(&sent, true, packets)));
        found
    }
}

impl CommOp {
    /// All accesses of a task.
    pub(crate) fn touches(&self, task: i64) -> Vec<Touch> {
        match &self.action {
            Action::Send { from, to, cut, .. } => {
                let taken = cut.of(task);
                vec![from.touch(&taken, false, false), to.touch(&taken, true, false)]
            }
            Action::SendPacket { from, to, cut, .. } => {
                let packets = cut.of(task);
                let taken = halved(&packets);
                vec![from.touch(&taken, false, false), to.touch(&packets, true, true)]
            }
            Action::RecvPacket { scratch, output, cut, .. } => {
                let taken = cut.of(task);
                let packets = scaled(&taken, 2, 0);
                vec![scratch.touch(&packets, false, true), output.touch(&taken, true, false)]
            }
            Action::Reduce(reduce) => reduce.touches(task),
            Action::SendDone | Action::Recv { .. } | Action::Sync { .. } => vec![],
        }
    }

    /// What the op waits for in a phase.
    pub(crate) fn waits_for(&self, phase: usize) -> String {
        let links = |links: &[(i64, i64)]| {
            let each = links.iter().map(|(peer, tag)| format!("rank {peer} under tag {tag}"));
            each.collect::<Vec<_>>().join(", ")
        };
        match &self.action {
            Action::Recv { link: Some((link, count)) } => {
                format!("{count} signal(s) of {}", links(&[*link]))
            }
            Action::Sync { peers } => {
                let peer = peers.get(phase.saturating_sub(1));
                format!("rank {} to synchronise", peer.copied().unwrap_or_default())
            }
            _ => format!("packets of {}", links(&self.sources)),
        }
    }
}

/// The payload of packets.
pub(crate) fn halved(packets: &[Run]) -> Vec<Run> {
    packets.iter().map(|&(begin, len)| (begin / 2, len / 2)).collect()
}

/// Prepares an op of a plan.
///
/// # Errors
/// If the op is unsupported.
pub(crate) fn prepare(
    plan: &Plan,
    layout: &Layout,
    op: &PlanOp,
    manifests: &BTreeMap<i64, Manifest>,
) -> Result<CommOp, String> {
    let row = op.op.kind.row();
    let counts = [
        (&row.reads, op.op.reads.len()),
        (&row.writes, op.op.writes.len()),
        (&row.results, op.op.results.len()),
    ];
    if counts.iter().any(|(range, count)| !range.contains(count)) {
        return Err("it has another number of operands than its kind".into());
    }
    let action = ActionBuilder { plan, layout, op, manifests }.action()?;
    let name = format!("{} '{}'", op.op.kind, op.op.name);
    Ok(CommOp { name, action, sources: sources(op) })
}

struct ActionBuilder<'a> {
    plan: &'a Plan,
    layout: &'a Layout,
    op: &'a PlanOp,
    manifests: &'a BTreeMap<i64, Manifest>,
}

impl ActionBuilder<'_> {
    fn action(&self) -> Result<Action, String> {
        let op = &self.op.op;
        match op.kind {
            OpKind::Send => self.send(),
            OpKind::SendDone => Ok(Action::SendDone),
            OpKind::Recv => Ok(self.recv()),
            OpKind::SendPacket => self.send_packet(),
            OpKind::RecvPacket => self.recv_packet(),
            OpKind::RecvReduceSend | OpKind::RecvReduceSendPacket => self.reduce(),
            OpKind::DeviceSync => self.sync(),
            _ => Err("it does not communicate".into()),
        }
    }

    fn send(&self) -> Result<Action, String> {
        let (input, target) = (&self.op.op.reads[0], &self.op.op.writes[0]);
        let (from, to) = (self.here(input)?, self.there(target)?);
        same_bytes(&from, &to)?;
        // Only the kernel that stores by itself uses tiles; a proxy copies everything.
        let is_cut = self.op.config.text("ChannelType") == Some("Sm");
        let tile = if is_cut { self.op.config.ints("Tile") } else { None };
        let grid = grid(target, tile)?;
        let signal = self.op.config.bool("Signal").unwrap_or(true);
        let signal = if signal { Some(self.tag(target)?) } else { None };
        Ok(Action::Send { from, to, cut: Cut { tensor: target.clone(), grid }, signal })
    }

    fn recv(&self) -> Action {
        let wait = self.op.config.bool("Wait").unwrap_or(true);
        let link = sources(self.op).first().copied().filter(|_| wait);
        Action::Recv { link: link.map(|link| (link, self.share(link))) }
    }

    /// The number of signals for which one task waits: each task of a sender signals once, so a single
    /// waiting task waits for all of them.
    fn share(&self, (peer, tag): (i64, i64)) -> u64 {
        let here = self.plan.rank;
        let count = |ends: &[super::manifest::End], other| -> u64 {
            let same = ends.iter().filter(|end| (end.peer, end.tag) == (other, tag));
            same.map(|end| end.signals).sum()
        };
        let sent = self.manifests.get(&peer).map_or(0, |m| count(&m.sends, here));
        let waits = self.manifests.get(&here).map_or(0, |m| count(&m.receives, peer));
        sent.checked_div(waits).unwrap_or(1).max(1)
    }

    fn send_packet(&self) -> Result<Action, String> {
        let (input, target) = (&self.op.op.reads[0], &self.op.op.writes[0]);
        let (from, to) = (self.here(input)?, self.there(target)?);
        packets_of(&from.view, &to.view, 1)?;
        let cut = self.cut(target)?;
        check_packets(&cut, 8)?;
        Ok(Action::SendPacket { from, to, cut, flag: self.flag()? })
    }

    fn recv_packet(&self) -> Result<Action, String> {
        let (scratch, output) = (&self.op.op.reads[1], &self.op.op.writes[0]);
        let (scratch, place) = (self.here(scratch)?, self.here(output)?);
        packets_of(&place.view, &scratch.view, 1)?;
        let cut = self.cut(output)?;
        check_packets(&cut, 4)?;
        Ok(Action::RecvPacket { scratch, output: place, cut, flag: self.flag()? })
    }

    fn reduce(&self) -> Result<Action, String> {
        let op = &self.op.op;
        let (input, scratch) = (self.here(&op.reads[0])?, self.here(&op.reads[1])?);
        let output = self.here(&op.writes[0])?;
        let peers = u64::from(op.uint_arg("NPeers").ok_or("it has no argument `NPeers`")?);
        let targets = stand_ins(self.plan, self.op).map(|tensor| self.there(tensor));
        let targets = targets.collect::<Result<Vec<_>, _>>()?;
        if targets.len() as u64 != peers || op.writes.len() as u64 != peers + 1 {
            return Err(format!("it has {peers} peers and writes to {}", targets.len()));
        }
        if op.reads[0].dtype != op.writes[0].dtype {
            return Err("its input and output have different types".into());
        }
        same_bytes(&input, &output)?;
        let cut = self.cut(&op.writes[0])?;
        let flag = match op.kind {
            OpKind::RecvReduceSendPacket => {
                check_packets(&cut, 4)?;
                packets_of(&input.view, &scratch.view, peers)?;
                targets.iter().try_for_each(|to| packets_of(&input.view, &to.view, 1))?;
                Some(self.flag()?)
            }
            _ => {
                targets.iter().try_for_each(|to| same_bytes(&input, to))?;
                let expected = input.view.bytes() * peers;
                if scratch.view.bytes() < expected {
                    return Err(format!(
                        "its scratch has {} bytes: {expected} are needed",
                        scratch.view.bytes()
                    ));
                }
                None
            }
        };
        let dtype = op.reads[0].dtype;
        let reduce = Reduce { input, scratch, output, targets, cut, peers, dtype, flag };
        Ok(Action::Reduce(Box::new(reduce)))
    }

    fn sync(&self) -> Result<Action, String> {
        let count = self.op.op.int_arg("PeerNum").ok_or("it has no argument `PeerNum`")?;
        let here = self.plan.rank;
        let wanted = usize::try_from(count).unwrap_or_default();
        let peers = (0..=i64::from(count)).filter(|&rank| rank != here).take(wanted);
        match peers.clone().find(|peer| !self.manifests.contains_key(peer)) {
            Some(peer) => Err(format!("it waits for rank {peer}, which is not there")),
            None => Ok(Action::Sync { peers: peers.collect() }),
        }
    }

    /// A tensor on the local rank.
    fn here(&self, tensor: &Tensor) -> Result<Place, String> {
        let layout = self.layout;
        let id = tensor.buffer.id;
        let is_local = crate::layout::is_local(self.plan, tensor);
        let slot = layout.slot(id).filter(|_| is_local);
        let slot = slot.ok_or_else(|| format!("buffer {id} is not on this rank"))?;
        let view = View::of(tensor);
        if view.end() > layout.buffers[slot].bytes {
            return Err(format!("a tensor reaches past the end of buffer {id}"));
        }
        Ok(Place { peer: None, slot, view })
    }

    /// The tensor of a peer that a stand-in represents.
    fn there(&self, tensor: &Tensor) -> Result<Place, String> {
        let (peer, tag) = (tensor.buffer.rank, self.tag(tensor)?);
        let manifest = self.manifests.get(&peer);
        let landing = manifest.and_then(|m| m.landing(self.plan.rank, tag));
        let landing = landing.ok_or_else(|| format!("rank {peer} has no buffer for tag {tag}"))?;
        let view = View::of(tensor);
        if view.end() > landing.bytes {
            return Err(format!(
                "it writes up to byte {} of the buffer of rank {peer} under tag {tag}, which has {}",
                view.end(),
                landing.bytes
            ));
        }
        Ok(Place { peer: Some(peer), slot: landing.slot, view })
    }

    fn tag(&self, tensor: &Tensor) -> Result<i64, String> {
        let mut tags = tensor.buffer.recv_tags.iter().filter(|[peer, _]| *peer == -1);
        match (tags.next(), tags.next()) {
            (Some(&[_, tag]), None) => Ok(tag),
            (None, _) => Err("no tag is in `RecvTags` of what it writes".into()),
            _ => Err("several tags are in `RecvTags` of what it writes".into()),
        }
    }

    fn cut(&self, tensor: &Tensor) -> Result<Cut, String> {
        let tile = self.op.config.ints("Tile").ok_or("its config has no `Tile`")?;
        Ok(Cut { tensor: tensor.clone(), grid: grid(tensor, Some(tile))? })
    }

    /// The flag of packets. It must not be zero, because memory is initially zero.
    fn flag(&self) -> Result<u32, String> {
        match self.op.op.uint_arg("Flag") {
            Some(0) => Err("`Flag` is 0, as is memory before anything has arrived".into()),
            Some(flag) => Ok(flag),
            None => Err("it has no argument `Flag`".into()),
        }
    }
}

impl CommOp {
    /// Number of tasks that the op is tiled into; `None` if any number is valid.
    pub(crate) fn tasks(&self) -> Option<i64> {
        let cut = match &self.action {
            Action::Send { cut, .. } | Action::SendPacket { cut, .. } => cut,
            Action::RecvPacket { cut, .. } => cut,
            Action::Reduce(reduce) => &reduce.cut,
            Action::SendDone | Action::Recv { .. } | Action::Sync { .. } => return None,
        };
        Some(cut.grid.tasks())
    }
}

fn same_bytes(from: &Place, to: &Place) -> Result<(), String> {
    let (from, to) = (from.view.bytes(), to.view.bytes());
    if from == to { Ok(()) } else { Err(format!("it moves {from} bytes into {to}")) }
}

/// Checks that packets have twice the bytes of their payload.
fn packets_of(payload: &View, packets: &View, copies: u64) -> Result<(), String> {
    let (expected, found) = (payload.bytes() * 2 * copies, packets.bytes());
    if packets.is_words() && expected <= found {
        return Ok(());
    }
    Err(format!("expected {expected} bytes of aligned packets, found {found}"))
}

/// Checks that each task has whole packets.
fn check_packets(cut: &Cut, bytes: u64) -> Result<(), String> {
    let row = cut.tensor.shape.last().copied().unwrap_or(1).cast_unsigned();
    let element = cut.tensor.dtype.bytes();
    let tile = cut.grid.tile[3].cast_unsigned();
    let is_whole = |count: u64| (count * element).is_multiple_of(bytes);
    if is_whole(row) && (tile >= row || is_whole(tile)) {
        return Ok(());
    }
    Err(format!("its tiles of {tile} elements are no whole packets"))
}
