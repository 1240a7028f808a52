//! Exports a module to a plan.
use super::config;
use crate::{
    ark::node,
    attributes::{op_integer, op_integers, op_text},
};
use irc_ark_format::plan::{
    Architecture, Plan, PlanOp, ProcessorGroup, Range, ResourceGroup, TaskGroup, TaskInfo,
};
use irc_mlir::{Module, OperationLike, OperationRef, PassError, read::body_ops};

/// The plan of the single `plan.program` of a module.
///
/// # Errors
/// After a diagnostic at the op concerned: no program or several, or an op that is not part of a
/// plan.
pub fn export(module: &Module<'_>) -> Result<Plan, PassError> {
    let module = module.as_operation();
    let mut programs = body_ops(module).into_iter().filter(|op| is_named(*op, "plan.program"));
    let program = match (programs.next(), programs.next()) {
        (Some(program), None) => program,
        (None, _) => return Err(PassError::at(&module, "expected one plan.program, found none")),
        _ => return Err(PassError::at(&module, "expected one plan.program, found several")),
    };
    plan(program)
}

fn plan(program: OperationRef<'_, '_>) -> Result<Plan, PassError> {
    let integer = |name| located(program, op_integer(program, name));
    let name = located(program, op_text(program, "architecture"))?;
    let architecture = Architecture::from_name(&name)
        .ok_or_else(|| format!("expected an architecture such as CUDA_80, found '{name}'"));
    let mut plan = Plan {
        rank: integer("rank")?,
        world_size: integer("world_size")?,
        architecture: located(program, architecture)?,
        num_processors: integer("processors")?,
        num_warps_per_processor: integer("warps_per_processor")?,
        task_infos: vec![],
        processor_groups: vec![],
    };
    for op in body_ops(program) {
        if is_named(op, "plan.task") {
            plan.task_infos.push(task(op)?);
        } else if is_named(op, "plan.processor_group") {
            plan.processor_groups.push(processor_group(op)?);
        }
    }
    Ok(plan)
}

fn is_named(op: OperationRef<'_, '_>, name: &str) -> bool {
    op.name().as_string_ref().as_str() == Ok(name)
}

fn located<T>(op: OperationRef<'_, '_>, result: Result<T, String>) -> Result<T, PassError> {
    result.map_err(|message| PassError::at(&op, message))
}

fn task(op: OperationRef<'_, '_>) -> Result<TaskInfo, PassError> {
    let integer = |name| located(op, op_integer(op, name));
    let (id, num_warps, sram_bytes) = (integer("id")?, integer("warps")?, integer("sram_bytes")?);
    let ops = body_ops(op).into_iter().map(|op| {
        let (node, config) = (node(op), config::from_attributes(op));
        Ok(PlanOp { op: located(op, node)?.op, config: located(op, config)? })
    });
    Ok(TaskInfo { id, num_warps, sram_bytes, ops: ops.collect::<Result<_, _>>()? })
}

fn processor_group(op: OperationRef<'_, '_>) -> Result<ProcessorGroup, PassError> {
    Ok(ProcessorGroup {
        processor_range: located(op, range(op, "processor_range"))?,
        resource_groups: body_ops(op).into_iter().map(resource_group).collect::<Result<_, _>>()?,
    })
}

fn resource_group(op: OperationRef<'_, '_>) -> Result<ResourceGroup, PassError> {
    let ranged = |name| located(op, range(op, name));
    Ok(ResourceGroup {
        processor_range: ranged("processor_range")?,
        warp_range: ranged("warp_range")?,
        sram_range: ranged("sram_range")?,
        task_groups: body_ops(op).into_iter().map(task_group).collect::<Result<_, _>>()?,
    })
}

fn task_group(op: OperationRef<'_, '_>) -> Result<TaskGroup, PassError> {
    Ok(TaskGroup {
        task_id: located(op, op_integer(op, "task"))?,
        task_range: located(op, range(op, "task_range"))?,
        granularity: located(op, op_integer(op, "granularity"))?,
    })
}

/// A range attribute: begin and end, and a step if the file has one.
pub(super) fn range(op: OperationRef<'_, '_>, name: &str) -> Result<Range, String> {
    match op_integers(op, name)?[..] {
        [begin, end] => Ok(Range { begin, end, step: None }),
        [begin, end, step] => Ok(Range { begin, end, step: Some(step) }),
        ref other => {
            Err(format!("expected [begin, end] in '{name}', found {} integers", other.len()))
        }
    }
}
