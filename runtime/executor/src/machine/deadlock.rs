//! Reports of deadlocks: which processors wait, and for what.

use std::sync::atomic::{AtomicI64, Ordering};

use super::bound::{BoundStep, BoundTask};
use super::processor::Place;
use crate::Rank;
use crate::script::Entry;

/// Maximum number of waiting tasks listed for each rank.
const MAX_NAMED: usize = 8;

/// What the processors of a rank wait for, one sentence each; `places` are their current tasks.
pub(super) fn waits(
    rank: &Rank,
    bound: &[BoundTask],
    missing: &[AtomicI64],
    places: &[Option<Place>],
) -> Vec<String> {
    let mut found = tasks(rank, bound, places);
    let more = found.len().saturating_sub(MAX_NAMED);
    found.truncate(MAX_NAMED);
    if more > 0 {
        found.push(format!("rank {}: {more} more tasks wait", rank.plan.rank));
    }
    found.extend(barriers(rank, missing));
    found
}

fn tasks(rank: &Rank, bound: &[BoundTask], places: &[Option<Place>]) -> Vec<String> {
    let mut found = vec![];
    for (processor, place) in places.iter().enumerate() {
        let Some(place) = place else { continue };
        let steps = &bound[place.info].steps;
        let Some(BoundStep::Communicate(op)) = steps.get(place.step) else { continue };
        found.push(format!(
            "rank {}: {} (task {}[{}] on processor {processor}) waits for {}",
            rank.plan.rank,
            op.name,
            place.info,
            place.task,
            op.waits_for(place.phase)
        ));
    }
    found
}

fn barriers(rank: &Rank, missing: &[AtomicI64]) -> Vec<String> {
    let mut found = vec![];
    for (entry, missing) in rank.script.iter().zip(missing) {
        let Entry::Barrier { range, before } = entry else { continue };
        let missing = missing.load(Ordering::Acquire);
        if missing > 0 && missing < range.len() {
            found.push(format!(
                "rank {}: the barrier over processors [{}, {}) before processor group {before} \
                 waits for {missing} more",
                rank.plan.rank, range.begin, range.end
            ));
        }
    }
    found
}
