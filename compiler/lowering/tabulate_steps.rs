//! `tabulate-steps`: a program for a GPU becomes a loop over a table of its steps.
//!
//! Before: functions in the `llvm` dialect that call kernels one after the other, each after the record of its step
//! (`share-program`); at the end of a kernel, all blocks wait for each other. After: calls that follow each other in a block
//! are one call of a loop, `@irc_gpu_steps`, over their rows in the constant `@irc_gpu_table`. A row is how the step begins
//! (`waits`), the number of the kernel and of the step, then for each operand where its memory is: a base and an offset in
//! bytes; a word ends the rows of a run. The loop selects the kernel by its number, so that there is one call of each kernel,
//! however often programs run it. All blocks wait for each other before the steps whose rows say so, and at the end of the
//! loop; before other steps, the threads of a block do. Bases are what operands are computed from: parameters of the function,
//! and pointers that are computed at run time. A function passes them to the loop in shared memory, where the loop also keeps
//! which row is next.
mod table;
mod waits;

use crate::{
    attributes::{KERNEL, ProgramInfo},
    kernel::emit::first_result,
    lowering::compute_to_loops::simt::{AT, GRID_BARRIER, is_team},
};
use irc_mlir::ops::llvm;
use irc_mlir::{
    BlockLike, BlockRef, Erase, OpSpec, OperationLike, OperationRef, Options, Pass, PassError,
    PassResult, RegionLike, Type, Value, ValueLike, attr, elements, is_used_only_by, read,
    replace_all_uses, walk_collect,
};
use irc_runtime::gpu::record::TASK_BITS;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use table::Table;
use waits::{Accesses, Begin, Memory, Since};

/// The pass `tabulate-steps`.
pub struct TabulateSteps;

/// The name of the loop over steps.
pub const STEPS: &str = "irc_gpu_steps";

/// The name of the constants of the module that steps use.
const POOL: &str = "irc_gpu_constants";

/// The calls of functions that begin and end the time of a step.
const TIME: &str = "irc_gpu_time";
const EVENT: &str = "irc_gpu_block_event";

/// The fewest steps in a row that are worth a loop.
const MIN_STEPS: usize = 2;

/// The bits of a word that are an offset; the others are the number of a base.
const OFFSET_BITS: u32 = 48;

/// The bits of the first word of a row that are the number of the kernel, by how many blocks the step is moved, and whether
/// blocks wait before it; the others are the number of the step.
const KERNEL_BITS: u32 = 20;
const STEP_BIT: u32 = 32;
const WAIT: u64 = 1 << 31;

/// The word after the last row of a run: the number of no kernel.
const END: u64 = (1 << KERNEL_BITS) - 1;

/// The functions that say which block of the grid a thread is in, and which part of the work of a step that is moved the
/// block has.
const TEAM: &str = "irc_gpu_team";
const TURN: &str = "irc_gpu_turn";

/// Bytes of a table that fits the memory for constants; larger ones are in global memory.
const MAX_CONSTANT: usize = 60 << 10;

impl Pass for TabulateSteps {
    fn name(&self) -> &'static str {
        "tabulate-steps"
    }
    fn description(&self) -> &'static str {
        "make programs for a GPU loops over a table of their steps"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["llvm", "nvvm"]
    }
    fn run(&self, module: OperationRef<'_, '_>, _: &Options) -> PassResult {
        let functions = walk_collect(module, |op| read::op_name(&op) == llvm::FUNC);
        let (kernels, others): (Vec<_>, Vec<_>) =
            functions.into_iter().partition(|op| KERNEL.is_on(op));
        let kernels: BTreeMap<String, OperationRef<'_, '_>> = kernels
            .into_iter()
            .filter_map(|op| Some((read::string(&op, "sym_name")?, op)))
            .collect();
        let globals = walk_collect(module, |op| read::op_name(&op) == llvm::MLIR_GLOBAL);
        let named =
            |op: OperationRef<'_, '_>| Some((read::string(&op, "sym_name")?, contents(op)?));
        let globals = globals.into_iter().filter_map(named).collect();
        let mut table = Table::new(globals);
        let mut runs = vec![];
        for function in others.into_iter().filter(|function| !is_team(function)) {
            runs.extend(runs_of(function, &kernels));
        }
        if runs.is_empty() {
            return Ok(());
        }
        let known = kernels.iter().filter_map(|(name, op)| Some((name.clone(), Accesses::of(op)?)));
        let known = known.collect();
        for (number, run) in runs.into_iter().enumerate() {
            replace(run, number, &known, &mut table)?;
        }
        let used: Vec<_> = table.kernels.iter().filter_map(|(name, _)| kernels.get(name)).collect();
        let takes_turns = used.into_iter().filter(|kernel| opened(**kernel));
        table.takes_turns =
            takes_turns.filter_map(|kernel| read::string(kernel, "sym_name")).collect();
        for call in walk_collect(module, |op| read::op_name(&op) == llvm::CALL) {
            let callee = read::symbol(&call, "callee").unwrap_or_default();
            if table.numbers.contains_key(&callee) {
                complete(call, table.takes_turns.contains(&callee))?;
            }
        }
        table.define(module)
    }
}

/// The bytes of a constant of a module.
fn contents(global: OperationRef<'_, '_>) -> Option<Vec<u8>> {
    let bytes = elements::bytes_of(read::attribute(&global, "value")?)?;
    let ty = read::attribute(&global, "global_type")?.to_string();
    (global.has_attribute("constant") && ty == format!("!llvm.array<{} x i8>", bytes.len()))
        .then_some(bytes)
}

/// Where an operand's memory is.
#[derive(Clone, Copy)]
struct Place<'c, 'a> {
    /// The pointer that others are computed from.
    base: Value<'c, 'a>,
    /// Where that is in the memory of the base: not 0 for a constant, one of many in one memory.
    start: i64,
    /// Bytes from the begin of that memory.
    offset: i64,
    /// The number of the base, if it is memory of its own.
    own: Option<usize>,
}

/// A call of a kernel.
struct Step<'c, 'a> {
    call: OperationRef<'c, 'a>,
    kernel: String,
    number: i64,
    operands: Vec<Place<'c, 'a>>,
}

/// Steps that follow each other.
#[derive(Default)]
struct Run<'c, 'a> {
    steps: Vec<Step<'c, 'a>>,
    /// What records them.
    records: Vec<OperationRef<'c, 'a>>,
    /// Whether their times are recorded.
    timed: bool,
}

/// The runs of steps of a function.
fn runs_of<'c: 'a, 'a>(
    function: OperationRef<'c, 'a>,
    kernels: &BTreeMap<String, OperationRef<'c, 'a>>,
) -> Vec<Run<'c, 'a>> {
    let mut found = vec![];
    let arguments = arguments_of(function);
    for blocks in chains(function) {
        runs_of_blocks(&blocks, kernels, &arguments, &mut found);
    }
    found.retain(|run| run.steps.len() >= MIN_STEPS);
    found
}

/// The blocks of a function, those together of which each only continues the one before (`cut-blocks`).
fn chains<'c: 'a, 'a>(function: OperationRef<'c, 'a>) -> Vec<Vec<BlockRef<'c, 'a>>> {
    let key = |block: &BlockRef<'c, 'a>| block.to_raw().ptr as usize;
    let blocks = read::blocks(function);
    // By block, the number of branches to it.
    let mut branches: HashMap<usize, usize> = HashMap::new();
    for end in blocks.iter().filter_map(|block| block.terminator()) {
        for block in end.successors() {
            *branches.entry(key(&block)).or_default() += 1;
        }
    }
    // By block, the one that continues it.
    let continuation = |block: &BlockRef<'c, 'a>| {
        let end = block.terminator().filter(|end| read::op_name(end) == llvm::BR)?;
        let next = end.successors().next()?;
        (end.operand_count() == 0 && branches.get(&key(&next)) == Some(&1)).then_some(next)
    };
    let continued: HashSet<usize> =
        blocks.iter().filter_map(|block| Some(key(&continuation(block)?))).collect();
    let chain = |first: &BlockRef<'c, 'a>| {
        std::iter::successors(Some(*first), continuation).collect::<Vec<_>>()
    };
    blocks.iter().filter(|block| !continued.contains(&key(block))).map(chain).collect()
}

/// The parameters of a function: of those that are constants the first, and the offset of each in all constants; and all
/// those of a program, each of which has memory of its own.
#[derive(Default)]
struct Arguments<'c, 'a> {
    first: Option<(Value<'c, 'a>, i64)>,
    offsets: HashMap<usize, i64>,
    own: HashSet<usize>,
}

fn arguments_of<'c: 'a, 'a>(function: OperationRef<'c, 'a>) -> Arguments<'c, 'a> {
    let mut found = Arguments::default();
    let Some(block) = function.region(0).ok().and_then(|region| region.first_block()) else {
        return found;
    };
    let program = ProgramInfo::of(&function);
    if program.metadata.is_some() {
        let arguments = (0..block.argument_count()).filter_map(|index| block.argument(index).ok());
        found.own = arguments.map(|argument| read::identity(argument.into())).collect();
    }
    let weights = program.weight_offsets.into_iter().enumerate();
    for (index, offset) in weights.filter(|(_, offset)| *offset >= 0) {
        if let Ok(argument) = block.argument(index) {
            let argument: Value<'c, 'a> = argument.into();
            found.first.get_or_insert((argument, offset));
            found.offsets.insert(read::identity(argument), offset);
        }
    }
    found
}

fn runs_of_blocks<'c: 'a, 'a>(
    blocks: &[BlockRef<'c, 'a>],
    kernels: &BTreeMap<String, OperationRef<'c, 'a>>,
    arguments: &Arguments<'c, 'a>,
    found: &mut Vec<Run<'c, 'a>>,
) {
    let mut run = Run::default();
    // What records the step to come, and its number.
    let mut before: Vec<OperationRef<'c, 'a>> = vec![];
    let mut number = None;
    let last = blocks.last().and_then(|block| block.terminator());
    for op in blocks.iter().flat_map(|block| read::block_ops(*block)) {
        let callee = (read::op_name(&op) == llvm::CALL).then(|| read::symbol(&op, "callee"));
        match callee.flatten().as_deref() {
            Some(AT) => {
                number =
                    op.operand(0).ok().and_then(constant).map(|place| (place >> TASK_BITS) - 1);
                before.push(op);
            }
            Some(TIME) if number.is_some() => {
                run.timed = true;
                before.push(op);
            }
            Some(EVENT) if !run.steps.is_empty() => run.records.push(op),
            Some(callee) if kernels.contains_key(callee) => {
                let operands = op.operands().map(|operand| place_of(operand, arguments));
                let step = number.take().zip(operands.collect::<Option<Vec<_>>>());
                if let Some((number, operands)) = step {
                    run.records.append(&mut before);
                    run.steps.push(Step { call: op, kernel: callee.to_owned(), number, operands });
                } else {
                    found.push(std::mem::take(&mut run));
                    before.clear();
                }
            }
            None if is_pure(&op) || read::op_name(&op) == llvm::BR && Some(op) != last => {}
            _ => {
                found.push(std::mem::take(&mut run));
                before.clear();
                number = None;
            }
        }
    }
    found.push(run);
}

/// Whether an op only computes a value, so that steps may follow it that came before.
fn is_pure(op: &OperationRef<'_, '_>) -> bool {
    let name = read::op_name(op);
    const PURE: [&str; 5] = [
        llvm::GETELEMENTPTR,
        llvm::MLIR_CONSTANT,
        llvm::MLIR_ADDRESSOF,
        llvm::MLIR_POISON,
        llvm::MLIR_UNDEF,
    ];
    PURE.contains(&name.as_str())
}

/// The value of a constant.
fn constant(value: Value<'_, '_>) -> Option<i64> {
    let op = read::defining_op(value)?;
    (read::op_name(&op) == llvm::MLIR_CONSTANT).then(|| read::integer(&op, "value")).flatten()
}

/// Where the memory of a pointer is; `None` for other values.
fn place_of<'c: 'a, 'a>(
    value: Value<'c, 'a>,
    arguments: &Arguments<'c, 'a>,
) -> Option<Place<'c, 'a>> {
    if value.r#type().to_string() != "!llvm.ptr" {
        return None;
    }
    let (mut base, mut offset) = (value, 0);
    while let Some((from, moved)) = read::defining_op(base).and_then(moved) {
        (base, offset) = (from, offset + moved);
    }
    let identity = read::identity(base);
    let own = arguments.own.get(&identity).copied();
    let constant = arguments.offsets.get(&identity);
    let place = match constant.zip(arguments.first) {
        None => Place { base, start: 0, offset, own },
        Some((place, (first, start))) => {
            let own = Some(read::identity(first)).filter(|_| own.is_some());
            Place { base: first, start, offset: offset + place, own }
        }
    };
    let is_short = (0..1 << OFFSET_BITS).contains(&place.offset);
    Some(if is_short { place } else { Place { base: value, start: 0, offset: 0, own: None } })
}

/// The pointer that an op moves, and by how many bytes, if that is constant.
fn moved<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Option<(Value<'c, 'a>, i64)> {
    if read::op_name(&op) != llvm::GETELEMENTPTR {
        return None;
    }
    let from = op.operand(0).ok()?;
    let indices = read::integers(&op, "rawConstantIndices")?;
    let element = read::attribute(&op, "elem_type")?.to_string();
    let by = match indices[..] {
        // The index is an operand.
        [index] if index == i64::from(i32::MIN) => constant(op.operand(1).ok()?)?,
        [index] => index,
        _ => indices.iter().all(|index| *index == 0).then_some(0)?,
    };
    (by == 0 || element == "i8").then_some((from, by))
}

/// Replaces the calls of a run by one of the loop.
fn replace<'c: 'a, 'a>(
    run: Run<'c, 'a>,
    number: usize,
    kernels: &BTreeMap<String, Accesses>,
    table: &mut Table,
) -> PassResult {
    let Some(last) = run.steps.last().map(|step| step.call) else { return Ok(()) };
    // By identity of the pointer, its number; all constants of the module are one base.
    let mut numbers: HashMap<Option<usize>, usize> = HashMap::new();
    let mut bases: Vec<Option<Place<'c, 'a>>> = vec![];
    let first = table.words.len();
    let mut since = Since::default();
    for step in &run.steps {
        let kernel = table.kernel(&step.kernel, step.operands.len());
        if kernel as u64 >= END {
            return Err(PassError::at(&step.call, "is one of too many kernels"));
        }
        let pooled = step.operands.iter().map(|place| table.pool(place.base));
        let pooled: Vec<Option<u64>> = pooled.collect();
        let memory = |(place, pooled): (&Place<'c, 'a>, &Option<u64>)| match (pooled, place.own) {
            (Some(_), _) => Memory::Constant,
            (None, Some(own)) => Memory::At(own, place.offset.cast_unsigned()),
            (None, None) => Memory::Unknown,
        };
        let memories: Vec<Memory> = step.operands.iter().zip(&pooled).map(memory).collect();
        let Begin { waits, shift } = since.begin(kernels.get(&step.kernel), &memories);
        let begin = if waits { WAIT } else { 0 } | shift << KERNEL_BITS;
        table.words.push((step.number as u64) << STEP_BIT | begin | kernel as u64);
        for (place, pooled) in step.operands.iter().zip(pooled) {
            let own = pooled.is_none().then_some(*place);
            let identity = own.map(|place| read::identity(place.base));
            let base = *numbers.entry(identity).or_insert_with(|| {
                bases.push(own);
                bases.len() - 1
            });
            let offset = pooled.unwrap_or(0) + place.offset.cast_unsigned();
            if base >> (u64::BITS - OFFSET_BITS) != 0 {
                return Err(PassError::at(&step.call, "is one of steps with too many pointers"));
            }
            table.words.push((base as u64) << OFFSET_BITS | offset);
        }
    }
    table.timed |= run.timed;
    table.bases = table.bases.max(bases.len());
    let name = format!("{STEPS}_{number}");
    let starts: Vec<Option<i64>> = bases.iter().map(|base| Some((*base)?.start)).collect();
    table.enter(&name, &starts, first);
    let operands: Vec<Value<'c, 'a>> =
        bases.iter().filter_map(|base| Some((*base)?.base)).collect();
    let block = last.block().ok_or_else(|| PassError::at(&last, "is not in a block"))?;
    call_of(last, &name, &operands, &[]).before(&block, last);
    call_of(last, GRID_BARRIER, &[], &[]).before(&block, last);
    // Events use the times that are recorded before.
    let mut unused = vec![];
    let calls = run.steps.iter().map(|step| step.call);
    for op in calls.chain(run.records.into_iter().rev()) {
        unused.extend(op.operands().filter_map(read::defining_op).filter(is_pure));
        op.erase();
    }
    erase_unused(unused);
    Ok(())
}

/// A call of a function, at an op.
fn call_of<'c: 'a, 'a>(
    at: OperationRef<'c, 'a>,
    callee: &str,
    operands: &[Value<'c, 'a>],
    results: &[Type<'c>],
) -> OpSpec<'c> {
    let context = irc_mlir::context_of(&at);
    let segments = format!("array<i32: {}, 0>", operands.len());
    OpSpec::new(context, llvm::CALL, at.location())
        .attr("callee", attr::symbol(context, callee))
        .attr("operandSegmentSizes", attr::parse(context, &segments))
        .attr("op_bundle_sizes", attr::parse(context, "array<i32>"))
        .operands(operands)
        .results(results)
}

/// Lets a kernel end without a wait, since those who call it wait; returns whether it takes, as its last operand, which part
/// of its work the block has.
fn opened<'c: 'a, 'a>(kernel: OperationRef<'c, 'a>) -> bool {
    let body = kernel.region(0).ok().and_then(|region| region.first_block());
    let Some(block) = body else { return false };
    let calls = |op: &OperationRef<'c, 'a>, name: &str| {
        read::op_name(op) == llvm::CALL && read::symbol(op, "callee").as_deref() == Some(name)
    };
    let ops = read::body_ops(kernel);
    let teams: Vec<_> = ops.iter().filter(|op| calls(op, TEAM)).copied().collect();
    if let [.., wait, _] = &ops[..]
        && calls(wait, GRID_BARRIER)
    {
        wait.erase();
    }
    let ([team], None) = (&teams[..], read::attribute(&kernel, "arg_attrs")) else { return false };
    let context = irc_mlir::context_of(&kernel);
    let ty = irc_mlir::ty::parse(context, "i64");
    let turn = block.add_argument(ty, kernel.location());
    replace_all_uses(first_result(*team), turn);
    team.erase();
    let arguments = (0..block.argument_count()).filter_map(|index| block.argument(index).ok());
    let types: Vec<String> = arguments.map(|argument| argument.r#type().to_string()).collect();
    let signature =
        irc_mlir::ty::parse(context, &format!("!llvm.func<void ({})>", types.join(", ")));
    irc_mlir::set_attribute(kernel, "function_type", attr::ty(signature));
    true
}

/// Lets all blocks wait after a call of a kernel, which takes the block's part of the work if it takes turns.
fn complete<'c: 'a, 'a>(call: OperationRef<'c, 'a>, takes_turn: bool) -> PassResult {
    let block = call.block().ok_or_else(|| PassError::at(&call, "is not in a block"))?;
    let callee = read::symbol(&call, "callee").unwrap_or_default();
    let mut operands: Vec<Value<'c, 'a>> = call.operands().collect();
    if takes_turn {
        let ty = irc_mlir::ty::parse(irc_mlir::context_of(&call), "i64");
        let team = call_of(call, TEAM, &[], &[ty]).before(&block, call);
        operands.push(first_result(team));
    }
    call_of(call, &callee, &operands, &[]).before(&block, call);
    call_of(call, GRID_BARRIER, &[], &[]).before(&block, call);
    call.erase();
    Ok(())
}

/// Erases those of some ops, and what they use, that only computed what nothing uses.
fn erase_unused(mut ops: Vec<OperationRef<'_, '_>>) {
    let key = |op: &OperationRef<'_, '_>| op.to_raw().ptr as usize;
    let mut erased = BTreeSet::new();
    while let Some(op) = ops.pop() {
        let is_used = |op: &OperationRef<'_, '_>| {
            op.results().any(|result| !is_used_only_by(result.into(), |_| false))
        };
        if erased.contains(&key(&op)) || !is_pure(&op) || is_used(&op) {
            continue;
        }
        ops.extend(op.operands().filter_map(read::defining_op));
        erased.insert(key(&op));
        op.erase();
    }
}
