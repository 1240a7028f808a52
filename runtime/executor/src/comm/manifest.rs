//! The data that ranks exchange before a run starts, and the matching of tags.
//!
//! A link carries data from one rank to another under a tag. The sender refers to it by a stand-in for
//! the receiving buffer: `Rank` is the receiver, `RecvTags` contains `[-1, tag]`. The receiver lists
//! `[sender, tag]` in `RecvTags` of the buffer itself.

use std::collections::BTreeMap;

use irc_ark_format::model::{Buffer, OpKind, Tensor};
use irc_ark_format::plan::{Plan, PlanOp};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::layout::{Layout, is_local};
use crate::script::Entry;

/// The links of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub rank: i64,
    pub world_size: i64,
    /// Ops that write to peers.
    pub sends: Vec<End>,
    /// Ops that use what peers write.
    pub receives: Vec<End>,
    /// Local buffers that peers write.
    pub landings: Vec<ReceiveBuffer>,
    /// Whether an op synchronises with ranks without tags.
    pub synchronises: bool,
}

/// One op at one end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// Type and name of the op.
    pub op: String,
    pub peer: i64,
    pub tag: i64,
    /// Number of tasks that signal, or wait for a signal, under the tag.
    pub signals: u64,
}

/// A buffer that a peer writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReceiveBuffer {
    pub peer: i64,
    pub tag: i64,
    /// The index of the buffer among those of its rank.
    pub slot: usize,
    pub bytes: u64,
}

/// The ops of a plan that communicate, with the index of their task info and their index in it.
pub(crate) fn communications(plan: &Plan) -> impl Iterator<Item = (usize, usize, &PlanOp)> {
    let infos = plan.task_infos.iter().enumerate();
    let ops = infos.flat_map(|(task, info)| {
        info.ops.iter().enumerate().map(move |(index, op)| (task, index, op))
    });
    ops.filter(|(_, _, op)| op.op.kind.is_communication())
}

/// The stand-ins for tensors of other ranks that an op writes.
pub(crate) fn stand_ins<'a>(plan: &'a Plan, op: &'a PlanOp) -> impl Iterator<Item = &'a Tensor> {
    let writes = op.op.kind != OpKind::DeviceSync;
    op.op.writes.iter().filter(move |tensor| writes && !is_local(plan, tensor))
}

/// The tags under which a stand-in is sent.
fn tags(buffer: &Buffer) -> impl Iterator<Item = i64> {
    buffer.recv_tags.iter().filter(|[peer, _]| *peer == -1).map(|&[_, tag]| tag)
}

/// The links whose data an op uses, as peer and tag.
pub(crate) fn sources(op: &PlanOp) -> Vec<(i64, i64)> {
    let op = &op.op;
    let listed = |buffer: &Buffer| -> Vec<(i64, i64)> {
        let pairs = buffer.recv_tags.iter().map(|&[peer, tag]| (peer, tag));
        pairs.filter(|&(peer, _)| peer >= 0).collect()
    };
    match (op.kind, &op.reads[..], op.writes.first()) {
        (OpKind::Recv, [stand_in, ..], Some(output)) => {
            let peer = stand_in.buffer.rank;
            let sent = stand_in.buffer.send_tags.iter().filter(|[to, _]| *to == -1);
            sent.map(|&[_, tag]| (peer, tag))
                .filter(|link| listed(&output.buffer).contains(link))
                .collect()
        }
        (
            OpKind::RecvPacket | OpKind::RecvReduceSend | OpKind::RecvReduceSendPacket,
            [_, scratch, ..],
            _,
        ) => listed(&scratch.buffer),
        _ => vec![],
    }
}

/// Whether a task of the op signals, or waits for a signal.
fn signals(op: &PlanOp) -> bool {
    match op.op.kind {
        OpKind::Send => op.config.bool("Signal").unwrap_or(true),
        OpKind::Recv => op.config.bool("Wait").unwrap_or(true),
        _ => false,
    }
}

impl Manifest {
    /// The links of a plan.
    ///
    /// # Errors
    /// If an op has no link.
    pub(crate) fn of(plan: &Plan, layout: &Layout, script: &[Entry]) -> Result<Self, Error> {
        let mut manifest =
            Manifest { rank: plan.rank, world_size: plan.world_size, ..Manifest::default() };
        let runs = runs(plan, script);
        for (task, index, op) in communications(plan) {
            let name = format!("{} '{}'", op.op.kind, op.op.name);
            let place = || format!("rank {}, {name} of task info {task}", plan.rank);
            let problem = |reason: &str| Error::Plan { place: place(), reason: reason.into() };
            let count = if signals(op) { runs[task] } else { 0 };
            let end = |peer, tag| End { op: name.clone(), peer, tag, signals: count };
            for tensor in stand_ins(plan, op) {
                let before = manifest.sends.len();
                let links = tags(&tensor.buffer).map(|tag| end(tensor.buffer.rank, tag));
                manifest.sends.extend(links);
                if manifest.sends.len() == before {
                    return Err(problem("no tag is in `RecvTags` of what it writes"));
                }
            }
            let sources = sources(op);
            if sources.is_empty() && op.op.kind == OpKind::Recv {
                return Err(problem("no tag connects what it reads to what it writes"));
            }
            manifest.receives.extend(sources.into_iter().map(|(peer, tag)| end(peer, tag)));
            manifest.synchronises |= op.op.kind == OpKind::DeviceSync;
            let _ = index;
        }
        manifest.landings = landings(plan, layout);
        Ok(manifest)
    }

    /// Whether the rank needs other ranks.
    pub(crate) fn communicates(&self) -> bool {
        self.synchronises || !self.sends.is_empty() || !self.receives.is_empty()
    }

    /// The buffer that receives from a rank under a tag.
    pub(crate) fn landing(&self, peer: i64, tag: i64) -> Option<&ReceiveBuffer> {
        self.landings.iter().find(|landing| (landing.peer, landing.tag) == (peer, tag))
    }
}

/// The number of tasks of each task info that run; a plan that loses tasks sends less.
fn runs(plan: &Plan, script: &[Entry]) -> Vec<u64> {
    let mut communicates = vec![false; plan.task_infos.len()];
    communications(plan).for_each(|(task, _, _)| communicates[task] = true);
    let mut runs = vec![0; plan.task_infos.len()];
    for entry in script {
        let Entry::Tasks(share) = entry else { continue };
        if !communicates[share.task] {
            continue;
        }
        let range = share.distribution.processors;
        for processor in range.begin..range.end.min(plan.num_processors) {
            let mut cursor = share.distribution.of(processor);
            while share.distribution.advance(&mut cursor).is_some() {
                runs[share.task] += 1;
            }
        }
    }
    runs
}

/// The local buffers that list a peer in `RecvTags`, each link once.
fn landings(plan: &Plan, layout: &Layout) -> Vec<ReceiveBuffer> {
    let mut found: BTreeMap<(i64, i64, usize), u64> = BTreeMap::new();
    for tensor in plan.task_infos.iter().flat_map(|info| &info.ops).flat_map(|op| op.op.tensors()) {
        let Some(slot) = layout.slot(tensor.buffer.id) else { continue };
        if !is_local(plan, tensor) {
            continue;
        }
        for &[peer, tag] in tensor.buffer.recv_tags.iter().filter(|[peer, _]| *peer >= 0) {
            found.insert((peer, tag, slot), layout.buffers[slot].bytes);
        }
    }
    let landing = |((peer, tag, slot), bytes): ((i64, i64, usize), u64)| ReceiveBuffer {
        peer,
        tag,
        slot,
        bytes,
    };
    found.into_iter().map(landing).collect()
}

/// Checks that the ranks form a world and that every tag has its counterpart.
///
/// # Errors
/// All errors, one per line.
pub(crate) fn check(manifests: &BTreeMap<i64, Manifest>) -> Result<(), Error> {
    let mut faults = vec![];
    check_world(manifests, &mut faults);
    for (rank, manifest) in manifests {
        for End { op, peer, tag, .. } in &manifest.sends {
            let Some(other) = manifests.get(peer) else { continue };
            let lands = other.landings.iter().filter(|l| (l.peer, l.tag) == (*rank, *tag)).count();
            if lands != 1 {
                let number = if lands == 0 { "no buffer" } else { "several buffers" };
                faults.push(format!(
                    "rank {rank}: {op} sends to rank {peer} under tag {tag}, and there {number} \
                     lists that tag of rank {rank} in `RecvTags`"
                ));
            }
        }
        for End { op, peer, tag, .. } in &manifest.receives {
            let Some(other) = manifests.get(peer) else { continue };
            if !other.sends.iter().any(|send| (send.peer, send.tag) == (*rank, *tag)) {
                faults.push(format!(
                    "rank {rank}: {op} receives from rank {peer} under tag {tag}, and rank {peer} \
                     sends nothing under that tag to rank {rank}"
                ));
            }
        }
    }
    faults.dedup();
    if faults.is_empty() { Ok(()) } else { Err(Error::World(faults.join("\n"))) }
}

/// Checks that the required ranks exist.
fn check_world(manifests: &BTreeMap<i64, Manifest>, faults: &mut Vec<String>) {
    let here: Vec<_> = manifests.keys().map(i64::to_string).collect();
    let here = here.join(", ");
    for (rank, manifest) in manifests {
        let size = manifest.world_size;
        let missing = (0..size.clamp(0, 1 << 16)).find(|other| !manifests.contains_key(other));
        if let (true, Some(missing)) = (manifest.communicates(), missing) {
            faults.push(format!(
                "rank {rank} communicates in a world of {size}, and rank {missing} is not there; \
                 the ranks here are {here}"
            ));
            return;
        }
        for End { op, peer, .. } in manifest.sends.iter().chain(&manifest.receives) {
            if !manifests.contains_key(peer) {
                faults.push(format!(
                    "rank {rank}: {op} names rank {peer}; the ranks here are {here}"
                ));
            }
        }
    }
}
