//! Checks that tiles and results cover their workload, and that weights have its channels.

use irc_diag::{Diagnostic, Sink};

use super::super::{Dialect, Extent, Workload};
use super::boxes;
use super::facts::{Facts, Place};

/// Checks every workload.
pub(super) fn check(facts: &Facts<'_>, sink: &mut Sink) {
    for (core, index, workload) in facts.schedule.workloads() {
        let place = (core, index);
        tiles(facts, place, workload, sink);
        inputs(facts, place, workload, sink);
        weight(facts, place, workload, sink);
    }
    results(facts, sink);
}

fn tiles(facts: &Facts<'_>, place: Place, workload: &Workload, sink: &mut Sink) {
    if workload.tile_info.is_none() {
        return;
    }
    let path = || format!("{}.tile_info", facts.path(place));
    let mut wrong = |code, message: String| {
        sink.push(Diagnostic::error(code, message).path(path()));
    };
    let extents: Vec<Extent> = workload.tiles().map(super::super::Tile::ofmap).collect();
    let mut numbers: Vec<u32> =
        workload.tile_info.iter().flat_map(|info| &info.tiles).map(|(number, _)| *number).collect();
    numbers.sort_unstable();
    if let Some(missing) = (0u32..).zip(&numbers).find(|(index, number)| index != *number) {
        wrong("gem-k1-tile-number", format!("there is no tile {}", missing.0));
    }
    let name = facts.name(place);
    if let Some(outside) = extents.iter().find(|tile| !workload.extent.contains(tile)) {
        let message = format!("a tile computes {outside}, which is outside of {name}");
        wrong("gem-k3-tile-cover", message);
        return;
    }
    if let Some((a, b)) = boxes::overlapping(&extents) {
        let message = format!("tiles of {name} overlap: {} and {}", extents[a], extents[b]);
        wrong("gem-k2-tile-overlap", message);
        return;
    }
    let (made, whole) = (boxes::volume(&extents), workload.extent.volume());
    if made != whole {
        let message = format!("the tiles of {name} compute {made} of {whole} elements");
        wrong("gem-k3-tile-cover", message);
    }
}

/// Checks that the tiles together read as much as the workload.
fn inputs(facts: &Facts<'_>, place: Place, workload: &Workload, sink: &mut Sink) {
    let first: Vec<Extent> = workload.tiles().map(super::super::Tile::ifmap).collect();
    let second: Vec<Extent> = workload.tiles().filter_map(super::super::Tile::ifmap2).collect();
    for (index, (tiles, ifmap)) in [first, second].iter().zip(workload.ifmaps()).enumerate() {
        let Some(hull) = boxes::hull(tiles) else { continue };
        if !hull.lengths().eq(ifmap.extent().lengths()) {
            let message = format!(
                "the tiles of {} read {hull}, but the workload reads {}",
                facts.name(place),
                ifmap.extent()
            );
            let diagnostic = Diagnostic::error("gem-k5-tile-input", message);
            sink.push(diagnostic.path(format!("{}.ifmap[{index}]", facts.path(place))));
        }
    }
}

/// Checks that weights have the output channels of their workload.
fn weight(facts: &Facts<'_>, place: Place, workload: &Workload, sink: &mut Sink) {
    let Some(weight) = workload.weight.as_ref().filter(|weight| weight.from_ofmap != Some(true))
    else {
        return;
    };
    let made = workload.extent.axis(1);
    if let Some(channels) = weight.channels().filter(|channels| *channels != made) {
        let message = format!(
            "the weight is for channels {}..={}, but {} computes {}..={}",
            channels.0,
            channels.1,
            facts.name(place),
            made.0,
            made.1
        );
        let diagnostic = Diagnostic::error("gem-g2-weight-channels", message);
        sink.push(diagnostic.path(format!("{}.weight", facts.path(place))));
    }
}

/// Checks results: in dialect A a result is the whole of its workload; in the others it is the part of a
/// reader, and a stored result is the whole.
fn results(facts: &Facts<'_>, sink: &mut Sink) {
    for made in &facts.results {
        let workload = facts.at(made.place);
        let is_whole = facts.schedule.dialect == Dialect::A;
        let is_valid = match is_whole {
            true => made.extent == workload.extent,
            false => workload.extent.contains(&made.extent),
        };
        if !is_valid {
            let verb = if is_whole { "is not the" } else { "is not part of the" };
            let message = format!(
                "{} {verb} {} that {} computes",
                made.extent,
                workload.extent,
                facts.name(made.place)
            );
            let diagnostic = Diagnostic::error("gem-o2-result-extent", message);
            sink.push(diagnostic.path(made.path(facts.schedule)));
        }
    }
}
