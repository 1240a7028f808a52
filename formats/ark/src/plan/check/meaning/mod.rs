//! Checks that a plan computes what its model computes.
//!
//! Both are run on symbolic values ([`memory`]): the result of an op is named by its kind,
//! its arguments and the names of its operands, and memory is tracked by the bytes of each write.
//! So two ops have one name exactly if they compute the same, independently of the names of tensors and
//! buffers, and of the reuse of buffers. Equivalent rewrites are undone
//! first: a `Transpose` that moves nothing is a `Copy`, `KeepDim` changes only the view of a result,
//! and an elementwise op may view all its operands in another shape.

mod memory;

use std::collections::{BTreeMap, BTreeSet};

use irc_diag::{Diagnostic, Sink};

use crate::json::OpPlace;
use crate::model::{Model, Op, OpKind, Region, Tensor, buffer_bytes};
use crate::plan::Plan;
use memory::{Content, Memory, Name, Names};

/// All differences between the computations of a plan and its model.
///
/// Both are valid by themselves ([`super::check`], [`crate::model::validate`]). Paths are those of
/// the plan.
pub fn check_model(plan: &Plan, model: &Model) -> Vec<Diagnostic> {
    let mut sink = Sink::new();
    check_world(plan, model, &mut sink);
    let mut names = Names::default();
    let wanted = Trace::new(model_ops(model), &mut names);
    let made = Trace::new(plan_ops(plan), &mut names);
    let missing = check_ops(&wanted, &made, &names, &mut sink);
    let visible = Visible::new(&wanted, &names);
    // Values computed from a wrong value are wrong too: one diagnostic is enough.
    if missing == 0 {
        visible.check(&wanted, &made, &mut names, &mut sink);
        check_sizes(&visible, model, plan, &mut sink);
    }
    sink.into_diagnostics()
}

fn check_world(plan: &Plan, model: &Model, sink: &mut Sink) {
    let pairs = [("Rank", plan.rank, model.rank), ("WorldSize", plan.world_size, model.world_size)];
    for (key, found, expected) in pairs {
        if found != expected {
            let message = format!("`{key}` is {expected} in the model, found {found}");
            sink.push(Diagnostic::error("plan-ranks", message).path(format!("$.{key}")));
        }
    }
}

/// An executed op.
struct ExecutedOp<'a> {
    place: OpPlace,
    op: &'a Op,
    reads: Vec<Content>,
    name: Name,
}

/// An executed program.
struct Trace<'a> {
    ops: Vec<ExecutedOp<'a>>,
    memory: Memory,
}

impl<'a> Trace<'a> {
    fn new(ops: impl Iterator<Item = (OpPlace, &'a Op)>, names: &mut Names) -> Self {
        let mut memory = Memory::default();
        let mut run = |(place, op): (OpPlace, &'a Op)| {
            let (reads, name) = memory.run(op, names);
            ExecutedOp { place, op, reads, name }
        };
        let ops = ops.map(&mut run).collect();
        Trace { ops, memory }
    }
}

/// Ops of a model in its order.
fn model_ops(model: &Model) -> impl Iterator<Item = (OpPlace, &Op)> {
    let nodes = model.nodes.iter().enumerate();
    nodes.map(|(index, node)| (OpPlace::Node(index), &node.op)).filter(|(_, op)| !op.is_virtual)
}

/// Ops of a plan in the order in which they first run.
fn plan_ops(plan: &Plan) -> impl Iterator<Item = (OpPlace, &Op)> {
    let mut seen = vec![false; plan.task_infos.len()];
    let groups = super::resource_groups(plan).flat_map(|(_, _, group)| &group.task_groups);
    let tasks = groups.filter_map(move |tasks| {
        let task = usize::try_from(tasks.task_id).ok()?;
        (!std::mem::replace(seen.get_mut(task)?, true)).then_some(task)
    });
    tasks.flat_map(|task| {
        let ops = plan.task_infos[task].ops.iter().enumerate();
        ops.map(move |(index, plan_op)| (OpPlace::Task(task, index), &plan_op.op))
    })
}

/// Checks that each op of the model is in the plan; returns the number of missing ones.
fn check_ops(wanted: &Trace<'_>, made: &Trace<'_>, names: &Names, sink: &mut Sink) -> usize {
    let mut unclaimed: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
    for (index, ran) in made.ops.iter().enumerate().rev() {
        unclaimed.entry(ran.name).or_default().push(index);
    }
    let claim = |ran: &&ExecutedOp<'_>| unclaimed.get_mut(&ran.name).and_then(Vec::pop).is_none();
    let missing: Vec<&ExecutedOp<'_>> = wanted.ops.iter().filter(claim).collect();
    let mut extra: Vec<&ExecutedOp<'_>> =
        unclaimed.values().flatten().map(|&index| &made.ops[index]).collect();
    extra.sort_by_key(|ran| ran.place);
    let lost: BTreeSet<Name> = missing.iter().map(|ran| ran.name).collect();
    // An op that differs only because an operand differs is not the cause.
    let derived = |ran: &ExecutedOp<'_>, wrong: &BTreeSet<Name>| {
        ran.reads.iter().flat_map(|content| &content.pieces).any(|(name, ..)| wrong.contains(name))
    };
    let wrong: BTreeSet<Name> = extra.iter().map(|ran| ran.name).collect();
    let mut explained = BTreeSet::new();
    for ran in missing.iter().filter(|ran| !derived(ran, &lost)) {
        let like = |other: &&&ExecutedOp<'_>| {
            other.op.name == ran.op.name && !other.op.name.is_empty()
                || other.op.kind == ran.op.kind
        };
        let by_name = extra.iter().filter(like).max_by_key(|other| {
            (
                other.op.name == ran.op.name,
                other.op.kind == ran.op.kind,
                std::cmp::Reverse(other.place),
            )
        });
        match by_name {
            Some(other) => {
                explained.insert(other.place);
                sink.push(differs(ran, other, wanted, made, names));
            }
            None => sink.push(absent(ran)),
        }
    }
    for ran in extra.iter().filter(|ran| !explained.contains(&ran.place) && !derived(ran, &wrong)) {
        if missing.is_empty() {
            let message = format!("the model has no such op `{}` ({})", ran.op.name, ran.op.kind);
            let diagnostic = Diagnostic::warning("plan-extra-op", message);
            sink.push(diagnostic.path(ran.place.at().to_string()));
        }
    }
    missing.len()
}

fn absent(ran: &ExecutedOp<'_>) -> Diagnostic {
    let message = format!(
        "no op of the plan computes `{}` (`{}`) of the model, {}",
        ran.op.name, ran.op.kind, ran.place
    );
    Diagnostic::error("plan-missing-op", message).path("$.TaskInfos")
}

/// How an op of the plan differs from the corresponding one of the model.
fn differs(
    wanted: &ExecutedOp<'_>,
    found: &ExecutedOp<'_>,
    model: &Trace<'_>,
    plan: &Trace<'_>,
    names: &Names,
) -> Diagnostic {
    let at = found.place.at();
    let (a, b) = (wanted.op, found.op);
    let model_place = wanted.place;
    let (path, what) = if a.kind != b.kind {
        (at.key("Type").to_string(), format!("is `{}`, `{}` in the model", b.kind, a.kind))
    } else if let Some(name) = different_arg(a, b) {
        (at.key("Args").key(name).to_string(), format!("has another `{name}` than in the model"))
    } else if let Some((list, index, key)) = different_tensor(a, b) {
        let list = at.key(list);
        (
            list.index(index).key(key).to_string(),
            format!("has another `{key}` here than in the model"),
        )
    } else if let Some(index) = (0..a.reads.len()).find(|&i| wanted.reads[i] != found.reads[i]) {
        let (from, to) = (&wanted.reads[index], &found.reads[index]);
        let what = format!(
            "reads {} here, where the model reads {}",
            describe(to, plan, names),
            describe(from, model, names)
        );
        (at.key("ReadTensors").index(index).to_string(), what)
    } else {
        (at.to_string(), "differs from the model's in its ranks or tags".into())
    };
    let message = format!("`{}` {what}", b.name);
    Diagnostic::error("plan-changed-op", message)
        .path(path)
        .with_note(format!("it is compared with {model_place} of the model"))
}

fn different_arg<'a>(a: &'a Op, b: &'a Op) -> Option<&'a str> {
    let is_free = |name: &str| a.kind.is_reduce() && name == "KeepDim";
    let names = a.args.keys().chain(b.args.keys());
    names.map(String::as_str).find(|&name| !is_free(name) && a.args.get(name) != b.args.get(name))
}

fn different_tensor(a: &Op, b: &Op) -> Option<(&'static str, usize, &'static str)> {
    let lists = [("ReadTensors", &a.reads, &b.reads), ("WriteTensors", &a.writes, &b.writes)];
    for (key, a_list, b_list) in lists {
        for (index, (x, y)) in a_list.iter().zip(b_list).enumerate() {
            let same_count = || x.shape.iter().product::<i64>() == y.shape.iter().product::<i64>();
            let is_view = (a.kind.is_reduce() && key == "WriteTensors")
                || (a.kind.is_elementwise() && same_count());
            if x.dtype != y.dtype {
                return Some((key, index, "DataType"));
            }
            if x.shape != y.shape && !is_view {
                return Some((key, index, "Shape"));
            }
        }
    }
    None
}

/// A description of contents.
fn describe(content: &Content, trace: &Trace<'_>, names: &Names) -> String {
    let one = |name: Name| match names.input(name) {
        Some(buffer) => format!("the initial contents of buffer {buffer}"),
        None => match trace.ops.iter().find(|ran| ran.name == name) {
            Some(ran) => format!("the result of `{}`", ran.op.name),
            None => "another result".to_owned(),
        },
    };
    match &content.pieces[..] {
        [] => "nothing".to_owned(),
        [(name, ..)] => one(*name),
        [.., (name, ..)] => format!("{} and {} more", one(*name), content.pieces.len() - 1),
    }
}

/// Memory that is visible to the user.
struct Visible<'a> {
    /// Results that no op uses, and the operands of `Noop`.
    outputs: Vec<(&'a Op, &'a Tensor)>,
    /// Buffers that ops read before they are written.
    inputs: BTreeSet<u64>,
}

impl<'a> Visible<'a> {
    fn new(wanted: &Trace<'a>, names: &Names) -> Self {
        let read = wanted.ops.iter().flat_map(|ran| &ran.reads).flat_map(|content| &content.pieces);
        let used: BTreeSet<Name> = read.map(|(name, ..)| *name).collect();
        let inputs = used.iter().filter_map(|&name| names.input(name)).collect();
        let mut outputs = vec![];
        for ran in &wanted.ops {
            if ran.op.kind == OpKind::Noop {
                outputs.extend(ran.op.reads.iter().map(|tensor| (ran.op, tensor)));
            } else if !used.contains(&ran.name) {
                // Results that later used results have overwritten completely are not visible.
                let is_seen = |tensor: &&Tensor| {
                    let left = wanted.memory.content(&Region::of(tensor));
                    tensor.buffer.rank < 0
                        && left.pieces.iter().any(|(name, ..)| !used.contains(name))
                };
                outputs.extend(ran.op.writes.iter().filter(is_seen).map(|tensor| (ran.op, tensor)));
            }
        }
        Self { outputs, inputs }
    }

    /// Checks that the final contents of visible memory are equal.
    fn check(&self, wanted: &Trace<'_>, made: &Trace<'_>, names: &mut Names, sink: &mut Sink) {
        for (op, tensor) in &self.outputs {
            let (expected, found) =
                (wanted.memory.read(tensor, names), made.memory.read(tensor, names));
            if expected != found {
                let buffer = tensor.buffer.id;
                let message = format!(
                    "at the end buffer {buffer} must hold {}, found {}",
                    describe(&expected, wanted, names),
                    describe(&found, made, names)
                );
                let producer = made.ops.iter().find(|ran| ran.op.name == op.name);
                let path = producer.map_or("$.TaskInfos".into(), |ran| {
                    ran.place.at().key("WriteTensors").to_string()
                });
                let diagnostic = Diagnostic::error("plan-visible-buffer", message).path(path);
                sink.push(diagnostic.with_note("users access it by buffer, shape and strides"));
            }
        }
        for &buffer in &self.inputs {
            let regions = made.memory.written(buffer).chain(wanted.memory.written(buffer));
            let differs = |region: &&crate::model::Region| {
                made.memory.content(region) != wanted.memory.content(region)
            };
            if let Some(region) = regions.into_iter().find(differs) {
                let (start, end) = region.span();
                let message = format!(
                    "bytes [{start}, {end}) of buffer {buffer}, which the user fills, end with {}, \
                     in the model with {}",
                    describe(&made.memory.content(region), made, names),
                    describe(&wanted.memory.content(region), wanted, names)
                );
                let diagnostic = Diagnostic::error("plan-visible-buffer", message);
                sink.push(diagnostic.path("$.TaskInfos"));
            }
        }
    }
}

/// Checks that buffers visible to the user have the same size.
fn check_sizes(visible: &Visible<'_>, model: &Model, plan: &Plan, sink: &mut Sink) {
    let wanted = buffer_bytes(model_ops(model).flat_map(|(_, op)| op.tensors()));
    let made = buffer_bytes(plan_ops(plan).flat_map(|(_, op)| op.tensors()));
    let outputs = visible.outputs.iter().map(|(_, tensor)| tensor.buffer.id);
    let known: BTreeSet<u64> = visible.inputs.iter().copied().chain(outputs).collect();
    for buffer in known {
        let (expected, found) = (wanted.get(&buffer), made.get(&buffer));
        if let (Some(expected), Some(found)) = (expected, found)
            && found < expected
        {
            let message =
                format!("buffer {buffer} has {found} bytes in the plan, {expected} in the model");
            let diagnostic = Diagnostic::error("plan-visible-buffer", message);
            sink.push(diagnostic.path("$.TaskInfos"));
        }
    }
}
