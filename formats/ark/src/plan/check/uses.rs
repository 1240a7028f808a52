//! Checks that operands of a task are computed before it.
//!
//! The order check of conflicting tasks does not determine which comes first, nor whether both run.
//! This module arranges ops in the order of the plan: processor groups, their resource groups, task
//! groups and ops.

use std::collections::BTreeMap;
use std::fmt;

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use super::order::touch::{Access, Spot, Witness, accesses};
use super::resource_groups;
use crate::json::OpPlace;
use crate::model::{Op, Tensor};
use crate::plan::{Plan, Range, TaskGroup};

/// Checks that no op reads the result of one that first runs later, or never.
pub(super) fn check(plan: &Plan, sink: &mut Sink) {
    let starts = starts(plan);
    let producers = producers(plan, &starts);
    let groups = groups(plan);
    for reader in ops(plan, &starts) {
        // A task that never runs reads nothing, and has a separate warning.
        let Some(read_at) = reader.position() else { continue };
        for (index, tensor) in reader.op.reads.iter().enumerate() {
            let Some(producer) = producers.get(&tensor.id) else { continue };
            if producer.position().is_none_or(|made_at| made_at > read_at) {
                report(&groups, &reader, index, producer, sink);
            } else if let Some(witness) = late(plan, &groups, &reader, index, producer) {
                report_late(&reader, producer, &witness, sink);
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
    /// Position of the first task group that runs its task, if any.
    start: Option<usize>,
}

impl Step<'_> {
    /// The position at which the op first runs, comparable with those of other ops.
    fn position(&self) -> Option<(usize, usize)> {
        self.start.map(|start| (start, self.index))
    }

    fn at(&self) -> At<'static> {
        OpPlace::Task(self.task, self.index).at()
    }
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op {} of task {}", self.index, self.task)
    }
}

/// For each task info, the position of the first task group that runs it.
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

/// The op that produces each tensor; of several, the one that runs first.
fn producers<'a>(plan: &'a Plan, starts: &'a [Option<usize>]) -> BTreeMap<u64, Step<'a>> {
    let mut steps: Vec<Step<'_>> = ops(plan, starts).collect();
    // Those that never run come last; the sort preserves the order of the file among them.
    steps.sort_by_key(|step| (step.start.is_none(), step.position()));
    let mut producers = BTreeMap::new();
    for step in steps {
        for result in &step.op.results {
            producers.entry(result.id).or_insert(step);
        }
    }
    producers
}

/// For each task info, the task groups that run it, each with its position.
type Groups<'a> = Vec<Vec<(usize, Spot, &'a TaskGroup)>>;

fn groups(plan: &Plan) -> Groups<'_> {
    let mut found = vec![vec![]; plan.task_infos.len()];
    let mut position = 0;
    for (group, resource, resources) in resource_groups(plan) {
        for (index, tasks) in resources.task_groups.iter().enumerate() {
            let spot = Spot { group, resource, index };
            found[tasks.task_id as usize].push((position, spot, tasks));
            position += 1;
        }
    }
    found
}

/// A part of a task that reads the result of a later part of the producer.
struct LateUse {
    spot: Spot,
    producer: Spot,
    witness: Witness,
}

/// Compares each part of a reader with each later part of its producer.
fn late(
    plan: &Plan,
    groups: &Groups<'_>,
    reader: &Step<'_>,
    index: usize,
    producer: &Step<'_>,
) -> Option<LateUse> {
    let producers = &groups[producer.task];
    if producers.len() < 2 || reader.task == producer.task {
        return None;
    }
    let parts = |step: &Step<'_>, writes: bool, tensor: &Tensor| -> Vec<(usize, Access<'_>)> {
        let ops = &plan.task_infos[step.task].ops;
        let id = tensor.buffer.id;
        let wanted = |access: &Access<'_>| {
            (access.index, access.is_write, access.tensor.buffer.id) == (step.index, writes, id)
        };
        let parts = groups[step.task].iter().flat_map(|&(position, spot, tasks)| {
            let found = accesses(ops, tasks, spot, Range::new(0, 1)).into_iter();
            found.filter(wanted).map(move |access| (position, access)).collect::<Vec<_>>()
        });
        parts.collect()
    };
    let tensor = &reader.op.reads[index];
    let made = parts(producer, true, tensor);
    parts(reader, false, tensor).iter().find_map(|(read_at, read)| {
        let later = made.iter().filter(|(made_at, made)| made_at > read_at && made.may_meet(read));
        later.into_iter().find_map(|(_, made)| {
            let witness = made.meets(read)?;
            Some(LateUse { spot: read.spot, producer: made.spot, witness })
        })
    })
}

fn report_late(reader: &Step<'_>, producer: &Step<'_>, late: &LateUse, sink: &mut Sink) {
    let Witness { first, second, bytes } = late.witness;
    let message = format!(
        "index {second} of task {} reads bytes [{}, {}) that index {first} of task {} makes only \
         later",
        reader.task, bytes.0, bytes.1, producer.task
    );
    let diagnostic = Diagnostic::error("plan-use-before-result", message)
        .path(late.spot.to_string())
        .related(late.producer.to_string(), "they are made here")
        .help("let the indices that make it run first");
    sink.push(diagnostic);
}

fn report(
    groups: &Groups<'_>,
    reader: &Step<'_>,
    index: usize,
    producer: &Step<'_>,
    sink: &mut Sink,
) {
    let (verb, when, help) = match producer.start {
        Some(_) => ("makes", "only later", "let the op that makes it run first"),
        None => ("would make", "but never runs", "add a task group that runs the other task"),
    };
    let message = format!(
        "{reader} reads tensor {}, which {producer} {verb} {when}",
        reader.op.reads[index].id
    );
    let (read, made) = (reader.at(), producer.at());
    let diagnostic = Diagnostic::error("plan-use-before-result", message)
        .path(read.key("ReadTensors").index(index).to_string())
        .related(made.key("ResultTensors").to_string(), "it is made here")
        .help(help);
    let home = |step: &Step<'_>| {
        let mut parts = groups[step.task].iter();
        parts.find(|(_, _, tasks)| !tasks.task_range.is_empty()).map(|(_, spot, _)| spot.group)
    };
    let diagnostic = match (home(reader), home(producer)) {
        (Some(before), Some(after)) if before != after => {
            let group = |index: usize| format!("$.ProcessorGroups[{index}]");
            diagnostic
                .related(group(before), format!("task {} first runs here", reader.task))
                .related(group(after), format!("task {} first runs here", producer.task))
        }
        _ => diagnostic,
    };
    sink.push(diagnostic);
}
