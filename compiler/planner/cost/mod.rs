//! The cost of a plan: a roofline of the device, its processors followed through barriers.
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

/// The resource that takes most of the time of a processor group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// Latency of loads, with too few warps to hide it.
    Latency,
    /// Matrix units.
    Matrix,
    /// Vector units.
    Vector,
    /// The bandwidth of the shared cache, of one processor or of all together.
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

/// A part of a processor group's work that has processors of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceCost {
    /// The processors.
    pub processors: Range,
    /// Its ops, one list per task.
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
    /// Its ops, one list per task.
    pub ops: Vec<OpKind>,
    /// Number of tasks.
    pub tasks: i64,
    /// How often the busiest processor fills its slots.
    pub waves: i64,
    /// Bytes read from and written to memory, each once.
    pub traffic: f64,
    /// Bytes of device memory, including reloads of what the cache cannot hold.
    pub bytes: f64,
    /// Floating-point operations.
    pub flops: f64,
    /// The resource that takes most of the time.
    pub bound: Bound,
    /// Nanoseconds, excluding barriers.
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
    /// Bytes that groups read from and write to memory, each once per group.
    pub traffic: f64,
    /// Bytes moved to and from device memory.
    pub bytes: f64,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes of intermediate buffers.
    pub memory: Memory,
    /// Nanoseconds from the first task to the last.
    pub time: f64,
}

/// Estimates the cost of a valid plan.
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
