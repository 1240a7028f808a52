//! Limits on quantities, so that no sum or product in this crate overflows.

use irc_gemini_format::frontend::Frontend;
use irc_gemini_format::schedule::{Extent, Schedule, Workload};

use crate::diagnostic::{Result, error, layer_error};

/// Maximum coordinate.
const COORDINATE: i64 = 1 << 20;

/// Maximum number of elements of a tensor, and maximum address.
const VOLUME: i64 = 1 << 40;

/// Rejects quantities that exceed the limits.
pub fn check(schedule: &Schedule, frontend: Option<&Frontend>) -> Result<()> {
    for (core, index, workload) in schedule.workloads() {
        if !is_small(workload) {
            let path = schedule.workload_path((core, index));
            return Err(error("emit-range", &path, "a size is negative or too large"));
        }
    }
    let groups = || schedule.dram.iter();
    let outs = groups().flat_map(|group| &group.outs).map(|block| block.extent());
    let ins = groups().flat_map(|group| &group.ins).filter_map(|block| block.extent());
    if !outs.chain(ins).all(|extent| is_small_extent(&extent)) {
        let message = "the size of a block of DRAM is negative or too large";
        return Err(error("emit-range", "$", message));
    }
    for (name, layer) in frontend.iter().flat_map(|frontend| &frontend.layers) {
        for (key, shapes) in
            [("input_shape", &layer.input_shape), ("output_shape", &layer.output_shape)]
        {
            if !shapes.iter().all(|shape| is_small_shape(shape)) {
                let message = "an extent of the layer is negative or too large";
                return Err(layer_error("emit-range", (name, key), message));
            }
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
        let sent = resident.destinations.iter().flatten();
        extents.extend(sent.map(|part| Extent { lower: part.lower, upper: part.upper }));
    }
    let addresses = workload.buffer.iter().filter_map(|resident| resident.address);
    let rows = workload.wl0().iter().flat_map(|row| [row.address, row.size]);
    let paddings = workload.tiles().flat_map(|tile| tile.tile_padding_tblr);
    extents.iter().all(is_small_extent)
        && addresses.chain(rows).all(|value| (0..=VOLUME).contains(&value))
        && paddings.into_iter().all(|value| (0..=COORDINATE).contains(&value))
}

fn is_small_extent(extent: &Extent) -> bool {
    let in_range = |(low, high): (i64, i64)| 0 <= low && high <= COORDINATE;
    extent.is_valid() && extent.axes().all(in_range) && extent.volume() <= VOLUME
}

fn is_small_shape(shape: &[i64]) -> bool {
    let volume = shape.iter().try_fold(1i64, |all, size| all.checked_mul((*size).max(1)));
    shape.iter().all(|size| (0..=COORDINATE).contains(size))
        && volume.is_some_and(|volume| volume <= VOLUME)
}
