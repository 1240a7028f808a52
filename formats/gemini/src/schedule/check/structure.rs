//! Checks cores, workload ids, kinds of layers, and that the workloads of a layer cover it.

use std::collections::{BTreeMap, HashMap};

use irc_diag::{Diagnostic, Sink, counted};

use super::super::{Dialect, LayerKind, Workload};
use super::boxes;
use super::facts::{Facts, Place};
use super::published::Published;

/// Checks what workloads there are.
pub(super) fn check(facts: &Facts<'_>, sink: &mut Sink, published: &mut Published) {
    cores(facts, sink, published);
    workload_ids(facts, sink);
    for (core, index, workload) in facts.schedule.workloads() {
        kind(facts, (core, index), workload, sink, published);
    }
    layers(facts, sink);
}

fn cores(facts: &Facts<'_>, sink: &mut Sink, published: &mut Published) {
    let schedule = facts.schedule;
    for (index, core) in schedule.cores.iter().enumerate() {
        if schedule.is_core(core.id) {
            continue;
        }
        let path = || schedule.core_path(index);
        if facts.is_by_hand {
            let why = "core ids count columns of DRAM ports at either side of the mesh; some \
                       hand-written files count from 0";
            let message = || "the cores are numbered from 0".to_owned();
            published.note("gem-t1-plain-cores", why, path, message);
            continue;
        }
        let (x, y) = (schedule.xlen, schedule.ylen);
        let message = format!("core {} is not in the mesh of {x} by {y}", core.id);
        let ids = match schedule.dialect {
            Dialect::A => "y*xlen + x".to_owned(),
            _ => format!("y*{} + x + 1", x + 2),
        };
        let diagnostic = Diagnostic::error("gem-t1-core", message).path(path());
        sink.push(diagnostic.help(format!("the core in column x of row y is {ids}")));
    }
}

fn workload_ids(facts: &Facts<'_>, sink: &mut Sink) {
    let schedule = facts.schedule;
    let mut wrong = |place: Place, message: String| {
        let path = format!("{}.workload_id", facts.path(place));
        sink.push(Diagnostic::error("gem-w1-workload-id", message).path(path));
    };
    let mut seen: HashMap<i64, Place> = HashMap::new();
    let count = schedule.workloads().count() as i64;
    for (core, index, workload) in schedule.workloads() {
        let (place, id) = ((core, index), workload.workload_id);
        if schedule.dialect == Dialect::A {
            if id != index as i64 {
                wrong(place, format!("workload {id} has index {index}"));
            }
            continue;
        }
        if let Some(&other) = seen.get(&id) {
            wrong(place, format!("workload id {id} is also used by {}", facts.name(other)));
        } else if !(0..count).contains(&id) {
            wrong(place, format!("workload id {id} is not below the number of workloads, {count}"));
        }
        seen.insert(id, place);
        let before = index.checked_sub(1).map(|before| facts.at((core, before)).workload_id);
        if let Some(before) = before.filter(|&before| before > id) {
            wrong(place, format!("workload {id} comes after {before} on its core"));
        }
    }
}

fn kind(
    facts: &Facts<'_>,
    place: Place,
    workload: &Workload,
    sink: &mut Sink,
    published: &mut Published,
) {
    let path = || facts.path(place);
    let Some(kind) = workload.layer_type else {
        let why = "SET omits the kind of transpositions and grouped convolutions";
        let message = || format!("{} has no `layer_type`", facts.name(place));
        published.note("gem-w2-no-layer-type", why, path, message);
        return;
    };
    // Data transformations have one name in all dialects.
    let of_a = matches!(kind, LayerKind::Pe | LayerKind::Vp);
    if kind != LayerKind::Dt && of_a != (facts.schedule.dialect == Dialect::A) {
        let message = format!("`{kind}` is not a kind of layer in this dialect");
        let diagnostic = Diagnostic::error("gem-w2-layer-type", message);
        sink.push(diagnostic.path(format!("{}.layer_type", path())));
        return;
    }
    let needs = matches!(kind, LayerKind::Pe | LayerKind::Conv2d | LayerKind::Fc);
    if needs != workload.weight.is_some() {
        let verb = if needs { "has no" } else { "has a" };
        let message = format!("{}, of kind `{kind}`, {verb} weight", facts.name(place));
        sink.push(Diagnostic::error("gem-w4-weight", message).path(path()));
    }
}

/// The workloads of a layer are disjoint and cover its result.
fn layers(facts: &Facts<'_>, sink: &mut Sink) {
    let mut layers: BTreeMap<&str, Vec<Place>> = BTreeMap::new();
    for (core, index, workload) in facts.schedule.workloads() {
        layers.entry(&workload.layer_name).or_default().push((core, index));
    }
    for (layer, places) in layers {
        let extents: Vec<_> = places.iter().map(|&place| facts.at(place).extent).collect();
        let path = |index: usize| format!("{}.workload", facts.path(places[index]));
        if let Some((a, b)) = boxes::overlapping(&extents) {
            let message = format!(
                "{} computes {} and {} computes {}, which overlap",
                facts.name(places[a]),
                extents[a],
                facts.name(places[b]),
                extents[b]
            );
            let diagnostic = Diagnostic::error("gem-l1-workload-overlap", message).path(path(b));
            sink.push(diagnostic.related(path(a), "the other workload"));
            continue;
        }
        let Some(hull) = boxes::hull(&extents) else { continue };
        if hull.lower.values().iter().any(|&lower| lower != 0) {
            let message = format!("layer `{layer}` begins at {} instead of 0", hull.lower);
            sink.push(Diagnostic::error("gem-l3-layer-origin", message).path(path(0)));
        }
        let (made, whole) = (boxes::volume(&extents), hull.volume());
        if made != whole {
            let message = format!(
                "layer `{layer}`: {made} of the {whole} elements of {hull} are computed, by {}",
                counted(places.len(), "workload")
            );
            sink.push(Diagnostic::error("gem-l2-layer-cover", message).path(path(0)));
        }
    }
}
