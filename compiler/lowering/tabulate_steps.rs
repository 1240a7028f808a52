//! `tabulate-steps`: a program for a GPU becomes a loop over a table of its steps.
//!
//! Before: functions in the `llvm` dialect that call kernels one after the other, each after the record of its step
//! (`share-program`). After: calls that follow each other in a block are one call of a loop, `@irc_gpu_steps`, over their
//! rows in the constant `@irc_gpu_table`. A row is the number of the kernel and of the step, then for each operand where
//! its memory is: a base and an offset in bytes. The loop selects the kernel by its number, so that there is one call of
//! each kernel, however often programs run it. Bases are what operands are computed from: parameters of the function,
//! and pointers that are computed at run time. A function passes them to the loop in shared memory.
use crate::{
    attributes::{KERNEL, ProgramInfo},
    lowering::compute_to_loops::simt::{AT, is_team},
};
use irc_mlir::ops::llvm;
use irc_mlir::{
    BlockLike, BlockRef, Erase, OpSpec, OperationLike, OperationRef, Options, Pass, PassError,
    PassResult, RegionLike, Value, ValueLike, attr, elements, is_used_only_by, read, walk_collect,
};
use irc_runtime::gpu::record::TASK_BITS;
use irc_tensor::ALIGNMENT;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt::Write,
};

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

/// The bits of the first word of a row that are the number of the kernel; the others are that of the step.
const KERNEL_BITS: u32 = 32;

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
        &["llvm"]
    }
    fn run(&self, module: OperationRef<'_, '_>, _: &Options) -> PassResult {
        let functions = walk_collect(module, |op| read::op_name(&op) == llvm::FUNC);
        let (kernels, others): (Vec<_>, Vec<_>) =
            functions.into_iter().partition(|op| KERNEL.is_on(op));
        let kernels = kernels.iter().filter_map(|op| read::string(op, "sym_name")).collect();
        let globals = walk_collect(module, |op| read::op_name(&op) == llvm::MLIR_GLOBAL);
        let named =
            |op: OperationRef<'_, '_>| Some((read::string(&op, "sym_name")?, contents(op)?));
        let globals = globals.into_iter().filter_map(named).collect();
        let mut table = Table { globals, ..Table::default() };
        let mut runs = vec![];
        for function in others.into_iter().filter(|function| !is_team(function)) {
            let weights = ProgramInfo::of(&function).weight_offsets;
            runs.extend(runs_of(function, &kernels, &weights));
        }
        for (number, run) in runs.into_iter().enumerate() {
            replace(run, number, &mut table)?;
        }
        if table.words.is_empty() { Ok(()) } else { table.define(module) }
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
    kernels: &BTreeSet<String>,
    weights: &[i64],
) -> Vec<Run<'c, 'a>> {
    let mut found = vec![];
    let arguments = arguments_of(function, weights);
    for blocks in chains(function) {
        runs_of_blocks(&blocks, kernels, &arguments, &mut found);
    }
    found.retain(|run| run.steps.len() >= MIN_STEPS);
    found
}

/// The blocks of a function, those together of which each only continues the one before (`cut-blocks`).
fn chains<'c: 'a, 'a>(function: OperationRef<'c, 'a>) -> Vec<Vec<BlockRef<'c, 'a>>> {
    let key = |block: &BlockRef<'c, 'a>| block.to_raw().ptr as usize;
    let mut blocks = vec![];
    let mut next = function.region(0).ok().and_then(|region| region.first_block());
    while let Some(block) = next {
        blocks.push(block);
        next = block.next_in_region();
    }
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

/// The parameters of a program that are constants: the first of them, and the offset of each in all constants.
#[derive(Default)]
struct Weights<'c, 'a> {
    first: Option<(Value<'c, 'a>, i64)>,
    offsets: HashMap<usize, i64>,
}

fn arguments_of<'c: 'a, 'a>(function: OperationRef<'c, 'a>, weights: &[i64]) -> Weights<'c, 'a> {
    let mut found = Weights::default();
    let Some(block) = function.region(0).ok().and_then(|region| region.first_block()) else {
        return found;
    };
    for (index, offset) in weights.iter().enumerate().filter(|(_, offset)| **offset >= 0) {
        if let Ok(argument) = block.argument(index) {
            let argument: Value<'c, 'a> = argument.into();
            found.first.get_or_insert((argument, *offset));
            found.offsets.insert(read::identity(argument), *offset);
        }
    }
    found
}

fn runs_of_blocks<'c: 'a, 'a>(
    blocks: &[BlockRef<'c, 'a>],
    kernels: &BTreeSet<String>,
    weights: &Weights<'c, 'a>,
    found: &mut Vec<Run<'c, 'a>>,
) {
    let mut run = Run::default();
    // What records the step to come, and its number.
    let mut before: Vec<OperationRef<'c, 'a>> = vec![];
    let mut number = None;
    let ops = |block: &BlockRef<'c, 'a>| {
        std::iter::successors(block.first_operation(), |op: &OperationRef<'c, 'a>| {
            op.next_in_block()
        })
    };
    let last = blocks.last().and_then(|block| block.terminator());
    for op in blocks.iter().flat_map(ops) {
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
            Some(callee) if kernels.contains(callee) => {
                let operands = op.operands().map(|operand| place_of(operand, weights));
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
fn place_of<'c: 'a, 'a>(value: Value<'c, 'a>, weights: &Weights<'c, 'a>) -> Option<Place<'c, 'a>> {
    if value.r#type().to_string() != "!llvm.ptr" {
        return None;
    }
    let (mut base, mut offset) = (value, 0);
    while let Some((from, moved)) = read::defining_op(base).and_then(moved) {
        (base, offset) = (from, offset + moved);
    }
    let own = weights.offsets.get(&read::identity(base));
    let place = match own.zip(weights.first) {
        None => Place { base, start: 0, offset },
        Some((own, (first, start))) => Place { base: first, start, offset: offset + own },
    };
    let is_short = (0..1 << OFFSET_BITS).contains(&place.offset);
    Some(if is_short { place } else { Place { base: value, start: 0, offset: 0 } })
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
fn replace<'c: 'a, 'a>(run: Run<'c, 'a>, number: usize, table: &mut Table) -> PassResult {
    let Some(last) = run.steps.last().map(|step| step.call) else { return Ok(()) };
    let context = irc_mlir::context_of(&last);
    // By identity of the pointer, its number; all constants of the module are one base.
    let mut numbers: HashMap<Option<usize>, usize> = HashMap::new();
    let mut bases: Vec<Option<Place<'c, 'a>>> = vec![];
    let first = table.words.len();
    for step in &run.steps {
        let kernel = table.kernel(&step.kernel, step.operands.len());
        table.words.push((step.number as u64) << KERNEL_BITS | kernel as u64);
        for place in &step.operands {
            let pooled = table.pool(place.base);
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
    table.enter(&name, &starts, (first, table.words.len()));
    let operands: Vec<Value<'c, 'a>> =
        bases.iter().filter_map(|base| Some((*base)?.base)).collect();
    let block = last.block().ok_or_else(|| PassError::at(&last, "is not in a block"))?;
    let segments = format!("array<i32: {}, 0>", operands.len());
    OpSpec::new(context, llvm::CALL, last.location())
        .attr("callee", attr::symbol(context, &name))
        .attr("operandSegmentSizes", attr::parse(context, &segments))
        .attr("op_bundle_sizes", attr::parse(context, "array<i32>"))
        .operands(&operands)
        .before(&block, last);
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

/// The steps of all functions.
#[derive(Default)]
struct Table {
    words: Vec<u64>,
    /// Kernels with the number of their operands, in the order of their numbers.
    kernels: Vec<(String, usize)>,
    numbers: BTreeMap<String, usize>,
    /// The most bases of a run.
    bases: usize,
    timed: bool,
    /// The functions that run steps.
    text: String,
    /// The constants of the module by name, and those of steps with their places in one memory.
    globals: BTreeMap<String, Vec<u8>>,
    pooled: BTreeMap<String, u64>,
    pool: Vec<u8>,
}

impl Table {
    /// The number of a kernel.
    fn kernel(&mut self, name: &str, operands: usize) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.kernels.push((name.to_owned(), operands));
        self.numbers.insert(name.to_owned(), self.kernels.len() - 1);
        self.kernels.len() - 1
    }

    /// The place of a constant of the module in the memory of those of all steps; `None` for other pointers.
    fn pool(&mut self, base: Value<'_, '_>) -> Option<u64> {
        let op = read::defining_op(base)?;
        let name = read::symbol(&op, "global_name")?;
        if let Some(place) = self.pooled.get(&name) {
            return Some(*place);
        }
        let bytes = self.globals.get(&name)?;
        self.pool.resize(self.pool.len().next_multiple_of(ALIGNMENT), 0);
        let place = self.pool.len() as u64;
        self.pool.extend(bytes);
        if self.pool.is_empty() {
            // Constants without bytes are in the memory as well, which then has to be there.
            self.pool.push(0);
        }
        self.pooled.insert(name, place);
        Some(place)
    }

    /// Adds a function that runs some rows, given their bases but for that of constants, each of which starts at a place
    /// in its memory.
    fn enter(&mut self, name: &str, starts: &[Option<i64>], (first, end): (usize, usize)) {
        let given = starts.iter().enumerate().filter(|(_, start)| start.is_some());
        let parameters: Vec<String> =
            given.map(|(index, _)| format!("%p{index}: !llvm.ptr")).collect();
        let _ = writeln!(
            self.text,
            "llvm.func internal @{name}({}) attributes {{always_inline}} {{
             %zero = llvm.mlir.constant(0 : i32) : i32
             %bases = llvm.mlir.addressof @irc_gpu_bases : !llvm.ptr<3>
             %thread = nvvm.read.ptx.sreg.tid.x : i32
             %is_first = llvm.icmp \"eq\" %thread, %zero : i32
             llvm.cond_br %is_first, ^store, ^run
             ^store:",
            parameters.join(", ")
        );
        for (index, start) in starts.iter().enumerate() {
            let _ = match start {
                None => writeln!(
                    self.text,
                    "%base{index} = llvm.mlir.addressof @{POOL} : !llvm.ptr<1>"
                ),
                Some(start) => writeln!(
                    self.text,
                    "%start{index} = llvm.mlir.constant({} : i64) : i64
                     %global{index} = llvm.addrspacecast %p{index} : !llvm.ptr to !llvm.ptr<1>
                     %base{index} = llvm.getelementptr %global{index}[%start{index}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8",
                    -start
                ),
            };
            let _ = writeln!(
                self.text,
                "%place{index} = llvm.getelementptr %bases[{index}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, !llvm.ptr<1>
                 llvm.store %base{index}, %place{index} {{alignment = 8 : i64}} : !llvm.ptr<1>, !llvm.ptr<3>"
            );
        }
        let _ = writeln!(
            self.text,
            "llvm.br ^run
             ^run:
             nvvm.barrier0
             %first = llvm.mlir.constant({first} : i32) : i32
             %end = llvm.mlir.constant({end} : i32) : i32
             llvm.call @{STEPS}(%first, %end) : (i32, i32) -> ()
             llvm.return
             }}"
        );
    }

    /// Defines the table, the loop, and the functions that run it.
    fn define(self, module: OperationRef<'_, '_>) -> PassResult {
        let context = irc_mlir::context_of(&module);
        let failed = || PassError::at(&module, "cannot hold the table of its steps");
        let body = module.region(0).ok().and_then(|region| region.first_block());
        let parsed = irc_mlir::parse_module(context, &self.module());
        let (Some(body), Some(parsed)) = (body, parsed) else { return Err(failed()) };
        let own = |op: &OperationRef<'_, '_>| {
            let name = read::string(op, "sym_name").unwrap_or_default();
            let has_body = op.region(0).is_ok_and(|region| region.first_block().is_some());
            has_body && name.starts_with("irc_gpu_") || read::op_name(op) == llvm::MLIR_GLOBAL
        };
        for op in read::body_ops(parsed.as_operation()).into_iter().filter(own) {
            let op = body.append_operation((*op).clone());
            if read::string(&op, "sym_name").as_deref() == Some(POOL) {
                let ty = irc_mlir::ty::parse(context, &format!("tensor<{}xi8>", self.pool.len()));
                let value = elements::dense(ty, &self.pool).ok_or_else(failed)?;
                irc_mlir::set_attribute(op, "value", value);
            }
        }
        Ok(())
    }

    /// The text of what [`Self::define`] defines. LLVM does not know how an operand is computed, so that one used late in a
    /// kernel takes the registers of an address until then, and not those of a base and a word as well.
    fn module(&self) -> String {
        let count = self.words.len();
        let space = if count * 8 <= MAX_CONSTANT { 4 } else { 1 };
        let words: Vec<String> =
            self.words.iter().map(|word| word.cast_signed().to_string()).collect();
        let mut text = format!(
            "llvm.func @{AT}(i64)
             llvm.func @{TIME}() -> i64
             llvm.func @{EVENT}(i64, i64)
             llvm.mlir.global internal constant @irc_gpu_table(dense<[{}]> : tensor<{count}xi64>) \
             {{addr_space = {space} : i32, alignment = 8 : i64}} : !llvm.array<{count} x i64>
             llvm.mlir.global internal @irc_gpu_bases() {{addr_space = 3 : i32, alignment = 8 : i64}} : \
             !llvm.array<{} x ptr<1>>
             llvm.func internal @irc_gpu_operand(%row: !llvm.ptr<{space}>, %index: i32) -> !llvm.ptr attributes {{always_inline}} {{
             %bits = llvm.mlir.constant({OFFSET_BITS} : i64) : i64
             %mask = llvm.mlir.constant({} : i64) : i64
             %place = llvm.getelementptr %row[%index] : (!llvm.ptr<{space}>, i32) -> !llvm.ptr<{space}>, i64
             %word = llvm.load %place {{alignment = 8 : i64}} : !llvm.ptr<{space}> -> i64
             %number = llvm.lshr %word, %bits : i64
             %offset = llvm.and %word, %mask : i64
             %bases = llvm.mlir.addressof @irc_gpu_bases : !llvm.ptr<3>
             %slot = llvm.getelementptr %bases[%number] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, !llvm.ptr<1>
             %base = llvm.load %slot {{alignment = 8 : i64}} : !llvm.ptr<3> -> !llvm.ptr<1>
             %sum = llvm.getelementptr %base[%offset] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
             %own = llvm.inline_asm has_side_effects asm_dialect = att \"mov.b64 $0, $1;\", \"=l,l\" %sum : (!llvm.ptr<1>) -> !llvm.ptr<1>
             %operand = llvm.addrspacecast %own : !llvm.ptr<1> to !llvm.ptr
             llvm.return %operand : !llvm.ptr
             }}\n",
            words.join(", "),
            self.bases.max(1),
            (1i64 << OFFSET_BITS) - 1,
        );
        if !self.pool.is_empty() {
            let _ = writeln!(
                text,
                "llvm.mlir.global internal constant @{POOL}(dense<0> : tensor<{0}xi8>) \
                 {{addr_space = 1 : i32, alignment = {ALIGNMENT} : i64}} : !llvm.array<{0} x i8>",
                self.pool.len()
            );
        }
        for (kernel, operands) in &self.kernels {
            let _ =
                writeln!(text, "llvm.func @{kernel}({})", vec!["!llvm.ptr"; *operands].join(", "));
        }
        self.write_loop(&mut text, space);
        text + &self.text
    }

    /// The loop over steps.
    fn write_loop(&self, text: &mut String, space: u32) {
        let (time, event) = if self.timed {
            (
                format!("%begin = llvm.call @{TIME}() : () -> i64\n"),
                format!("llvm.call @{EVENT}(%step, %begin) : (i64, i64) -> ()\n"),
            )
        } else {
            (String::new(), String::new())
        };
        let cases = self.kernels.iter().enumerate();
        let cases: Vec<String> = cases.map(|(number, _)| format!("{number}: ^k{number}")).collect();
        let most = self.kernels.iter().map(|(_, operands)| operands + 1).max().unwrap_or(1);
        let _ = writeln!(
            text,
            "llvm.func internal @{STEPS}(%first: i32, %end: i32) {{
             %one = llvm.mlir.constant(1 : i64) : i64
             %kernel_bits = llvm.mlir.constant({KERNEL_BITS} : i64) : i64
             %task_bits = llvm.mlir.constant({TASK_BITS} : i64) : i64
             %table = llvm.mlir.addressof @irc_gpu_table : !llvm.ptr<{space}>"
        );
        for index in 1..=most {
            let _ = writeln!(text, "%c{index} = llvm.mlir.constant({index} : i32) : i32");
        }
        let _ = writeln!(
            text,
            "llvm.br ^loop(%first : i32)
             ^loop(%at: i32):
             %more = llvm.icmp \"ult\" %at, %end : i32
             llvm.cond_br %more, ^step, ^end
             ^step:
             %row = llvm.getelementptr %table[%at] : (!llvm.ptr<{space}>, i32) -> !llvm.ptr<{space}>, i64
             %word = llvm.load %row {{alignment = 8 : i64}} : !llvm.ptr<{space}> -> i64
             %kernel = llvm.trunc %word : i64 to i32
             %step = llvm.lshr %word, %kernel_bits : i64
             %above = llvm.add %step, %one : i64
             %place = llvm.shl %above, %task_bits : i64
             llvm.call @{AT}(%place) : (i64) -> ()
             {time}llvm.switch %kernel : i32, ^none [{}]",
            cases.join(", ")
        );
        for (number, (kernel, operands)) in self.kernels.iter().enumerate() {
            let _ = writeln!(text, "^k{number}:");
            let mut names = vec![];
            for index in 1..=*operands {
                let name = format!("%k{number}_{index}");
                let _ = writeln!(
                    text,
                    "{name} = llvm.call @irc_gpu_operand(%row, %c{index}) : (!llvm.ptr<{space}>, i32) -> !llvm.ptr"
                );
                names.push(name);
            }
            let _ = writeln!(
                text,
                "llvm.call @{kernel}({}) : ({}) -> ()
                 llvm.br ^next(%c{} : i32)",
                names.join(", "),
                vec!["!llvm.ptr"; *operands].join(", "),
                operands + 1
            );
        }
        let _ = writeln!(
            text,
            "^next(%words: i32):
             {event}%after = llvm.add %at, %words : i32
             llvm.br ^loop(%after : i32)
             ^none:
             llvm.unreachable
             ^end:
             llvm.return
             }}"
        );
    }
}
