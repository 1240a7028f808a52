//! `split-program`: a program becomes a function for each kernel that it calls, each to be launched alone.
//!
//! Before: a program, as `share-program` leaves it. After: instead of it, functions with its parameters, in order: each with
//! the ops from the record of a step up to the next, or with an op of control flow that calls kernels. What computes
//! addresses is in each function that uses it; steps between which another value is passed, such as a condition that is
//! loaded, are in one function. A program of several blocks stays one function.
use super::compute_to_loops::simt::AT;
use crate::attributes::ProgramInfo;
use irc_mlir::ops::{arith, func, memref};
use irc_mlir::{Block, Location, Type};
use irc_mlir::{
    BlockLike, Erase, OpSpec, OperationLike, OperationRef, Options, Pass, PassError, PassResult,
    RegionLike, Value, ValueLike, attr, read, region_of, set_operand, walk_collect,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The pass `split-program`.
pub struct SplitProgram;

impl Pass for SplitProgram {
    fn name(&self) -> &'static str {
        "split-program"
    }
    fn description(&self) -> &'static str {
        "make a function of each kernel that a program calls"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["arith", "func", "memref"]
    }
    fn run(&self, module: OperationRef<'_, '_>, _: &Options) -> PassResult {
        let functions = walk_collect(module, |op| read::op_name(&op) == func::FUNC);
        let programs = functions.into_iter().filter(|op| ProgramInfo::of(op).metadata.is_some());
        programs.into_iter().try_for_each(split)
    }
}

/// Whether an op records the begin of a step.
fn is_step(op: &OperationRef<'_, '_>) -> bool {
    read::op_name(op) == func::CALL && read::symbol(op, "callee").as_deref() == Some(AT)
}

/// A value as a key.
fn key(value: &Value<'_, '_>) -> usize {
    value.to_raw().ptr as usize
}

/// Whether an op computes a value from others alone.
fn is_pure(op: &OperationRef<'_, '_>) -> bool {
    const DEVICE: [&str; 4] =
        ["irc_gpu_team", "irc_gpu_teams", "irc_gpu_thread", "irc_gpu_threads"];
    const VIEWS: [&str; 4] =
        [memref::VIEW, memref::REINTERPRET_CAST, memref::DIM, memref::GET_GLOBAL];
    let name = read::op_name(op);
    match read::symbol(op, "callee") {
        Some(callee) if name == func::CALL => DEVICE.contains(&callee.as_str()),
        _ => name.starts_with(arith::PREFIX) || VIEWS.contains(&name.as_str()),
    }
}

/// The ops of a block, and which of them compute what each uses.
struct Body<'c, 'a> {
    ops: Vec<OperationRef<'c, 'a>>,
    uses: Vec<Vec<usize>>,
}

impl Body<'_, '_> {
    /// The places at which functions end: before the steps but for the first, what comes before which is in its function.
    fn ends(&self) -> Vec<usize> {
        let last = self.ops.len().saturating_sub(1);
        let has_steps = |at: &usize| !walk_collect(self.ops[*at], |op| is_step(&op)).is_empty();
        let mut steps = (0..last).filter(has_steps);
        let first = steps.next().unwrap_or(last);
        let places = self.places();
        let mut ends: Vec<usize> = steps.map(|at| places[at]).filter(|at| *at > first).collect();
        ends.push(last);
        ends.dedup();
        ends
    }

    /// For each place, the last one up to it at which a function may end: no value is passed beyond it but those that are
    /// computed from others alone.
    fn places(&self) -> Vec<usize> {
        let count = self.ops.len();
        // By op, the last one that needs its results, also by what is computed from them in another function.
        let mut needed = vec![0; count];
        for at in (0..count).rev() {
            let own = if is_pure(&self.ops[at]) { at.max(needed[at]) } else { at };
            for used in &self.uses[at] {
                needed[*used] = own.max(needed[*used]);
            }
        }
        let mut places: Vec<usize> = (0..count).collect();
        let (mut start, mut end) = (0, 0);
        for (at, last) in needed.into_iter().enumerate() {
            if is_pure(&self.ops[at]) || last <= at {
                continue;
            }
            if at > end {
                start = at;
            }
            let first = end.max(at) + 1;
            if first <= last {
                places[first..=last].fill(start);
                end = last;
            }
        }
        places
    }
}

fn split<'c: 'a, 'a>(program: OperationRef<'c, 'a>) -> PassResult {
    let block = program.region(0).ok().and_then(|region| region.first_block());
    let block = block.ok_or_else(|| PassError::at(&program, "has no body"))?;
    let parent = program.block().ok_or_else(|| PassError::at(&program, "is not in a module"))?;
    let context = irc_mlir::context_of(&program);
    let ops = read::body_ops(program);
    if block.next_in_region().is_some() {
        return Ok(());
    }
    let mut made: HashMap<usize, usize> = HashMap::new();
    let mut uses = vec![];
    for (number, op) in ops.iter().enumerate() {
        let mut own = BTreeSet::new();
        for inner in walk_collect(*op, |_| true) {
            own.extend(inner.operands().filter_map(|value| made.get(&key(&value)).copied()));
        }
        uses.push(own.into_iter().collect());
        made.extend(op.results().map(|result| (key(&result.into()), number)));
    }
    let body = Body { ops, uses };
    let ends = body.ends();
    let types: Vec<(Type<'c>, Location<'c>)> = (0..block.argument_count())
        .filter_map(|index| block.argument(index).ok())
        .map(|argument| (argument.r#type(), program.location()))
        .collect();
    let name = read::string(&program, "sym_name").unwrap_or_default();
    let mut first = 0;
    for (number, end) in ends.into_iter().enumerate() {
        let function = OpSpec::new(context, func::FUNC, program.location());
        let mut function = function.region(region_of(Block::new(&types)));
        for (attribute, value) in program.attributes() {
            let attribute = attribute.as_string_ref().as_str().unwrap_or_default().to_owned();
            function = match attribute.as_str() {
                "sym_name" => function
                    .attr(&attribute, attr::string(context, &format!("{name}_launch_{number}"))),
                _ => function.attr(&attribute, value),
            };
        }
        let function = function.before(&parent, program);
        fill(function, &body, (block.argument_count(), block), first..end)?;
        first = end;
    }
    program.erase();
    Ok(())
}

/// Copies ops, and what they need of those before, to the body of a function.
fn fill<'c: 'a, 'a>(
    function: OperationRef<'c, 'a>,
    body: &Body<'c, 'a>,
    (count, from): (usize, irc_mlir::BlockRef<'c, 'a>),
    range: std::ops::Range<usize>,
) -> PassResult {
    let block = function.region(0).ok().and_then(|region| region.first_block());
    let block = block.ok_or_else(|| PassError::at(&function, "has no body"))?;
    let mut needed: BTreeSet<usize> = range.clone().collect();
    let mut open: Vec<usize> = range.clone().collect();
    while let Some(at) = open.pop() {
        for used in &body.uses[at] {
            if !needed.insert(*used) {
                continue;
            }
            assert!(is_pure(&body.ops[*used]), "functions end where no other value is passed on");
            open.push(*used);
        }
    }
    let mut values: BTreeMap<usize, Value<'c, 'a>> = BTreeMap::new();
    for index in 0..count {
        if let (Ok(old), Ok(new)) = (from.argument(index), block.argument(index)) {
            values.insert(key(&old.into()), new.into());
        }
    }
    for at in needed {
        let old = body.ops[at];
        let new = block.append_operation((*old).clone());
        for inner in walk_collect(new, |_| true) {
            let operands: Vec<Value<'c, 'a>> = inner.operands().collect();
            for (index, operand) in operands.into_iter().enumerate() {
                if let Some(value) = values.get(&key(&operand)) {
                    set_operand(inner, index, *value);
                }
            }
        }
        for (old, new) in old.results().zip(new.results()) {
            values.insert(key(&old.into()), new.into());
        }
    }
    OpSpec::new(irc_mlir::context_of(&function), func::RETURN, function.location()).append(&block);
    Ok(())
}
