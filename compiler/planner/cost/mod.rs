//! What a plan costs: a roofline of the device, its processors followed through barriers.
//!
//! `docs/cost-model.md` has the formulas. Everything follows from tiles and ranges, so the price of
//! a task group does not depend on how many tasks it has.
mod clock;
mod machine;
mod memory;
mod table;
mod work;

pub use machine::{Machine, machine};
pub use memory::{Memory, memory};
pub use table::table;

pub(crate) use clock::{Share, time};
pub(crate) use work::Work;

use clock::{Clock, Parts};
use irc_ark_format::{
    model::OpKind,
    plan::{self, Plan, ProcessorGroup, Range},
};
use std::fmt;

/// What takes most of the time of a processor group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// Waiting for loads, with too few warps to hide it.
    Latency,
    /// Matrix units.
    Matrix,
    /// Vector units.
    Vector,
    /// A processor's way to the shared cache, or that of all processors.
    Cache,
    /// Device memory.
    Memory,
    /// Another rank.
    Link,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bound::Latency => "latency",
            Bound::Matrix => "matrix",
            Bound::Vector => "vector",
            Bound::Cache => "cache",
            Bound::Memory => "memory",
            Bound::Link => "link",
        })
    }
}

/// Some of a processor group's work, on processors of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceCost {
    /// The processors.
    pub processors: Range,
    /// The ops it runs, task after task.
    pub ops: Vec<OpKind>,
    /// Number of tasks.
    pub tasks: i64,
}

/// What a processor group costs.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupCost {
    /// The processors.
    pub processors: Range,
    /// By resource group, in order.
    pub resources: Vec<ResourceCost>,
    /// The ops it runs, task after task.
    pub ops: Vec<OpKind>,
    /// Number of tasks.
    pub tasks: i64,
    /// Times the busiest processor fills its slots.
    pub waves: i64,
    /// Bytes read from and written to memory, each once.
    pub traffic: f64,
    /// Bytes of device memory, with what the cache cannot hold until it is read again.
    pub bytes: f64,
    /// Floating-point operations.
    pub flops: f64,
    /// What takes most of the time.
    pub bound: Bound,
    /// Nanoseconds, without barriers.
    pub time: f64,
}

/// What a plan costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The device whose numbers were used.
    pub device: &'static str,
    /// By processor group, in order.
    pub groups: Vec<GroupCost>,
    /// Number of barriers.
    pub barriers: i64,
    /// Number of tasks.
    pub tasks: i64,
    /// Bytes that groups read from and write to memory, each once a group.
    pub traffic: f64,
    /// Bytes of device memory that are moved.
    pub bytes: f64,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes of intermediate buffers.
    pub memory: Memory,
    /// Nanoseconds from the first task to the last.
    pub time: f64,
}

/// Estimates a plan whose checks find no error.
pub fn estimate(plan: &Plan) -> Estimate {
    let machine = machine(plan.architecture);
    let work = |info: &irc_ark_format::plan::TaskInfo| {
        Work::of(&info.ops, info.num_warps, info.sram_bytes, &machine)
    };
    let works: Vec<Work> = plan.task_infos.iter().map(work).collect();
    let mut clock = Clock::new(plan.num_processors, machine);
    let groups: Vec<GroupCost> =
        plan.processor_groups.iter().map(|group| step(plan, &works, group, &mut clock)).collect();
    let bytes = groups.iter().map(|group| group.bytes).sum::<f64>();
    Estimate {
        device: machine.device,
        barriers: clock.barriers(),
        tasks: groups.iter().map(|group| group.tasks).sum(),
        traffic: groups.iter().map(|group| group.traffic).sum(),
        bytes,
        flops: groups.iter().map(|group| group.flops).sum(),
        memory: memory(plan),
        // Groups side by side share one memory.
        time: clock.end().max(bytes / machine.memory_bytes),
        groups,
    }
}

fn step(plan: &Plan, works: &[Work], group: &ProcessorGroup, clock: &mut Clock) -> GroupCost {
    let mut shares = vec![];
    let mut cost = GroupCost {
        processors: group.processor_range,
        resources: vec![],
        ops: vec![],
        tasks: 0,
        waves: 0,
        traffic: 0.0,
        bytes: 0.0,
        flops: 0.0,
        bound: Bound::Latency,
        time: 0.0,
    };
    for resources in &group.resource_groups {
        let mut start = 0;
        let len = resources.processor_range.len();
        let mut own = ResourceCost { processors: resources.processor_range, ops: vec![], tasks: 0 };
        for tasks in &resources.task_groups {
            let Some(work) = usize::try_from(tasks.task_id).ok().and_then(|id| works.get(id))
            else {
                continue;
            };
            let info = &plan.task_infos[tasks.task_id as usize];
            own.ops.extend(info.ops.iter().map(|plan_op| plan_op.op.kind));
            own.tasks += tasks.task_range.len();
            let share = Share {
                work,
                tasks: tasks.task_range.len(),
                granularity: tasks.granularity.max(1),
                slots: slots(work, resources.warp_range.len(), resources.sram_range.len()),
                processors: resources.processor_range,
                start,
            };
            if len > 0 {
                start = (start + share.granules()) % len;
            }
            shares.push(share);
        }
        cost.ops.extend(&own.ops);
        cost.tasks += own.tasks;
        cost.resources.push(own);
    }
    let Parts { time, traffic, bytes, flops, waves, bound } =
        clock.run(group.processor_range, &shares);
    GroupCost { time, traffic, bytes, flops, waves, bound, ..cost }
}

/// Tasks that a processor runs side by side.
pub(crate) fn slots(work: &Work, warps: i64, sram: i64) -> i64 {
    plan::slots(warps, sram, (work.warps.max(1), work.sram)).max(1)
}
