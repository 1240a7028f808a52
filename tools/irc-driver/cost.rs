//! The cost of plans: as a table, or as a JSON record.
use irc::planner::cost::{Estimate, GroupCost, ResourceCost};
use irc_ark_format::{model::OpKind, plan::Range};
use serde_json::{Value, json};

/// An estimate as a record; times are in nanoseconds.
pub fn record(file: &str, estimate: &Estimate) -> Value {
    let groups: Vec<Value> = estimate.groups.iter().map(group).collect();
    json!({
        "file": file,
        "device": estimate.device,
        "groups": groups,
        "totals": {
            "groups": estimate.groups.len(),
            "barriers": estimate.barriers,
            "tasks": estimate.tasks,
            "traffic_bytes": estimate.traffic as u64,
            "moved_bytes": estimate.bytes as u64,
            "flops": estimate.flops as u64,
            "arena_bytes": estimate.memory.arena,
            "live_peak_bytes": estimate.memory.live_peak,
            "time_ns": rounded(estimate.time),
        },
    })
}

fn group(group: &GroupCost) -> Value {
    let names = |ops: &[OpKind]| ops.iter().map(|kind| kind.name()).collect::<Vec<_>>();
    let range = |range: Range| [range.begin, range.end];
    let part = |part: &ResourceCost| {
        json!({
            "processors": range(part.processors),
            "ops": names(&part.ops),
            "tasks": part.tasks,
        })
    };
    json!({
        "processors": range(group.processors),
        "resources": group.resources.iter().map(part).collect::<Vec<_>>(),
        "ops": names(&group.ops),
        "tasks": group.tasks,
        "waves": group.waves,
        "traffic_bytes": group.traffic as u64,
        "moved_bytes": group.bytes as u64,
        "flops": group.flops as u64,
        "bound": group.bound.to_string(),
        "time_ns": rounded(group.time),
    })
}

/// Rounds to a tenth of a nanosecond, beyond the accuracy of any estimate.
fn rounded(time: f64) -> f64 {
    (time * 10.0).round() / 10.0
}
