//! An estimate for people.
use super::{Estimate, GroupCost};
use std::fmt::Write as _;

/// Ops named in a row before the rest is only counted.
const NAMED: usize = 4;

/// A table of an estimate: a row a processor group, and totals.
pub fn table(estimate: &Estimate) -> String {
    let mut text = String::new();
    let rows: Vec<[String; 8]> =
        estimate.groups.iter().enumerate().map(|(index, group)| row(index, group)).collect();
    let head = ["group", "processors", "tasks", "waves", "MB", "GFLOP", "bound by", "us"]
        .map(String::from);
    let widths: Vec<usize> = (0..8)
        .map(|column| {
            rows.iter().chain([&head]).map(|row| row[column].len()).max().unwrap_or_default()
        })
        .collect();
    for (index, row) in [&head].into_iter().chain(&rows).enumerate() {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "{cell:>width$}  ");
        }
        let ops = match index {
            0 => "ops".to_owned(),
            _ => names(&estimate.groups[index - 1]),
        };
        let _ = writeln!(text, "{ops}");
    }
    let mega = |bytes: f64| bytes / 1e6;
    let _ = writeln!(
        text,
        "total: {} groups, {} barriers, {} tasks, {:.1} MB used, {:.1} MB moved, \
         {:.1} GFLOP\n\
         intermediates: {:.1} MB in buffers, {:.1} MB live at most\n\
         estimated time: {:.1} us on {}",
        estimate.groups.len(),
        estimate.barriers,
        estimate.tasks,
        mega(estimate.traffic),
        mega(estimate.bytes),
        estimate.flops / 1e9,
        mega(estimate.memory.arena as f64),
        mega(estimate.memory.live_peak as f64),
        estimate.time / 1e3,
        estimate.device,
    );
    text
}

fn row(index: usize, group: &GroupCost) -> [String; 8] {
    [
        index.to_string(),
        format!("[{}, {})", group.processors.begin, group.processors.end),
        group.tasks.to_string(),
        group.waves.to_string(),
        format!("{:.2}", group.bytes / 1e6),
        format!("{:.2}", group.flops / 1e9),
        group.bound.to_string(),
        format!("{:.2}", group.time / 1e3),
    ]
}

fn names(group: &GroupCost) -> String {
    let mut names: Vec<String> =
        group.ops.iter().take(NAMED).map(|kind| kind.name().to_owned()).collect();
    if group.ops.len() > NAMED {
        names.push(format!("and {} more", group.ops.len() - NAMED));
    }
    names.join(", ")
}
