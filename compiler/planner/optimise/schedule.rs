//! Steps: tasks that wait for none of each other run side by side.
use super::{dependencies::is_seen, group::Drafts};
use irc_ark_format::model::OpKind;

/// Drafts of one step, by index, in the order in which they are listed.
pub type Step = Vec<usize>;

/// Puts every draft into the first step in which all it waits for is done. There are as many steps
/// as the longest chain of drafts is long, and fewer there cannot be. Drafts of `Noop` alone, which
/// run nothing, are in none.
pub fn steps(drafts: &Drafts) -> Vec<Step> {
    let mut level = vec![0; drafts.drafts.len()];
    let mut steps: Vec<Step> = vec![];
    for index in drafts.order() {
        let before = drafts.waits(index).filter(|other| !is_idle(drafts, *other));
        level[index] = before.map(|other| level[other] + 1).max().unwrap_or(0);
        if is_idle(drafts, index) {
            continue;
        }
        if steps.len() <= level[index] {
            steps.resize(level[index] + 1, vec![]);
        }
        steps[level[index]].push(index);
    }
    for step in &mut steps {
        // What a peer waits for is sent first, and what waits for a peer comes last.
        step.sort_by_key(|index| (rank(drafts, *index), drafts.drafts[*index].nodes[0]));
    }
    steps
}

/// Whether a draft runs nothing.
fn is_idle(drafts: &Drafts, index: usize) -> bool {
    drafts.drafts[index].ops.iter().all(|op| op.op.kind == OpKind::Noop)
}

fn rank(drafts: &Drafts, index: usize) -> u8 {
    match drafts.drafts[index].ops.iter().map(|op| &op.op).find(|op| is_seen(op)) {
        Some(op) if matches!(op.kind, OpKind::Send | OpKind::SendPacket) => 0,
        Some(op) if op.kind.is_communication() => 2,
        _ => 1,
    }
}
