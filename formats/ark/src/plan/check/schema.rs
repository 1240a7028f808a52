//! Checks of numbers, ranges and ids.

use irc_diag::{Diagnostic, Sink};

use super::{config, ops, resource_groups, resource_path};
use crate::model::validate;
use crate::plan::{Plan, Range, TaskGroup};

/// Larger than any device; limits the work of simulating each processor.
const MAX_PROCESSORS: i64 = 4096;

/// Checks numbers, ranges, ids and the keys of every config.
pub(super) fn check(plan: &Plan, sink: &mut Sink) {
    validate::check_ranks(plan.rank, plan.world_size, sink);
    at_least("NumProcessors", plan.num_processors, 1, "$", sink);
    if plan.num_processors > MAX_PROCESSORS {
        let found = plan.num_processors;
        let message = format!("no device has more than {MAX_PROCESSORS} processors, found {found}");
        let diagnostic = Diagnostic::error("plan-processors", message);
        sink.push(diagnostic.path("$.NumProcessors"));
    }
    at_least("NumWarpsPerProcessor", plan.num_warps_per_processor, 1, "$", sink);
    check_task_infos(plan, sink);
    check_groups(plan, sink);
    ops(plan).for_each(|(place, op)| config::check(op, place, sink));
}

/// Checks that a number is at least `least` and fits into 32 bits, as in ARK.
fn at_least(key: &str, value: i64, least: i64, path: &str, sink: &mut Sink) {
    if value < least || i32::try_from(value).is_err() {
        let message =
            format!("`{key}` must be a 32-bit integer of at least {least}, found {value}");
        sink.push(Diagnostic::error("plan-number", message).path(format!("{path}.{key}")));
    }
}

fn check_task_infos(plan: &Plan, sink: &mut Sink) {
    for (index, info) in plan.task_infos.iter().enumerate() {
        let path = format!("$.TaskInfos[{index}]");
        if info.id != index as i64 {
            let message = format!("`Id` must be the index {index}, found {}", info.id);
            let diagnostic = Diagnostic::error("plan-task-id", message)
                .path(format!("{path}.Id"))
                .with_note("ARK finds task infos by position and names their code by id");
            sink.push(diagnostic);
        }
        at_least("NumWarps", info.num_warps, 1, &path, sink);
        at_least("SramBytes", info.sram_bytes, 0, &path, sink);
        if info.ops.is_empty() {
            let diagnostic = Diagnostic::error("plan-empty-task", "a task needs at least one op");
            sink.push(diagnostic.path(format!("{path}.Ops")));
        }
    }
}

fn check_groups(plan: &Plan, sink: &mut Sink) {
    for (outer, group) in plan.processor_groups.iter().enumerate() {
        let path = format!("$.ProcessorGroups[{outer}].ProcessorRange");
        check_range(group.processor_range, &path, sink);
    }
    for (outer, inner, group) in resource_groups(plan) {
        let path = resource_path(outer, inner);
        check_range(group.processor_range, &format!("{path}.ProcessorRange"), sink);
        check_range(group.warp_range, &format!("{path}.WarpRange"), sink);
        check_range(group.sram_range, &format!("{path}.SramRange"), sink);
        for (index, tasks) in group.task_groups.iter().enumerate() {
            check_task_group(plan, tasks, &format!("{path}.TaskGroups[{index}]"), sink);
        }
    }
}

fn check_task_group(plan: &Plan, tasks: &TaskGroup, path: &str, sink: &mut Sink) {
    check_range(tasks.task_range, &format!("{path}.TaskRange"), sink);
    at_least("Granularity", tasks.granularity, 1, path, sink);
    let count = plan.task_infos.len();
    if usize::try_from(tasks.task_id).is_ok_and(|id| id < count) {
        return;
    }
    let message = format!("`TaskId` must be in [0, {count}), found {}", tasks.task_id);
    sink.push(Diagnostic::error("plan-task-id", message).path(format!("{path}.TaskId")));
}

fn check_range(range: Range, path: &str, sink: &mut Sink) {
    let Range { begin, end, step } = range;
    let fits = i32::try_from(end).is_ok();
    if !(0..=end).contains(&begin) || !fits {
        let message = format!("a range needs 0 <= begin <= end, found [{begin}, {end}]");
        sink.push(Diagnostic::error("plan-range", message).path(path));
    }
    match step {
        None => {}
        Some(1) => {
            let message = "the step of a range is ignored; write [begin, end]";
            sink.push(Diagnostic::warning("plan-stepped-range", message).path(path));
        }
        Some(step) => {
            let message = format!("step {step} of a range is ignored when the plan runs");
            let diagnostic = Diagnostic::error("plan-stepped-range", message).path(path);
            sink.push(diagnostic.help("write one group for each contiguous range"));
        }
    }
}
