//! The tags by which ranks identify each other's buffers.

use std::collections::BTreeMap;

use irc_diag::Diagnostic;

use super::{Buffer, Model, Op};
use crate::json::OpPlace;

/// One direction of data between two ranks, under a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    /// The sending rank.
    pub from: i64,
    /// The receiving rank.
    pub to: i64,
    /// The tag that both list.
    pub tag: i64,
}

/// The links that one rank lists, by the rank of their receiving buffer, with the path of each.
pub(crate) struct Links {
    rank: i64,
    /// The receiving buffer is on this rank.
    here: BTreeMap<Link, String>,
    /// The receiving buffer is on another rank, according to this one.
    elsewhere: BTreeMap<Link, String>,
}

impl Links {
    /// The links of the ops of a rank.
    ///
    /// Only the destination of data is relevant: a kernel that writes directly to a peer's buffer lists
    /// no tag for the buffer from which it sends.
    pub fn of<'a>(rank: i64, ops: impl Iterator<Item = (OpPlace, &'a Op)>) -> Self {
        let mut links = Self { rank, here: BTreeMap::new(), elsewhere: BTreeMap::new() };
        for (place, op) in ops.filter(|(_, op)| !op.is_virtual) {
            let lists = [
                ("ReadTensors", &op.reads),
                ("WriteTensors", &op.writes),
                ("ResultTensors", &op.results),
            ];
            for (key, tensors) in lists {
                for (index, tensor) in tensors.iter().enumerate() {
                    links
                        .list(&tensor.buffer, || format!("{place}.{key}[{index}].Buffer.RecvTags"));
                }
            }
        }
        links
    }

    /// If several buffers have one link, which is an error by itself, the first is used.
    fn list(&mut self, buffer: &Buffer, path: impl Fn() -> String) {
        let is_local = buffer.rank < 0 || buffer.rank == self.rank;
        for &[peer, tag] in &buffer.recv_tags {
            let (map, link) = match is_local {
                // An entry without a peer is not used for communication.
                true if peer < 0 => continue,
                true => (&mut self.here, Link { from: peer, to: self.rank, tag }),
                false => (&mut self.elsewhere, Link { from: self.rank, to: buffer.rank, tag }),
            };
            map.entry(link).or_insert_with(&path);
        }
    }
}

/// Links that one rank lists and the other, if given, does not, each with the index of
/// the rank that lists it.
pub(crate) fn unmatched(ranks: &[Links], code: &'static str) -> Vec<(usize, Diagnostic)> {
    let mut found = vec![];
    for (from, sender) in ranks.iter().enumerate() {
        for (to, receiver) in ranks.iter().enumerate() {
            let only = |one: &BTreeMap<Link, String>, other: &BTreeMap<Link, String>, rank| {
                let between = |link: &Link| (link.from, link.to) == (sender.rank, receiver.rank);
                let mine =
                    one.iter().filter(|(link, _)| between(link) && !other.contains_key(link));
                mine.map(|(link, path)| diagnostic(code, *link, rank, path)).collect::<Vec<_>>()
            };
            let missing = only(&sender.elsewhere, &receiver.here, receiver.rank);
            found.extend(missing.into_iter().map(|diagnostic| (from, diagnostic)));
            let unexpected = only(&receiver.here, &sender.elsewhere, sender.rank);
            found.extend(unexpected.into_iter().map(|diagnostic| (to, diagnostic)));
        }
    }
    found
}

/// `rank` is the one that does not list the link.
fn diagnostic(code: &'static str, link: Link, rank: i64, path: &str) -> Diagnostic {
    let Link { from, to, tag } = link;
    let message = format!("rank {rank} does not list tag {tag} of data from rank {from} to {to}");
    Diagnostic::error(code, message)
        .path(path)
        .with_note("both ranks must list it in `RecvTags` of a buffer")
}

/// Tags that the models of several ranks do not share, each with the index of the model that lists
/// it. Each model is valid by itself.
pub fn check_ranks(models: &[Model]) -> Vec<(usize, Diagnostic)> {
    let of = |model: &Model| {
        let ops = model.nodes.iter().enumerate();
        Links::of(model.rank, ops.map(|(index, node)| (OpPlace::Node(index), &node.op)))
    };
    let links: Vec<Links> = models.iter().map(of).collect();
    unmatched(&links, "ark-tag")
}
