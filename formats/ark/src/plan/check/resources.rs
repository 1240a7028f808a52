//! Checks that processors, warps and on-chip memory suffice.

use irc_diag::{Diagnostic, Sink};

use super::{ops, resource_groups, resource_path};
use crate::json::OpPlace;
use crate::plan::{Plan, ResourceGroup, TaskInfo, slots};

/// Bytes of on-chip memory that the executor reserves.
const RESERVED_SRAM: i64 = 128;

/// Maximum number of threads of a block.
const MAX_THREADS: i64 = 1024;

/// Alignment of the on-chip memory of a task, in bytes.
const SRAM_ALIGNMENT: i64 = 16;

/// Checks that resource groups are within their processor groups, and those within the device.
pub(super) fn check_ranges(plan: &Plan, sink: &mut Sink) {
    for (outer, inner, group) in resource_groups(plan) {
        check_processors(plan, outer, group, &resource_path(outer, inner), sink);
    }
    for (outer, group) in plan.processor_groups.iter().enumerate() {
        let end = group.processor_range.end;
        if end > plan.num_processors {
            let message = format!(
                "processors up to {end} are used, the plan has {}: its barriers would wait for ever",
                plan.num_processors
            );
            let diagnostic = Diagnostic::error("plan-processors", message);
            sink.push(diagnostic.path(format!("$.ProcessorGroups[{outer}].ProcessorRange")));
        }
    }
}

/// Checks the resources of every task group.
pub(super) fn check(plan: &Plan, sink: &mut Sink) {
    check_device(plan, sink);
    check_tasks(plan, sink);
    for (outer, inner, group) in resource_groups(plan) {
        let path = resource_path(outer, inner);
        check_warps(plan, group, &path, sink);
        check_sram(plan, group, &path, sink);
        for (index, tasks) in group.task_groups.iter().enumerate() {
            let info = &plan.task_infos[tasks.task_id as usize];
            let path = format!("{path}.TaskGroups[{index}]");
            check_slots(plan, group, info, &path, sink);
        }
    }
}

fn check_device(plan: &Plan, sink: &mut Sink) {
    let architecture = plan.architecture;
    if let Some(most) = architecture.max_processors().filter(|&most| plan.num_processors > most) {
        let name = architecture.name();
        let message = format!("{name} has {most} processors, found {}", plan.num_processors);
        let diagnostic = Diagnostic::error("plan-processors", message);
        sink.push(diagnostic.path("$.NumProcessors"));
    }
    let most = MAX_THREADS / architecture.warp_threads();
    if plan.num_warps_per_processor > most {
        let found = plan.num_warps_per_processor;
        let message = format!("a processor runs at most {most} warps of a block, found {found}");
        let diagnostic = Diagnostic::error("plan-warps", message);
        sink.push(diagnostic.path("$.NumWarpsPerProcessor"));
    }
}

/// Checks that a task has the warps and memory that its ops need.
fn check_tasks(plan: &Plan, sink: &mut Sink) {
    for (index, info) in plan.task_infos.iter().enumerate() {
        let path = format!("$.TaskInfos[{index}]");
        if !(info.num_warps.count_ones() == 1 && info.num_warps <= 32) {
            let found = info.num_warps;
            let message = format!("`NumWarps` must be 1, 2, 4, 8, 16 or 32, found {found}");
            sink.push(Diagnostic::error("plan-warps", message).path(format!("{path}.NumWarps")));
        }
        // Two warps synchronise by a hardware barrier, of which a block has sixteen.
        if info.num_warps == 2 && plan.num_warps_per_processor > 16 {
            let message = "tasks of 2 warps need at most 16 warps on a processor";
            sink.push(Diagnostic::error("plan-warps", message).path(format!("{path}.NumWarps")));
        }
    }
    for (place, op) in ops(plan) {
        let OpPlace::Task(task, _) = place else { continue };
        let info = &plan.task_infos[task];
        let at = place.at();
        let at = at.key("Config");
        let needs = [
            ("NumWarps", info.num_warps, "plan-warps"),
            ("SramBytes", info.sram_bytes, "plan-sram"),
        ];
        for (key, has, code) in needs {
            if let Some(need) = op.config.int(key).filter(|&need| need > has) {
                let message = format!("the op needs {need} in `{key}`, its task has {has}");
                let diagnostic = Diagnostic::error(code, message)
                    .path(at.key(key).to_string())
                    .related(format!("$.TaskInfos[{task}].{key}"), "the task is here");
                sink.push(diagnostic);
            }
        }
    }
}

fn check_processors(plan: &Plan, outer: usize, group: &ResourceGroup, path: &str, sink: &mut Sink) {
    let whole = plan.processor_groups[outer].processor_range;
    if !whole.contains(group.processor_range) && !group.processor_range.is_empty() {
        let message = "a resource group uses processors outside its processor group";
        let diagnostic = Diagnostic::error("plan-processors", message)
            .path(format!("{path}.ProcessorRange"))
            .related(format!("$.ProcessorGroups[{outer}].ProcessorRange"), "the group is here");
        sink.push(diagnostic);
    }
}

fn check_warps(plan: &Plan, group: &ResourceGroup, path: &str, sink: &mut Sink) {
    for (key, range) in [("WarpRange", group.warp_range), ("SramRange", group.sram_range)] {
        if range.begin > 0 && !range.is_empty() {
            let message = format!("the begin of `{key}` is ignored: the tasks run from 0 on");
            let diagnostic = Diagnostic::warning("plan-range-begin", message)
                .path(format!("{path}.{key}"))
                .with_note("resource groups of one processor run one after the other");
            sink.push(diagnostic);
        }
    }
    if group.warp_range.end > plan.num_warps_per_processor {
        let message = format!(
            "warps up to {} are used, a processor has {}",
            group.warp_range.end, plan.num_warps_per_processor
        );
        let diagnostic = Diagnostic::error("plan-warps", message);
        sink.push(diagnostic.path(format!("{path}.WarpRange")));
    }
}

fn check_sram(plan: &Plan, group: &ResourceGroup, path: &str, sink: &mut Sink) {
    let Some(most) = plan.architecture.max_sram() else { return };
    if group.sram_range.len() + RESERVED_SRAM > most {
        let name = plan.architecture.name();
        let found = group.sram_range.len();
        let message = format!(
            "{name} gives a block {most} bytes, {RESERVED_SRAM} of them reserved; found {found}"
        );
        sink.push(Diagnostic::error("plan-sram", message).path(format!("{path}.SramRange")));
    }
}

/// Checks that concurrent tasks have the warps and the aligned memory that they need.
fn check_slots(plan: &Plan, group: &ResourceGroup, info: &TaskInfo, path: &str, sink: &mut Sink) {
    let (warps, sram) = (group.warp_range.len(), group.sram_range.len());
    let slots = slots(warps, sram, (info.num_warps, info.sram_bytes));
    if slots < 1 {
        let (code, what) = match warps < info.num_warps {
            true => ("plan-warps", format!("{warps} warps, a task needs {}", info.num_warps)),
            false => ("plan-sram", format!("{sram} bytes, a task needs {}", info.sram_bytes)),
        };
        let message = format!("the resource group has {what}");
        sink.push(Diagnostic::error(code, message).path(path));
        return;
    }
    if slots * info.num_warps > plan.num_warps_per_processor {
        let message = format!(
            "{slots} tasks of {} warps run side by side, a processor has {} warps: tasks are lost",
            info.num_warps, plan.num_warps_per_processor
        );
        sink.push(Diagnostic::error("plan-warps", message).path(path));
    }
    let share = sram / slots / info.num_warps;
    let is_aligned = (share * info.num_warps) % SRAM_ALIGNMENT == 0;
    if slots > 1 && info.sram_bytes > 0 && (!is_aligned || sram / slots % info.num_warps != 0) {
        let message = format!("{sram} bytes do not divide into {slots} aligned parts");
        let diagnostic = Diagnostic::error("plan-sram", message)
            .path(path)
            .help(format!("make it a multiple of {}", slots * info.num_warps * SRAM_ALIGNMENT));
        sink.push(diagnostic);
    }
}
