//! Reports of deadlocks: who waits for whom.

use std::sync::atomic::Ordering;

use super::call::BoundStep;
use super::processor::Place;
use super::script::Entry;
use super::world::Bound;

/// Most waiting tasks named of each rank.
const MAX_NAMED: usize = 8;

/// What the processors of a rank wait for, a sentence each; `places` are the tasks they are in.
pub(super) fn waits(bound: &Bound<'_>, places: &[Option<Place>]) -> Vec<String> {
    let mut found = tasks(bound, places);
    let more = found.len().saturating_sub(MAX_NAMED);
    found.truncate(MAX_NAMED);
    if more > 0 {
        found.push(format!("rank {}: {more} more tasks wait", bound.rank.plan.rank));
    }
    found.extend(barriers(bound));
    found
}

fn tasks(bound: &Bound<'_>, places: &[Option<Place>]) -> Vec<String> {
    let mut found = vec![];
    for (processor, place) in places.iter().enumerate() {
        let Some(place) = place else { continue };
        let steps = &bound.tasks[place.info].steps;
        let Some(BoundStep::Communicate(op)) = steps.get(place.step) else { continue };
        found.push(format!(
            "rank {}: {} (task {}[{}] on processor {processor}) waits for {}",
            bound.rank.plan.rank,
            op.name,
            place.info,
            place.task,
            op.waits_for(place.phase)
        ));
    }
    found
}

fn barriers(bound: &Bound<'_>) -> Vec<String> {
    let mut found = vec![];
    for (entry, missing) in bound.rank.script.iter().zip(&bound.missing) {
        let Entry::Barrier { range, before } = entry else { continue };
        let missing = missing.load(Ordering::Acquire);
        if missing > 0 && missing < range.len() {
            found.push(format!(
                "rank {}: the barrier over processors [{}, {}) before processor group {before} \
                 waits for {missing} more",
                bound.rank.plan.rank, range.begin, range.end
            ));
        }
    }
    found
}
