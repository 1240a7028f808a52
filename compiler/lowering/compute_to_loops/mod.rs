//! `compute-to-loops`: kernels of the kind `loops` become scalar loops over memory.
//!
//! Before: a `func.func` of the kind `loops` whose body is ops of `tl` that have loops around an
//! expression (`irc_tl::Op::as_compute`), algorithms, and views. Sizes may depend on symbols. After:
//! the same function in `scf`, `arith`, `math` and `memref` in destination-passing style: the inputs,
//! one `index` per symbol in the order of the `symbols` in `#tl.kernel`, the outputs, then a workspace of
//! `workspace_bytes` bytes. Memory is flat: `memref<Nxt>`, or, if N depends on symbols,
//! `memref<1xt>`, which stands for any number of elements. A `bool` is an `i8`, 0 or 1. Elements of less than
//! 8 bits and small floats occupy one byte each. Outputs must not alias inputs, except that a map that replaces elements of
//! an operand of the result's type may be in that operand's memory: then only these are written (`guards::Update`).
//!
//! A kernel split by `split-blocks` becomes loops of calls, and its memory `memref<1xi8>`.
//!
//! This is the lowering of kernels without a schedule in vectors (`docs/kernels.md`); LLVM vectorizes
//! inner loops if it can.

mod algorithms;
mod blocks;
mod expression;
mod guards;
mod kernel;
mod lanewise;
mod nest;
mod rows;
pub mod simt;
mod sizes;
mod tiles;
mod transposed;

use super::linalg_to_vector::{DOTS, Dots, VECTOR_BYTES, dots_of, lanes_of, signature, split};
use crate::attributes::{KERNEL, KernelInfo, Phases, is_loops};
use crate::kernel::{
    declare::on_memory,
    element::Element,
    emit::{Buffer, Emit},
};
pub use guards::updated_operand;
use irc_dialects::tl;
use irc_mlir::ops::{arith, func};
use irc_mlir::{
    BlockLike, BlockRef, Context, Erase, OperationLike, OperationRef, Options, Pass, PassError,
    PassOption, PassResult, RegionLike, Type, Value, attr, read, walk_collect,
};
use irc_tl::{Compute, DType, Dim, Op, Scalar};
use kernel::{Kernel, Origin, Work};
use melior::ir::r#type::MemRefType;
use rows::Rows;
use sizes::Sizes;
use std::{collections::BTreeMap, convert::Infallible};
use transposed::Transposed;

/// The pass `compute-to-loops`.
pub struct ComputeToLoops;

impl Pass for ComputeToLoops {
    fn name(&self) -> &'static str {
        "compute-to-loops"
    }
    fn description(&self) -> &'static str {
        "write each kernel of loops as scf loops over memrefs"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["arith", "func", "math", "memref", "scf"]
    }
    fn options(&self) -> &'static [PassOption] {
        &[VECTOR_BYTES, DOTS]
    }
    fn run(&self, module: OperationRef<'_, '_>, options: &Options) -> PassResult {
        let how = (lanes_of(&module, options)?, dots_of(&module, options)?);
        let (loops, lowered): (Vec<_>, Vec<_>) = walk_collect(module, |op| KERNEL.is_on(&op))
            .into_iter()
            .partition(|kernel| is_loops(kernel));
        let named = lowered.into_iter().filter_map(|op| Some((read::string(&op, "sym_name")?, op)));
        let named = named.collect();
        loops.into_iter().try_for_each(|kernel| lower_kernel(kernel, &named, how))
    }
}

/// Replaces one kernel function by its loops.
fn lower_kernel<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    lowered: &BTreeMap<String, OperationRef<'c, 'a>>,
    how: (i64, Dots),
) -> PassResult {
    let context = irc_mlir::context_of(&func);
    // A kernel that is already lowered has no op of `tl`.
    let ops = read::body_ops(func);
    if !ops.iter().any(|op| read::op_name(op).starts_with("tl.")) {
        return Ok(());
    }
    if blocks::is_split(func) {
        return blocks::lower(func, lowered);
    }
    let mut kernel = Kernel::read(func)?;
    pack(func, &mut kernel, how);
    let cycles = divided(&kernel);
    let (lowered, block) = declare(context, func, &kernel, cycles.is_some())?;
    let filled = fill(context, func, block, &kernel, (cycles.is_some(), how));
    let filled = filled.and_then(|()| match cycles {
        None => Ok(()),
        Some(cycles) => whole(context, func, lowered, &kernel, &cycles),
    });
    match filled {
        Ok(()) => {
            func.erase();
            Ok(())
        }
        Err(error) => {
            lowered.erase();
            Err(error)
        }
    }
}

/// Chooses the order of the constants that it may choose, each of which one step reads.
fn pack(func: OperationRef<'_, '_>, kernel: &mut Kernel<'_>, how: (i64, Dots)) {
    let free = KERNEL.read(&func).map_or(vec![], |info| info.constants);
    let readers = |id: usize| {
        kernel.steps.iter().flat_map(|step| &step.operands).filter(|read| **read == id).count()
    };
    let packed = kernel.steps.iter().filter_map(|step| {
        let Work::Nest(nest) = &step.work else { return None };
        let types: Vec<_> = step.operands.iter().map(|value| &kernel.values[*value].ty).collect();
        let packed = tiles::packing(nest, &types, how)?;
        let id = step.operands[packed.operand];
        let free = match kernel.values[id].origin {
            Origin::Input(argument)
                if argument == id && free.contains(&argument) && readers(id) == 1 =>
            {
                Some(packed.packing.of(argument))
            }
            _ => None,
        };
        Some((free, packed.part_bytes[usize::from(free.is_none())]))
    });
    let (packed, bytes): (Vec<_>, Vec<_>) = packed.unzip();
    kernel.packed = packed.into_iter().flatten().collect();
    kernel.part_bytes = bytes.into_iter().max().unwrap_or(0);
}

/// The cycles of each step, if the kernel is divided among threads: 0 for a step that is not.
fn divided(kernel: &Kernel<'_>) -> Option<Vec<Dim>> {
    let cycles = kernel.steps.iter().map(|step| match &step.work {
        Work::Nest(nest) => nest::cycles(nest),
        Work::Rows(rows) => rows.cycles(),
        Work::Algorithm(algorithm) => {
            let types: Vec<_> = step.operands.iter().map(|id| &kernel.values[*id].ty).collect();
            Some(algorithms::cycles(algorithm, &types).unwrap_or(0.into()))
        }
    });
    let cycles: Vec<Dim> = cycles.collect::<Option<_>>()?;
    let known = cycles.iter().map(Dim::known).sum::<Option<i64>>();
    let pays = known.is_none_or(|known| known >= split::MIN_CYCLES);
    pays.then_some(cycles)
}

/// Adds the kernel, which runs all steps of its function for parts as one part.
fn whole<'c: 'a, 'a>(
    context: &'c Context,
    func: OperationRef<'c, 'a>,
    part: OperationRef<'c, 'a>,
    kernel: &Kernel<'c>,
    cycles: &[Dim],
) -> PassResult {
    let most = |cycles: &Dim| match cycles.known() {
        Some(known) => (known / split::MIN_PART).clamp(1, split::MAX_PARTS),
        None => split::MAX_PARTS,
    };
    let phases = Phases {
        parts: cycles.iter().map(most).collect(),
        cycles: match kernel.symbols.is_empty() {
            true => vec![],
            false => cycles.iter().map(ToString::to_string).collect(),
        },
        part_bytes: kernel.part_bytes.cast_unsigned(),
    };
    let info = KernelInfo { phases: Some(phases), ..described(func, kernel) };
    let types = parameters(context, kernel);
    signature::whole(context, func, part, types, &info)
        .map_err(|error| PassError::at(&func, error.to_string()))
}

/// What is known of the lowered kernel.
fn described(func: OperationRef<'_, '_>, kernel: &Kernel<'_>) -> KernelInfo {
    KernelInfo {
        symbols: kernel.symbols.iter().map(ToString::to_string).collect(),
        workspace_bytes: Some((kernel.workspace + kernel.part_bytes).cast_unsigned()),
        packed: kernel.packed.clone(),
        scalar: kernel.steps.iter().find_map(|step| why_scalar_step(kernel, step)),
        ..KERNEL.read(&func).unwrap_or_default()
    }
}

/// Why a step adds products in scalar loops, if it does.
fn why_scalar_step(kernel: &Kernel<'_>, step: &kernel::Step<'_>) -> Option<String> {
    let Work::Nest(nest) = &step.work else { return None };
    let types: Vec<_> = step.operands.iter().map(|value| &kernel.values[*value].ty).collect();
    why_scalar_nest(nest, &types)
}

/// Whether sums of open sizes are those of products of bytes, four at a time, where processors have [`Dots::Vnni`] in vectors of
/// 64 bytes.
pub fn adds_bytes(compute: &Compute, types: &[&irc_tl::Type]) -> bool {
    tiles::add_bytes(&nest::Nest::of(compute.clone()), types)
}

/// Why loops of an op add products one by one, if they do.
pub(crate) fn why_scalar(op: &Op, operands: &[irc_tl::Type]) -> Option<String> {
    let nest = nest::Nest::of(op.as_compute(operands)?);
    why_scalar_nest(&nest, &operands.iter().collect::<Vec<_>>())
}

fn why_scalar_nest(nest: &nest::Nest, types: &[&irc_tl::Type]) -> Option<String> {
    if !nest::adds_products(nest) || tiles::apply(nest, types) {
        return None;
    }
    let mut loaded = vec![];
    nest.compute.body.walk(&mut |part| {
        if let Scalar::Load(operand, _) = part {
            loaded.extend(types.get(*operand).map(|ty| ty.dtype));
        }
    });
    Some(match loaded.into_iter().find(|dtype| *dtype != DType::F32) {
        Some(dtype) => format!("loops have no vectors of {dtype}"),
        None => "loops in this order over its operands have no vectors".to_owned(),
    })
}

/// The parameters of the lowered kernel.
fn parameters<'c>(context: &'c Context, kernel: &Kernel<'c>) -> Vec<Type<'c>> {
    let input = |input: usize| match kernel.packing(input) {
        Some(packing) => MemRefType::new(
            stored(context, packing.dtype().unwrap_or(kernel.values[input].ty.dtype)),
            &[packing.elements()],
            None,
            None,
        )
        .into(),
        None => memory(context, &kernel.values[input].ty),
    };
    let mut types: Vec<Type> = (0..kernel.inputs).map(input).collect();
    types.extend(kernel.symbols.iter().map(|_| Type::index(context)));
    types.extend(kernel.results.iter().map(|result| memory(context, &kernel.values[*result].ty)));
    let byte = stored(context, DType::U8);
    let scratch = kernel.workspace + kernel.part_bytes;
    types.push(MemRefType::new(byte, &[scratch], None, None).into());
    types
}

/// The type of memory that holds a value.
fn memory<'c>(context: &'c Context, ty: &irc_tl::Type) -> Type<'c> {
    let elements = ty.known().map_or(1, |known| known.shape.iter().product());
    MemRefType::new(stored(context, ty.dtype), &[elements], None, None).into()
}

/// The storage type of an element.
fn stored(context: &Context, dtype: DType) -> Type<'_> {
    let dtype = if dtype == DType::Bool { DType::U8 } else { dtype };
    element(context, dtype).storage
}

/// The element type for computation.
fn element(context: &Context, dtype: DType) -> Element<'_> {
    let wide = || Element::of(context, tl::dtype_to_mlir(context, dtype));
    let element = Element::of_small(context, dtype).or_else(wide);
    element.unwrap_or_else(|| unreachable!("every type has an element, small or not"))
}

/// Adds an empty function of the new signature before the old one; one for parts of the kernel if it is divided.
fn declare<'c: 'a, 'a>(
    context: &'c Context,
    func: OperationRef<'c, 'a>,
    kernel: &Kernel<'c>,
    is_divided: bool,
) -> Result<(OperationRef<'c, 'a>, BlockRef<'c, 'a>), PassError> {
    let types = parameters(context, kernel);
    let first = kernel.inputs + kernel.symbols.len();
    let outputs = first..first + kernel.results.len();
    let noalias = |index| if outputs.contains(&index) { "{llvm.noalias}" } else { "{}" };
    let all = types.len() + if is_divided { signature::PART_PARAMETERS } else { 0 };
    let noalias: Vec<_> = (0..all).map(noalias).collect();
    let noalias = attr::parse(context, &format!("[{}]", noalias.join(", ")));
    if is_divided {
        let part = signature::declare_part(func, &types);
        let part = part.map_err(|error| PassError::at(&func, error.to_string()))?;
        irc_mlir::set_attribute(part, "arg_attrs", noalias);
        let block = part.region(0).ok().and_then(|region| region.first_block());
        return Ok((part, block.ok_or_else(|| PassError::at(&func, "has no body"))?));
    }
    let spec = on_memory(func, &types, |info| *info = described(func, kernel));
    let mut spec = spec.attr("arg_attrs", noalias);
    if kernel.steps.iter().any(|step| is_ensemble(&step.work)) {
        // LLVM would merge the paths of a tree ensemble into gathers, which are slower than scalar loads.
        spec = spec.attr("passthrough", attr::parse(context, "[\"noimplicitfloat\"]"));
    }
    let parent = func.block().ok_or_else(|| PassError::at(&func, "is not in a module"))?;
    let lowered = spec.before(&parent, func);
    let block = lowered.region(0).ok().and_then(|region| region.first_block());
    let block = block.ok_or_else(|| PassError::at(&func, "has no body"))?;
    Ok((lowered, block))
}

fn is_ensemble(work: &Work<'_>) -> bool {
    matches!(work, Work::Algorithm(irc_tl::Algorithm::TreeEnsemble { .. }))
}

/// Writes the body.
fn fill<'c: 'a, 'a>(
    context: &'c Context,
    func: OperationRef<'c, 'a>,
    block: BlockRef<'c, 'a>,
    kernel: &Kernel<'c>,
    (is_divided, (lanes, dots)): (bool, (i64, Dots)),
) -> PassResult {
    let e = Emit { context, block, location: func.location() };
    let argument = |index: usize| -> Result<Value<'c, 'a>, PassError> {
        let argument = block.argument(index);
        argument.map(Into::into).map_err(|error| PassError::at(&func, error.to_string()))
    };
    let mut sizes = Sizes::default();
    for (index, symbol) in kernel.symbols.iter().enumerate() {
        sizes.define(symbol, argument(kernel.inputs + index)?);
    }
    let outputs = kernel.inputs + kernel.symbols.len();
    let workspace = argument(outputs + kernel.results.len())?;
    let mut buffers = vec![];
    for value in &kernel.values {
        let element = stored(context, value.ty.dtype);
        buffers.push(match value.origin {
            Origin::Input(index) => Buffer { memref: argument(index)?, element },
            Origin::Output(index) => Buffer { memref: argument(outputs + index)?, element },
            Origin::Scratch(offset) => {
                let elements = value.ty.known().map_or(0, |known| known.shape.iter().product());
                e.workspace_view(workspace, offset, elements, element)
            }
        });
    }
    // After the workspace: memory of the part, the first phase and the one after the last, the part and the number of
    // parts.
    let after = outputs + kernel.results.len() + 1;
    let phases = match is_divided {
        true => Some([argument(after + 1)?, argument(after + 2)?]),
        false => None,
    };
    let part = match is_divided {
        true => Some([argument(after + 3)?, argument(after + 4)?]),
        false => None,
    };
    let memory = match is_divided {
        true => argument(after)?,
        false => e.workspace_view(workspace, kernel.workspace, kernel.part_bytes, e.int(8)).memref,
    };
    for (number, step) in kernel.steps.iter().enumerate() {
        let e = e.at(step.location);
        let operands: Vec<_> = step
            .operands
            .iter()
            .map(|value| (&kernel.values[*value].ty, buffers[*value]))
            .collect();
        let results: Vec<_> = step.results.iter().map(|value| buffers[*value]).collect();
        let work = |e: Emit<'c, 'a>| match &step.work {
            Work::Nest(nest) => {
                let packed = step.operands.iter().find_map(|id| kernel.packing(*id)).copied();
                let how = tiles::How { part, lanes, dots, packed, memory };
                if tiles::emit(e, nest, &operands, results[0], &sizes, how) {
                    return;
                }
                let types: Vec<_> = operands.iter().map(|(ty, _)| *ty).collect();
                let own = (&types[..], &kernel.values[step.results[0]].ty);
                if let Some(rows) = Rows::of_nest(nest, own, step.location) {
                    return rows.emit(e, &operands, results[0], &sizes, (part, lanes));
                }
                let scalars = |e| nest::emit(e, nest, &operands, results[0], &sizes, part);
                match Transposed::of(nest, &types, lanes) {
                    Some(copy) => copy.emit(e, &operands, results[0], &sizes, part, scalars),
                    None => scalars(e),
                }
            }
            Work::Rows(rows) => rows.emit(e, &operands, results[0], &sizes, (part, lanes)),
            Work::Algorithm(algorithm) => {
                algorithms::emit(e, algorithm, &operands, &results, &sizes, part);
            }
        };
        let Some([first, last]) = phases else {
            work(e);
            continue;
        };
        let number = e.index(number as i64);
        let runs = e.binary(arith::ANDI, e.compare(7, first, number), e.compare(6, number, last));
        let then = |e| {
            work(e);
            Ok::<_, Infallible>(vec![])
        };
        let Ok(_) = e.if_else(runs, &[], then, |_| Ok(vec![]));
    }
    e.spec(func::RETURN).append(&block);
    Ok(())
}
