//! `linalg-to-vector`: lowers kernels from linalg on tensors to `scf`, `vector` and `memref`.
//!
//! Before: a `func.func` of tensors of static shape, whose body is `linalg.generic`, `linalg.fill`,
//! constants and shape ops. After: the same function on memrefs in destination-passing style, the inputs
//! first, then the outputs, then a `memref<Nxi8>` workspace, 64-byte aligned, of `workspace_bytes`
//! bytes. An argument or result with the attribute `tl.strides` becomes a memref with those strides.
//! Outputs must not alias inputs, except where `tl.overwrites` allows it or if each element is
//! computed from the same element of the input alone. A function that `keeps` also gets `kept_bytes` of
//! memory that is kept between calls, before the workspace. Arguments in `constants` may be read in
//! another order, which `packed` then describes.
//!
//! A kernel with `rows` takes the number of rows, an `index` from 0 to `rows`, after its inputs: the extent `rows`
//! stands for it. So does the extent `columns` of a kernel with `columns` for the number that follows: of columns of a
//! product, of a row that is reduced, or of the depth of a product with it.
//!
//! A kernel of one `tl.stepped_matmul` is lowered to loops directly; kernels of the kind `loops` have been
//! lowered by `compute-to-loops`.
//!
//! `docs/kernels.md` describes which schedule a kernel gets and why.
use irc_mlir::ops::{func, memref};
use irc_mlir::{
    Attribute, BlockLike, BlockRef, Context, Erase, OperationLike, OperationRef, Type, TypeLike,
    Value, attr,
};
use melior::ir::r#type::{IntegerType, MemRefType};

mod access;
mod as_pass;
pub(super) mod body;
mod codegen;
mod codes;
mod contraction;
mod direct_conv;
pub mod dots;
mod error;
mod kernel;
mod layout;
mod matmul;
mod pack_cache;
mod packed;
mod packing;
mod padding;
mod pass;
mod quads;
mod reduce;
mod rows;
mod schedule;
pub(super) mod signature;
pub(super) mod split;
mod stepped_matmul;
#[cfg(test)]
mod tests;
mod windows;
pub(super) mod winograd;

use crate::{
    attributes::{BLOCK, KERNEL, KernelInfo, Phases, TASK, is_loops},
    kernel::emit::{Buffer, Emit, Lanes},
};
use access::Access;
pub use as_pass::{DOTS, LinalgToVector, VECTOR_BYTES, dots_of, lanes_of};
use codegen::{Codegen, Place};
pub use dots::Dots;
pub use error::LowerError;
use error::Result;
use kernel::{Kernel, Origin, Tensor};
use layout::{Layouts, row_major, span};
use pack_cache::PackCache;
use signature::{PART_PARAMETERS, declare, declare_part, record_memory};
pub(super) use split::MIN_PART;
use split::Split;

/// The machine that a kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Bytes per vector register: 64, 32 or 16.
    pub vector_bytes: i64,
    /// Bytes of L2 cache per core.
    pub l2_bytes: i64,
    /// The instructions for sums of products of bytes.
    pub dots: Dots,
    /// Whether large results are stored past the caches.
    pub streams: bool,
}

impl Target {
    /// `f32` elements per vector register.
    pub fn lanes(&self) -> i64 {
        self.vector_bytes / 4
    }
}

impl Default for Target {
    fn default() -> Self {
        Self { vector_bytes: 64, l2_bytes: 1 << 20, dots: Dots::Plain, streams: false }
    }
}

/// Dialects that the context must have loaded before [`lower_kernel`]; the pass declares them.
pub const DIALECTS: [&str; 7] = ["arith", "func", "llvm", "math", "memref", "scf", "vector"];

/// Lowers every function of a module with the attribute `tl.kernel`.
///
/// # Errors
/// At the first op that has no schedule; the module is then partly lowered.
pub fn lower_module<'c: 'a, 'a>(
    context: &'c Context,
    module: OperationRef<'c, 'a>,
    target: &Target,
) -> Result<()> {
    for func in irc_mlir::walk_collect(module, is_scheduled_here) {
        lower_kernel(context, func, target)?;
    }
    Ok(())
}

/// Whether an op is a kernel that this pass lowers.
fn is_scheduled_here(op: OperationRef<'_, '_>) -> bool {
    KERNEL.is_on(&op) && !is_loops(&op)
}

/// Replaces one kernel function by its lowered form.
///
/// # Errors
/// At the first op that has no schedule; the function is then unchanged.
pub fn lower_kernel<'c: 'a, 'a>(
    context: &'c Context,
    func: OperationRef<'c, 'a>,
    target: &Target,
) -> Result<()> {
    if let Some(product) = stepped_matmul::find(func) {
        return stepped_matmul::lower(context, func, product, target);
    }
    let (info, layouts) = (KERNEL.read(&func).unwrap_or_default(), Layouts::of(func));
    let kernel = Kernel::read(func, &layouts)?;
    let types = signature::parameters(context, &kernel, &layouts, &info);
    let is_part = [TASK, BLOCK].contains(&info.kind.as_str());
    let is_split = !is_part && !info.keeps && split::pays(&kernel, target);
    let lowered = match is_split {
        true => declare_part(func, &types)?,
        false => declare(func, &types)?,
    };
    let filled = fill(context, func, lowered, (kernel, info), &layouts, target);
    let filled = filled.and_then(|info| match is_split {
        true => signature::whole(context, func, lowered, types, &info),
        false => {
            record_memory(context, lowered, types, &info);
            Ok(())
        }
    });
    match filled {
        Ok(()) => func.erase(),
        Err(_) => lowered.erase(),
    }
    filled
}

/// Writes the body; returns the resulting properties of the kernel.
fn fill<'c: 'a, 'a>(
    context: &'c Context,
    func: OperationRef<'c, 'a>,
    lowered: OperationRef<'c, 'a>,
    (kernel, info): (Kernel<'c, 'a>, KernelInfo),
    layouts: &Layouts,
    target: &Target,
) -> Result<KernelInfo> {
    let block = kernel::entry(lowered)?;
    let e = Emit { context, block, location: func.location() };
    let argument = |index| kernel::argument(func, block, index);
    let all = block.argument_count();
    let (count, split) = match KERNEL.is_on(&lowered) {
        true => (all, None),
        false => {
            let [memory, first, last, part, parts] =
                [5, 4, 3, 2, 1].map(|back| argument(all - back));
            let split = Split::new([memory?, first?, last?, part?, parts?]);
            (all - PART_PARAMETERS, Some(split))
        }
    };
    let pack_cache = match info.keeps {
        true => Some(PackCache::new(e, argument(count - 2)?)),
        false => None,
    };
    let constants = info.constants.iter();
    let constants = constants.map(|index| Ok((*index, argument(*index)?)));
    let mut cg = Codegen {
        constants: constants.collect::<Result<_>>()?,
        small: info.small.clone(),
        cached: info.cached,
        packed: vec![],
        places: vec![Place::Register; kernel.tensors.len()],
        scalars: vec![],
        pack_cache,
        workspace: argument(count - 1)?,
        workspace_bytes: 0,
        target: *target,
        kernel,
        top: block,
        schedule: info.schedule,
        split,
        streamed: vec![],
        passed: vec![],
    };
    let results = count - 1 - usize::from(info.keeps) - cg.kernel.results.len();
    let passed: Vec<i64> = info.passed().map(|(_, most)| most).collect();
    for (index, most) in passed.iter().enumerate() {
        cg.passed.push((*most, argument(results - passed.len() + index)?));
    }
    place_sources(&mut cg, e, lowered, layouts, &argument)?;
    let copies = place_results(&mut cg, e, results, layouts, &argument)?;
    schedule::emit_stages(&mut cg, e)?;
    if !copies.is_empty() {
        cg.phase(e, &[], |cg, e| {
            copies.iter().try_for_each(|(result, buffer)| {
                copy_result(cg, e, func, (*result, layouts.result(*result)), *buffer)
            })
        })?;
    }
    e.spec(func::RETURN).append(&block);
    let phases = cg.split.map(|split| Phases {
        parts: split.found,
        cycles: match info.rows {
            Some(rows) => {
                split.cycles.iter().map(|cycles| format!("{}*rows", cycles / rows + 1)).collect()
            }
            None => vec![],
        },
        part_bytes: split.bytes.cast_unsigned(),
    });
    let symbols = info.passed().map(|(name, _)| name.to_owned()).collect();
    let part_bytes = phases.as_ref().map_or(0, |phases| phases.part_bytes);
    Ok(KernelInfo {
        workspace_bytes: Some(cg.workspace_bytes.cast_unsigned() + part_bytes),
        phases,
        symbols,
        kept: cg.pack_cache.map(|cache| cache.contents),
        packed: cg.packed,
        ..info
    })
}

/// Places arguments and constants with different elements.
fn place_sources<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    lowered: OperationRef<'c, 'a>,
    layouts: &Layouts,
    argument: &dyn Fn(usize) -> Result<Value<'c, 'a>>,
) -> Result<()> {
    for id in 0..cg.kernel.tensors.len() {
        let tensor = cg.kernel.tensors[id].clone();
        match tensor.origin {
            Origin::Argument(index) => {
                let strides = layouts.argument(index);
                cg.places[id] = Place::Memory(flat(e, argument(index)?, &tensor, strides));
            }
            Origin::Dense(value) => {
                cg.places[id] = Place::Memory(global(e, lowered, id, &tensor, value))
            }
            _ => {}
        }
    }
    Ok(())
}

/// Places returned stages in their outputs; returns the results to copy at the end instead.
fn place_results<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    first: usize,
    layouts: &Layouts,
    argument: &dyn Fn(usize) -> Result<Value<'c, 'a>>,
) -> Result<Vec<(usize, Buffer<'c, 'a>)>> {
    let mut copies = vec![];
    for index in 0..cg.kernel.results.len() {
        let result = cg.kernel.results[index].clone();
        let tensor = cg.kernel.tensors[result.tensor].clone();
        let shape = cg.kernel.result_shapes[index].clone();
        let whole = Tensor { shape: shape.clone(), ..tensor.clone() };
        let strides = layouts.result(index);
        let buffer = flat(e, argument(first + index)?, &whole, strides);
        let all = shape.iter().product::<i64>() == tensor.shape.iter().product::<i64>()
            && has_strides(&result.access, &shape, strides);
        let direct = matches!(tensor.origin, Origin::Stage(_)) && !layouts.overwrites(index);
        if direct && all && cg.places[result.tensor].buffer().is_none() {
            cg.places[result.tensor] = Place::Memory(buffer);
        } else {
            copies.push((index, buffer));
        }
    }
    for (index, _) in &copies {
        let tensor = cg.kernel.results[*index].tensor;
        let computed = matches!(cg.kernel.tensors[tensor].origin, Origin::Stage(_));
        if computed && cg.places[tensor].buffer().is_none() {
            let size = cg.kernel.tensors[tensor].shape.iter().product();
            cg.places[tensor] = Place::Memory(cg.shared(e, size, tensor));
        }
    }
    Ok(copies)
}

/// Whether an access traverses a whole box with these strides; row-major if `None`.
fn has_strides(access: &Access, shape: &[i64], strides: Option<&[i64]>) -> bool {
    let strides = strides.map_or_else(|| row_major(shape), <[i64]>::to_vec);
    let dims = access.coefs.iter().zip(&strides).zip(shape);
    access.offset == 0
        && dims.into_iter().all(|((coef, stride), size)| *size == 1 || coef == stride)
}

/// Copies a result that is an argument, a constant, part of a stage's output, returned twice, or
/// aliases memory that the kernel reads.
fn copy_result<'c: 'a, 'a>(
    cg: &Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    func: OperationRef<'c, 'a>,
    (index, strides): (usize, Option<&[i64]>),
    to: Buffer<'c, 'a>,
) -> Result<()> {
    let result = &cg.kernel.results[index];
    let shape = cg.kernel.result_shapes[index].clone();
    let source = match (cg.splat_of(result.tensor), cg.places[result.tensor].buffer()) {
        (Some(scalar), _) => Err(e.constant(scalar, to.element, Lanes::Scalar)),
        (None, Some(buffer)) => Ok(buffer),
        _ => return Err(LowerError::at(func, format!("result {index} is never computed"))),
    };
    let strides = strides.map_or_else(|| row_major(&shape), <[i64]>::to_vec);
    let mut loops: Vec<CopyLoop> = vec![];
    for ((size, to), from) in shape.into_iter().zip(strides).zip(&result.access.coefs) {
        let inner = CopyLoop { size, from: if source.is_ok() { *from } else { to }, to };
        match loops.last_mut() {
            Some(outer)
                if !cg.is_passed(outer.size) && !cg.is_passed(size) && outer.holds(&inner) =>
            {
                *outer = CopyLoop { size: outer.size * size, ..inner };
            }
            _ => loops.push(inner),
        }
    }
    let start = [e.index(result.access.offset), e.index(0)];
    // A vector of `i1` in memory would be packed bits.
    let lanes = if to.element == e.int(1) { Lanes::Scalar } else { cg.full_lanes() };
    copy_loops((cg, lanes), e, &loops, start, &|e, [from, at], lanes, mask| {
        let value = match source {
            Ok(buffer) => e.load_lanes(buffer, from, lanes, mask),
            Err(scalar) => e.splat(scalar, lanes),
        };
        e.store(value, to, at, lanes, mask);
    })
}

/// A loop of a copy, and the distances of its elements.
#[derive(Clone, Copy)]
struct CopyLoop {
    size: i64,
    from: i64,
    to: i64,
}

impl CopyLoop {
    /// Whether the iterations of a loop inside this one follow each other across both.
    fn holds(&self, inner: &Self) -> bool {
        self.from == inner.from * inner.size && self.to == inner.to * inner.size
    }
}

/// Copies the elements at some places: in the operand and in the result, the lanes, and which of them exist.
type CopyElements<'f, 'c, 'a> =
    dyn Fn(Emit<'c, 'a>, [Value<'c, 'a>; 2], Lanes, Option<Value<'c, 'a>>) + 'f;

fn copy_loops<'c: 'a, 'a>(
    (cg, lanes): (&Codegen<'c, 'a>, Lanes),
    e: Emit<'c, 'a>,
    loops: &[CopyLoop],
    start: [Value<'c, 'a>; 2],
    copy: &CopyElements<'_, 'c, 'a>,
) -> Result<()> {
    let Some((outer, rest)) = loops.split_first() else {
        copy(e, start, Lanes::Scalar, None);
        return Ok(());
    };
    let is_contiguous = rest.is_empty() && outer.from == 1 && outer.to == 1;
    if is_contiguous && lanes != Lanes::Scalar && !cg.is_passed(outer.size) {
        return e.each_vector(outer.size, lanes, |e, at, mask| {
            copy(e, start.map(|start| e.add(start, at)), lanes, mask);
            Ok(())
        });
    }
    split::loop_over(e, (cg.extent(outer.size), 1), None, |e, iv, _| {
        let strides = [outer.from, outer.to];
        let at = [0, 1].map(|side| e.linear(start[side], &[iv], &[strides[side]]));
        copy_loops((cg, lanes), e, rest, at, copy)
    })
}

/// A 1-D view of a whole argument.
fn flat<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    memref: Value<'c, 'a>,
    tensor: &Tensor<'c>,
    strides: Option<&[i64]>,
) -> Buffer<'c, 'a> {
    let element = tensor.element;
    let size = match strides {
        None => tensor.shape.iter().product::<i64>(),
        Some(strides) => span(&tensor.shape, strides),
    };
    flat_view(e, memref, size, element)
}

/// A 1-D view of this number of elements.
fn flat_view<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    memref: Value<'c, 'a>,
    size: i64,
    element: Type<'c>,
) -> Buffer<'c, 'a> {
    let stored = Buffer { memref, element }.stored();
    let ty: Type = MemRefType::new(stored, &[size], None, None).into();
    let segments = attr::parse(e.context, "array<i32: 1, 0, 0, 0>");
    let spec = e.spec(memref::REINTERPRET_CAST).operands(&[memref]).results(&[ty]);
    let spec = spec
        .attr("operandSegmentSizes", segments)
        .attr("static_offsets", attr::i64s(e.context, &[0]))
        .attr("static_sizes", attr::i64s(e.context, &[size]))
        .attr("static_strides", attr::i64s(e.context, &[1]));
    Buffer { memref: e.value(spec), element }
}

/// A global next to the function, for a constant with different elements.
fn global<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    lowered: OperationRef<'c, 'a>,
    id: usize,
    tensor: &Tensor<'c>,
    value: Attribute<'c>,
) -> Buffer<'c, 'a> {
    let symbol = lowered.attribute("sym_name").map(|name| name.to_string()).unwrap_or_default();
    let name = format!("{}_constant_{id}", symbol.trim_matches('"'));
    let ty: Type = MemRefType::new(tensor.element, &tensor.shape, None, None).into();
    let spec = e.spec(memref::GLOBAL).attr("sym_name", attr::string(e.context, &name));
    let spec = spec
        .attr("sym_visibility", attr::string(e.context, "private"))
        .attr("type", attr::ty(ty))
        .attr("initial_value", value)
        .attr("constant", attr::unit(e.context));
    if let Some(block) = lowered.block() {
        let block: BlockRef = block;
        block.insert_operation_before(lowered, spec.build());
    }
    let get = e.spec(memref::GET_GLOBAL).attr("name", attr::symbol(e.context, &name));
    flat(e, e.value(get.results(&[ty])), tensor, None)
}

/// Bytes of one element in memory.
fn byte_width(element: Type<'_>) -> i64 {
    if element.is_index() {
        return 8;
    }
    match IntegerType::try_from(element) {
        Ok(integer) => (i64::from(integer.width()) + 7) / 8,
        Err(_) => i64::from(element.float_width()) / 8,
    }
}
