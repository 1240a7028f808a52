//! Checks of the plans of all ranks together.

use std::collections::BTreeSet;

use irc_diag::Diagnostic;

use super::order::world;
use super::{ops, pairs};
use crate::model::links::{self, Links};
use crate::plan::Plan;

/// All diagnostics of the plans of several ranks, each with the index of its plan.
///
/// Checks what a single plan does not show: that all ranks exist, that both sides list the same
/// tags, and, if they do, that there is no deadlock and that accesses of ranks to each
/// other's memory are ordered. Each plan is valid by itself ([`super::check`]).
pub fn check_ranks(plans: &[Plan]) -> Vec<(usize, Diagnostic)> {
    let mut found = check_set(plans);
    let listed = plans
        .iter()
        .map(|plan| Links::of(plan.rank, ops(plan).map(|(place, plan_op)| (place, &plan_op.op))));
    found.extend(links::unmatched(&listed.collect::<Vec<_>>(), "plan-tag"));
    found.extend(pairs::check(plans));
    let is_whole = plans.first().is_some_and(|plan| plan.world_size == plans.len() as i64);
    if is_whole && !found.iter().any(|(_, diagnostic)| diagnostic.is_error()) {
        found.extend(world::check(plans));
    }
    found
}

/// Checks that the ranks are those of one world, each once.
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
        let diagnostic = match plans.len() {
            1 => Diagnostic::note("plan-ranks", message)
                .help("check the plans of all ranks together to detect errors between them"),
            _ => Diagnostic::warning("plan-ranks", message),
        };
        found.push((0, diagnostic.path("$.WorldSize")));
    }
    found
}
