//! Checks all ranks together: waits between ranks, and writes to another rank's memory.
//!
//! [`act`] defines the effects of an op on other ranks, [`run`] simulates all ranks with their
//! barriers and signals, and [`race`] compares accesses that remain unordered.
//! Signals are those of mscclpp, which ARK uses: each pair of ranks counts them for each type of
//! channel, independently of tags, so the first wait consumes the first signal.

mod act;
mod deadlock;
mod race;
mod run;

use irc_diag::Diagnostic;

use crate::plan::Plan;

/// Maximum number of steps of the simulation: segments of processors times the rows that each runs.
const MAX_STEPS: usize = 20_000_000;

/// All diagnostics about the order of events between ranks, each with the index of its plan.
///
/// The plans are those of all ranks of a world, each valid by itself and listed once.
pub(in crate::plan::check) fn check(plans: &[Plan]) -> Vec<(usize, Diagnostic)> {
    let mut plans: Vec<(usize, &Plan)> = plans.iter().enumerate().collect();
    plans.sort_by_key(|(_, plan)| plan.rank);
    let world = run::World::new(plans.iter().map(|(_, plan)| *plan).collect());
    let found = match world.steps() > MAX_STEPS {
        true => vec![(0, unproven())],
        false => {
            let state = world.run();
            let stuck = deadlock::check(&world, &state);
            let outcome = state.finish(stuck);
            let mut found = outcome.found.clone();
            if outcome.is_complete {
                found.extend(race::check(&world, &outcome));
            }
            found
        }
    };
    found.into_iter().map(|(rank, diagnostic)| (plans[rank].0, diagnostic)).collect()
}

fn unproven() -> Diagnostic {
    let message = "too many processor ranges to simulate the ranks together";
    Diagnostic::warning("plan-order-unproven", message)
        .path("$.ProcessorGroups")
        .with_note("the order of events of different ranks was not checked")
}
