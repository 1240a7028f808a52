//! The table of steps, the loop over it, and the functions that run its rows, as text in the `llvm` dialect.
use super::{
    END, EVENT, KERNEL_BITS, MAX_CONSTANT, OFFSET_BITS, POOL, STEP_BIT, STEPS, TIME, TURN,
    waits::MAX_SHIFT,
};
use crate::lowering::compute_to_loops::simt::{AT, GRID_BARRIER};
use irc_mlir::{
    BlockLike, OperationLike, OperationRef, PassError, PassResult, RegionLike, Value, elements,
    read,
};
use irc_runtime::gpu::record::TASK_BITS;
use irc_tensor::ALIGNMENT;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

/// The most warps of a block.
const MAX_WARPS: usize = 32;

/// The steps of all functions.
#[derive(Default)]
pub struct Table {
    /// The rows.
    pub words: Vec<u64>,
    /// Kernels with the number of their operands, in the order of their numbers.
    pub kernels: Vec<(String, usize)>,
    /// The number of each kernel.
    pub numbers: BTreeMap<String, usize>,
    /// The kernels that take which part of their work a block has.
    pub takes_turns: BTreeSet<String>,
    /// The most bases of a run.
    pub bases: usize,
    /// Whether times of steps are recorded.
    pub timed: bool,
    /// The functions that run steps.
    text: String,
    /// The constants of the module by name, and those of steps with their places in one memory.
    globals: BTreeMap<String, Vec<u8>>,
    pooled: BTreeMap<String, u64>,
    pool: Vec<u8>,
}

impl Table {
    /// An empty table of a module with these constants.
    pub fn new(globals: BTreeMap<String, Vec<u8>>) -> Self {
        Self { globals, ..Self::default() }
    }

    /// The number of a kernel.
    pub fn kernel(&mut self, name: &str, operands: usize) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.kernels.push((name.to_owned(), operands));
        self.numbers.insert(name.to_owned(), self.kernels.len() - 1);
        self.kernels.len() - 1
    }

    /// The place of a constant of the module in the memory of those of all steps; `None` for other pointers.
    pub fn pool(&mut self, base: Value<'_, '_>) -> Option<u64> {
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

    /// Ends the rows of a run, and adds a function that runs those from a row, given their bases but for that of constants,
    /// each of which starts at a place in its memory.
    pub fn enter(&mut self, name: &str, starts: &[Option<i64>], first: usize) {
        self.words.push(END);
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
             llvm.call @{STEPS}(%first) : (i32) -> ()
             llvm.return
             }}"
        );
    }

    /// Defines the table, the loop, and the functions that run it.
    pub fn define(self, module: OperationRef<'_, '_>) -> PassResult {
        let context = irc_mlir::context_of(&module);
        let failed = || PassError::at(&module, "cannot hold the table of its steps");
        let body = module.region(0).ok().and_then(|region| region.first_block());
        let parsed = irc_mlir::parse_module(context, &self.module());
        let (Some(body), Some(parsed)) = (body, parsed) else { return Err(failed()) };
        let name = |op: &OperationRef<'_, '_>| read::string(op, "sym_name").unwrap_or_default();
        let present: BTreeSet<String> = read::body_ops(module).iter().map(name).collect();
        // Kernels are in the module, functions of the device if it calls them.
        let is_missing = |op: &OperationRef<'_, '_>| !present.contains(&name(op));
        for op in read::body_ops(parsed.as_operation()).into_iter().filter(is_missing) {
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
    /// kernel takes the registers of an address until then, and not those of a base and a word as well. Which row is next is
    /// in shared memory, one word for each warp, as no register is left for it while some kernels run; nor for the place of that
    /// word, so that threads' numbers are read by instructions that LLVM does not move.
    fn module(&self) -> String {
        let count = self.words.len();
        let space = if count * 8 <= MAX_CONSTANT { 4 } else { 1 };
        let words: Vec<String> =
            self.words.iter().map(|word| word.cast_signed().to_string()).collect();
        let mut text = format!(
            "llvm.func @{AT}(i64)
             llvm.func @{GRID_BARRIER}()
             llvm.func @{TURN}(i32) -> i64
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
             }}
             llvm.mlir.global internal @irc_gpu_rows() {{addr_space = 3 : i32, alignment = 4 : i64}} : !llvm.array<{MAX_WARPS} x i32>
             llvm.func internal @irc_gpu_next_row(%row: i32) attributes {{always_inline}} {{
             %rows = llvm.mlir.addressof @irc_gpu_rows : !llvm.ptr<3>
             %lane_bits = llvm.mlir.constant(5 : i32) : i32
             %lane_mask = llvm.mlir.constant(31 : i32) : i32
             %zero = llvm.mlir.constant(0 : i32) : i32
             %all = llvm.mlir.constant(-1 : i32) : i32
             %thread = llvm.inline_asm has_side_effects asm_dialect = att \"mov.u32 $0, %tid.x;\", \"=r\" : () -> i32
             %lane = llvm.and %thread, %lane_mask : i32
             %is_first = llvm.icmp \"eq\" %lane, %zero : i32
             llvm.cond_br %is_first, ^store, ^end
             ^store:
             %warp = llvm.lshr %thread, %lane_bits : i32
             %place = llvm.getelementptr %rows[%warp] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
             llvm.store %row, %place {{alignment = 4 : i64}} : i32, !llvm.ptr<3>
             llvm.br ^end
             ^end:
             nvvm.bar.warp.sync %all : i32
             llvm.return
             }}
             llvm.func internal @irc_gpu_row() -> i32 attributes {{always_inline}} {{
             %rows = llvm.mlir.addressof @irc_gpu_rows : !llvm.ptr<3>
             %lane_bits = llvm.mlir.constant(5 : i32) : i32
             %thread = llvm.inline_asm has_side_effects asm_dialect = att \"mov.u32 $0, %tid.x;\", \"=r\" : () -> i32
             %warp = llvm.lshr %thread, %lane_bits : i32
             %place = llvm.getelementptr %rows[%warp] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
             %row = llvm.load %place {{alignment = 4 : i64}} : !llvm.ptr<3> -> i32
             llvm.return %row : i32
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
            let _ = writeln!(text, "llvm.func @{kernel}({})", self.types(kernel, *operands));
        }
        self.write_loop(&mut text, space);
        text + &self.text
    }

    /// The types of the operands of a kernel.
    fn types(&self, kernel: &str, operands: usize) -> String {
        let mut types = vec!["!llvm.ptr"; operands];
        types.extend(self.takes_turns.contains(kernel).then_some("i64"));
        types.join(", ")
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
            "llvm.func internal @{STEPS}(%first: i32) {{
             %one = llvm.mlir.constant(1 : i64) : i64
             %step_bit = llvm.mlir.constant({STEP_BIT} : i64) : i64
             %zero = llvm.mlir.constant(0 : i32) : i32
             %kernel_bits = llvm.mlir.constant({KERNEL_BITS} : i32) : i32
             %kernel_mask = llvm.mlir.constant({} : i32) : i32
             %shift_mask = llvm.mlir.constant({MAX_SHIFT} : i32) : i32
             %task_bits = llvm.mlir.constant({TASK_BITS} : i64) : i64
             %table = llvm.mlir.addressof @irc_gpu_table : !llvm.ptr<{space}>",
            END
        );
        for index in 1..=most {
            let _ = writeln!(text, "%c{index} = llvm.mlir.constant({index} : i32) : i32");
        }
        let _ = writeln!(
            text,
            "llvm.call @irc_gpu_next_row(%first) : (i32) -> ()
             llvm.br ^loop
             ^loop:
             %at = llvm.call @irc_gpu_row() : () -> i32
             %row = llvm.getelementptr %table[%at] : (!llvm.ptr<{space}>, i32) -> !llvm.ptr<{space}>, i64
             %word = llvm.load %row {{alignment = 8 : i64}} : !llvm.ptr<{space}> -> i64
             %low = llvm.trunc %word : i64 to i32
             %is_end = llvm.icmp \"eq\" %low, %kernel_mask : i32
             llvm.cond_br %is_end, ^end, ^step
             ^step:
             %step = llvm.lshr %word, %step_bit : i64
             %waits = llvm.icmp \"slt\" %low, %zero : i32
             llvm.cond_br %waits, ^grid, ^own
             ^grid:
             llvm.call @{GRID_BARRIER}() : () -> ()
             llvm.br ^run
             ^own:
             nvvm.barrier0
             llvm.br ^run
             ^run:
             %kernel = llvm.and %low, %kernel_mask : i32
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
            if self.takes_turns.contains(kernel) {
                let name = format!("%k{number}_turn");
                let _ = writeln!(
                    text,
                    "%k{number}_high = llvm.lshr %low, %kernel_bits : i32
                     %k{number}_shift = llvm.and %k{number}_high, %shift_mask : i32
                     {name} = llvm.call @{TURN}(%k{number}_shift) : (i32) -> i64"
                );
                names.push(name);
            }
            let _ = writeln!(
                text,
                "%k{number}_next = llvm.add %at, %c{} : i32
                 llvm.call @irc_gpu_next_row(%k{number}_next) : (i32) -> ()
                 llvm.call @{kernel}({}) : ({}) -> ()
                 llvm.br ^next",
                operands + 1,
                names.join(", "),
                self.types(kernel, *operands),
            );
        }
        let _ = writeln!(
            text,
            "^next:
             {event}llvm.br ^loop
             ^none:
             llvm.unreachable
             ^end:
             llvm.return
             }}"
        );
    }
}
