//! Checks transfers: each has one producer, and is sent to its users.

use std::collections::HashMap;

use irc_diag::{Diagnostic, Sink};

use super::super::{Dialect, PlaceKind, Target};
use super::facts::{Facts, LayerResult, Place, in_path, out_path, used};
use super::published::Published;

/// Checks the producers and users of transfers.
pub(super) fn check(facts: &Facts<'_>, sink: &mut Sink, published: &mut Published) {
    unique(facts, sink);
    for (core, index, workload) in facts.schedule.workloads() {
        for transfer in used(workload) {
            producer(facts, (core, index), transfer, sink);
        }
    }
    for made in &facts.results {
        destinations(facts, made, sink, published);
    }
}

/// Ids are unique among results, among blocks stored to DRAM, and among blocks loaded from DRAM.
fn unique(facts: &Facts<'_>, sink: &mut Sink) {
    let schedule = facts.schedule;
    let mut repeated = |code, what: &str, id: i64, path: String, first: String| {
        let message = format!("transfer {id} is {what} twice");
        let diagnostic = Diagnostic::error(code, message).path(format!("{path}.transfer_id"));
        sink.push(diagnostic.related(first, "first here"));
    };
    let mut seen: HashMap<i64, &LayerResult<'_>> = HashMap::new();
    for made in &facts.results {
        if let Some(first) = seen.insert(made.transfer, made) {
            let paths = (made.path(schedule), first.path(schedule));
            repeated("gem-x1-result-id", "a result", made.transfer, paths.0, paths.1);
        }
    }
    // A group of dialect C repeats blocks of another, so ids are unique within a group.
    for (group, blocks) in schedule.dram.iter().enumerate() {
        let mut seen = HashMap::new();
        for (index, block) in blocks.ins.iter().enumerate() {
            if let Some(first) = seen.insert(block.transfer_id, index) {
                let paths = [index, first].map(|index| in_path(schedule, (group, index)));
                let [path, first] = paths;
                repeated("gem-t2-in-id", "stored to DRAM", block.transfer_id, path, first);
            }
        }
        let mut seen = HashMap::new();
        for (index, out) in blocks.outs.iter().enumerate() {
            if let Some(first) = seen.insert(out.transfer_id, index) {
                let paths = [index, first].map(|index| out_path(schedule, (group, index)));
                let [path, first] = paths;
                repeated("gem-t3-out-id", "loaded from DRAM", out.transfer_id, path, first);
            }
        }
    }
    let mut both: Vec<i64> = facts.outs.keys().copied().collect();
    both.retain(|id| facts.ins.contains_key(id));
    both.sort_unstable();
    for id in both {
        let (group, index, _) = facts.outs[&id];
        let message = format!("transfer {id} is both an input and an output of DRAM");
        let path = format!("{}.transfer_id", out_path(schedule, (group, index)));
        sink.push(Diagnostic::error("gem-t4-dram-id", message).path(path));
    }
}

/// Used data are either loaded from DRAM or computed by a workload.
fn producer(facts: &Facts<'_>, place: Place, transfer: i64, sink: &mut Sink) {
    let made = facts.result_of(transfer);
    let message = match (facts.outs.contains_key(&transfer), made) {
        (true, Some(made)) => {
            let producer = facts.name(made.place);
            format!("transfer {transfer} is loaded from DRAM and also computed by {producer}")
        }
        (false, None) => format!(
            "{} uses transfer {transfer}, which is neither loaded from DRAM nor computed by a workload",
            facts.name(place)
        ),
        _ => return,
    };
    sink.push(Diagnostic::error("gem-f3-producer", message).path(facts.path(place)));
}

/// A result goes to DRAM if and only if DRAM lists it, and to the workloads that use it.
fn destinations(
    facts: &Facts<'_>,
    made: &LayerResult<'_>,
    sink: &mut Sink,
    published: &mut Published,
) {
    let schedule = facts.schedule;
    let transfer = made.transfer;
    let path = || made.path(schedule);
    let to_dram = made.targets.iter().any(|target| target.kind == PlaceKind::Dram);
    if to_dram != facts.ins.contains_key(&transfer) {
        let message = match to_dram {
            true => format!("transfer {transfer} goes to DRAM, which does not list it as an input"),
            false => {
                format!("DRAM lists transfer {transfer} as an input, but it does not go there")
            }
        };
        sink.push(Diagnostic::error("gem-o3-dram-result", message).path(path()));
    }
    let is_dram = |target: &Target| facts.is_dram(transfer, target.core_id, target.id.as_ref());
    let mut dram = made.targets.iter().filter(|target| target.kind == PlaceKind::Dram);
    if dram.any(|target| !is_dram(target)) {
        let message = format!("transfer {transfer} goes to DRAM, but has no id of DRAM");
        sink.push(Diagnostic::error("gem-o4-destination", message).path(path()));
    }
    let mut named = vec![];
    for target in made.targets.iter().filter(|target| target.kind == PlaceKind::Core) {
        named.extend(target_place(facts, made, target, sink, published));
    }
    named.sort_unstable();
    let users = facts.users(transfer);
    for user in users.iter().filter(|user| named.binary_search(user).is_err()) {
        let message = format!(
            "{} uses transfer {transfer}, which {} does not send to it",
            facts.name(*user),
            facts.name(made.place)
        );
        let diagnostic = Diagnostic::error("gem-o5-unsent", message).path(path());
        sink.push(diagnostic.related(facts.path(*user), "used here"));
    }
    for surplus in named.iter().filter(|place| !facts.is_user(**place, transfer)) {
        let message = || {
            format!(
                "transfer {transfer} also names {}, which does not use it",
                facts.name(*surplus)
            )
        };
        if schedule.dialect == Dialect::A {
            let why = "the scheduler names every reader of a composite tensor, also those that \
                       read none of this part, even earlier ones; what `ifmap` lists counts";
            published.note("gem-o5-surplus-destination", why, path, message);
        } else {
            sink.push(Diagnostic::error("gem-o5-unused", message()).path(path()));
        }
    }
    let (core, index) = made.place;
    for user in users.iter().filter(|user| user.0 == core && user.1 <= index) {
        let message = format!(
            "{} uses the result of {}, which is not earlier on the same core",
            facts.name(*user),
            facts.name(made.place)
        );
        let diagnostic = Diagnostic::error("gem-o6-use-before-result", message).path(path());
        sink.push(diagnostic.related(facts.path(*user), "used here"));
    }
    if users.is_empty() && !to_dram {
        let message = format!("transfer {transfer} is used by no workload and not stored");
        if facts.is_by_hand {
            let why = "hand-written files have results without readers, which are not sent";
            published.note("gem-o8-unread-result", why, path, || message);
        } else {
            sink.push(Diagnostic::error("gem-o7-lost-result", message).path(path()));
        }
    }
}

/// The workload of a destination.
fn target_place(
    facts: &Facts<'_>,
    made: &LayerResult<'_>,
    target: &Target,
    sink: &mut Sink,
    published: &mut Published,
) -> Option<Place> {
    let transfer = made.transfer;
    let place = target.core().zip(target.workload_id);
    let found = place.and_then(|(core, id)| facts.workload(core, id));
    let Some(found) = found else {
        let what = match place {
            Some((core, id)) => format!("workload {id} of core {core}, which does not exist"),
            None => "no workload".into(),
        };
        let message = format!("transfer {transfer} goes to {what}");
        let path = || made.path(facts.schedule);
        if !facts.is_by_hand {
            sink.push(Diagnostic::error("gem-o4-destination", message).path(path()));
            return None;
        }
        let why = "hand-written files name destinations that do not exist; the readers determine what \
                   they read and from which core";
        published.note("gem-o9-no-destination", why, path, || message);
        // Ids of workloads are unique, so the id of a reader identifies it, whatever the core.
        let users = facts.users(transfer).iter();
        let is_it = |user: &&Place| Some(facts.at(**user).workload_id) == target.workload_id;
        return users.copied().find(|user| is_it(&user));
    };
    let layer = &facts.at(found).layer_name;
    if target.layer_name.as_deref().is_some_and(|name| name != layer) {
        let message = format!(
            "transfer {transfer} goes to layer `{}`, but its id is that of {}",
            target.layer_name.as_deref().unwrap_or_default(),
            facts.name(found)
        );
        sink.push(Diagnostic::error("gem-o4-destination", message).path(made.path(facts.schedule)));
    }
    Some(found)
}
