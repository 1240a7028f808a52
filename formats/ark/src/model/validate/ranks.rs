//! Checks of references to ranks, and of buffers on other ranks.

use std::collections::{BTreeMap, BTreeSet};

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use crate::json::OpPlace;
use crate::model::{Op, OpKind, Tensor};

/// Checks that a `DeviceSync` waits on this rank for all others.
pub(super) fn check_syncs(ops: &[(OpPlace, &Op)], (rank, world_size): (i64, i64), sink: &mut Sink) {
    for (place, op) in ops.iter().filter(|(_, op)| op.kind == OpKind::DeviceSync) {
        let at = place.at();
        for (name, expected) in [("PeerNum", world_size - 1), ("Rank", rank)] {
            // A missing one has a separate diagnostic.
            let Some(found) = op.int_arg(name).map(i64::from) else { continue };
            if found != expected {
                let message = format!("`{name}` must be {expected}, found {found}");
                let diagnostic = Diagnostic::error("ark-arg-value", message);
                sink.push(diagnostic.path(at.key("Args").key(name).to_string()));
            }
        }
    }
}

/// Checks that buffers are on ranks of the world, and that only communication accesses those of other ranks.
pub(super) fn check(ops: &[(OpPlace, &Op)], (rank, world_size): (i64, i64), sink: &mut Sink) {
    let mut seen = BTreeSet::new();
    for (place, op) in ops {
        let at = place.at();
        let lists = [
            ("ReadTensors", &op.reads),
            ("WriteTensors", &op.writes),
            ("ResultTensors", &op.results),
        ];
        for (list, tensors) in lists {
            for (index, tensor) in tensors.iter().enumerate() {
                let Some(diagnostic) = find(op, tensor, rank, world_size) else { continue };
                // One diagnostic for each buffer is enough.
                if seen.insert((diagnostic.code, tensor.buffer.id)) {
                    let list = at.key(list);
                    sink.push(diagnostic.path(format!("{}.Buffer.Rank", list.index(index))));
                }
            }
        }
    }
}

/// Checks that a tag identifies one buffer of this rank for each peer and direction, because ranks
/// identify each other's buffers by it.
pub(super) fn check_tags(ops: &[(OpPlace, &Op)], rank: i64, sink: &mut Sink) {
    let mut owners: BTreeMap<(&str, [i64; 2]), (u64, String)> = BTreeMap::new();
    for (place, op) in ops {
        for (path, tensor) in local_tensors(op, &place.at(), rank) {
            let buffer = &tensor.buffer;
            for (key, tags) in [("SendTags", &buffer.send_tags), ("RecvTags", &buffer.recv_tags)] {
                for tag in tags.iter().filter(|[peer, _]| *peer != -1) {
                    let here = || (buffer.id, format!("{path}.Buffer.{key}"));
                    let (owner, first) = owners.entry((key, *tag)).or_insert_with(here);
                    if *owner != buffer.id {
                        let [peer, tag] = tag;
                        let message = format!(
                            "tag {tag} of rank {peer} names buffer {owner} and buffer {} in `{key}`",
                            buffer.id
                        );
                        let diagnostic = Diagnostic::error("ark-tag-collision", message)
                            .path(here().1)
                            .related(first.clone(), "the other buffer is here");
                        sink.push(diagnostic);
                        return;
                    }
                }
            }
        }
    }
}

/// Tensors on buffers of this rank, with their paths.
fn local_tensors<'m>(op: &'m Op, at: &At<'_>, rank: i64) -> Vec<(String, &'m Tensor)> {
    let lists =
        [("ReadTensors", &op.reads), ("WriteTensors", &op.writes), ("ResultTensors", &op.results)];
    let all = lists.into_iter().flat_map(|(list, tensors)| {
        let list = at.key(list);
        let paths: Vec<_> = (0..tensors.len()).map(|i| list.index(i).to_string()).collect();
        paths.into_iter().zip(tensors)
    });
    all.filter(|(_, tensor)| [-1, rank].contains(&tensor.buffer.rank)).collect()
}

fn find(op: &Op, tensor: &Tensor, rank: i64, world_size: i64) -> Option<Diagnostic> {
    let (of, id) = (tensor.buffer.rank, tensor.buffer.id);
    if !(-1..world_size).contains(&of) {
        let message = format!("buffer {id} is on rank {of}, the world has {world_size}");
        return Some(Diagnostic::error("ark-remote-rank", message));
    }
    if of == -1 || of == rank || op.is_virtual || op.kind.is_communication() {
        return None;
    }
    let message = format!("`{}` cannot reach buffer {id}, which is on rank {of}", op.kind);
    let note = "only communication touches buffers of other ranks";
    Some(Diagnostic::error("ark-foreign-buffer", message).with_note(note))
}
