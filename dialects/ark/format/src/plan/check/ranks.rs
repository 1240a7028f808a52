//! The plans of all ranks together.

use std::collections::{BTreeMap, BTreeSet};

use irc_diag::Diagnostic;

use super::order::world;
use super::{ops, pairs};
use crate::model::Buffer;
use crate::plan::Plan;

/// One direction of data between two ranks, under a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    /// Rank that sends.
    pub from: i64,
    /// Rank that receives.
    pub to: i64,
    /// Tag both list.
    pub tag: i64,
}

/// What one rank lists of its links, and where.
#[derive(Default)]
struct Listed {
    /// Links whose receiving buffer is here, with that buffer's id.
    receives: BTreeMap<Link, (u64, String)>,
    /// Links whose sending buffer is here.
    sends: BTreeMap<Link, (u64, String)>,
    /// Links whose receiving buffer is elsewhere, as this rank believes.
    remote_receives: BTreeMap<Link, (u64, String)>,
    /// Links whose sending buffer is elsewhere, as this rank believes.
    remote_sends: BTreeMap<Link, (u64, String)>,
}

/// Every finding in the plans of several ranks, each with the index of the plan it is in.
///
/// Checks what no plan alone shows: that ranks are all there, that the tags one side lists the
/// other lists too, and, once they do, that nobody waits for ever and that what ranks do to each
/// other's memory is ordered. The plans themselves are sound ([`super::check`]).
pub fn check_ranks(plans: &[Plan]) -> Vec<(usize, Diagnostic)> {
    let mut found = check_set(plans);
    let listed: Vec<Listed> = plans.iter().map(list).collect();
    for (index, plan) in plans.iter().enumerate() {
        for (peer_index, peer) in plans.iter().enumerate() {
            let between = |link: &&Link| (link.from, link.to) == (plan.rank, peer.rank);
            let (believed, real) = (&listed[index].remote_receives, &listed[peer_index].receives);
            for link in believed.keys().filter(between).filter(|link| !real.contains_key(link)) {
                found.push((index, unmatched(*link, peer.rank, &believed[link].1)));
            }
            for link in real.keys().filter(between).filter(|link| !believed.contains_key(link)) {
                found.push((peer_index, unmatched(*link, plan.rank, &real[link].1)));
            }
        }
    }
    found.extend(pairs::check(plans));
    let is_whole = plans.first().is_some_and(|plan| plan.world_size == plans.len() as i64);
    if is_whole && !found.iter().any(|(_, finding)| finding.is_error()) {
        found.extend(world::check(plans));
    }
    found
}

/// Only where data goes must agree: a kernel that writes straight into a peer's buffer lists no
/// tag for the buffer it sends from.
fn unmatched(link: Link, rank: i64, path: &str) -> Diagnostic {
    let Link { from, to, tag } = link;
    let message = format!("rank {rank} does not list tag {tag} of data from rank {from} to {to}");
    Diagnostic::error("plan-tag", message)
        .path(path)
        .with_note("both ranks must list it in `RecvTags` of a buffer")
}

/// The ranks are those of one world, each once.
fn check_set(plans: &[Plan]) -> Vec<(usize, Diagnostic)> {
    let mut found = vec![];
    let mut seen = BTreeSet::new();
    for (index, plan) in plans.iter().enumerate() {
        if !seen.insert(plan.rank) {
            let message = format!("another plan is for rank {} too", plan.rank);
            found.push((index, Diagnostic::error("plan-ranks", message).path("$.Rank")));
        }
        if plan.world_size != plans[0].world_size {
            let expected = plans[0].world_size;
            let message = format!("`WorldSize` is {}, {expected} elsewhere", plan.world_size);
            found.push((index, Diagnostic::error("plan-ranks", message).path("$.WorldSize")));
        }
    }
    if let Some(plan) = plans.first().filter(|plan| plan.world_size != seen.len() as i64) {
        let message = format!("plans of {} of {} ranks", seen.len(), plan.world_size);
        let finding = match plans.len() {
            1 => Diagnostic::note("plan-ranks", message)
                .help("give the plans of all ranks to check what they do to each other"),
            _ => Diagnostic::warning("plan-ranks", message),
        };
        found.push((0, finding.path("$.WorldSize")));
    }
    found
}

fn list(plan: &Plan) -> Listed {
    let mut listed = Listed::default();
    for (place, plan_op) in ops(plan) {
        let op = &plan_op.op;
        let lists = [
            ("ReadTensors", &op.reads),
            ("WriteTensors", &op.writes),
            ("ResultTensors", &op.results),
        ];
        for (key, tensors) in lists {
            for (index, tensor) in tensors.iter().enumerate() {
                let path = format!("{place}.{key}[{index}].Buffer");
                list_buffer(plan.rank, &tensor.buffer, &path, &mut listed);
            }
        }
    }
    listed
}

fn list_buffer(rank: i64, buffer: &Buffer, path: &str, listed: &mut Listed) {
    let is_local = buffer.rank < 0 || buffer.rank == rank;
    for &[peer, tag] in &buffer.send_tags {
        let (map, link) = match is_local {
            // An entry without a peer is not exchanged.
            true if peer < 0 => continue,
            true => (&mut listed.sends, Link { from: rank, to: peer, tag }),
            false => (&mut listed.remote_sends, Link { from: buffer.rank, to: rank, tag }),
        };
        insert(map, link, buffer.id, format!("{path}.SendTags"));
    }
    for &[peer, tag] in &buffer.recv_tags {
        let (map, link) = match is_local {
            true if peer < 0 => continue,
            true => (&mut listed.receives, Link { from: peer, to: rank, tag }),
            false => (&mut listed.remote_receives, Link { from: rank, to: buffer.rank, tag }),
        };
        insert(map, link, buffer.id, format!("{path}.RecvTags"));
    }
}

/// Of several buffers under one link, which is an error by itself, the first counts.
fn insert(map: &mut BTreeMap<Link, (u64, String)>, link: Link, buffer: u64, path: String) {
    map.entry(link).or_insert((buffer, path));
}
