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
use irc_tl::{Conv, Dim, Op, Type};

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

/// How a kernel is split into items.
struct Split {
    op: Op,
    count: Dim,
    /// Items in a block, largest first.
    sizes: Vec<i64>,
    /// The operands of a block with the given number of items.
    block: fn(&[Type], i64) -> Vec<Type>,
    /// Per operand: whether each item has its own part.
    own: [bool; 2],
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
    let split = match tl::op_of(op).ok()? {
        Op::Conv(conv) => images(conv, &types),
        Op::Matmul { transpose_lhs, transpose_rhs } => {
            let op = Op::Matmul { transpose_lhs, transpose_rhs };
            rows(&op, transpose_lhs, &types).or_else(|| matrices(&op, &types))
        }
        _ => None,
    };
    Some((op, split?))
}

fn is_known(dims: &[Dim]) -> bool {
    dims.iter().all(|dim| dim.known().is_some_and(|extent| extent > 0))
}

/// One image at a time.
fn images(conv: Conv, types: &[Type]) -> Option<Split> {
    let [x, w] = types else { return None };
    let sizes = is_known(&x.dims[1..]) && is_known(&w.dims);
    let padded = conv.pads.iter().flatten().all(|zeros| *zeros >= 0);
    let filters = w.dims[0].known()? / conv.groups;
    // As fusion decides for known sizes.
    if !sizes || !padded || filters < 4 {
        return None;
    }
    Some(Split {
        op: Op::Conv(conv),
        count: x.dims[0].clone(),
        sizes: vec![1],
        block: |types, items| {
            let mut block = types.to_vec();
            block[0].dims[0] = items.into();
            block
        },
        own: [true, false],
    })
}

/// Rows of many matrices against one.
fn rows(op: &Op, transposed: bool, types: &[Type]) -> Option<Split> {
    let [lhs, rhs] = types else { return None };
    let last = lhs.dims.last()?;
    if transposed || rhs.rank() != 2 || !is_known(&rhs.dims) || last.known().is_none() {
        return None;
    }
    let count = Dim::product(&lhs.dims[..lhs.rank() - 1]);
    let mut sizes = vec![];
    for size in [64, 8, 1] {
        sizes.push(size);
        if count.modulo(&size.into()).is(0) {
            break;
        }
    }
    Some(Split {
        op: op.clone(),
        count,
        sizes,
        block: |types, items| {
            let depth = types[0].dims[types[0].rank() - 1].clone();
            vec![Type::new(types[0].dtype, [items.into(), depth]), types[1].clone()]
        },
        own: [true, false],
    })
}

/// Matrices against the same number of matrices.
fn matrices(op: &Op, types: &[Type]) -> Option<Split> {
    let [lhs, rhs] = types else { return None };
    let fits = lhs.rank() == rhs.rank() && lhs.rank() > 2 && lhs.dims[0] == rhs.dims[0];
    if !fits || !is_known(&lhs.dims[1..]) || !is_known(&rhs.dims[1..]) {
        return None;
    }
    Some(Split {
        op: op.clone(),
        count: lhs.dims[0].clone(),
        sizes: vec![1],
        block: |types, _| {
            types.iter().map(|ty| Type::new(ty.dtype, ty.dims[1..].to_vec())).collect()
        },
        own: [true, true],
    })
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
