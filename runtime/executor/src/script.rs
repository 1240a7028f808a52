//! The script of the processors of a rank: barriers, and shares of task groups, in order.
//!
//! Every processor executes the same list and participates in entries whose range contains it.
//! Processor groups are separated by the barriers of ARK's code generator ([`Barriers`]).

use irc_ark_format::plan::{Barriers, Plan, ProcessorGroup, Range, ResourceGroup};

use crate::Error;
use crate::distribution::{Distribution, distribute, slots};

/// Maximum number of processors of a plan: a larger number is an error, and would only exhaust memory.
const MAX_PROCESSORS: i64 = 1 << 20;

/// One entry of the list.
#[derive(Clone, Debug)]
pub enum Entry {
    /// All processors of the range wait for each other.
    Barrier {
        /// The processors that participate.
        range: Range,
        /// Index of the processor group that follows.
        before: usize,
    },
    /// The processors of the range run their tasks.
    Tasks(Share),
}

/// A task group, as seen by its processors.
#[derive(Clone, Debug)]
pub struct Share {
    /// Index of the processor group.
    pub group: usize,
    /// Index of the task group among all of the plan.
    pub number: usize,
    /// Index of the task info.
    pub task: usize,
    /// The warps of the resource group.
    pub warps: Range,
    /// The distribution of its tasks.
    pub distribution: Distribution,
}

impl Entry {
    /// The processors that participate.
    pub fn range(&self) -> Range {
        match self {
            Entry::Barrier { range, .. } => *range,
            Entry::Tasks(share) => share.distribution.processors,
        }
    }
}

/// The list of a plan.
///
/// # Errors
/// If the code generator would reject the plan, or a range is invalid.
pub fn script(plan: &Plan) -> Result<Vec<Entry>, Error> {
    let problem = |place: &str, reason: String| Error::Plan {
        place: format!("rank {}, {place}", plan.rank),
        reason,
    };
    if !(1..=MAX_PROCESSORS).contains(&plan.num_processors) {
        let reason = format!("expected 1 to {MAX_PROCESSORS}, found {}", plan.num_processors);
        return Err(problem("$.NumProcessors", reason));
    }
    let mut entries = vec![];
    let mut count = 0;
    let mut unsynced = Barriers::default();
    for (index, group) in plan.processor_groups.iter().enumerate() {
        let place = format!("$.ProcessorGroups[{index}]");
        check_range(group.processor_range, "ProcessorRange")
            .map_err(|reason| problem(&place, reason))?;
        let barriers = unsynced.before(group.processor_range);
        entries.extend(barriers.into_iter().map(|range| Entry::Barrier { range, before: index }));
        for (inner, resource) in group.resource_groups.iter().enumerate() {
            let place = format!("{place}.ResourceGroups[{inner}]");
            let shares = shares(plan, (index, count), group, resource);
            let shares = shares.map_err(|reason| problem(&place, reason))?;
            count += shares.len();
            entries.extend(shares.into_iter().map(Entry::Tasks));
        }
    }
    Ok(entries)
}

fn check_range(range: Range, what: &str) -> Result<(), String> {
    if 0 <= range.begin && range.begin <= range.end {
        return Ok(());
    }
    Err(format!("`{what}` is [{}, {}]: expected 0 <= begin <= end", range.begin, range.end))
}

fn shares(
    plan: &Plan,
    (index, first): (usize, usize),
    group: &ProcessorGroup,
    resource: &ResourceGroup,
) -> Result<Vec<Share>, String> {
    let processors = resource.processor_range;
    check_range(processors, "ProcessorRange")?;
    check_range(resource.warp_range, "WarpRange")?;
    check_range(resource.sram_range, "SramRange")?;
    if !processors.is_empty() && !group.processor_range.contains(processors) {
        return Err("its processors are not all in the processor group".into());
    }
    let mut current = processors.begin;
    let mut found = vec![];
    for tasks in &resource.task_groups {
        let task = usize::try_from(tasks.task_id).unwrap_or(usize::MAX);
        let Some(info) = plan.task_infos.get(task) else {
            return Err(format!("there is no task info {}", tasks.task_id));
        };
        check_range(tasks.task_range, "TaskRange")?;
        if tasks.granularity < 1 {
            return Err(format!("`Granularity` is {}: expected at least 1", tasks.granularity));
        }
        let slots = slots(
            resource.warp_range,
            resource.sram_range,
            (info.num_warps, info.sram_bytes),
            plan.num_warps_per_processor,
        )?;
        let distribution = distribute(tasks, processors, current, plan.num_processors, slots);
        current = distribution.next_current();
        found.push(Share {
            group: index,
            number: first + found.len(),
            task,
            warps: resource.warp_range,
            distribution,
        });
    }
    Ok(found)
}
