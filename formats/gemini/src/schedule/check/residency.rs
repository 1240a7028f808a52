//! Checks that tensors stay in place while they are needed.

use std::collections::{HashMap, HashSet};

use irc_diag::{Diagnostic, Sink};

use super::super::{Dialect, Extent, LayerKind, PlaceKind, Resident, ResidentKind, Workload};
use super::facts::{Facts, LayerResult, Place};
use super::memory::tensor;
use super::published::Published;

/// Checks every core.
pub(super) fn check(facts: &Facts<'_>, sink: &mut Sink, published: &mut Published) {
    for core in 0..facts.schedule.cores.len() {
        if facts.schedule.dialect == Dialect::A {
            tensors(facts, core, sink);
        }
        repeated(facts, core, published);
        addresses(facts, core, sink);
    }
    for (core, index, workload) in facts.schedule.workloads() {
        oddities(facts, (core, index), workload, published);
        held_results(facts, (core, index), workload, sink);
    }
    results(facts, sink);
}

/// Tensors of one core by id: added once, unchanged while resident.
fn tensors(facts: &Facts<'_>, core: usize, sink: &mut Sink) {
    let mut before: HashMap<i64, &Resident> = HashMap::new();
    let mut seen: HashSet<i64> = HashSet::new();
    for (index, workload) in facts.schedule.cores[core].workloads.iter().enumerate() {
        let mut now = HashMap::new();
        for (at, resident) in workload.buffer.iter().enumerate() {
            let Some(id) = resident.tensor_id else { continue };
            let path = |key: &str| format!("{}.buffer[{at}]{key}", facts.path((core, index)));
            let mut wrong = |code, key: &str, message: String| {
                let name = tensor(resident);
                let message = format!("{}: {name} {message}", facts.name((core, index)));
                sink.push(Diagnostic::error(code, message).path(path(key)));
            };
            let old = before.get(&id);
            if resident.newly_added.is_some_and(|is_new| is_new == old.is_some()) {
                let there = if old.is_some() { "was there before" } else { "was not there before" };
                wrong("gem-b5-newly-added", ".newly_added", there.into());
            }
            match old {
                Some(old) => {
                    if let Some(what) = changed(old, resident) {
                        wrong(
                            "gem-b6-changed",
                            "",
                            format!("changes its {what} while it is resident"),
                        );
                    }
                }
                None if seen.contains(&id) => {
                    wrong("gem-b7-returned", ".tensor_id", "was removed, and reappears".into());
                }
                None => {}
            }
            if resident.lower.is_some_and(|lower| lower.values().iter().any(|&value| value != 0)) {
                wrong("gem-b13-origin", ".lower", "does not begin at 0".into());
            }
            if now.insert(id, resident).is_some() {
                wrong("gem-b14-twice", ".tensor_id", "occurs twice".into());
            }
        }
        seen.extend(now.keys());
        before = now;
    }
}

/// In dialect C a resident tensor keeps its address.
fn addresses(facts: &Facts<'_>, core: usize, sink: &mut Sink) {
    if facts.schedule.dialect != Dialect::C {
        return;
    }
    let mut before = HashMap::new();
    for index in 0..facts.schedule.cores[core].workloads.len() {
        let mut now = HashMap::new();
        for &(at, each) in facts.residents((core, index)) {
            let Some(address) = each.address else { continue };
            // The allocation of one tensor.
            let parts = each.destinations.iter().flatten().map(|part| part.transfer_id);
            let parts: Vec<i64> = parts.chain(each.transfers()).collect();
            let key = (each.kind, each.layer(), each.workload_id, each.extent(), each.block, parts);
            if before.get(&key).is_some_and(|old| *old != address) {
                let place = (core, index);
                let message = format!("{}: {} moves to {address}", facts.name(place), tensor(each));
                let path = format!("{}.buffer[{at}].address", facts.path(place));
                sink.push(Diagnostic::error("gem-b6-changed", message).path(path));
            }
            now.insert(key, address);
        }
        before = now;
    }
}

/// A result in the buffer belongs to a workload: in dialect B the current one, in dialect C
/// the one it names, in dialect A one of its layer.
fn held_results(facts: &Facts<'_>, place: Place, workload: &Workload, sink: &mut Sink) {
    let is_result = |each: &&(usize, &Resident)| each.1.kind == ResidentKind::Ofmap;
    for (at, resident) in facts.residents(place).iter().filter(is_result) {
        let is_of = |producer: &Workload| {
            let same_box = resident.extent().is_none_or(|extent| match facts.schedule.dialect {
                Dialect::A => extent.lengths().eq(producer.extent.lengths()),
                Dialect::B | Dialect::C => extent == producer.extent,
            });
            let same_size = resident.size.is_none_or(|size| size == producer.ofmap_size);
            same_box && same_size && resident.layer() == Some(&producer.layer_name)
        };
        let core = &facts.schedule.cores[place.0];
        let named = resident.workload_id.and_then(|id| facts.workload(core.id, id));
        let is_held = match facts.schedule.dialect {
            Dialect::A => core.workloads[..=place.1].iter().any(is_of),
            Dialect::B => is_of(workload),
            Dialect::C => {
                named.is_some_and(|producer| producer.1 <= place.1 && is_of(facts.at(producer)))
            }
        };
        if !is_held {
            let message = format!("{}: {} is not a result", facts.name(place), tensor(resident));
            let path = format!("{}.buffer[{at}]", facts.path(place));
            sink.push(Diagnostic::error("gem-b12-result", message).path(path));
        }
    }
}

/// Differences between two snapshots of one tensor, except the permitted ones.
fn changed(old: &Resident, new: &Resident) -> Option<&'static str> {
    if old.address != new.address {
        return Some("address");
    }
    if old.size != new.size || old.align != new.align || old.bitwidth != new.bitwidth {
        return Some("size");
    }
    if old.kind != new.kind {
        return Some("type");
    }
    if old.extent() != new.extent() {
        return Some("extent");
    }
    let same = old.transfer_id == new.transfer_id && old.layer_name == new.layer_name;
    (!same).then_some("meaning")
}

/// The space of a result is allocated when it is computed, until the last reader on the core is done.
fn results(facts: &Facts<'_>, sink: &mut Sink) {
    for made in &facts.results {
        let (core, index) = made.place;
        let holds = |place: Place| {
            let mut readable =
                facts.at(place).buffer.iter().filter(|each| each.kind != ResidentKind::Ofmap);
            readable.any(|resident| resident.transfers().any(|id| id == made.transfer))
        };
        let users = facts.users(made.transfer);
        let last = users.iter().filter(|user| user.0 == core).map(|user| user.1).max();
        if facts.schedule.dialect == Dialect::A {
            output_space(facts, made, last.is_none() || holds(made.place), sink);
        }
        let mut after = (index + 1..=last.unwrap_or(index)).map(|index| (core, index));
        if let Some(gap) = after.find(|&gap| !holds(gap)) {
            let message = format!(
                "transfer {} is not in the snapshot of {}, before its last reader",
                made.transfer,
                facts.name(gap)
            );
            let diagnostic = Diagnostic::error("gem-b21-dropped", message);
            let diagnostic = diagnostic.path(made.path(facts.schedule));
            sink.push(diagnostic.related(facts.path(gap), "not here"));
        }
    }
}

/// In dialect A the snapshot of the producer contains both the copy for its readers and the one that is
/// stored.
fn output_space(facts: &Facts<'_>, made: &LayerResult<'_>, is_held: bool, sink: &mut Sink) {
    let workload = facts.at(made.place);
    let is_store = |resident: &Resident| {
        resident.kind == ResidentKind::Ofmap
            && resident.layer_name.as_ref() == Some(&workload.layer_name)
            && resident.size == Some(made.size)
    };
    let to_dram = made.targets.iter().any(|target| target.kind == PlaceKind::Dram);
    let can_store = !to_dram || workload.buffer.iter().any(is_store);
    for (is_there, what) in [(is_held, "for the readers of"), (can_store, "to store")] {
        if !is_there {
            let name = facts.name(made.place);
            let message =
                format!("{name} has no space {what} transfer {}, which it computes", made.transfer);
            let diagnostic = Diagnostic::error("gem-b20-output-space", message);
            sink.push(diagnostic.path(made.path(facts.schedule)));
        }
    }
}

/// Repetitions within a snapshot in dialect C, and results with the readers of others.
fn repeated(facts: &Facts<'_>, core: usize, published: &mut Published) {
    if facts.schedule.dialect != Dialect::C {
        return;
    }
    for (index, workload) in facts.schedule.cores[core].workloads.iter().enumerate() {
        let path = || format!("{}.buffer", facts.path((core, index)));
        let once = facts.residents((core, index)).len();
        if once < workload.buffer.len() {
            let why = "SET's branches repeat tensors with several readers; they count once";
            let message =
                || format!("{} repeats tensors in its snapshot", facts.name((core, index)));
            published.note("gem-b22-repeated", why, path, message);
        }
        let is_stale = |resident: &Resident| {
            let own = resident.extent().filter(|_| resident.kind == ResidentKind::Ofmap);
            let mut parts = resident.destinations.iter().flatten();
            own.is_some_and(|own| {
                parts.any(|part| !own.contains(&Extent { lower: part.lower, upper: part.upper }))
            })
        };
        if workload.buffer.iter().any(is_stale) {
            let why = "SET's branches list, for a result in the buffer, the readers of the next or of the \
                       one before; the workload whose result has a part is taken to make it";
            let message = || {
                format!("{} has a result with the readers of another", facts.name((core, index)))
            };
            published.note("gem-b23-stale-readers", why, path, message);
        }
    }
}

/// Spellings and remnants in published files.
fn oddities(facts: &Facts<'_>, place: Place, workload: &Workload, published: &mut Published) {
    let path = || facts.path(place);
    if facts.schedule.dialect == Dialect::A {
        if workload.wl1_buffer.is_some() {
            let why = "files of an earlier scheduler call the WL0 buffer so";
            let message = || "`wl1_buffer` is read as `wl0_buffer`".into();
            published.note("gem-z4-wl1-name", why, || format!("{}.wl1_buffer", path()), message);
        }
        let is_unnamed =
            |each: &Resident| each.kind == ResidentKind::Ifmap && each.layer_name.is_none();
        if let Some(at) = workload.buffer.iter().position(is_unnamed) {
            let why = "the scheduler names the layer of weights and results alone";
            let message = || "an `ifmap` tensor names no layer".into();
            published.note("gem-b24-unnamed", why, || format!("{}.buffer[{at}]", path()), message);
        }
        padding(facts, place, workload, published);
    }
    if let Some(at) = workload.buffer.iter().position(|each| each.start_ending.is_some()) {
        let why = "SET's branches misspell a flag";
        let message = || "`start_ending` is not a name of the format".into();
        published.note("gem-b25-start-ending", why, || format!("{}.buffer[{at}]", path()), message);
    }
}

fn padding(facts: &Facts<'_>, place: Place, workload: &Workload, published: &mut Published) {
    let differs = workload.layer_type != Some(LayerKind::Pe)
        && workload.tiles().any(|tile| Some(tile.tile_padding_tblr) != workload.tile_padding_tblr);
    if differs {
        let why = "for `vp` the padding of the workload is that of another layer; that of its \
                   tiles counts";
        let message = || format!("the padding of {} is not that of its tiles", facts.name(place));
        let path = || format!("{}.tile_padding_tblr", facts.path(place));
        published.note("gem-k4-vp-padding", why, path, message);
    }
}
