//! Checks that every task runs exactly once.

use irc_diag::{Diagnostic, Sink};

use super::distribute::{advance, faults};
use super::{resource_groups, resource_path};
use crate::json::OpPlace;
use crate::model::OpKind;
use crate::plan::tiling::{derived_tasks, num_tasks};
use crate::plan::{Plan, PlanOp, Range, ResourceGroup, TaskInfo};

/// Checks the number of tasks of each op, and that task groups run each task once.
pub(super) fn check(plan: &Plan, sink: &mut Sink) {
    for (index, info) in plan.task_infos.iter().enumerate() {
        check_counts(index, info, sink);
    }
    for (outer, inner, group) in resource_groups(plan) {
        check_distribution(plan, group, &resource_path(outer, inner), sink);
    }
    check_ranges(plan, sink);
}

fn check_counts(task: usize, info: &TaskInfo, sink: &mut Sink) {
    let first = info.ops.first().and_then(num_tasks);
    for (index, op) in info.ops.iter().enumerate() {
        let at = OpPlace::Task(task, index).at();
        let at = at.key("Config");
        let path = at.key("NumTasks").to_string();
        let (stated, derived) = (num_tasks(op), derived_tasks(op));
        if let (Some(stated), Some(derived)) = (stated, derived)
            && stated != derived
        {
            let message = format!("`NumTasks` is {stated}, the tiles of the result are {derived}");
            sink.push(Diagnostic::error("plan-num-tasks", message).path(&path));
        }
        if stated != first
            && let (Some(stated), Some(first)) = (stated, first)
        {
            let message = format!("ops of one task differ in `NumTasks`: {first} and {stated}");
            let place = OpPlace::Task(task, 0).at();
            let diagnostic = Diagnostic::error("plan-fused-tasks", message)
                .path(path)
                .related(place.key("Config").to_string(), "the first op is here");
            sink.push(diagnostic);
        }
        if let Some(tile) = op.config.ints("Tile").filter(|tile| tile.len() > 2) {
            let message = format!("the kernel uses two of the {} extents of `Tile`", tile.len());
            let diagnostic = Diagnostic::warning("plan-tile-rank", message);
            sink.push(diagnostic.path(at.key("Tile").to_string()));
        }
    }
}

/// Simulates the distribution of the task groups of a resource group, in order.
fn check_distribution(plan: &Plan, group: &ResourceGroup, path: &str, sink: &mut Sink) {
    let processors = group.processor_range;
    let mut current = processors.begin;
    for (index, tasks) in group.task_groups.iter().enumerate() {
        let found = faults(tasks, processors, current, plan.num_processors);
        if found.lost > 0 || found.repeated > 0 {
            let message = format!(
                "ARK's distribution loses {} and repeats {} granules of these tasks",
                found.lost, found.repeated
            );
            let diagnostic = Diagnostic::error("plan-distribution", message)
                .path(format!("{path}.TaskGroups[{index}]"))
                .with_note(format!(
                    "on processors [{}, {}) of {}, starting at {current}",
                    processors.begin, processors.end, plan.num_processors
                ))
                .help("give each task group on part of the processors a group of its own");
            sink.push(diagnostic);
        }
        current = advance(current, tasks, processors);
    }
}

/// Checks that the task ranges of each task info cover its tasks, each once.
fn check_ranges(plan: &Plan, sink: &mut Sink) {
    let mut ranges: Vec<Vec<(Range, String)>> = vec![vec![]; plan.task_infos.len()];
    for (outer, inner, group) in resource_groups(plan) {
        for (index, tasks) in group.task_groups.iter().enumerate() {
            let path = format!("{}.TaskGroups[{index}].TaskRange", resource_path(outer, inner));
            ranges[tasks.task_id as usize].push((tasks.task_range, path));
        }
    }
    for (index, mut ranges) in ranges.into_iter().enumerate() {
        let total = plan.task_infos[index].ops.first().and_then(num_tasks);
        if ranges.is_empty() {
            // A `Noop` only sets the size of buffers, independently of its position.
            let is_noop = |op: &PlanOp| op.op.kind == OpKind::Noop;
            if plan.task_infos[index].ops.iter().all(is_noop) {
                continue;
            }
            sink.push(unused(index, &plan.task_infos[index], total));
        } else if let Some(total) = total {
            ranges.sort();
            check_cover(index, total, &ranges, sink);
        }
    }
}

/// No task group refers to a task; this is valid if it has no indices, or its ops write nothing.
fn unused(task: usize, info: &TaskInfo, total: Option<i64>) -> Diagnostic {
    let message = format!("no task group runs task {task}");
    // A receive that does not wait only names a destination, and a sync moves no data.
    let is_idle = |op: &PlanOp| match op.op.kind {
        OpKind::Recv => op.config.bool("Wait") == Some(false),
        kind => kind == OpKind::DeviceSync,
    };
    let diagnostic = match total {
        _ if info.ops.iter().all(is_idle) => Diagnostic::warning("plan-unused-task", message),
        Some(0) => Diagnostic::warning("plan-unused-task", message),
        _ => Diagnostic::error("plan-lost-tasks", format!("{message}: its ops never run"))
            .help("add a processor group that runs it, or remove the task"),
    };
    diagnostic.path(format!("$.TaskInfos[{task}]"))
}

fn check_cover(task: usize, total: i64, ranges: &[(Range, String)], sink: &mut Sink) {
    let mut next = 0;
    for (range, path) in ranges {
        if range.end > total {
            let message = format!("task {task} has the indices [0, {total}), found {}", range.end);
            sink.push(Diagnostic::error("plan-task-range", message).path(path));
        }
        if range.is_empty() {
            continue;
        }
        if range.begin > next {
            let message = format!("indices [{next}, {}) of task {task} never run", range.begin);
            sink.push(Diagnostic::error("plan-lost-tasks", message).path(path));
        } else if range.begin < next {
            let end = next.min(range.end);
            let message = format!("indices [{}, {end}) of task {task} run twice", range.begin);
            sink.push(Diagnostic::error("plan-repeated-tasks", message).path(path));
        }
        next = next.max(range.end);
    }
    if next < total {
        let message = format!("indices [{next}, {total}) of task {task} never run");
        let last = ranges.last().map(|(_, path)| path.clone()).unwrap_or_default();
        sink.push(Diagnostic::error("plan-lost-tasks", message).path(last));
    }
}
