//! Semantic checks of a plan.
//!
//! ARK itself does not check most of this: an invalid plan runs and computes wrong results,
//! hangs, or is rejected by the CUDA compiler on the user's machine. Errors are proven; what cannot be
//! decided, and what only affects performance, is a warning.

mod align;
mod barriers;
mod comm;
mod config;
mod distribute;
mod fused;
mod kernels;
mod lanes;
mod matmul;
mod meaning;
mod memory;
mod order;
mod packets;
mod pairs;
mod ranks;
mod resources;
mod schema;
mod tasks;
mod uses;
mod warps;

use irc_diag::{Diagnostic, Sink};

use super::{Plan, PlanOp, ResourceGroup, tiling};
use crate::json::OpPlace;
use crate::model::{Op, validate};

pub use config::{ConfigKey, config_keys, expected_config};
pub use matmul::{MatmulKernel, matmul_kernels};
pub use meaning::check_model;
pub use ranks::check_ranks;

/// All diagnostics of one plan.
pub fn check(plan: &Plan) -> Vec<Diagnostic> {
    let mut sink = Sink::new();
    schema::check(plan, &mut sink);
    if !sink.has_errors() {
        resources::check_ranges(plan, &mut sink);
    }
    check_ops(plan, &mut sink);
    // The following checks compute with ranges, tiles and shapes, which must be valid.
    if !sink.has_errors() {
        tasks::check(plan, &mut sink);
        resources::check(plan, &mut sink);
        warps::check(plan, &mut sink);
        barriers::check(plan, &mut sink);
        kernels::check(plan, &mut sink);
        comm::check(plan, &mut sink);
        fused::check(plan, &mut sink);
        order::check(plan, &mut sink);
        uses::check(plan, &mut sink);
    }
    sink.into_diagnostics()
}

/// Whether ops may run consecutively for one task index: their numbers of tasks are equal, and each op
/// uses only results of the same index of the others, as far as their tiles prove.
pub fn fuses(ops: &[PlanOp]) -> bool {
    let mut sink = Sink::new();
    fused::check_task(0, ops, &mut sink);
    let tasks = ops.first().and_then(tiling::num_tasks);
    sink.diagnostics().is_empty() && ops.iter().all(|op| tiling::num_tasks(op) == tasks)
}

/// Checks the rules of ops that apply to models too, and that no op is virtual.
fn check_ops(plan: &Plan, sink: &mut Sink) {
    let ops: Vec<(OpPlace, &Op)> = ops(plan).map(|(place, op)| (place, &op.op)).collect();
    for (place, _) in ops.iter().filter(|(_, op)| op.is_virtual) {
        let message = "a virtual op computes nothing and cannot be in a plan";
        let diagnostic = Diagnostic::error("plan-virtual-op", message);
        sink.push(diagnostic.path(place.at().key("IsVirtual").to_string()));
    }
    let world = Some((plan.rank, plan.world_size));
    validate::check_ops(&ops, sink);
    validate::check_foreign(world, &ops, sink);
}

/// Every op of a plan and its location.
fn ops(plan: &Plan) -> impl Iterator<Item = (OpPlace, &super::PlanOp)> {
    plan.task_infos.iter().enumerate().flat_map(|(task, info)| {
        info.ops.iter().enumerate().map(move |(op, plan_op)| (OpPlace::Task(task, op), plan_op))
    })
}

/// Every resource group of a plan, with the index of its processor group and its own in that.
fn resource_groups(plan: &Plan) -> impl Iterator<Item = (usize, usize, &ResourceGroup)> {
    plan.processor_groups.iter().enumerate().flat_map(|(outer, group)| {
        group
            .resource_groups
            .iter()
            .enumerate()
            .map(move |(inner, resource)| (outer, inner, resource))
    })
}

/// Path of a resource group.
fn resource_path(outer: usize, inner: usize) -> String {
    format!("$.ProcessorGroups[{outer}].ResourceGroups[{inner}]")
}
