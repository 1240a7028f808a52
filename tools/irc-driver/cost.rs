//! What plans cost: for people a table, for machines a record.
use irc::planner::cost::{Estimate, GroupCost};
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
    let ops: Vec<&str> = group.ops.iter().map(|kind| kind.name()).collect();
    json!({
        "processors": [group.processors.begin, group.processors.end],
        "ops": ops,
        "tasks": group.tasks,
        "waves": group.waves,
        "traffic_bytes": group.traffic as u64,
        "moved_bytes": group.bytes as u64,
        "flops": group.flops as u64,
        "bound": group.bound.to_string(),
        "time_ns": rounded(group.time),
    })
}

/// A tenth of a nanosecond is as fine as an estimate can mean.
fn rounded(time: f64) -> f64 {
    (time * 10.0).round() / 10.0
}
