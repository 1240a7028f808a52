//! Runs a kernel in blocks of items, each a call of a kernel of known sizes; see
//! [`split_blocks`](crate::lowering::split_blocks).
mod columns;

use super::{sizes::Sizes, stored};
use crate::{
    attributes::{BLOCKS, Blocks, KERNEL, KernelInfo, POOL, Phases, launcher},
    kernel::{
        declare::on_memory,
        emit::{Buffer, Emit, Lanes},
    },
    lowering::linalg_to_vector::{
        signature,
        split::{Extent, MAX_PARTS, MIN_CYCLES, MIN_PART, Units, indices},
    },
};
use irc_dialects::tl;
use irc_mlir::ops::{arith, func, memref};
use irc_mlir::{
    BlockLike, Context, Erase, OperationLike, OperationRef, PassError, PassResult, RegionLike,
    Type, TypeLike, Value, ValueLike, attr, read,
};
use irc_tl::{DType, Dim};
use melior::ir::r#type::{DimSize, MemRefType, ShapedTypeLike};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use columns::Calls;

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
    /// How it is called for some columns at a time.
    columns: Option<Calls<'c>>,
}

impl Callee<'_> {
    /// The bytes of scratch memory that a call needs, with what it keeps.
    fn workspace(&self) -> u64 {
        let own = self.info.scratch() + self.kept().unwrap_or(0);
        own + self.columns.as_ref().map_or(0, |calls| calls.bytes(self))
    }

    /// The bytes that it keeps between the blocks along the last dimension of the grid, at the start of the workspace.
    fn kept(&self) -> Option<u64> {
        self.info.kept.as_ref().map(|kept| kept.bytes.max(KEPT_HEADER))
    }
}

/// Bytes of kept memory before what is kept; the first eight are zero if it is not kept yet.
const KEPT_HEADER: u64 = 64;

/// The memory of a kernel that runs in blocks, and what it passes on.
struct Frame<'f, 'c, 'a> {
    /// The operands, the results, and the workspace, which all blocks share.
    buffers: Vec<Value<'c, 'a>>,
    /// The bytes of an item of each operand and result, for each dimension of the grid.
    bytes: &'f [Dim],
    sizes: Sizes<'c, 'a>,
    /// The number of operands.
    inputs: usize,
    /// The number of items along each dimension of the grid.
    counts: Vec<Value<'c, 'a>>,
    /// The threads that the launcher of the callee gets, for a launcher.
    pool: Option<Value<'c, 'a>>,
}

/// How the work of a kernel is divided.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// All blocks, one after the other.
    Whole,
    /// The same, each by the launcher of the callee.
    Launcher,
    /// A range of blocks.
    Part,
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
    let counts = sizes_of("counts", &blocks.counts)?;
    let bytes = sizes_of("bytes", &blocks.bytes)?;
    let sizes = callee.columns.iter().flat_map(Calls::sizes).chain(&counts);
    let symbols = symbols(func, sizes)?;
    let workspace = callee.workspace();
    let part_bytes = callee.info.phases.as_ref().map(|phases| phases.part_bytes);

    let memory = memory(context, 1);
    let inputs = read::signature(&func).ok_or("is not a function")?.0.len();
    let outputs = blocks.bytes.len() / counts.len().max(1) - inputs;
    let mut types = vec![memory; inputs];
    types.extend(symbols.iter().map(|_| Type::index(context)));
    types.extend(vec![memory; outputs]);
    types.push(self::memory(context, workspace.cast_signed()));
    let describe = |info: &mut KernelInfo| {
        info.symbols = symbols.iter().map(ToString::to_string).collect();
        info.workspace_bytes = Some(workspace);
        info.packed = callee.info.packed.clone();
        // The phases of all blocks; the launcher of the callee knows their parts.
        info.phases =
            part_bytes.map(|part_bytes| Phases { parts: vec![1], cycles: vec![], part_bytes });
    };
    let mut functions = vec![];
    if let Some(phases) = divided(&blocks, &callee, &counts, workspace) {
        let part = signature::declare_part(func, &types).map_err(|error| error.to_string())?;
        let mut info = KERNEL.read(&func).unwrap_or_default();
        describe(&mut info);
        info.phases = Some(phases);
        functions.push((part, Role::Part));
        write(func, &callee, &bytes, (inputs, &symbols, &counts), &functions)?;
        signature::whole(context, func, part, types, &info).map_err(|error| error.to_string())?;
        func.erase();
        return Ok(());
    }
    functions.push((on_memory(func, &types, describe).before(&parent, func), Role::Whole));
    if part_bytes.is_some() {
        let name = read::string(&func, "sym_name").ok_or("has no name")?;
        let types = [&types[..], &[irc_mlir::ty::parse(context, POOL)]].concat();
        let parallel = on_memory(func, &types, |_| {}).before(&parent, func);
        irc_mlir::set_attribute(parallel, "sym_name", attr::string(context, &launcher(&name)));
        irc_mlir::remove_attribute(parallel, KERNEL.name());
        functions.push((parallel, Role::Launcher));
    }
    write(func, &callee, &bytes, (inputs, &symbols, &counts), &functions)?;
    func.erase();
    Ok(())
}

/// The phases of a kernel whose blocks are divided among threads, if it is worth their while.
fn divided(blocks: &Blocks, callee: &Callee<'_>, counts: &[Dim], workspace: u64) -> Option<Phases> {
    let columns = callee.columns.as_ref().map(Calls::count);
    let known = counts.iter().map(Dim::known).collect::<Option<Vec<i64>>>();
    let known = known.filter(|_| columns.is_none());
    let of_rows = |rows: i64| (rows + blocks.items - 1) / blocks.items;
    let (parts, pays) = match known.as_deref() {
        Some([rest @ .., rows]) => {
            let all = rest.iter().product::<i64>() * of_rows(*rows);
            let cycles = all.saturating_mul(blocks.cycles);
            (all.min(cycles / MIN_PART).clamp(1, MAX_PARTS), cycles >= MIN_CYCLES)
        }
        _ => (MAX_PARTS, true),
    };
    let cycles = match known {
        Some(_) => vec![],
        None => {
            let (last, rest) = counts.split_last()?;
            let rows = last.known().map(of_rows);
            // Rows of an open number are counted one by one.
            let cycles = rows.map_or(blocks.cycles / blocks.items + 1, |rows| rows * blocks.cycles);
            let factors = [cycles.to_string()].into_iter();
            let open = rows.is_none().then_some(last);
            let rest = rest.iter().chain(open).chain(columns);
            vec![factors.chain(rest.map(ToString::to_string)).collect::<Vec<_>>().join("*")]
        }
    };
    (blocks.cycles > 0 && pays).then(|| Phases {
        parts: vec![parts],
        cycles,
        part_bytes: workspace,
    })
}

/// Writes the bodies of the functions of a kernel.
fn write<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    callee: &Callee<'c>,
    bytes: &[Dim],
    (inputs, symbols, counts): (usize, &[Arc<str>], &[Dim]),
    functions: &[(OperationRef<'c, 'a>, Role)],
) -> Result<(), String> {
    let context = irc_mlir::context_of(&func);
    for (function, role) in functions {
        let block = function.region(0).ok().and_then(|region| region.first_block());
        let block = block.ok_or("has no body")?;
        let e = Emit { context, block, location: func.location() };
        let given = (0..block.argument_count()).map(|at| block.argument(at).map(Value::from));
        let mut given = given.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let pool = if *role == Role::Launcher { given.pop() } else { None };
        let own = match role {
            Role::Part => {
                let after = given.split_off(given.len() - signature::PART_PARAMETERS);
                // Blocks use the memory of the part instead of the workspace.
                let last = given.len() - 1;
                given[last] = after[0];
                Some([after[3], after[4]])
            }
            _ => None,
        };
        let mut sizes = Sizes::default();
        symbols
            .iter()
            .zip(&given[inputs..])
            .for_each(|(symbol, value)| sizes.define(symbol, *value));
        let mut buffers = given[..inputs].to_vec();
        buffers.extend(&given[inputs + symbols.len()..]);
        let counts = counts.iter().map(|count| sizes.value(e, count)).collect();
        let frame = Frame { buffers, bytes, sizes, inputs, counts, pool };
        emit(e, callee, own, &frame);
        e.spec(func::RETURN).append(&block);
    }
    Ok(())
}

/// Emits a call for each block, or for those of a part of so many parts.
fn emit<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    callee: &Callee<'c>,
    own: Option<[Value<'c, 'a>; 2]>,
    frame: &Frame<'_, 'c, 'a>,
) {
    let Some((rows, rest)) = frame.counts.split_last() else { return };
    let along = Extent::Passed(*rows).groups(e, callee.items);
    let all = rest.iter().map(|count| Extent::Passed(*count)).chain([along]);
    let all = Extent::product(e, &all.collect::<Vec<_>>());
    let units = Units::of(e, all, own);
    let units = match own {
        Some(_) => together(e, callee, units, (along.value(e), *rows)),
        None => units,
    };
    let Ok(_) = e.for_each((units.from, units.to, 1), &[], |e, unit, _| {
        let (items, block) = items_of(e, callee, unit, (along.value(e), *rows), rest);
        let (operands, workspace) = frame.buffers.split_at(frame.buffers.len() - 1);
        let places = (0..operands.len()).map(|at| {
            let strides = frame.bytes.iter().skip(at).step_by(operands.len());
            let steps = items.iter().zip(strides).filter(|(_, bytes)| !bytes.is(0));
            steps.fold(e.index(0), |sum, (item, bytes)| {
                let step = match bytes.known() {
                    Some(known) => e.scale(*item, known),
                    None => e.binary(arith::MULI, *item, frame.sizes.value(e, bytes)),
                };
                e.add(sum, step)
            })
        });
        let places: Vec<Value> = places.collect();
        let windows: Vec<_> = operands.iter().copied().zip(places).collect();
        let left = callee.info.rows.map(|_| {
            let left = e.binary(arith::SUBI, *rows, items[rest.len()]);
            e.min(left, e.index(callee.items))
        });
        if let Some(calls) = &callee.columns {
            calls.emit(
                e,
                callee,
                frame,
                (&windows, left),
                (unit, units.from, block, items[rest.len()]),
            );
            return Ok::<_, Infallible>(vec![]);
        }
        // All blocks share the workspace.
        if callee.kept().is_some() {
            keep(e, (workspace[0], e.index(0)), is_kept(e, (unit, units.from), block));
        }
        let memory = (workspace[0], e.index(0), frame.inputs);
        let mut operands = arguments(e, callee, &windows, memory, left);
        let name = match (frame.pool, &callee.info.phases) {
            (Some(pool), Some(_)) => {
                operands.push(pool);
                launcher(&callee.name)
            }
            _ => callee.name.clone(),
        };
        call(e, &name, &operands);
        Ok::<_, Infallible>(vec![])
    });
}

fn call<'c: 'a, 'a>(e: Emit<'c, 'a>, name: &str, operands: &[Value<'c, 'a>]) {
    let spec = e.spec(func::CALL).operands(operands);
    spec.attr("callee", attr::symbol(e.context, name)).append(&e.block);
}

/// The arguments of a call: memory of operands and results from places on, what it keeps at a place in the workspace, its own
/// workspace after the first place for that, and the numbers that it is passed after so many inputs.
fn arguments<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    callee: &Callee<'c>,
    windows: &[(Value<'c, 'a>, Value<'c, 'a>)],
    (workspace, kept_at, inputs): (Value<'c, 'a>, Value<'c, 'a>, usize),
    passed: impl IntoIterator<Item = Value<'c, 'a>>,
) -> Vec<Value<'c, 'a>> {
    let mut windows = windows.to_vec();
    if let Some(kept) = callee.kept() {
        windows.push((workspace, kept_at));
        windows.push((workspace, e.index(kept.cast_signed())));
    } else {
        windows.push((workspace, e.index(0)));
    }
    let memory = callee.parameters.iter().filter(|ty| !ty.is_index());
    let windows = windows.into_iter().zip(memory);
    let mut operands: Vec<Value> =
        windows.map(|((buffer, place), ty)| window(e, buffer, place, *ty)).collect();
    operands.splice(inputs..inputs, passed);
    operands
}

/// Whether the block before reads the same as one: not for the first block along the last dimension of the grid, nor
/// for the first one that is computed.
fn is_kept<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    (unit, from): (Value<'c, 'a>, Value<'c, 'a>),
    block: Value<'c, 'a>,
) -> Value<'c, 'a> {
    let is_later = e.compare(NE, block, e.index(0));
    e.binary(arith::ANDI, is_later, e.compare(NE, unit, from))
}

/// States whether kept memory at a place is what the next call needs.
fn keep<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    (memory, place): (Value<'c, 'a>, Value<'c, 'a>),
    is_kept: Value<'c, 'a>,
) {
    let header = window(e, memory, place, MemRefType::new(e.int(64), &[1], None, None).into());
    let header = Buffer { memref: header, element: e.int(64) };
    let word = e.op(arith::EXTUI, &[is_kept], e.int(64));
    e.store(word, header, e.index(0), Lanes::Scalar, None);
}

/// Units of which two blocks that share items are both, or neither: the last ones of fixed size along the last dimension of the
/// grid. Both compute these items, whose last bits depend on their place in the block, and the second one replaces them.
fn together<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    callee: &Callee<'c>,
    units: Units<'c, 'a>,
    (along, rows): (Value<'c, 'a>, Value<'c, 'a>),
) -> Units<'c, 'a> {
    if callee.info.rows.is_some() || callee.items == 1 {
        return units;
    }
    let rest = e.binary(arith::REMUI, rows, e.index(callee.items));
    let share = e.compare(NE, rest, e.index(0));
    let are_two = e.binary(arith::ANDI, share, e.compare(SGT, along, e.index(1)));
    let second = if is_backwards(callee) { e.index(1) } else { e.offset(along, -1) };
    let moved = |unit: Value<'c, 'a>| {
        let is_second = e.compare(EQ, e.binary(arith::REMUI, unit, along), second);
        let divides = e.binary(arith::ANDI, are_two, is_second);
        e.op(arith::SELECT, &[divides, e.offset(unit, -1), unit], unit.r#type())
    };
    Units { from: moved(units.from), to: moved(units.to) }
}

// Predicates of comparisons.
const EQ: i64 = 0;
const NE: i64 = 1;
const SGT: i64 = 4;

/// Whether the last block along the last dimension of the grid comes first: blocks of a causal mask with the most columns do, so
/// that the others find these packed.
fn is_backwards(callee: &Callee<'_>) -> bool {
    callee.columns.as_ref().is_some_and(Calls::is_causal)
}

/// The first item of a block along each dimension of the grid, and the number of the block along the last. Blocks of
/// fixed sizes end with the last item at most.
fn items_of<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    callee: &Callee<'c>,
    unit: Value<'c, 'a>,
    (along, rows): (Value<'c, 'a>, Value<'c, 'a>),
    rest: &[Value<'c, 'a>],
) -> (Vec<Value<'c, 'a>>, Value<'c, 'a>) {
    let mut items = indices(e, unit, &[rest, &[along]].concat());
    let block = items[rest.len()];
    let place = match is_backwards(callee) {
        true => e.binary(arith::SUBI, e.offset(along, -1), block),
        false => block,
    };
    let mut item = e.scale(place, callee.items);
    if callee.info.rows.is_none() && callee.items > 1 {
        item = e.min(item, e.binary(arith::SUBI, rows, e.index(callee.items)));
    }
    items[rest.len()] = item;
    (items, block)
}

/// Memory of a type from a byte on.
fn window<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    buffer: Value<'c, 'a>,
    place: Value<'c, 'a>,
    ty: Type<'c>,
) -> Value<'c, 'a> {
    let Some((shape, strides, element)) = strided(ty) else {
        return e.op(memref::VIEW, &[buffer, place], ty);
    };
    let flat: Type = MemRefType::new(element, &[1], None, None).into();
    let flat = e.op(memref::VIEW, &[buffer, place], flat);
    let spec = e
        .spec(memref::REINTERPRET_CAST)
        .operands(&[flat])
        .results(&[ty])
        .attr("operandSegmentSizes", attr::parse(e.context, "array<i32: 1, 0, 0, 0>"))
        .attr("static_offsets", attr::i64s(e.context, &[0]))
        .attr("static_sizes", attr::i64s(e.context, &shape))
        .attr("static_strides", attr::i64s(e.context, &strides));
    e.value(spec)
}

/// The shape, strides and element of memory that is not contiguous.
fn strided(ty: Type<'_>) -> Option<(Vec<i64>, Vec<i64>, Type<'_>)> {
    let memref = MemRefType::try_from(ty).ok()?;
    let layout = memref.layout().to_string();
    let strides = layout.strip_prefix("strided<[")?.split(']').next()?;
    let strides = strides.split(", ").map(|stride| stride.parse().ok());
    let strides = strides.collect::<Option<Vec<i64>>>()?;
    let shape = (0..strides.len()).map(|dim| match memref.dim_size(dim).ok()? {
        DimSize::Static(size) => i64::try_from(size).ok(),
        DimSize::Dynamic => None,
    });
    Some((shape.collect::<Option<_>>()?, strides, memref.element()))
}

fn callee<'c: 'a, 'a>(
    blocks: &Blocks,
    kernels: &BTreeMap<String, OperationRef<'c, 'a>>,
) -> Result<Callee<'c>, String> {
    let of_name = |name: &String, columns| -> Result<Callee<'c>, String> {
        let found = kernels.get(name).copied();
        let found = found.ok_or_else(|| format!("expected a kernel '{name}'"))?;
        let (parameters, _) = read::signature(&found).ok_or("expected a function")?;
        let info = KERNEL.read(&found).filter(|info| info.workspace_bytes.is_some());
        let info = info.ok_or_else(|| format!("expected '{name}' to be lowered before"))?;
        Ok(Callee { name: name.clone(), items: blocks.items, parameters, info, columns })
    };
    let columns = match &blocks.columns {
        None => None,
        Some(columns) => Some(Calls::of(columns, of_name(&columns.callee, None)?)?),
    };
    of_name(&blocks.callee, columns)
}

fn sizes_of(what: &str, texts: &[String]) -> Result<Vec<Dim>, String> {
    let sizes = texts.iter().map(|size| size.parse());
    sizes.collect::<Result<_, _>>().map_err(|error| format!("{what}: {error}"))
}

/// All symbols of the kernel's types and of the counts, in the order of names.
fn symbols<'d>(
    func: OperationRef<'_, '_>,
    sizes: impl Iterator<Item = &'d Dim>,
) -> Result<Vec<Arc<str>>, String> {
    let (inputs, results) = read::signature(&func).ok_or("is not a function")?;
    let mut symbols: BTreeSet<_> = sizes.flat_map(Dim::symbols).collect();
    for ty in inputs.into_iter().chain(results) {
        symbols.extend(tl::type_of(ty)?.dims.iter().flat_map(Dim::symbols));
    }
    Ok(symbols.into_iter().collect())
}

/// The type of memory of this size in bytes; 1 stands for any size.
fn memory(context: &Context, bytes: i64) -> Type<'_> {
    MemRefType::new(stored(context, DType::U8), &[bytes], None, None).into()
}
