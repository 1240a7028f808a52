//! Moves ops from the end of a task to the task that uses them, where that is faster.
//!
//! Grouping considers only the ops before an op. An elementwise op after a product joins it, even
//! where the row reduction that follows would better read the product once and recompute the op
//! in registers; here it is moved.
use super::group::{Grouping, after};
use irc_ark_format::model::Op;

/// A move must reduce the time to this share.
const WORTH: f64 = 0.999;

/// Moves ops while that is faster, from the first draft to the last.
pub(super) fn refine(grouping: &mut Grouping<'_>, waits: &[Vec<usize>]) {
    let users = after(waits);
    for slot in 0..grouping.len() {
        while move_tail(grouping, slot, &users) {}
    }
    // Moves only add dependencies; those that no longer exist are removed here.
    let is_valid = grouping.follow(waits);
    assert!(is_valid, "a draft depends on itself");
}

/// Moves the last op of a draft; returns whether it did.
fn move_tail(grouping: &mut Grouping<'_>, slot: usize, users: &[Vec<usize>]) -> bool {
    let Some(draft) = grouping.open(slot).filter(|draft| draft.nodes.len() > 1) else {
        return false;
    };
    let position = grouping.position(draft.nodes[draft.nodes.len() - 1]);
    let mut homes: Vec<usize> = users[position].iter().map(|user| grouping.home(*user)).collect();
    homes.sort_unstable();
    homes.dedup();
    homes.retain(|home| *home != slot);
    homes.iter().any(|to| try_move(grouping, position, slot, *to, &homes))
}

fn try_move(
    grouping: &mut Grouping<'_>,
    position: usize,
    from: usize,
    to: usize,
    users: &[usize],
) -> bool {
    let others = || users.iter().copied().filter(|user| *user != to);
    if others().any(|user| grouping.waits_for(to, user)) {
        return false;
    }
    let (Some(old), Some(new)) = (grouping.open(from), grouping.open(to)) else { return false };
    let (node, op) = grouping.op(position);
    let rest: Vec<(usize, &Op)> = old.members().filter(|(other, _)| *other != node).collect();
    let mut more: Vec<(usize, &Op)> = new.members().chain([(node, op)]).collect();
    more.sort_by_key(|(node, _)| *node);
    let (Some(rest), Some(more)) = (grouping.draft(&rest), grouping.draft(&more)) else {
        return false;
    };
    if rest.price + more.price >= (old.price + new.price) * WORTH {
        return false;
    }
    grouping.replace(from, rest);
    grouping.replace(to, more);
    grouping.rehome(position, to);
    others().for_each(|user| grouping.wait(user, to));
    true
}
