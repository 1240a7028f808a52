//! What a task reads is made by then.
//!
//! That conflicting tasks are ordered says nothing of which comes first, nor whether both run. This
//! module lines ops up as the plan runs them: processor groups, their resource groups, task groups
//! and ops, each in order.

use std::collections::BTreeMap;
use std::fmt;

use irc_diag::{Diagnostic, Sink};

use super::resource_groups;
use crate::json::{At, OpPlace};
use crate::model::Op;
use crate::plan::Plan;

/// Checks that no op reads the result of one that first runs later, or never.
pub(super) fn check(plan: &Plan, sink: &mut Sink) {
    let starts = starts(plan);
    let makers = makers(plan, &starts);
    for reader in ops(plan, &starts) {
        // What never runs reads nothing, and has its own warning.
        let Some(read_at) = reader.position() else { continue };
        for (index, tensor) in reader.op.reads.iter().enumerate() {
            let Some(maker) = makers.get(&tensor.id) else { continue };
            if maker.position().is_none_or(|made_at| made_at > read_at) {
                report(&reader, index, maker, sink);
            }
        }
    }
}

/// An op of a plan.
#[derive(Clone, Copy)]
struct Step<'a> {
    task: usize,
    index: usize,
    op: &'a Op,
    /// Position of the first task group that runs its task; nothing when none does.
    start: Option<usize>,
}

impl Step<'_> {
    /// When the op first runs, to be compared with others of the plan.
    fn position(&self) -> Option<(usize, usize)> {
        self.start.map(|start| (start, self.index))
    }

    fn at(&self) -> At<'static> {
        At::op(OpPlace::Task(self.task, self.index))
    }
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op {} of task {}", self.index, self.task)
    }
}

/// For each task info, the position of the first task group that runs any of it.
fn starts(plan: &Plan) -> Vec<Option<usize>> {
    let mut starts = vec![None; plan.task_infos.len()];
    let groups = resource_groups(plan).flat_map(|(_, _, resource)| &resource.task_groups);
    for (position, tasks) in groups.enumerate() {
        if !tasks.task_range.is_empty() {
            starts[tasks.task_id as usize].get_or_insert(position);
        }
    }
    starts
}

/// Every op of a plan, in the order of the file.
fn ops<'a>(plan: &'a Plan, starts: &'a [Option<usize>]) -> impl Iterator<Item = Step<'a>> {
    plan.task_infos.iter().zip(starts).enumerate().flat_map(|(task, (info, &start))| {
        let ops = info.ops.iter().enumerate();
        ops.map(move |(index, plan_op)| Step { task, index, op: &plan_op.op, start })
    })
}

/// The op that makes each tensor; of several, the one that runs first.
fn makers<'a>(plan: &'a Plan, starts: &'a [Option<usize>]) -> BTreeMap<u64, Step<'a>> {
    let mut steps: Vec<Step<'_>> = ops(plan, starts).collect();
    // Those that never run come last; the sort keeps the order of the file among them.
    steps.sort_by_key(|step| (step.start.is_none(), step.position()));
    let mut makers = BTreeMap::new();
    for step in steps {
        for result in &step.op.results {
            makers.entry(result.id).or_insert(step);
        }
    }
    makers
}

fn report(reader: &Step<'_>, index: usize, maker: &Step<'_>, sink: &mut Sink) {
    let (verb, when, help) = match maker.start {
        Some(_) => ("makes", "only later", "let the op that makes it run first"),
        None => ("would make", "but never runs", "add a task group that runs the other task"),
    };
    let message =
        format!("{reader} reads tensor {}, which {maker} {verb} {when}", reader.op.reads[index].id);
    let (read, made) = (reader.at(), maker.at());
    let finding = Diagnostic::error("plan-use-before-result", message)
        .path(read.key("ReadTensors").index(index).to_string())
        .related(made.key("ResultTensors").to_string(), "it is made here")
        .help(help);
    sink.push(finding);
}
