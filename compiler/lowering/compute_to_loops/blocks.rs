//! Runs a kernel in blocks of items, each a call of a kernel of known sizes; see
//! [`split_blocks`](crate::lowering::split_blocks).
use super::{sizes::Sizes, stored};
use crate::{
    attributes::{BLOCKS, Blocks, KERNEL},
    kernel::{declare::on_memory, emit::Emit},
};
use irc_dialects::tl;
use irc_mlir::ops::{arith, func, memref};
use irc_mlir::{
    BlockLike, Context, Erase, OperationLike, OperationRef, PassError, PassResult, RegionLike,
    Type, Value, attr, read,
};
use irc_tl::{DType, Dim};
use melior::ir::r#type::MemRefType;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

/// Whether a kernel runs in blocks.
pub(super) fn is_split(func: OperationRef<'_, '_>) -> bool {
    BLOCKS.is_on(&func)
}

/// A kernel of blocks of one size.
struct Callee<'c> {
    name: String,
    items: i64,
    parameters: Vec<Type<'c>>,
    workspace: u64,
}

/// Replaces the kernel by its loops. Its callees are already lowered.
pub(super) fn lower(func: OperationRef<'_, '_>) -> PassResult {
    lower_message(func).map_err(|message| PassError::at(&func, message))
}

fn lower_message<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<(), String> {
    let context = irc_mlir::context_of(&func);
    let parent = func.block().ok_or("is not in a module")?;
    let blocks = BLOCKS.read(&func).ok_or_else(|| format!("lacks {}", BLOCKS.name()))?;
    let callees = callees(func, &blocks)?;
    let count: Dim = blocks.count.parse().map_err(|error| format!("count: {error}"))?;
    let bytes = blocks.bytes;
    let symbols = symbols(func, &count)?;
    let workspace = callees.iter().map(|callee| callee.workspace).max().unwrap_or(0);

    let memory = memory(context, 1);
    let mut types = vec![memory; bytes.len() - 1];
    types.extend(symbols.iter().map(|_| Type::index(context)));
    types.extend([memory, self::memory(context, workspace.cast_signed())]);
    let lowered = on_memory(func, &types, |info| {
        info.symbols = symbols.iter().map(ToString::to_string).collect();
        info.workspace_bytes = Some(workspace);
    });
    let lowered = lowered.before(&parent, func);
    let block = lowered.region(0).ok().and_then(|region| region.first_block());
    let block = block.ok_or("has no body")?;
    let e = Emit { context, block, location: func.location() };
    let given = (0..types.len()).map(|at| block.argument(at).map(Value::from));
    let given = given.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let mut sizes = Sizes::default();
    let inputs = bytes.len() - 1;
    symbols.iter().zip(&given[inputs..]).for_each(|(symbol, value)| sizes.define(symbol, *value));
    let mut buffers = given[..inputs].to_vec();
    buffers.extend(&given[inputs + symbols.len()..]);
    let count = sizes.value(e, &count);
    let mut start = e.index(0);
    for callee in &callees {
        start = emit(e, callee, (start, count), &buffers, &bytes);
    }
    e.spec(func::RETURN).append(&block);
    func.erase();
    Ok(())
}

/// Emits calls from an item on while a whole block remains; returns the first item after them.
fn emit<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    callee: &Callee<'c>,
    (start, count): (Value<'c, 'a>, Value<'c, 'a>),
    buffers: &[Value<'c, 'a>],
    bytes: &[i64],
) -> Value<'c, 'a> {
    let left = e.binary(arith::SUBI, count, start);
    let rest = e.binary(arith::REMSI, left, e.index(callee.items));
    let end = e.binary(arith::SUBI, count, rest);
    let Ok(_) = e.for_each((start, end, callee.items), &[], |e, item, _| {
        let parts = buffers.iter().enumerate().zip(&callee.parameters);
        let parts: Vec<Value> = parts
            .map(|((at, buffer), ty)| {
                // The workspace comes last, and all blocks share it.
                let step = bytes.get(at).copied().unwrap_or(0);
                let place = e.binary(arith::MULI, item, e.index(step));
                e.op(memref::VIEW, &[*buffer, place], *ty)
            })
            .collect();
        e.spec(func::CALL)
            .operands(&parts)
            .attr("callee", attr::symbol(e.context, &callee.name))
            .append(&e.block);
        Ok::<_, Infallible>(vec![])
    });
    end
}

fn callees<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    blocks: &Blocks,
) -> Result<Vec<Callee<'c>>, String> {
    let parent = func.block().ok_or("is not in a module")?;
    let find = |name: &str| {
        let mut next = parent.first_operation();
        while let Some(op) = next {
            if read::string(&op, "sym_name").as_deref() == Some(name) {
                return Some(op);
            }
            next = op.next_in_block();
        }
        None
    };
    let callee = |(name, items): (&String, &i64)| {
        let found = find(name).ok_or_else(|| format!("expected a kernel '{name}'"))?;
        let (parameters, _) = read::signature(&found).ok_or("expected a function")?;
        let workspace = KERNEL.read(&found).and_then(|info| info.workspace_bytes);
        let workspace =
            workspace.ok_or_else(|| format!("expected '{name}' to be lowered before"))?;
        Ok(Callee { name: name.clone(), items: *items, parameters, workspace })
    };
    blocks.callees.iter().zip(&blocks.items).map(callee).collect()
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
