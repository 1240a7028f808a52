//! `share-program`: what programs do themselves is shared by the threads of a GPU.
//!
//! Before: functions on memory that every thread of a grid runs, and that call kernels, each of which ends when all threads
//! have. After: their copies are divided among the threads, their stores are made by one thread, and all threads wait for
//! each other after these and after loads, whose memory the next kernel may overwrite. Control flow is the same in all
//! threads, as it depends on loaded values. Each call of a kernel is a step of the program, which threads record before.
use super::{
    compute_to_loops::simt::{AT, GRID_BARRIER, declare_device, is_team},
    emit_gpu_entry::TIMESTAMPS,
};
use crate::{
    attributes::KERNEL,
    kernel::emit::{Emit, first_result},
};
use irc_mlir::ops::{arith, func, memref, scf};
use irc_mlir::{
    Block, BlockLike, Erase, OpSpec, OperationLike, OperationRef, Options, Pass, PassError,
    PassOption, PassResult, Region, RegionLike, Type, Value, attr, read, walk_collect,
};
use irc_runtime::gpu::record::place_of;
use std::collections::BTreeSet;

/// The pass `share-program`.
pub struct ShareProgram;

impl Pass for ShareProgram {
    fn name(&self) -> &'static str {
        "share-program"
    }
    fn description(&self) -> &'static str {
        "divide the copies of programs among the threads of a GPU"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["arith", "func", "memref", "scf"]
    }
    fn options(&self) -> &'static [PassOption] {
        &[TIMESTAMPS]
    }
    fn run(&self, module: OperationRef<'_, '_>, options: &Options) -> PassResult {
        let functions = walk_collect(module, |op| read::op_name(&op) == func::FUNC);
        let own = functions.into_iter().filter(|op| !KERNEL.is_on(op) && !is_team(op));
        let own: Vec<_> = own
            .filter(|op| op.region(0).is_ok_and(|region| region.first_block().is_some()))
            .collect();
        if let Some(first) = own.first() {
            declare_device(*first)?;
        }
        for (step, (call, _)) in kernel_calls(module).into_iter().enumerate() {
            record(call, step, options.boolean(TIMESTAMPS.name))?;
        }
        for function in own {
            let named = |name: &str| walk_collect(function, |op| read::op_name(&op) == name);
            let (loads, stores) = (named(memref::LOAD), named(memref::STORE));
            let copies = named(memref::COPY);
            loads.into_iter().for_each(wait_after);
            for store in stores {
                wait_after(store);
                by_one(store)?;
            }
            for copy in copies {
                wait_after(copy);
                divide(copy)?;
            }
        }
        Ok(())
    }
}

/// The calls of kernels by programs, in order, with the name of the kernel.
pub fn kernel_calls<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
) -> Vec<(OperationRef<'c, 'a>, String)> {
    let functions = walk_collect(module, |op| read::op_name(&op) == func::FUNC);
    let kernels = functions.iter().filter(|op| KERNEL.is_on(*op));
    let kernels: BTreeSet<String> = kernels.filter_map(|op| read::string(op, "sym_name")).collect();
    let calls = walk_collect(module, |op| read::op_name(&op) == func::CALL);
    let of_kernel = |call: OperationRef<'c, 'a>| {
        let name = read::symbol(&call, "callee").filter(|name| kernels.contains(name))?;
        Some((call, name))
    };
    calls.into_iter().filter_map(of_kernel).collect()
}

/// Records before an op that a warp is at a step, and if requested, after it, when the block began and ended it.
fn record<'c: 'a, 'a>(op: OperationRef<'c, 'a>, step: usize, timestamps: bool) -> PassResult {
    let before = Before { op };
    let context = irc_mlir::context_of(&op);
    let ty = irc_mlir::ty::parse(context, "i64");
    let constant = |value: i64| {
        let value = attr::parse(context, &format!("{value} : i64"));
        let spec = before.spec(arith::CONSTANT).attr("value", value).results(&[ty]);
        before.insert(spec).map(first_result)
    };
    let call = |name: &str| before.spec(func::CALL).attr("callee", attr::symbol(context, name));
    before.insert(call(AT).operands(&[constant(place_of(step))?]))?;
    if timestamps {
        let begin = first_result(before.insert(call("irc_gpu_time").results(&[ty]))?);
        let event = call("irc_gpu_block_event").operands(&[constant(step as i64)?, begin]);
        let block = op.block().ok_or_else(|| PassError::at(&op, "is not in a block"))?;
        block.insert_operation_after(op, event.build());
    }
    Ok(())
}

/// All threads wait for each other after an op.
fn wait_after<'c: 'a, 'a>(op: OperationRef<'c, 'a>) {
    let context = irc_mlir::context_of(&op);
    let call = OpSpec::new(context, func::CALL, op.location());
    let call = call.attr("callee", attr::symbol(context, GRID_BARRIER)).build();
    if let Some(block) = op.block() {
        block.insert_operation_after(op, call);
    }
}

/// Ops before another, in the order in which they are inserted.
struct Before<'c, 'a> {
    op: OperationRef<'c, 'a>,
}

impl<'c: 'a, 'a> Before<'c, 'a> {
    fn insert(&self, spec: OpSpec<'c>) -> Result<OperationRef<'c, 'a>, PassError> {
        let block = self.op.block().ok_or_else(|| PassError::at(&self.op, "is not in a block"))?;
        Ok(block.insert_operation_before(self.op, spec.build()))
    }

    fn spec(&self, name: &str) -> OpSpec<'c> {
        OpSpec::new(irc_mlir::context_of(&self.op), name, self.op.location())
    }

    fn device(&self, name: &str) -> Result<Value<'c, 'a>, PassError> {
        let context = irc_mlir::context_of(&self.op);
        let callee = attr::symbol(context, name);
        let call = self.spec(func::CALL).attr("callee", callee).results(&[Type::index(context)]);
        self.insert(call).map(first_result)
    }

    fn binary(
        &self,
        name: &str,
        x: Value<'c, 'a>,
        y: Value<'c, 'a>,
    ) -> Result<Value<'c, 'a>, PassError> {
        let ty = Type::index(irc_mlir::context_of(&self.op));
        self.insert(self.spec(name).operands(&[x, y]).results(&[ty])).map(first_result)
    }

    fn index(&self, value: i64) -> Result<Value<'c, 'a>, PassError> {
        let context = irc_mlir::context_of(&self.op);
        let spec = self.spec(arith::CONSTANT).attr("value", attr::index(context, value));
        self.insert(spec.results(&[Type::index(context)])).map(first_result)
    }

    /// The number of the thread in the grid, and the number of threads.
    fn place(&self) -> Result<(Value<'c, 'a>, Value<'c, 'a>), PassError> {
        let threads = self.device("irc_gpu_threads")?;
        let outer = self.binary(arith::MULI, self.device("irc_gpu_team")?, threads)?;
        let number = self.binary(arith::ADDI, outer, self.device("irc_gpu_thread")?)?;
        let all = self.binary(arith::MULI, self.device("irc_gpu_teams")?, threads)?;
        Ok((number, all))
    }

    /// A loop of a thread over its positions below `count`.
    fn each(
        &self,
        count: Value<'c, 'a>,
        body: impl FnOnce(Emit<'c, 'a>, Value<'c, 'a>),
    ) -> PassResult {
        let (number, all) = self.place()?;
        let context = irc_mlir::context_of(&self.op);
        let region = Region::new();
        region.append_block(Block::new(&[(Type::index(context), self.op.location())]));
        let spec = self.spec(scf::FOR).operands(&[number, count, all]).region(region);
        let made = self.insert(spec)?;
        let block = made.region(0).ok().and_then(|region| region.first_block());
        let block = block.ok_or_else(|| PassError::at(&self.op, "has no loop"))?;
        let e = Emit { context, block, location: self.op.location() };
        let position =
            block.argument(0).map_err(|error| PassError::at(&self.op, error.to_string()))?;
        body(e, position.into());
        e.spec(scf::YIELD).append(&block);
        Ok(())
    }
}

/// Makes a store that of the first thread.
fn by_one<'c: 'a, 'a>(store: OperationRef<'c, 'a>) -> PassResult {
    let before = Before { op: store };
    let operands: Vec<Value<'_, '_>> = store.operands().collect();
    let one = before.index(1)?;
    before.each(one, |e, _| {
        e.spec(memref::STORE).operands(&operands).append(&e.block);
    })?;
    store.erase();
    Ok(())
}

/// Divides a copy of bytes among the threads.
fn divide<'c: 'a, 'a>(copy: OperationRef<'c, 'a>) -> PassResult {
    let before = Before { op: copy };
    let operands: Vec<Value<'_, '_>> = copy.operands().collect();
    let zero = before.index(0)?;
    let index = Type::index(irc_mlir::context_of(&copy));
    let size = before.spec(memref::DIM).operands(&[operands[0], zero]).results(&[index]);
    let size = first_result(before.insert(size)?);
    let (from, to) = (operands[0], operands[1]);
    before.each(size, |e, at| {
        let byte = e.op(memref::LOAD, &[from, at], e.int(8));
        e.spec(memref::STORE).operands(&[byte, to, at]).append(&e.block);
    })?;
    copy.erase();
    Ok(())
}
