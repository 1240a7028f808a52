//! Checks blocks of DRAM: their producers, their users, and that loaded blocks have been
//! stored.

use irc_diag::{Diagnostic, Sink};

use super::super::{DramIn, DramOut, Target};
use super::boxes;
use super::facts::{Facts, Place, in_path, out_path};
use super::published::Published;

/// Checks every block.
pub(super) fn check(facts: &Facts<'_>, sink: &mut Sink, published: &mut Published) {
    let schedule = facts.schedule;
    groups(facts, sink);
    for (group, blocks) in schedule.dram.iter().enumerate() {
        for (index, out) in blocks.outs.iter().enumerate() {
            let path = out_path(schedule, (group, index));
            for (at, target) in out.destination.iter().enumerate() {
                let path = format!("{path}.destination[{at}]");
                destination(facts, out, target, &path, (sink, published));
            }
            users(facts, out, &path, sink);
            related_ins(facts, out, &path, sink);
        }
        for (index, block) in blocks.ins.iter().enumerate() {
            let path = in_path(schedule, (group, index));
            producer(facts, block, &path, sink);
            related_outs(facts, block, &path, sink);
        }
    }
}

/// A block that occurs in several groups of dialect C is the same in each.
fn groups(facts: &Facts<'_>, sink: &mut Sink) {
    let schedule = facts.schedule;
    let mut differs = |id: i64, path: String, first: String| {
        let message = format!("transfer {id} differs between groups of DRAM");
        let diagnostic = Diagnostic::error("gem-t6-group", message).path(path);
        sink.push(diagnostic.related(first, "the other"));
    };
    for (group, blocks) in schedule.dram.iter().enumerate().skip(1) {
        for (index, out) in blocks.outs.iter().enumerate() {
            let (other, at, first) = facts.outs[&out.transfer_id];
            if first != out {
                let paths = (out_path(schedule, (group, index)), out_path(schedule, (other, at)));
                differs(out.transfer_id, paths.0, paths.1);
            }
        }
        for (index, block) in blocks.ins.iter().enumerate() {
            let (other, at, first) = facts.ins[&block.transfer_id];
            if first != block {
                let paths = (in_path(schedule, (group, index)), in_path(schedule, (other, at)));
                differs(block.transfer_id, paths.0, paths.1);
            }
        }
    }
}

/// A destination is a workload of the layer that uses the transfer.
fn destination(
    facts: &Facts<'_>,
    out: &DramOut,
    target: &Target,
    path: &str,
    (sink, published): (&mut Sink, &mut Published),
) {
    let transfer = out.transfer_id;
    let place = target.core().zip(target.workload_id);
    let Some(place) = place.and_then(|(core, id)| facts.workload(core, id)) else {
        let message = format!("transfer {transfer} goes to a workload that does not exist");
        sink.push(Diagnostic::error("gem-d1-destination", message).path(path));
        return;
    };
    let workload = facts.at(place);
    let layer = target.layer_name.as_deref().or(out.layer_name.as_deref());
    if layer.is_some_and(|layer| layer != workload.layer_name) {
        let message = || {
            let layer = layer.unwrap_or_default();
            format!("transfer {transfer} is for layer `{layer}`, but goes to {}", facts.name(place))
        };
        // Hand-written files name the source where generated ones name the reader.
        if out.kind == "ifmap" {
            let why = "an `ifmap` block of a hand-written file names the layer it comes from";
            published.note("gem-d2-source-layer", why, || path.to_owned(), message);
        } else {
            sink.push(Diagnostic::error("gem-d2-layer", message()).path(path));
        }
    }
    if !facts.is_user(place, transfer) {
        let message = format!("{} does not use transfer {transfer}", facts.name(place));
        sink.push(Diagnostic::error("gem-d3-unused", message).path(path));
    }
}

/// Activations list every user, each once; weights the first, or the first of each core.
fn users(facts: &Facts<'_>, out: &DramOut, path: &str, sink: &mut Sink) {
    let place = |target: &Target| facts.workload(target.core()?, target.workload_id?);
    let mut named: Vec<Place> = out.destination.iter().filter_map(place).collect();
    let count = named.len();
    named.sort_unstable();
    named.dedup();
    let mut wrong = |message: String| {
        let diagnostic = Diagnostic::error("gem-d5-users", message);
        sink.push(diagnostic.path(format!("{path}.destination")));
    };
    if named.len() < count {
        wrong(format!("transfer {} names a workload twice", out.transfer_id));
    }
    let users = facts.users(out.transfer_id);
    let is_first =
        |at: usize| at.checked_sub(1).is_none_or(|before| users[before].0 != users[at].0);
    let must = |(at, _): &(usize, &Place)| !out.is_weight() || is_first(*at);
    let mut missed = users.iter().enumerate().filter(must).map(|(_, user)| user);
    if let Some(user) = missed.find(|user| named.binary_search(user).is_err()) {
        wrong(format!("transfer {} does not name {}", out.transfer_id, facts.name(*user)));
    }
}

/// The parts of a block were stored, and cover it exactly.
fn related_ins(facts: &Facts<'_>, out: &DramOut, path: &str, sink: &mut Sink) {
    let related = out.related_ifmap.as_deref().unwrap_or_default();
    let path = format!("{path}.related_ifmap");
    let extent = out.extent();
    let mut parts = vec![];
    for (index, id) in related.iter().enumerate() {
        let mut wrong = |code, message: String| {
            sink.push(Diagnostic::error(code, message).path(format!("{path}[{index}]")));
        };
        let Some((_, _, block)) = facts.ins.get(id) else {
            wrong("gem-d4-related", format!("DRAM has no input transfer {id}"));
            continue;
        };
        let back = block.related_ofmap.as_deref().unwrap_or_default();
        if !back.contains(&out.transfer_id) {
            let message = format!("transfer {id} does not refer back to {}", out.transfer_id);
            wrong("gem-d4-related", message);
        }
        let Some(other) = block.extent() else { continue };
        match extent.intersection(&other) {
            Some(part) => parts.push(part),
            None => wrong("gem-d8-related-overlap", format!("{other} does not overlap {extent}")),
        }
    }
    if parts.len() < related.len() || parts.is_empty() {
        return;
    }
    let (covered, whole) = (boxes::volume(&parts), extent.volume());
    if boxes::overlapping(&parts).is_some() || covered != whole {
        let message = format!(
            "transfer {} is {extent}, of which {covered} of {whole} elements are stored to DRAM",
            out.transfer_id
        );
        sink.push(Diagnostic::error("gem-d13-related-cover", message).path(path));
    }
}

fn related_outs(facts: &Facts<'_>, block: &DramIn, path: &str, sink: &mut Sink) {
    for (index, id) in block.related_ofmap.iter().flatten().enumerate() {
        let message = match facts.outs.get(id) {
            None => format!("DRAM has no output transfer {id}"),
            Some((_, _, out))
                if !out.related_ifmap.iter().flatten().any(|back| *back == block.transfer_id) =>
            {
                format!("transfer {id} does not refer back to {}", block.transfer_id)
            }
            _ => continue,
        };
        let diagnostic = Diagnostic::error("gem-d4-related", message);
        sink.push(diagnostic.path(format!("{path}.related_ofmap[{index}]")));
    }
}

/// A stored block is a result of the workload that it names.
fn producer(facts: &Facts<'_>, block: &DramIn, path: &str, sink: &mut Sink) {
    let transfer = block.transfer_id;
    let Some(made) = facts.result_of(transfer) else {
        let message = format!("no workload computes transfer {transfer}");
        sink.push(Diagnostic::error("gem-d11-maker", message).path(path));
        return;
    };
    let workload = facts.at(made.place);
    let is_it = block.core_id == facts.core_id(made.place)
        && block.workload_id == workload.workload_id
        && block.layer_name.as_ref().is_none_or(|layer| *layer == workload.layer_name);
    if !is_it {
        let message = format!(
            "transfer {transfer} is computed by {}, not by workload {} of core {}",
            facts.name(made.place),
            block.workload_id,
            block.core_id
        );
        let diagnostic = Diagnostic::error("gem-d11-maker", message).path(path);
        sink.push(diagnostic.related(made.path(facts.schedule), "made here"));
    }
    if let Some(extent) = block.extent().filter(|extent| *extent != made.extent) {
        let message = format!(
            "transfer {transfer} is stored as {extent}, but {} computes {}",
            facts.name(made.place),
            made.extent
        );
        let diagnostic = Diagnostic::error("gem-d12-in-extent", message).path(path);
        sink.push(diagnostic.related(made.path(facts.schedule), "made here"));
    }
}
