//! Makes processor groups of steps.
//!
//! Each group starts at processor 0, so that it waits for all groups before it. Several kinds of task of
//! a step run in one resource group over all processors, each kind starting at the processor after
//! the last task of the previous kind; kinds with few tasks have processors of their own instead.
//!
//! A processor's warps do not wait for each other between task groups. So kinds with several warps run
//! in turn on one processor only when they split its warps and its memory in the same way
//! ([`side_by_side`]): otherwise the named barriers of one would count warps of the other, and a task
//! would write on-chip memory that another still reads. Other kinds get a group of their own, unless
//! they are pinned to other processors: such kinds are resource groups of one group, side by side.
use super::{
    group::Draft,
    schedule::Step,
    variants::{Setting, needs},
};
use irc_ark_format::{
    model::Model,
    plan::{Plan, ProcessorGroup, Range, ResourceGroup, TaskGroup, TaskInfo, tiling::num_tasks},
};

/// The plan of drafts in steps; also, by task and op, the index of the node. Drafts in no step run
/// nothing and come last.
pub fn assemble(
    model: &Model,
    setting: &Setting<'_>,
    drafts: Vec<Draft>,
    steps: &[Step],
) -> (Plan, Vec<Vec<usize>>) {
    let mut plan = Plan {
        rank: model.rank,
        world_size: model.world_size,
        architecture: setting.target.architecture,
        num_processors: 1,
        num_warps_per_processor: 1,
        task_infos: vec![],
        processor_groups: vec![],
    };
    let mut nodes = vec![];
    let mut drafts: Vec<Option<Draft>> = drafts.into_iter().map(Some).collect();
    for step in steps {
        let members: Vec<Draft> = step.iter().filter_map(|index| drafts[*index].take()).collect();
        for members in split(members) {
            add_group(members, setting, &mut plan, &mut nodes);
        }
    }
    let idle: Vec<Draft> = drafts.into_iter().flatten().collect();
    if !idle.is_empty() {
        let first = plan.task_infos.len() as i64;
        let range = Range::new(0, 0);
        let task_groups = (0..idle.len() as i64)
            .map(|index| TaskGroup { task_id: first + index, task_range: range, granularity: 1 })
            .collect();
        let resources = ResourceGroup {
            processor_range: range,
            warp_range: Range::new(0, 1),
            sram_range: range,
            task_groups,
        };
        plan.processor_groups
            .push(ProcessorGroup { processor_range: range, resource_groups: vec![resources] });
        add_infos(idle, &mut plan, &mut nodes);
    }
    (plan, nodes)
}

/// Warps and bytes of on-chip memory of a task.
pub type Split = (i64, i64);

/// How tasks split the warps and the memory of a processor; `None` for tasks of one warp without
/// on-chip memory, which wait for no other warp and may run beside any task.
pub fn side_by_side(warps: i64, sram: i64) -> Option<Split> {
    (warps > 1 || sram > 0).then_some((warps, sram))
}

/// Partitions drafts into groups that may run together, in their order.
fn split(drafts: Vec<Draft>) -> Vec<Vec<Draft>> {
    let mut groups: Vec<Vec<Draft>> = vec![];
    for draft in drafts {
        let fits = |members: &&mut Vec<Draft>| members.iter().all(|other| joins(&draft, other));
        match groups.iter_mut().find(fits) {
            Some(members) => members.push(draft),
            None => groups.push(vec![draft]),
        }
    }
    groups
}

/// Whether two drafts may run in one group: on processors of their own, or in turn on the same.
fn joins(one: &Draft, other: &Draft) -> bool {
    if let (Some(range), Some(others)) = (one.pins.processor_range, other.pins.processor_range)
        && !range.overlaps(others)
    {
        return true;
    }
    let kind = |draft: &Draft| {
        let (warps, sram) = needs(&draft.ops);
        side_by_side(warps, sram)
    };
    let (own, others) = (kind(one), kind(other));
    // Pinned warps and memory are a split of their own.
    let is_free = !has_split(one) && !has_split(other);
    is_free && (own.is_none() || others.is_none() || own == others)
}

fn has_split(draft: &Draft) -> bool {
    draft.pins.warp_range.is_some() || draft.pins.sram_range.is_some()
}

fn add_group(
    members: Vec<Draft>,
    setting: &Setting<'_>,
    plan: &mut Plan,
    nodes: &mut Vec<Vec<usize>>,
) {
    let first = plan.task_infos.len() as i64;
    let group = processor_group(&members, first, setting);
    plan.num_processors = plan.num_processors.max(group.processor_range.end);
    for resources in &group.resource_groups {
        let warps = resources.warp_range.end;
        plan.num_warps_per_processor = plan.num_warps_per_processor.max(warps);
    }
    plan.processor_groups.push(group);
    add_infos(members, plan, nodes);
}

fn add_infos(drafts: Vec<Draft>, plan: &mut Plan, nodes: &mut Vec<Vec<usize>>) {
    for draft in drafts {
        let (num_warps, sram_bytes) = needs(&draft.ops);
        let id = plan.task_infos.len() as i64;
        plan.task_infos.push(TaskInfo { id, num_warps, sram_bytes, ops: draft.ops });
        nodes.push(draft.nodes);
    }
}

/// Tasks of one kind and their resources.
struct Kind<'a> {
    id: i64,
    tasks: i64,
    warps: i64,
    sram: i64,
    draft: &'a Draft,
}

impl Kind<'_> {
    fn task_group(&self) -> TaskGroup {
        let pinned = self.draft.ops.first().and_then(|op| op.config.int("Granularity"));
        let granularity = pinned.filter(|_| self.draft.is_fixed).unwrap_or(1).max(1);
        let task_range = Range::new(0, self.tasks);
        TaskGroup { task_id: self.id, task_range, granularity }
    }
}

fn processor_group(drafts: &[Draft], first: i64, setting: &Setting<'_>) -> ProcessorGroup {
    let kind = |(index, draft): (usize, &'_ Draft)| {
        let (warps, sram) = needs(&draft.ops);
        let tasks = draft.ops.first().and_then(num_tasks).unwrap_or(0);
        (first + index as i64, tasks, warps, sram)
    };
    let kinds: Vec<Kind<'_>> = drafts
        .iter()
        .enumerate()
        .map(|(index, draft)| {
            let (id, tasks, warps, sram) = kind((index, draft));
            Kind { id, tasks, warps, sram, draft }
        })
        .collect();
    let all = setting.target.processors;
    let total: i64 = kinds.iter().map(|kind| kind.tasks).sum();
    let is_pinned = kinds.iter().any(|kind| kind.draft.pins.has_ranges());
    let resource_groups: Vec<ResourceGroup> = match &kinds[..] {
        [kind] if !is_pinned => {
            vec![share(&[kind], Range::new(0, kind.tasks.min(all)), setting)]
        }
        kinds if !is_pinned && total <= all => apart(kinds, setting),
        kinds => in_turn(kinds, all, setting),
    };
    let end = resource_groups.iter().map(|group| group.processor_range.end).max().unwrap_or(0);
    let end = if is_pinned { all } else { end };
    ProcessorGroup { processor_range: Range::new(0, end), resource_groups }
}

/// Each kind on processors of its own, one for each task.
fn apart(kinds: &[Kind<'_>], setting: &Setting<'_>) -> Vec<ResourceGroup> {
    let mut next = 0;
    let mut own = |kind: &Kind<'_>| {
        let range = Range::new(next, next + kind.tasks);
        next = range.end;
        share(&[kind], range, setting)
    };
    kinds.iter().map(&mut own).collect()
}

/// All kinds on all processors; those with pinned ranges in resource groups of their own.
fn in_turn(kinds: &[Kind<'_>], all: i64, setting: &Setting<'_>) -> Vec<ResourceGroup> {
    let whole = Range::new(0, all);
    let (pinned, free): (Vec<&Kind<'_>>, Vec<&Kind<'_>>) =
        kinds.iter().partition(|kind| kind.draft.pins.has_ranges());
    let own = |kind: &&Kind<'_>| {
        share(&[kind], kind.draft.pins.processor_range.unwrap_or(whole), setting)
    };
    let mut groups: Vec<ResourceGroup> = pinned.iter().map(own).collect();
    if !free.is_empty() {
        groups.push(share(&free, whole, setting));
    }
    groups
}

/// A resource group for kinds that run in turn.
fn share(kinds: &[&Kind<'_>], processors: Range, setting: &Setting<'_>) -> ResourceGroup {
    let total: i64 = kinds.iter().map(|kind| kind.tasks).sum();
    let each = (total + processors.len() - 1) / processors.len().max(1);
    // No more slots than tasks.
    let slots = |kind: &&Kind<'_>| setting.slots(kind.warps, kind.sram).min(each.max(1));
    let warps = kinds.iter().map(|kind| slots(kind) * kind.warps).max().unwrap_or(1);
    let sram = kinds.iter().map(|kind| slots(kind) * kind.sram).max().unwrap_or(0);
    let pins = &kinds[0].draft.pins;
    let pinned = |range: Option<Range>, own: i64| range.unwrap_or(Range::new(0, own));
    ResourceGroup {
        processor_range: processors,
        warp_range: pinned(pins.warp_range, warps),
        sram_range: pinned(pins.sram_range, sram),
        task_groups: kinds.iter().map(|kind| kind.task_group()).collect(),
    }
}
