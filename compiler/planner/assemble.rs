//! Tasks spread over processors.
//!
//! Each task has a processor group of its own that starts at processor 0, so that every group waits
//! for those before it.
use super::{Target, group::Draft};
use irc_ark_format::{
    model::Model,
    plan::{Architecture, Plan, ProcessorGroup, Range, ResourceGroup, TaskGroup, TaskInfo},
};

/// Warps of a processor that run tasks side by side.
const WARPS: i64 = 8;

/// Bytes of on-chip memory the executor keeps for itself.
const RESERVED_SRAM: i64 = 128;

/// Bytes of on-chip memory of a block where the format knows no limit: what every device has.
const SMALLEST_SRAM: i64 = 49_152;

/// Bytes of on-chip memory of a block on MI300.
const MI300_SRAM: i64 = 65_536;

/// The plan of drafted tasks, and by task and op the index of the node.
pub fn assemble(model: &Model, target: &Target, drafts: Vec<Draft>) -> (Plan, Vec<Vec<usize>>) {
    let mut plan = Plan {
        rank: model.rank,
        world_size: model.world_size,
        architecture: target.architecture,
        num_processors: 1,
        num_warps_per_processor: 1,
        task_infos: vec![],
        processor_groups: vec![],
    };
    let mut nodes = vec![];
    for (id, draft) in drafts.into_iter().enumerate() {
        let info = task_info(id as i64, &draft);
        let tasks = draft.ops[0].config.int("NumTasks").unwrap_or(0);
        let group = processor_group(&info, tasks, target);
        plan.num_processors = plan.num_processors.max(group.processor_range.end);
        let warps = group.resource_groups[0].warp_range.end;
        plan.num_warps_per_processor = plan.num_warps_per_processor.max(warps);
        plan.task_infos.push(TaskInfo { ops: draft.ops, ..info });
        plan.processor_groups.push(group);
        nodes.push(draft.nodes);
    }
    (plan, nodes)
}

/// The resources of a task: the most any of its ops needs.
fn task_info(id: i64, draft: &Draft) -> TaskInfo {
    let most = |key: &str| draft.ops.iter().filter_map(|op| op.config.int(key)).max();
    TaskInfo {
        id,
        num_warps: most("NumWarps").unwrap_or(1),
        sram_bytes: most("SramBytes").unwrap_or(0),
        ops: vec![],
    }
}

fn processor_group(info: &TaskInfo, tasks: i64, target: &Target) -> ProcessorGroup {
    let by_warps = (WARPS / info.num_warps).max(1);
    let slots = match info.sram_bytes {
        0 => by_warps,
        bytes => (usable_sram(target.architecture) / bytes).clamp(1, by_warps),
    };
    let processors = ((tasks + slots - 1) / slots).min(target.processors);
    let processor_range = Range::new(0, processors);
    let tasks = TaskGroup { task_id: info.id, task_range: Range::new(0, tasks), granularity: 1 };
    let resources = ResourceGroup {
        processor_range,
        warp_range: Range::new(0, slots * info.num_warps),
        sram_range: Range::new(0, slots * info.sram_bytes),
        task_groups: vec![tasks],
    };
    ProcessorGroup { processor_range, resource_groups: vec![resources] }
}

fn usable_sram(architecture: Architecture) -> i64 {
    let smallest = match architecture {
        Architecture::Rocm942 => MI300_SRAM,
        _ => SMALLEST_SRAM,
    };
    architecture.max_sram().unwrap_or(smallest) - RESERVED_SRAM
}
