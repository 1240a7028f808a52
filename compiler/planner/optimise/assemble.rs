//! Steps become processor groups.
//!
//! Each group starts at processor 0, so that it waits for those before it. Several kinds of task of
//! a step run in one resource group over all processors, each kind starting at the processor after
//! the last task of the one before; a few tasks have processors of their own instead.
use super::{
    group::Draft,
    schedule::Step,
    variants::{Setting, needs},
};
use irc_ark_format::{
    model::Model,
    plan::{Plan, ProcessorGroup, Range, ResourceGroup, TaskGroup, TaskInfo, tiling::num_tasks},
};

/// Alignment of the on-chip memory of a task, in bytes.
const SRAM_ALIGNMENT: i64 = 16;

/// The plan of drafts in steps, and by task and op the index of the node. Drafts in no step run
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
        let first = plan.task_infos.len() as i64;
        let group = processor_group(&members, first, setting);
        plan.num_processors = plan.num_processors.max(group.processor_range.end);
        for resources in &group.resource_groups {
            let warps = resources.warp_range.end;
            plan.num_warps_per_processor = plan.num_warps_per_processor.max(warps);
        }
        plan.processor_groups.push(group);
        add_infos(members, &mut plan, &mut nodes);
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

fn add_infos(drafts: Vec<Draft>, plan: &mut Plan, nodes: &mut Vec<Vec<usize>>) {
    for draft in drafts {
        let (num_warps, sram_bytes) = needs(&draft.ops);
        let id = plan.task_infos.len() as i64;
        plan.task_infos.push(TaskInfo { id, num_warps, sram_bytes, ops: draft.ops });
        nodes.push(draft.nodes);
    }
}

/// Tasks of one kind and what they need.
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

/// All kinds on all processors, as few resource groups as their memory allows.
fn in_turn(kinds: &[Kind<'_>], all: i64, setting: &Setting<'_>) -> Vec<ResourceGroup> {
    let whole = Range::new(0, all);
    let mut groups = vec![];
    let mut together: Vec<&Kind<'_>> = vec![];
    for kind in kinds {
        if kind.draft.pins.has_ranges() {
            let range = kind.draft.pins.processor_range.unwrap_or(whole);
            groups.push(share(&[kind], range, setting));
            continue;
        }
        together.push(kind);
        if !is_aligned(&together, &share(&together, whole, setting)) {
            together.pop();
            groups.push(share(&together, whole, setting));
            together = vec![kind];
        }
    }
    if !together.is_empty() {
        groups.push(share(&together, whole, setting));
    }
    groups
}

/// A resource group for kinds that run in turn.
fn share(kinds: &[&Kind<'_>], processors: Range, setting: &Setting<'_>) -> ResourceGroup {
    let total: i64 = kinds.iter().map(|kind| kind.tasks).sum();
    let each = (total + processors.len() - 1) / processors.len().max(1);
    // No more side by side than there is to run.
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

/// Whether tasks side by side get memory that starts aligned.
fn is_aligned(kinds: &[&Kind<'_>], group: &ResourceGroup) -> bool {
    kinds.iter().filter(|kind| kind.sram > 0).all(|kind| {
        let by_warps = group.warp_range.len() / kind.warps;
        let slots = by_warps.min(group.sram_range.len() / kind.sram);
        if slots <= 1 {
            return slots == 1;
        }
        let part = group.sram_range.len() / slots;
        part % kind.warps == 0 && part % SRAM_ALIGNMENT == 0
    })
}
