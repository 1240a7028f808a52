//! The parts of a schedule that the timing of a program needs.

use std::collections::BTreeSet;

use irc_gemini_format::frontend::Frontend;
use irc_gemini_format::schedule::{Dialect, Schedule, Segments, Workload};
use irc_npu_sim::durations::WorkloadTimes;
use irc_npu_sim::html::LayerNames;
use irc_npu_sim::noc::{MAX_SIDE, Mesh};
use irc_npu_sim::segments::SegmentMap;

/// Cycles of workloads, from the schedule.
pub fn workload_times(schedule: &Schedule) -> WorkloadTimes {
    let time = |(core, _, workload): (usize, usize, &Workload)| {
        let core = u32::try_from(schedule.cores[core].id).ok()?;
        Some(((core, i32::try_from(workload.workload_id).ok()?), workload.time as f64))
    };
    schedule.workloads().filter_map(time).collect()
}

/// The mesh that the cores of a schedule share, with the rates of a link and of DRAM in bytes per
/// cycle. `None` for schedules of dialect A, whose cores have no coordinates, and beyond [`MAX_SIDE`].
pub fn mesh(schedule: &Schedule, link: f64, dram: f64) -> Option<Mesh> {
    let size = |length: i64| u32::try_from(length).ok().filter(|size| *size <= MAX_SIDE);
    let (xlen, ylen) = (size(schedule.xlen)?, size(schedule.ylen)?);
    let has_places = schedule.dialect != Dialect::A;
    has_places.then(|| Mesh::with_ports_at_sides(xlen, ylen, link, dram))
}

/// Names of layers by their number in instructions: the index in the frontend file,
/// or without one, the index among all names of layers.
pub fn layer_names(schedule: &Schedule, frontend: Option<&Frontend>) -> LayerNames {
    if let Some(frontend) = frontend {
        let layers = frontend.layers.iter();
        let named =
            layers.map(|(name, layer)| Some((layer.layer_index.try_into().ok()?, name.clone())));
        return named.flatten().collect();
    }
    let names: BTreeSet<&str> =
        schedule.workloads().map(|(_, _, workload)| workload.layer_name.as_str()).collect();
    (0..).zip(names.into_iter().map(String::from)).collect()
}

/// The segments that workloads belong to.
pub fn segment_map(schedule: &Schedule) -> SegmentMap {
    let segments = Segments::new(schedule);
    let place = |(core, index, workload): (usize, usize, &Workload)| {
        let id = u32::try_from(schedule.cores[core].id).ok()?;
        let workload = i32::try_from(workload.workload_id).ok()?;
        Some(((id, workload), segments.of(core, index)))
    };
    let of = schedule.workloads().filter_map(place).collect();
    let names = (0..segments.layers.len()).map(|segment| segments.name(segment)).collect();
    SegmentMap { names, of }
}
