//! The addresses of tensors in DRAM if the schedule has several cores and no frontend file.

use std::collections::{BTreeMap, BTreeSet};

use irc_gemini_format::schedule::{
    Extent, LayerWindow, PlaceKind, ResidentKind, Schedule, Transfers, Workload,
};
use irc_tensor::{DType, TensorType};

use crate::{Error, Layout, Role};

/// Activations by name, as large as the parts of them that are computed and read; weights by layer.
pub fn layout(schedule: &Schedule) -> Result<Layout, Error> {
    let transfers = Transfers::new(schedule);
    let mut all = Layout::default();
    let made: BTreeSet<&str> =
        schedule.workloads().map(|(_, _, workload)| workload.layer_name.as_str()).collect();
    let stored = stored(schedule);
    for (name, shape) in extents(schedule) {
        let role = match stored.get(name.as_str()) {
            _ if !made.contains(name.as_str()) => Role::Input,
            Some(role) => *role,
            None => Role::Unused,
        };
        all.push(&name, TensorType::new(DType::I8, shape), role)?;
    }
    let windows = schedule.windows.iter().flatten();
    let grouped: BTreeMap<&str, &LayerWindow> = windows
        .filter(|window| window.groups > 1)
        .map(|window| (window.layer_name.as_str(), window))
        .collect();
    for name in made {
        let grouped = grouped.get(name).copied();
        if let Some(shape) = weights(schedule, &transfers, name, grouped) {
            // The quantisation constants are placeholders: real results equal the bytes.
            all.push_weights(name, TensorType::new(DType::I8, shape), 60.0)?;
            let groups =
                grouped.map(|window| window.groups).filter(|groups| shape[0] % groups == 0);
            all.group(groups.and_then(|groups| u32::try_from(groups).ok()).unwrap_or(1))?;
        }
    }
    Ok(all)
}

fn extents(schedule: &Schedule) -> BTreeMap<String, [i64; 4]> {
    let mut extents: BTreeMap<String, [i64; 4]> = BTreeMap::new();
    let mut grow = |layer: &str, extent: &Extent| {
        let all = extents.entry(layer.to_owned()).or_insert([1; 4]);
        for (axis, size) in all.iter_mut().enumerate() {
            *size = (*size).max(extent.axis(axis).1.saturating_add(1));
        }
    };
    for (_, _, workload) in schedule.workloads() {
        grow(&workload.layer_name, &workload.extent);
        let inputs = workload.buffer.iter().filter(|one| one.kind == ResidentKind::Ifmap);
        for source in inputs.flat_map(|resident| resident.sources()) {
            let name = source.layer_name.as_deref().unwrap_or_default();
            if let Some(extent) = source.extent().filter(|_| source.kind == PlaceKind::Dram) {
                grow(name, &extent);
            }
        }
    }
    extents
}

/// Layers that are at least partly stored; they are outputs if nothing loads them again.
fn stored(schedule: &Schedule) -> BTreeMap<&str, Role> {
    let of_id: BTreeMap<i64, &str> = schedule
        .workloads()
        .map(|(_, _, workload)| (workload.workload_id, workload.layer_name.as_str()))
        .collect();
    let mut all = BTreeMap::new();
    for block in schedule.dram.iter().flat_map(|group| &group.ins) {
        let Some(name) = of_id.get(&block.workload_id) else { continue };
        let role = all.entry(*name).or_insert(Role::Stored);
        if block.related_ofmap.iter().flatten().next().is_none() {
            *role = Role::Output;
        }
    }
    all
}

/// The shape `[K, C, R S]` of a layer's weights, if they are loaded from DRAM. Those of several groups have only the
/// channels of one group, which follow from the stated window.
fn weights(
    schedule: &Schedule,
    transfers: &Transfers<'_>,
    name: &str,
    grouped: Option<&LayerWindow>,
) -> Option<[i64; 3]> {
    let own = schedule.workloads().map(|(_, _, workload)| workload);
    let own: Vec<&Workload> = own.filter(|workload| workload.layer_name == name).collect();
    let area = grouped.map(|window| window.kernel[0].saturating_mul(window.kernel[1]).max(1));
    // The one of both that is known, area or channels, gives the other.
    let known = match area {
        Some(area) => area,
        None => own.first()?.ifmaps().first()?.extent().lengths().nth(1)?,
    };
    let (mut rows, mut other) = (0, None);
    for weight in own.iter().filter_map(|workload| workload.weight.as_ref()) {
        let Some((low, high)) = weight.channels() else { continue };
        rows = rows.max(high.saturating_add(1));
        if let Some(block) = weight.transfers().find_map(|transfer| transfers.dram_out(transfer)) {
            // Sizes are in bits, with eight-bit elements.
            let of_other = (high - low + 1).saturating_mul(known).max(1);
            other = Some(block.size / 8 / of_other);
        }
    }
    let other = other?;
    Some(if area.is_some() { [rows, other, known] } else { [rows, known, other] })
}
