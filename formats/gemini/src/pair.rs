//! Checks a schedule against the frontend file with its layers.

use std::collections::{BTreeMap, HashMap, HashSet};

use irc_diag::{Diagnostic, Sink};

use crate::frontend::{Frontend, FrontendLayer, element_bits};
use crate::schedule::{Ifmap, LayerKind, Schedule, Transfers, Workload};

/// All diagnostics of a schedule of dialect A against a frontend file.
///
/// Diagnostics have paths in the schedule's file; [`crate::place`] adds spans. Both files must be
/// valid by themselves.
pub fn check_pair(schedule: &Schedule, frontend: &Frontend) -> Vec<Diagnostic> {
    let mut sink = Sink::new();
    let layers: HashMap<&str, &FrontendLayer> =
        frontend.layers.iter().map(|(name, layer)| (name.as_str(), layer)).collect();
    // Extents of each layer as scheduled, and the path of its first workload.
    let mut made: BTreeMap<&str, ([i64; 4], String)> = BTreeMap::new();
    for (core, index, workload) in schedule.workloads() {
        let path = schedule.workload_path((core, index));
        let name = workload.layer_name.as_str();
        let Some(layer) = layers.get(name) else {
            let message = format!("the frontend file has no layer `{name}`");
            sink.push(
                Diagnostic::error("gem-m1-layer", message).path(format!("{path}.layer_name")),
            );
            continue;
        };
        check_workload(workload, layer, &path, &mut sink);
        let (extents, _) = made.entry(name).or_insert(([0; 4], path));
        for (axis, extent) in extents.iter_mut().enumerate() {
            *extent = (*extent).max(workload.extent.axis(axis).1.saturating_add(1));
        }
    }
    for (name, (extents, path)) in &made {
        let mut shape = layers[name].output_shape.first().cloned().unwrap_or_default();
        shape.resize(shape.len().max(4), 1);
        if shape != extents {
            let message =
                format!("layer `{name}` computes {extents:?}, but its result is {shape:?}");
            sink.push(Diagnostic::error("gem-m2-extent", message).path(path.clone()));
        }
    }
    let scheduled: HashSet<&str> = made.into_keys().collect();
    for (name, layer) in &frontend.layers {
        if layer.device == "npu" && !scheduled.contains(name.as_str()) {
            let message = format!("no workload runs layer `{name}` of the NPU");
            sink.push(Diagnostic::error("gem-m3-unscheduled", message).path("$"));
        }
    }
    sink.into_diagnostics()
}

/// For each `ifmap` of a workload, the index of the activation in
/// [`FrontendLayer::previous_layer`].
///
/// Schedules list the two operands of a sum in either order, so they are matched by their producers; an
/// operand without a producer is the remaining one, or is matched by the name of its source in the buffer.
/// `None` if neither determines it.
pub fn operands(
    schedule: &Schedule,
    transfers: &Transfers<'_>,
    workload: &Workload,
    layer: &FrontendLayer,
) -> Option<Vec<usize>> {
    let [first, second] = workload.ifmaps() else {
        return Some((0..workload.ifmaps().len()).collect());
    };
    let names = layer.previous_layer.get(..2)?;
    let place = |ifmap: &Ifmap| {
        let name = name_of(schedule, transfers, workload, ifmap)?;
        names.iter().position(|other| other == name)
    };
    match (place(first), place(second)) {
        // If both operands are the same tensor, either is the first.
        (Some(0), Some(0)) if names[0] == names[1] => Some(vec![0, 1]),
        (Some(a), Some(b)) if a == b => None,
        (Some(0), _) | (None, Some(1)) => Some(vec![0, 1]),
        (Some(_), _) | (None, Some(_)) => Some(vec![1, 0]),
        (None, None) => None,
    }
}

/// The name of the layer's result or network input that a workload reads.
fn name_of<'s>(
    schedule: &'s Schedule,
    transfers: &Transfers<'s>,
    workload: &'s Workload,
    ifmap: &Ifmap,
) -> Option<&'s str> {
    let producers = |id| transfers.producer(id).into_iter().chain(transfers.storers(id));
    if let Some((core, index)) = ifmap.transfer_id.iter().flat_map(producers).next() {
        return Some(&schedule.cores[core].workloads[index].layer_name);
    }
    let mut sources = workload.buffer.iter().flat_map(|resident| resident.sources());
    let own = sources.find(|source| ifmap.transfer_id.iter().any(|id| id == source.transfer_id));
    own.and_then(|source| source.layer_name.as_deref())
}

fn check_workload(workload: &Workload, layer: &FrontendLayer, path: &str, sink: &mut Sink) {
    let mut wrong = |code, key: &str, message: String| {
        sink.push(Diagnostic::error(code, message).path(format!("{path}.{key}")));
    };
    let (name, operation) = (&workload.layer_name, layer.operation.as_str());
    let is_product = matches!(operation, "conv2d" | "dense");
    let kind = workload.layer_type;
    if matches!(kind, Some(LayerKind::Pe | LayerKind::Vp))
        && (kind == Some(LayerKind::Pe)) != is_product
    {
        let message = format!("`{name}` is {operation}, which this engine does not compute");
        wrong("gem-m4-engine", "layer_type", message);
    }
    if let Some(weight) = &workload.weight
        && let Some([k, c, r, s]) = layer.input_shape.get(1).map(Vec::as_slice)
    {
        let lengths: Vec<i64> = weight.extent().lengths().collect();
        let [_, _, channels, window] = lengths[..] else { return };
        let (_, last) = weight.extent().axis(1);
        if channels != *c || window != r.saturating_mul(*s) || last >= *k {
            let message =
                format!("{} is not a part of weights {:?}", weight.extent(), [k, c, r, s]);
            wrong("gem-m5-weight", "weight", message);
        }
    }
    let bits = layer.input_dtype.first().and_then(|name| element_bits(name));
    let found = workload.ifmaps().first().and_then(|ifmap| ifmap.bitwidth);
    if let (Some(bits), Some(found)) = (bits, found)
        && bits != found
    {
        let message = format!("`{name}` reads elements of {bits} bits, not {found}");
        wrong("gem-m6-bitwidth", "ifmap[0].bitwidth", message);
    }
}
