//! Runs a kernel in blocks of items, each a call of a kernel of known sizes; see
//! [`split_blocks`](crate::lowering::split_blocks).
use super::{sizes::Sizes, stored};
use crate::{
    attributes::{BLOCKS, Blocks, KERNEL, KernelInfo, POOL, Phases, launcher},
    kernel::{declare::on_memory, emit::Emit},
};
use irc_dialects::tl;
use irc_mlir::ops::{arith, func, memref};
use irc_mlir::{
    BlockLike, Context, Erase, OperationLike, OperationRef, PassError, PassResult, RegionLike,
    Type, TypeLike, Value, attr, read,
};
use irc_tl::{DType, Dim};
use melior::ir::r#type::MemRefType;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

/// Whether a kernel runs in blocks.
pub(super) fn is_split(func: OperationRef<'_, '_>) -> bool {
    BLOCKS.is_on(&func)
}

/// The kernel of a block.
struct Callee<'c> {
    name: String,
    items: i64,
    parameters: Vec<Type<'c>>,
    info: KernelInfo,
}

/// The memory of a kernel that runs in blocks, and what it passes on.
struct Frame<'c, 'a> {
    /// The operands, the results, and the workspace, which all blocks share.
    buffers: Vec<Value<'c, 'a>>,
    /// The bytes of an item of each operand and result.
    bytes: Vec<i64>,
    /// The number of operands.
    inputs: usize,
    /// The threads that the launcher of the callee gets, for a launcher.
    pool: Option<Value<'c, 'a>>,
}

/// Replaces the kernel by its loop. Its callee is among those that are already lowered, by name.
pub(super) fn lower<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    kernels: &BTreeMap<String, OperationRef<'c, 'a>>,
) -> PassResult {
    lower_message(func, kernels).map_err(|message| PassError::at(&func, message))
}

fn lower_message<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    kernels: &BTreeMap<String, OperationRef<'c, 'a>>,
) -> Result<(), String> {
    let context = irc_mlir::context_of(&func);
    let parent = func.block().ok_or("is not in a module")?;
    let blocks = BLOCKS.read(&func).ok_or_else(|| format!("lacks {}", BLOCKS.name()))?;
    let callee = callee(&blocks, kernels)?;
    let count: Dim = blocks.count.parse().map_err(|error| format!("count: {error}"))?;
    let bytes = blocks.bytes;
    let symbols = symbols(func, &count)?;
    let workspace = callee.info.scratch();
    let part_bytes = callee.info.phases.as_ref().map(|phases| phases.part_bytes);

    let memory = memory(context, 1);
    let inputs = read::signature(&func).ok_or("is not a function")?.0.len();
    let mut types = vec![memory; inputs];
    types.extend(symbols.iter().map(|_| Type::index(context)));
    types.extend(vec![memory; bytes.len() - inputs]);
    types.push(self::memory(context, workspace.cast_signed()));
    let lowered = on_memory(func, &types, |info| {
        info.symbols = symbols.iter().map(ToString::to_string).collect();
        info.workspace_bytes = Some(workspace);
        info.packed = callee.info.packed.clone();
        // The phases of all blocks; the launcher of the callee knows their parts.
        info.phases =
            part_bytes.map(|part_bytes| Phases { parts: vec![1], cycles: vec![], part_bytes });
    });
    let whole = lowered.before(&parent, func);
    let mut functions = vec![(whole, false)];
    if part_bytes.is_some() {
        let name = read::string(&func, "sym_name").ok_or("has no name")?;
        let types = [&types[..], &[irc_mlir::ty::parse(context, POOL)]].concat();
        let parallel = on_memory(func, &types, |_| {}).before(&parent, func);
        irc_mlir::set_attribute(parallel, "sym_name", attr::string(context, &launcher(&name)));
        irc_mlir::remove_attribute(parallel, KERNEL.name());
        functions.push((parallel, true));
    }
    for (function, is_parallel) in functions {
        let block = function.region(0).ok().and_then(|region| region.first_block());
        let block = block.ok_or("has no body")?;
        let e = Emit { context, block, location: func.location() };
        let given = (0..block.argument_count()).map(|at| block.argument(at).map(Value::from));
        let mut given = given.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let pool = if is_parallel { given.pop() } else { None };
        let mut sizes = Sizes::default();
        symbols
            .iter()
            .zip(&given[inputs..])
            .for_each(|(symbol, value)| sizes.define(symbol, *value));
        let mut buffers = given[..inputs].to_vec();
        buffers.extend(&given[inputs + symbols.len()..]);
        let count = sizes.value(e, &count);
        let frame = Frame { buffers, bytes: bytes.clone(), inputs, pool };
        emit(e, &callee, count, &frame);
        e.spec(func::RETURN).append(&block);
    }
    func.erase();
    Ok(())
}

/// Emits a call for each block.
fn emit<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    callee: &Callee<'c>,
    count: Value<'c, 'a>,
    frame: &Frame<'c, 'a>,
) {
    let is_passed = callee.info.rows.is_some();
    let Ok(_) = e.for_each((e.index(0), count, callee.items), &[], |e, item, _| {
        let memory = callee.parameters.iter().filter(|ty| !ty.is_index());
        let parts = frame.buffers.iter().zip(memory).enumerate().map(|(at, (buffer, ty))| {
            // The workspace comes last, and all blocks share it.
            let place = e.scale(item, frame.bytes.get(at).copied().unwrap_or(0));
            e.op(memref::VIEW, &[*buffer, place], *ty)
        });
        let mut operands: Vec<Value> = parts.collect();
        if is_passed {
            let left = e.binary(arith::SUBI, count, item);
            operands.insert(frame.inputs, e.min(left, e.index(callee.items)));
        }
        let name = match (frame.pool, &callee.info.phases) {
            (Some(pool), Some(_)) => {
                operands.push(pool);
                launcher(&callee.name)
            }
            _ => callee.name.clone(),
        };
        e.spec(func::CALL)
            .operands(&operands)
            .attr("callee", attr::symbol(e.context, &name))
            .append(&e.block);
        Ok::<_, Infallible>(vec![])
    });
}

fn callee<'c: 'a, 'a>(
    blocks: &Blocks,
    kernels: &BTreeMap<String, OperationRef<'c, 'a>>,
) -> Result<Callee<'c>, String> {
    let name = &blocks.callee;
    let found = kernels.get(name).copied();
    let found = found.ok_or_else(|| format!("expected a kernel '{name}'"))?;
    let (parameters, _) = read::signature(&found).ok_or("expected a function")?;
    let info = KERNEL.read(&found).filter(|info| info.workspace_bytes.is_some());
    let info = info.ok_or_else(|| format!("expected '{name}' to be lowered before"))?;
    Ok(Callee { name: name.clone(), items: blocks.items, parameters, info })
}

/// All symbols of the kernel's types and of the count, in the order of names.
fn symbols(func: OperationRef<'_, '_>, count: &Dim) -> Result<Vec<Arc<str>>, String> {
    let (inputs, results) = read::signature(&func).ok_or("is not a function")?;
    let mut symbols: BTreeSet<_> = count.symbols().into_iter().collect();
    for ty in inputs.into_iter().chain(results) {
        symbols.extend(tl::type_of(ty)?.dims.iter().flat_map(Dim::symbols));
    }
    Ok(symbols.into_iter().collect())
}

/// The type of memory of this size in bytes; 1 stands for any size.
fn memory(context: &Context, bytes: i64) -> Type<'_> {
    MemRefType::new(stored(context, DType::U8), &[bytes], None, None).into()
}
