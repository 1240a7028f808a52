//! Quantities within which no sum or product of this crate overflows.

use irc_gemini_format::frontend::Frontend;
use irc_gemini_format::schedule::{Extent, Schedule, Workload};

use crate::finding::{Found, fault};

/// Largest coordinate.
const COORDINATE: i64 = 1 << 20;

/// Most elements of a tensor, and the largest address.
const VOLUME: i64 = 1 << 40;

/// Refuses quantities beyond any machine.
pub fn check(schedule: &Schedule, frontend: Option<&Frontend>) -> Found<()> {
    for (core, index, workload) in schedule.workloads() {
        let path = format!("{}[{index}]", schedule.core_path(core));
        if !is_small(workload) {
            return Err(fault("emit-range", &path, "the workload is larger than any machine"));
        }
    }
    let groups = || schedule.dram.iter();
    let outs = groups().flat_map(|group| &group.outs).map(|block| block.extent());
    let ins = groups().flat_map(|group| &group.ins).filter_map(|block| block.extent());
    if !outs.chain(ins).all(|extent| is_small_extent(&extent)) {
        return Err(fault("emit-range", "$", "a block of DRAM is larger than any machine"));
    }
    for (name, layer) in frontend.iter().flat_map(|frontend| &frontend.layers) {
        let shapes = layer.input_shape.iter().chain(&layer.output_shape);
        if !shapes.into_iter().all(|shape| is_small_shape(shape)) {
            let path = format!("$[\"{name}\"]");
            return Err(fault("emit-range", &path, "the layer is larger than any machine"));
        }
    }
    Ok(())
}

fn is_small(workload: &Workload) -> bool {
    let mut extents = vec![workload.extent];
    extents.extend(workload.ifmaps().iter().map(|ifmap| ifmap.extent()));
    extents.extend(workload.ofmaps().iter().map(|ofmap| ofmap.extent()));
    extents.extend(workload.weight.iter().map(|weight| weight.extent()));
    for tile in workload.tiles() {
        extents.extend([tile.ifmap(), tile.ofmap()]);
        extents.extend(tile.ifmap2());
    }
    for resident in &workload.buffer {
        extents.extend(resident.extent());
        extents.extend(resident.sources().iter().filter_map(|source| source.extent()));
    }
    let addresses = workload.buffer.iter().filter_map(|resident| resident.address);
    let rows = workload.wl0().iter().flat_map(|row| [row.address, row.size]);
    let paddings = workload.tiles().flat_map(|tile| tile.tile_padding_tblr);
    extents.iter().all(is_small_extent)
        && addresses.chain(rows).all(|value| (0..=VOLUME).contains(&value))
        && paddings.into_iter().all(|value| (0..=COORDINATE).contains(&value))
}

fn is_small_extent(extent: &Extent) -> bool {
    let in_range = |value: i64| (-COORDINATE..=COORDINATE).contains(&value);
    let coordinates = extent.axes().all(|(low, high)| in_range(low) && in_range(high));
    coordinates && extent.volume() <= VOLUME
}

fn is_small_shape(shape: &[i64]) -> bool {
    let volume = shape.iter().try_fold(1i64, |all, size| all.checked_mul((*size).max(1)));
    shape.iter().all(|size| (0..=COORDINATE).contains(size))
        && volume.is_some_and(|volume| volume <= VOLUME)
}
