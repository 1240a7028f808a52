//! Writes plans in ARK's own layout.

use super::{ConfigValue, Plan, PlanOp, ProcessorGroup, Range, ResourceGroup, TaskGroup, TaskInfo};
use crate::model::write::{Text, op};

const LIST: [&str; 2] = ["[", "]"];

/// The plan as ARK writes it, byte for byte.
pub fn write(plan: &Plan) -> String {
    let mut text = Text::default();
    text.raw("{").key(1, "Rank").put(plan.rank);
    text.raw(",").key(1, "WorldSize").put(plan.world_size);
    text.raw(",").key(1, "Architecture").string(plan.architecture.name());
    text.raw(",").key(1, "NumProcessors").put(plan.num_processors);
    text.raw(",").key(1, "NumWarpsPerProcessor").put(plan.num_warps_per_processor);
    text.raw(",").key(1, "TaskInfos").block(1, LIST, &plan.task_infos, task_info);
    text.raw(",").key(1, "ProcessorGroups").block(1, LIST, &plan.processor_groups, processor_group);
    text.raw("\n}\n");
    text.0
}

fn task_info(text: &mut Text, info: &TaskInfo) {
    text.raw("{").key(3, "Id").put(info.id);
    text.raw(",").key(3, "NumWarps").put(info.num_warps);
    text.raw(",").key(3, "SramBytes").put(info.sram_bytes);
    text.raw(",").key(3, "Ops").block(3, LIST, &info.ops, plan_op);
    text.line(2).raw("}");
}

fn plan_op(text: &mut Text, plan_op: &PlanOp) {
    op(text, 4, &plan_op.op, |text| {
        text.raw(",").key(5, "Config").block(5, ["{", "}"], &plan_op.config.0, config);
    });
}

fn config(text: &mut Text, (key, value): &(String, ConfigValue)) {
    text.string(key).raw(": ");
    match value {
        ConfigValue::Bool(value) => text.put(value),
        ConfigValue::Int(value) => text.put(value),
        ConfigValue::Text(value) => text.string(value),
        ConfigValue::Ints(values) => text.numbers(values),
    };
}

fn processor_group(text: &mut Text, group: &ProcessorGroup) {
    text.raw("{").key(3, "ProcessorRange");
    range(text, group.processor_range);
    text.raw(",").key(3, "ResourceGroups").block(3, LIST, &group.resource_groups, resource_group);
    text.line(2).raw("}");
}

fn resource_group(text: &mut Text, group: &ResourceGroup) {
    text.raw("{").key(5, "ProcessorRange");
    range(text, group.processor_range);
    text.raw(",").key(5, "WarpRange");
    range(text, group.warp_range);
    text.raw(",").key(5, "SramRange");
    range(text, group.sram_range);
    text.raw(",").key(5, "TaskGroups").block(5, LIST, &group.task_groups, task_group);
    text.line(4).raw("}");
}

fn task_group(text: &mut Text, group: &TaskGroup) {
    text.raw("{\"TaskId\":").put(group.task_id).raw(",\"TaskRange\":");
    range(text, group.task_range);
    text.raw(",\"Granularity\":").put(group.granularity).raw("}");
}

fn range(text: &mut Text, range: Range) {
    match range.step {
        None => text.numbers(&[range.begin, range.end]),
        Some(step) => text.numbers(&[range.begin, range.end, step]),
    };
}
