//! Runs products and convolutions of many items, whose number depends on symbols, as static kernels.
//!
//! Before: a kernel of loops that is one `tl.matmul` or `tl.conv` whose sizes are known except for a
//! number of rows, matrices or images. After: the same kernel with `tl.blocks`, which describes how to
//! run it in blocks of items, and for each block size a kernel of known sizes, which is scheduled in
//! vectors. `compute-to-loops` writes the loops that call them.
use crate::attributes::{BLOCKS, Blocks, KERNEL, KernelInfo, LINKAGE, is_loops};
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    Block, BlockLike, OpSpec, OperationLike, OperationRef, Options, Pass, PassError, PassResult,
    RegionLike, Type as MlirType, Value, ValueLike, attr, function, read, walk_collect,
};
use irc_tl::{Split, Type};

/// The pass `split-blocks`.
pub struct SplitBlocks;

impl Pass for SplitBlocks {
    fn name(&self) -> &'static str {
        "split-blocks"
    }
    fn description(&self) -> &'static str {
        "run products of a symbolic number of items as static kernels of blocks"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["func", "llvm"]
    }
    fn run(&self, module: OperationRef<'_, '_>, _: &Options) -> PassResult {
        let kernels = walk_collect(module, |op| is_loops(&op));
        for kernel in kernels {
            if let Some((op, split)) = split_of(kernel) {
                write(kernel, op, &split).map_err(|message| PassError::at(&kernel, message))?;
            }
        }
        Ok(())
    }
}

/// The split of a kernel that is one op on its arguments.
fn split_of<'c: 'a, 'a>(kernel: OperationRef<'c, 'a>) -> Option<(OperationRef<'c, 'a>, Split)> {
    let ops = read::body_ops(kernel);
    let [op, end] = ops[..] else { return None };
    let body = kernel.region(0).ok()?.first_block()?;
    let whole = op.operand_count() == 2
        && body.argument_count() == 2
        && (0..2).all(|at| {
            let argument = body.argument(at).map(Value::from);
            argument.is_ok_and(|argument| op.operand(at).ok() == Some(argument))
        })
        && end.operand(0).ok() == op.result(0).ok().map(Value::from);
    let types = tl::symbolic_operand_types(op).ok()?;
    if !whole || types.iter().all(|ty| ty.known().is_some()) {
        return None;
    }
    Some((op, tl::op_of(op).ok()?.split(&types)?))
}

/// Adds the kernels of blocks, and `tl.blocks` to the kernel.
fn write<'c: 'a, 'a>(
    kernel: OperationRef<'c, 'a>,
    op: OperationRef<'c, 'a>,
    split: &Split,
) -> Result<(), String> {
    let context = irc_mlir::context_of(&kernel);
    let name = read::string(&kernel, "sym_name").ok_or("has no name")?;
    let parent = kernel.block().ok_or("is not in a module")?;
    let types = tl::symbolic_operand_types(op)?;
    let mut callees = vec![];
    for items in &split.sizes {
        let callee = format!("{name}_block_{items}");
        let operands = (split.block)(&types, *items);
        let inputs: Vec<MlirType> =
            operands.iter().map(|ty| tl::type_to_mlir(context, ty)).collect();
        let arguments: Vec<_> = inputs.iter().map(|ty| (*ty, op.location())).collect();
        let block = Block::new(&arguments);
        let values = (0..inputs.len()).map(|at| block.argument(at).map(Value::from));
        let values = values.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let built = tl::build(context, &split.op, &values, op.location())?;
        let built = block.append_operation(built);
        let result: Value = built.result(0).map_err(|error| error.to_string())?.into();
        OpSpec::new(context, func::RETURN, op.location()).operands(&[result]).append(&block);
        function(context, &callee, &inputs, &[result.r#type()], block, op.location())
            .attr("sym_visibility", attr::string(context, "private"))
            .with(KERNEL, &KernelInfo { kind: "contraction".to_owned(), ..KernelInfo::default() })
            .attr(LINKAGE, attr::parse(context, "#llvm.linkage<internal>"))
            .before(&parent, kernel);
        callees.push(callee);
    }
    let (items, count) = (split.sizes.clone(), split.count.to_string());
    BLOCKS.write(kernel, &Blocks { callees, items, count, bytes: item_bytes(split, &types)? });
    Ok(())
}

/// The bytes of one item of each operand and of the result.
fn item_bytes(split: &Split, types: &[Type]) -> Result<Vec<i64>, String> {
    let operands = (split.block)(types, 1);
    let result = split.op.infer_symbolic(&operands).map_err(|error| error.to_string())?;
    let own = split.own.into_iter().chain([true]);
    let bytes = operands.iter().chain([&result]).zip(own).map(|(ty, own)| {
        let known = ty.known().and_then(|known| known.byte_size().ok());
        let known = known.and_then(|bytes| i64::try_from(bytes).ok());
        Ok(if own { known.ok_or("has an item of unknown size")? } else { 0 })
    });
    bytes.collect()
}
