//! Dependencies between ops.
use irc_ark_format::model::{Model, Op, hazards};
use std::collections::{BTreeMap, BTreeSet};

/// By position of an op, the sorted positions of the ops it depends on.
///
/// Dependencies are conflicts on memory and edges of the file, including those through virtual nodes.
/// Ops visible to other ranks keep their order: the order of messages, and when a buffer may be
/// overwritten by a peer, is part of what the ranks agreed on.
pub fn of(model: &Model, ops: &[(usize, Op)]) -> Vec<Vec<usize>> {
    let position: BTreeMap<usize, usize> =
        ops.iter().enumerate().map(|(position, (node, _))| (*node, position)).collect();
    let mut waits: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); ops.len()];
    // For each virtual node, the real nodes before it.
    let mut behind: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for hazard in
        hazards(model).into_iter().map(|hazard| (hazard.to, hazard.from)).collect::<BTreeSet<_>>()
    {
        let (to, from) = hazard;
        let sources = match position.get(&from) {
            Some(from) => BTreeSet::from([*from]),
            None => behind.get(&from).cloned().unwrap_or_default(),
        };
        match position.get(&to) {
            Some(to) => waits[*to].extend(sources),
            None => behind.entry(to).or_default().extend(sources),
        }
    }
    let mut last = None;
    for (position, (_, op)) in ops.iter().enumerate() {
        if is_seen(op) {
            waits[position].extend(last);
            last = Some(position);
        }
    }
    let earlier = |(position, waits): (usize, BTreeSet<usize>)| {
        waits.into_iter().filter(|other| *other < position).collect()
    };
    waits.into_iter().enumerate().map(earlier).collect()
}

/// Whether other ranks see the effects of an op, or it sees theirs.
pub fn is_seen(op: &Op) -> bool {
    let is_shared = |tensor: &irc_ark_format::model::Tensor| {
        let buffer = &tensor.buffer;
        buffer.rank >= 0 || !buffer.send_tags.is_empty() || !buffer.recv_tags.is_empty()
    };
    op.kind.is_communication() || op.tensors().any(is_shared)
}
