//! Makes programs take one array of their buffers.
//!
//! Before: `@irc_main` takes a memref for each buffer, and two arguments more. After: it takes a pointer to an array of
//! pointers, which has a slot for each buffer, and these two arguments. Every block loads those buffers that it uses,
//! so that neither the number of arguments of a call nor the length of a block grows with the number of buffers.
//!
//! If `weight_offsets` of `#tl.program` gives a buffer an offset in the constant `irc_weights` (-1: none), the array has
//! no slot for it. The symbol is declared here.
use super::emit_entry::WEIGHTS;
use crate::{attributes::ProgramInfo, kernel::emit::first_result};
use irc_mlir::melior::ir::r#type::{DimSize, MemRefType, ShapedTypeLike};
use irc_mlir::ops::{builtin, func, llvm};
use irc_mlir::{
    BlockLike, BlockRef, Context, OpSpec, OperationLike, OperationRef, Options, Pass, PassError,
    PassResult, RegionLike, Type, Value, ValueLike, attr, read, set_operand, ty, uses,
    walk_collect,
};
use std::collections::btree_map::{BTreeMap, Entry};

/// The pass `load-buffers`.
pub struct LoadBuffers;

/// Number of arguments of a program after its buffers: the workspace and threads, or extents and the host.
const OTHERS: usize = 2;

impl Pass for LoadBuffers {
    fn name(&self) -> &'static str {
        "load-buffers"
    }
    fn description(&self) -> &'static str {
        "make programs take one array of their buffers"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["func", "llvm"]
    }
    fn run(&self, module: OperationRef<'_, '_>, _: &Options) -> PassResult {
        let functions = walk_collect(module, |op| read::op_name(&op) == func::FUNC);
        for function in functions {
            let program = ProgramInfo::of(&function);
            if program.metadata.is_some() {
                rewrite(function, &program)?;
            }
        }
        Ok(())
    }
}

/// Where a program finds a buffer.
#[derive(Clone, Copy)]
enum Place {
    /// Slot of the array.
    Slot(i32),
    /// Bytes from the begin of the library's constants.
    Constant(i64),
}

fn rewrite<'c: 'a, 'a>(function: OperationRef<'c, 'a>, program: &ProgramInfo) -> PassResult {
    let context = irc_mlir::context_of(&function);
    let error = |message: &str| PassError::at(&function, message);
    let region = function.region(0).map_err(|_| error("has no body"))?;
    let block = region.first_block().ok_or_else(|| error("has no body"))?;
    let arguments: Vec<Value<'c, 'a>> = (0..block.argument_count())
        .filter_map(|index| block.argument(index).ok())
        .map(Into::into)
        .collect();
    let count = arguments.len().checked_sub(OTHERS).ok_or_else(|| error("has no workspace"))?;
    let array = block.insert_argument(0, ty::parse(context, "!llvm.ptr"), function.location());

    if let Some(module) = function.block().filter(|_| !program.weight_offsets.is_empty()) {
        declare_weights(&module, context);
    }
    let mut slots = 0..;
    for (index, buffer) in arguments[..count].iter().enumerate() {
        let place = match program.weight_offsets.get(index) {
            Some(offset) if *offset >= 0 => Place::Constant(*offset),
            _ => Place::Slot(slots.next().unwrap_or_default()),
        };
        let mut loaded: BTreeMap<usize, Value<'c, 'a>> = BTreeMap::new();
        for (user, operand) in uses(*buffer) {
            let block = block_in(function, user).ok_or_else(|| error("is used outside"))?;
            let value = match loaded.entry(block.to_raw().ptr as usize) {
                Entry::Occupied(value) => *value.get(),
                Entry::Vacant(new) => {
                    *new.insert(load(function, block, (array, place), buffer.r#type())?)
                }
            };
            set_operand(user, operand, value);
        }
    }
    irc_mlir::erase_arguments(block, 1..=count);

    irc_mlir::update_function_type(function).ok_or_else(|| error("has no type"))
}

/// The block of a function's body that an op is in.
fn block_in<'c: 'a, 'a>(
    function: OperationRef<'c, 'a>,
    op: OperationRef<'c, 'a>,
) -> Option<BlockRef<'c, 'a>> {
    let mut op = op;
    loop {
        let parent = op.parent_operation()?;
        if parent == function {
            return op.block();
        }
        op = parent;
    }
}

/// The memory of a buffer, at the begin of a block.
fn load<'c: 'a, 'a>(
    function: OperationRef<'c, 'a>,
    block: BlockRef<'c, 'a>,
    (array, place): (Value<'c, 'a>, Place),
    memory: Type<'c>,
) -> Result<Value<'c, 'a>, PassError> {
    let context = irc_mlir::context_of(&function);
    let unknown = || PassError::at(&function, "takes memory of another form than bytes in a row");
    let memref = MemRefType::try_from(memory).map_err(|_| unknown())?;
    let size = match (memref.rank(), memref.dim_size(0)) {
        (1, Ok(DimSize::Static(size))) => size as i64,
        _ => return Err(unknown()),
    };
    let first = block.first_operation().ok_or_else(unknown)?;
    let pointer = ty::parse(context, "!llvm.ptr");
    let i64_type = ty::parse(context, "i64");
    let spec = |name: &str| OpSpec::new(context, name, function.location());
    let one = |spec: OpSpec<'c>| first_result(spec.before(&block, first));
    let constant = |value: i64| {
        let spec = spec(llvm::MLIR_CONSTANT).results(&[i64_type]);
        one(spec.attr("value", attr::i64(context, value)))
    };
    let address = |base: Value<'c, 'a>, index: i32, element: Type<'c>| {
        let indices = attr::parse(context, &format!("array<i32: {index}>"));
        let spec = spec(llvm::GETELEMENTPTR).operands(&[base]).results(&[pointer]);
        spec.attr("rawConstantIndices", indices).attr("elem_type", attr::ty(element))
    };
    let start = match place {
        Place::Slot(slot) => {
            let slot = one(address(array, slot, pointer));
            one(spec(llvm::LOAD).operands(&[slot]).results(&[pointer]))
        }
        Place::Constant(offset) => {
            let all = spec(llvm::MLIR_ADDRESSOF).results(&[pointer]);
            let all = one(all.attr("global_name", attr::symbol(context, WEIGHTS)));
            let offset = constant(offset);
            let dynamic = attr::parse(context, "array<i32: -2147483648>");
            let place = spec(llvm::GETELEMENTPTR).operands(&[all, offset]).results(&[pointer]);
            let byte = attr::ty(ty::parse(context, "i8"));
            one(place.attr("rawConstantIndices", dynamic).attr("elem_type", byte))
        }
    };
    let descriptor = "!llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>";
    let descriptor = ty::parse(context, descriptor);
    let fields = [
        (start, vec![0]),
        (start, vec![1]),
        (constant(0), vec![2]),
        (constant(size), vec![3, 0]),
        (constant(1), vec![4, 0]),
    ];
    let mut whole = one(spec(llvm::MLIR_POISON).results(&[descriptor]));
    for (field, position) in fields {
        let spec = spec(llvm::INSERTVALUE).operands(&[whole, field]).results(&[descriptor]);
        whole = one(spec.attr("position", attr::i64s(context, &position)));
    }
    Ok(one(spec(builtin::UNREALIZED_CONVERSION_CAST).operands(&[whole]).results(&[memory])))
}

/// Declares the constants, which another object defines, or [`emit_entry`](super::emit_entry).
fn declare_weights<'c: 'a, 'a>(module: &BlockRef<'c, 'a>, context: &'c Context) {
    let text =
        format!("llvm.mlir.global external hidden constant @{WEIGHTS}() : !llvm.array<0 x i8>");
    let parsed = irc_mlir::parse_module(context, &text);
    for op in parsed.iter().flat_map(|parsed| read::body_ops(parsed.as_operation())) {
        module.append_operation((*op).clone());
    }
}
