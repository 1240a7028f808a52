//! Gives every value of `@main` a place in memory.
//!
//! Before: `@main` on tensors, whose body is `tl.launch`, `tl.reshape` and `tl.bitcast`; the kernels
//! take memrefs: operands, results, then scratch of `irc.workspace_bytes` bytes. After: `@irc_main` on raw bytes: one `memref<?xi8>` of fixed size per input, per
//! result, and one for the workspace, in this order. Intermediates and scratch share the workspace
//! by live range; its size and the interface stand in `irc.metadata`.

mod arena;
mod liveness;

use crate::interface::interface_of;
use arena::Arena;
use irc_dialects::tl::LAUNCH;
use irc_mlir::{
    Block, BlockLike, BlockRef, Context, Erase, Location, OpSpec, OperationLike, OperationRef,
    Options, Pass, PassError, PassResult, RegionLike, Type, Value, ValueLike, attr, function, read,
    ty, walk_collect,
};
use liveness::{Home, Liveness};
use std::collections::BTreeMap;

/// The pass `plan-memory`.
pub struct PlanMemory;

impl Pass for PlanMemory {
    fn name(&self) -> &'static str {
        "plan-memory"
    }
    fn description(&self) -> &'static str {
        "give every value of @main a place in its inputs, its results or one shared workspace"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["arith", "func", "memref"]
    }
    fn run(&self, module: OperationRef<'_, '_>, _: &Options) -> PassResult {
        let functions = walk_collect(module, |op| read::op_name(&op) == "func.func");
        let main = functions.iter().find(|op| is_named(op, "main"));
        let Some(main) = main else { return Ok(()) };
        let kernels: BTreeMap<String, Kernel<'_>> = functions
            .iter()
            .filter(|op| op.has_attribute("irc.kernel"))
            .filter_map(|op| Some((read::string(op, "sym_name")?, Kernel::of(op)?)))
            .collect();
        rewrite(*main, &kernels)
    }
}

/// What a call must know of a kernel.
struct Kernel<'c> {
    parameters: Vec<Type<'c>>,
    scratch: u64,
}

impl<'c> Kernel<'c> {
    fn of<'a>(op: &OperationRef<'c, 'a>) -> Option<Self>
    where
        'c: 'a,
    {
        let (parameters, _) = read::signature(op)?;
        let scratch = read::integer(op, "irc.workspace_bytes").unwrap_or(0);
        Some(Kernel { parameters, scratch: u64::try_from(scratch).ok()? })
    }
}

fn is_named(op: &OperationRef<'_, '_>, name: &str) -> bool {
    read::string(op, "sym_name").as_deref() == Some(name)
}

fn rewrite<'c: 'a, 'a>(
    main: OperationRef<'c, 'a>,
    kernels: &BTreeMap<String, Kernel<'c>>,
) -> PassResult {
    let context = irc_mlir::context_of(&main);
    let mut interface = interface_of(&main).map_err(|message| PassError::at(&main, message))?;
    let live = Liveness::of(main).map_err(|(op, message)| PassError::at(&op, message))?;
    let scratch = |callee: &str| kernels.get(callee).map_or(0, |kernel| kernel.scratch);
    let arena = Arena::plan(&live, scratch);
    interface.workspace_bytes = arena.bytes;

    let sizes: Vec<u64> = interface
        .inputs
        .iter()
        .chain(&interface.outputs)
        .map(|port| port.tensor_type().and_then(|ty| ty.byte_size().ok()).unwrap_or(0) as u64)
        .chain([arena.bytes])
        .collect();
    let bytes: Vec<Type> = sizes.iter().map(|size| byte_buffer(context, *size)).collect();
    let arguments: Vec<_> = bytes.iter().map(|ty| (*ty, main.location())).collect();
    let spec = function(context, "irc_main", &bytes, &[], Block::new(&arguments), main.location());
    let Some(parent) = main.block() else { return Err(PassError::at(&main, "is not in a module")) };
    let planned = spec
        .attr("irc.metadata", attr::string(context, &interface.to_json()))
        .before(&parent, main);
    let block = planned.region(0).ok().and_then(|region| region.first_block());
    let Some(block) = block else { return Err(PassError::at(&main, "has no body")) };
    let writer =
        Writer { context, block, inputs: interface.inputs.len(), arena: &arena, live: &live };
    for (position, op) in read::body_ops(main).into_iter().enumerate() {
        writer.op(position, op, kernels)?;
    }
    main.erase();
    Ok(())
}

fn byte_buffer<'c>(context: &'c Context, size: u64) -> Type<'c> {
    ty::parse(context, &format!("memref<{size}xi8>"))
}

struct Writer<'c, 'a, 'p> {
    context: &'c Context,
    block: BlockRef<'c, 'a>,
    inputs: usize,
    arena: &'p Arena,
    live: &'p Liveness,
}

impl<'c: 'a, 'a> Writer<'c, 'a, '_> {
    fn op(
        &self,
        position: usize,
        op: OperationRef<'c, 'a>,
        kernels: &BTreeMap<String, Kernel<'c>>,
    ) -> PassResult {
        match read::op_name(&op).as_str() {
            LAUNCH => self.launch(position, op, kernels),
            "func.return" => self.finish(op),
            _ => Ok(()),
        }
    }

    fn launch(
        &self,
        position: usize,
        op: OperationRef<'c, 'a>,
        kernels: &BTreeMap<String, Kernel<'c>>,
    ) -> PassResult {
        let callee = read::symbol(&op, "callee").unwrap_or_default();
        let Some(kernel) = kernels.get(&callee) else {
            return Err(PassError::at(&op, format!("calls '{callee}', which is not a kernel")));
        };
        let values: Vec<Value> = op.operands().chain(op.results().map(Into::into)).collect();
        let expected = values.len() + 1;
        let are_memrefs = kernel.parameters.iter().all(|ty| ty.to_string().starts_with("memref<"));
        if kernel.parameters.len() != expected || !are_memrefs {
            let message = format!(
                "expects '{callee}' to take {expected} memrefs; run 'linalg-to-vector' first"
            );
            return Err(PassError::at(&op, message));
        }
        let mut operands = Vec::new();
        for (value, parameter) in values.iter().zip(&kernel.parameters) {
            let home = self.live.home(*value);
            operands.push(self.view(home, *parameter, op.location()));
        }
        let offset = self.arena.scratch_of(position);
        operands.push(self.workspace_view(offset, kernel.parameters[expected - 1], op.location()));
        OpSpec::new(self.context, "func.call", op.location())
            .attr("callee", attr::symbol(self.context, &callee))
            .operands(&operands)
            .append(&self.block);
        Ok(())
    }

    /// Copies results that could not be written in place, then returns.
    fn finish(&self, op: OperationRef<'c, 'a>) -> PassResult {
        for (index, value) in op.operands().enumerate() {
            let home = self.live.home(value);
            if home == Home::Result(index) {
                continue;
            }
            let Ok(target) = self.block.argument(self.inputs + index) else {
                return Err(PassError::at(&op, "returns more than the function's results"));
            };
            let source = self.view(home, target.r#type(), op.location());
            OpSpec::new(self.context, "memref.copy", op.location())
                .operands(&[source, target.into()])
                .append(&self.block);
        }
        OpSpec::new(self.context, "func.return", op.location()).append(&self.block);
        Ok(())
    }

    fn view(&self, home: Home, to: Type<'c>, location: Location<'c>) -> Value<'c, 'a> {
        let (argument, offset) = match home {
            Home::Input(index) => (index, 0),
            Home::Result(index) => (self.inputs + index, 0),
            Home::Local(local) => {
                return self.workspace_view(self.arena.offset(local), to, location);
            }
        };
        self.view_at(argument, offset, to, location)
    }

    fn workspace_view(&self, offset: u64, to: Type<'c>, location: Location<'c>) -> Value<'c, 'a> {
        self.view_at(self.block.argument_count() - 1, offset, to, location)
    }

    fn view_at(
        &self,
        argument: usize,
        offset: u64,
        to: Type<'c>,
        location: Location<'c>,
    ) -> Value<'c, 'a> {
        let index = Type::index(self.context);
        let offset = OpSpec::new(self.context, "arith.constant", location)
            .attr("value", attr::index(self.context, offset as i64))
            .results(&[index])
            .append(&self.block);
        let view = match (self.block.argument(argument), offset.result(0)) {
            (Ok(buffer), Ok(offset)) => OpSpec::new(self.context, "memref.view", location)
                .operands(&[buffer.into(), offset.into()])
                .results(&[to])
                .append(&self.block),
            _ => unreachable!("the block has one argument per buffer"),
        };
        match view.result(0) {
            Ok(result) => result.into(),
            Err(_) => unreachable!("memref.view has one result"),
        }
    }
}
