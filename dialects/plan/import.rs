//! Imports a plan to a module.
use super::config;
use crate::ark::Builder;
use irc_ark_format::{
    model::Node,
    plan::{Plan, ProcessorGroup, Range, ResourceGroup, TaskGroup, TaskInfo},
};
use irc_mlir::{
    Attribute, Block, BlockLike, BlockRef, Context, Location, Module, OpSpec, OperationLike,
    OperationRef, RegionLike, attr, region_of,
};

/// The origins of a plan's ops: by task and op, the id of the node and the location.
pub type Sources<'s, 'c> = &'s dyn Fn(usize, usize) -> (u64, Location<'c>);

/// Creates a module that holds one `plan.program`. Locations hold the JSON paths of the plan; nodes
/// are numbered in the order of the ops.
pub fn import<'c>(context: &'c Context, plan: &Plan, file: Option<&str>) -> Module<'c> {
    let place = || match file {
        Some(file) => Location::new(context, file, 1, 1),
        None => Location::unknown(context),
    };
    let whole = Location::name(context, "$", place());
    let module = Module::new(whole);
    let starts: Vec<usize> = plan
        .task_infos
        .iter()
        .scan(0, |next, task| Some(std::mem::replace(next, *next + task.ops.len())))
        .collect();
    build(context, module.body(), plan, whole, &|task, op| {
        let path = format!("$.TaskInfos[{task}].Ops[{op}]");
        ((starts[task] + op) as u64, Location::name(context, &path, place()))
    });
    module
}

/// Appends the `plan.program` of a plan to a block.
pub fn build<'c: 'a, 'a>(
    context: &'c Context,
    block: BlockRef<'c, 'a>,
    plan: &Plan,
    location: Location<'c>,
    sources: Sources<'_, 'c>,
) -> OperationRef<'c, 'a> {
    for dialect in ["ark", "plan"] {
        context.get_or_load_dialect(dialect);
    }
    let program = OpSpec::new(context, "plan.program", location)
        .attr("rank", attr::i64(context, plan.rank))
        .attr("world_size", attr::i64(context, plan.world_size))
        .attr("architecture", attr::string(context, plan.architecture.name()))
        .attr("processors", attr::i64(context, plan.num_processors))
        .attr("warps_per_processor", attr::i64(context, plan.num_warps_per_processor))
        .region(region_of(Block::new(&[])))
        .append(&block);
    let body = program.region(0).ok().and_then(|region| region.first_block());
    let body = body.expect("a region of one block");
    let mut builder = Builder::new(context, body);
    for (index, info) in plan.task_infos.iter().enumerate() {
        let task = task(context, &mut builder, info, location, &|op| sources(index, op));
        task.append(&body);
    }
    for group in &plan.processor_groups {
        processor_group(context, group, location).append(&body);
    }
    program
}

fn task<'c>(
    context: &'c Context,
    builder: &mut Builder<'c, '_>,
    info: &TaskInfo,
    location: Location<'c>,
    sources: &dyn Fn(usize) -> (u64, Location<'c>),
) -> OpSpec<'c> {
    let block = Block::new(&[]);
    for (index, plan_op) in info.ops.iter().enumerate() {
        let (id, location) = sources(index);
        let node = Node { id, producers: vec![], consumers: vec![], op: plan_op.op.clone() };
        let mut spec = builder.declare(&node, location);
        for (name, value) in config::to_attributes(context, &plan_op.config) {
            spec = spec.attr(name, value);
        }
        block.append_operation(spec.build());
    }
    OpSpec::new(context, "plan.task", location)
        .attr("id", attr::i64(context, info.id))
        .attr("warps", attr::i64(context, info.num_warps))
        .attr("sram_bytes", attr::i64(context, info.sram_bytes))
        .region(region_of(block))
}

fn processor_group<'c>(
    context: &'c Context,
    group: &ProcessorGroup,
    location: Location<'c>,
) -> OpSpec<'c> {
    let block = Block::new(&[]);
    for resources in &group.resource_groups {
        block.append_operation(resource_group(context, resources, location).build());
    }
    OpSpec::new(context, "plan.processor_group", location)
        .attr("processor_range", range(context, group.processor_range))
        .region(region_of(block))
}

fn resource_group<'c>(
    context: &'c Context,
    group: &ResourceGroup,
    location: Location<'c>,
) -> OpSpec<'c> {
    let block = Block::new(&[]);
    for tasks in &group.task_groups {
        block.append_operation(task_group(context, tasks, location).build());
    }
    OpSpec::new(context, "plan.resource_group", location)
        .attr("processor_range", range(context, group.processor_range))
        .attr("warp_range", range(context, group.warp_range))
        .attr("sram_range", range(context, group.sram_range))
        .region(region_of(block))
}

fn task_group<'c>(context: &'c Context, tasks: &TaskGroup, location: Location<'c>) -> OpSpec<'c> {
    OpSpec::new(context, "plan.task_group", location)
        .attr("task", attr::i64(context, tasks.task_id))
        .attr("task_range", range(context, tasks.task_range))
        .attr("granularity", attr::i64(context, tasks.granularity))
}

fn range<'c>(context: &'c Context, range: Range) -> Attribute<'c> {
    let mut values = vec![range.begin, range.end];
    values.extend(range.step);
    attr::i64s(context, &values)
}
