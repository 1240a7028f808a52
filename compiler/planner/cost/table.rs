//! An estimate as a table of text.
use super::{Estimate, GroupCost, ResourceCost};
use irc_ark_format::{model::OpKind, plan::Range};
use std::fmt::Write as _;

/// Maximum number of ops named in a row; the rest is counted.
const NAMED: usize = 4;

/// A row of the table: its cells, and its ops.
type Row = ([String; 8], String);

/// The table of an estimate: a row per processor group, followed by one per resource group where
/// their processors differ; and totals.
pub fn table(estimate: &Estimate) -> String {
    let mut text = String::new();
    let groups = estimate.groups.iter().enumerate();
    let rows: Vec<Row> = groups.flat_map(|(index, group)| rows(index, group)).collect();
    let head = ["group", "processors", "tasks", "waves", "MB", "GFLOP", "bound by", "us"]
        .map(String::from);
    let all: Vec<Row> = [(head, "ops".to_owned())].into_iter().chain(rows).collect();
    let width = |column: usize| all.iter().map(|(row, _)| row[column].len()).max();
    let widths: Vec<usize> = (0..8).map(|column| width(column).unwrap_or_default()).collect();
    for (row, ops) in &all {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "{cell:>width$}  ");
        }
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

fn rows(index: usize, group: &GroupCost) -> Vec<Row> {
    let own = [
        index.to_string(),
        processors(group.processors),
        group.tasks.to_string(),
        group.waves.to_string(),
        format!("{:.2}", group.bytes / 1e6),
        format!("{:.2}", group.flops / 1e9),
        group.bound.to_string(),
        format!("{:.2}", group.time / 1e3),
    ];
    let is_apart = |part: &ResourceCost| part.processors != group.processors;
    let parts = group.resources.iter().filter(|_| group.resources.iter().any(is_apart));
    let part = |part: &ResourceCost| {
        let [processors, tasks] = [processors(part.processors), part.tasks.to_string()];
        let mut cells = <[String; 8]>::default();
        (cells[1], cells[2]) = (processors, tasks);
        (cells, names(&part.ops))
    };
    [(own, names(&group.ops))].into_iter().chain(parts.map(part)).collect()
}

fn processors(range: Range) -> String {
    format!("[{}, {})", range.begin, range.end)
}

fn names(ops: &[OpKind]) -> String {
    let mut names: Vec<String> =
        ops.iter().take(NAMED).map(|kind| kind.name().to_owned()).collect();
    if ops.len() > NAMED {
        names.push(format!("and {} more", ops.len() - NAMED));
    }
    names.join(", ")
}
