//! Runs kernels of many rows, whose number depends on symbols, and those of attention, as kernels of blocks of rows.
//!
//! Before: a kernel of ops whose sizes are known except for a number of leading rows, which may be matrices or images.
//! After: the same kernel with `tl.blocks`, which describes how to run it in blocks of rows, and a kernel of a block, of
//! known sizes, which is scheduled in vectors: of one row, or of any number of small rows up to a maximum.
//! `compute-to-loops` writes the loop of calls of it. `attention` describes the blocks of attention.
mod attention;

use crate::attributes::{BLOCKS, Blocks, KERNEL, KernelInfo, LINKAGE, LOOPS, is_loops};
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    Block, BlockLike, OpSpec, OperationLike, OperationRef, Options, Pass, PassError, PassResult,
    RegionLike, Type as MlirType, Value, ValueLike, attr, function, read, walk_collect,
};
use irc_tl::{Dim, Family, Type};
use std::collections::BTreeMap;

/// The pass `split-blocks`.
pub struct SplitBlocks;

impl Pass for SplitBlocks {
    fn name(&self) -> &'static str {
        "split-blocks"
    }
    fn description(&self) -> &'static str {
        "run kernels of a symbolic number of rows, and attention, as kernels of blocks"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["func", "llvm"]
    }
    fn run(&self, module: OperationRef<'_, '_>, _: &Options) -> PassResult {
        let kernels = walk_collect(module, |op| KERNEL.is_on(&op));
        for kernel in kernels {
            let written = match Rows::of(kernel) {
                _ if attention::is_attention(kernel) => attention::write(kernel),
                Some(rows) => rows.write(kernel),
                None => Ok(()),
            };
            written.map_err(|message| PassError::at(&kernel, message))?;
        }
        Ok(())
    }
}

/// The maximum number of rows of a call of a kernel of small rows. Primes, so that one of them is no extent of a kernel,
/// nor a factor of one.
const MAX_ROWS: [i64; 4] = [251, 241, 239, 233];

/// As [`MAX_ROWS`], for rows of at most [`TINY`] elements.
const MAX_TINY_ROWS: [i64; 4] = [4093, 4091, 4079, 4073];

/// The maximum number of elements of a tiny row.
const TINY: i64 = 16;

/// The number of elements from which on a row is an item of its own.
const LARGE: i64 = 4096;

/// A kernel over rows whose number depends on symbols.
struct Rows {
    /// Their number.
    count: Dim,
    /// The number of rows of a block; the maximum, if it is passed to the kernel of blocks.
    items: i64,
    is_passed: bool,
}

impl Rows {
    /// The rows of a kernel; `None` if its sizes are known, and for kernels of loops.
    fn of<'c: 'a, 'a>(kernel: OperationRef<'c, 'a>) -> Option<Self> {
        let (inputs, results) = read::signature(&kernel).filter(|_| !is_loops(&kernel))?;
        let all = inputs.iter().chain(&results).map(|ty| tl::type_of(*ty).ok());
        let all: Vec<Type> = all.collect::<Option<_>>()?;
        let count = all.iter().find(|ty| ty.known().is_none())?.dims.first()?.clone();
        let sizes = all.iter().flat_map(|ty| &ty.dims).filter_map(Dim::known);
        let sizes: Vec<i64> = sizes.collect();
        let longest = all.iter().filter(|ty| ty.known().is_none()).map(row_elements).max();
        let is_tiny = longest.is_some_and(|longest| longest <= TINY) && !has_product(kernel);
        let most = if is_tiny { MAX_TINY_ROWS } else { MAX_ROWS };
        let most = most.into_iter().find(|rows| sizes.iter().all(|size| size % rows != 0));
        let (items, is_passed) = match most.filter(|_| has_small_rows(kernel, &all)) {
            Some(most) => (most, true),
            None => (1, false),
        };
        Some(Self { count, items, is_passed })
    }

    /// A type with the rows of a block.
    fn block(&self, ty: &Type) -> Type {
        let mut block = ty.clone();
        if ty.known().is_none() {
            block.dims[0] = self.items.into();
        }
        block
    }

    /// Adds the kernel of blocks, and makes the kernel one of loops of calls of it.
    fn write<'c: 'a, 'a>(&self, kernel: OperationRef<'c, 'a>) -> Result<(), String> {
        let context = irc_mlir::context_of(&kernel);
        let (inputs, results) = read::signature(&kernel).ok_or("is not a function")?;
        let own = |ty: &MlirType<'c>| -> Result<MlirType<'c>, String> {
            Ok(tl::type_to_mlir(context, &self.block(&tl::type_of(*ty)?)))
        };
        let own: Vec<MlirType> = inputs.iter().map(own).collect::<Result<_, _>>()?;
        let (block, given) = rewrite(kernel, &own, &BTreeMap::new(), &|ty: &Type| self.block(ty))?;
        let mut info = KERNEL.read(&kernel).unwrap_or_default();
        let rows = self.is_passed.then_some(self.items);
        let own_info = KernelInfo { rows, entry: None, ..info.clone() };
        let callee = format!("{}_rows", read::string(&kernel, "sym_name").ok_or("has no name")?);
        add_callee(kernel, &callee, (block, &own, &given), &own_info)?;
        info.kind = LOOPS.to_owned();
        info.constants.clear();
        KERNEL.write(kernel, &info);
        let bytes = inputs.iter().chain(&results);
        let bytes = bytes.map(|ty| Ok(row_bytes(&tl::type_of(*ty)?)?.to_string()));
        let bytes = bytes.collect::<Result<_, String>>()?;
        let (items, counts) = (self.items, vec![self.count.to_string()]);
        let blocks = Blocks { callee, items, counts, bytes, cycles: 0, columns: None };
        BLOCKS.write(kernel, &blocks);
        Ok(())
    }
}

/// The body of a kernel for arguments of other types, and the types of what it returns. A value of `replaced`, by identity,
/// is another value of the kernel instead; `reshaped` is the type that views have.
fn rewrite<'c: 'a, 'a>(
    kernel: OperationRef<'c, 'a>,
    own: &[MlirType<'c>],
    replaced: &BTreeMap<usize, Value<'c, 'a>>,
    reshaped: &dyn Fn(&Type) -> Type,
) -> Result<(Block<'c>, Vec<MlirType<'c>>), String> {
    let context = irc_mlir::context_of(&kernel);
    let arguments: Vec<_> = own.iter().map(|ty| (*ty, kernel.location())).collect();
    let block = Block::new(&arguments);
    let body = kernel.region(0).ok().and_then(|region| region.first_block());
    let body = body.ok_or("has no body")?;
    let mut values: BTreeMap<usize, Value<'c, '_>> = BTreeMap::new();
    for at in 0..own.len() {
        let old = body.argument(at).map_err(|error| error.to_string())?;
        let new = block.argument(at).map_err(|error| error.to_string())?;
        values.insert(read::identity(old.into()), new.into());
    }
    let mut returned = vec![];
    for op in read::body_ops(kernel) {
        let operands = op.operands().map(|operand| values.get(&read::identity(operand)).copied());
        let operands: Vec<Value> =
            operands.collect::<Option<_>>().ok_or("uses a value from outside")?;
        if read::op_name(&op) == func::RETURN {
            returned = operands;
            continue;
        }
        let old: Value = op.result(0).map_err(|error| error.to_string())?.into();
        if let Some(instead) = replaced.get(&read::identity(old)) {
            let instead = values.get(&read::identity(*instead)).copied();
            values.insert(read::identity(old), instead.ok_or("uses a value from outside")?);
            continue;
        }
        let built = match tl::is_view(&op) {
            true => {
                let ty = tl::type_to_mlir(context, &reshaped(&tl::type_of(old.r#type())?));
                let view = OpSpec::new(context, &read::op_name(&op), op.location());
                view.operands(&operands).results(&[ty]).build()
            }
            false => tl::build(context, &tl::op_of(op)?, &operands, op.location())?,
        };
        let built = block.append_operation(built);
        let new: Value = built.result(0).map_err(|error| error.to_string())?.into();
        values.insert(read::identity(old), irc_mlir::rebind(new));
    }
    OpSpec::new(context, func::RETURN, kernel.location()).operands(&returned).append(&block);
    let given: Vec<MlirType> = returned.iter().map(|value| value.r#type()).collect();
    Ok((block, given))
}

/// Adds the kernel of a block before the kernel whose blocks it computes.
fn add_callee<'c: 'a, 'a>(
    kernel: OperationRef<'c, 'a>,
    name: &str,
    (block, own, given): (Block<'c>, &[MlirType<'c>], &[MlirType<'c>]),
    info: &KernelInfo,
) -> Result<OperationRef<'c, 'a>, String> {
    let context = irc_mlir::context_of(&kernel);
    let parent = kernel.block().ok_or("is not in a module")?;
    let callee = function(context, name, own, given, block, kernel.location())
        .attr("sym_visibility", attr::string(context, "private"))
        .with(KERNEL, info)
        .attr(LINKAGE, attr::parse(context, "#llvm.linkage<internal>"));
    Ok(callee.before(&parent, kernel))
}

/// The bytes of a row; 0 for a type of known sizes, which all rows share.
fn row_bytes(ty: &Type) -> Result<i64, String> {
    if ty.known().is_some() {
        return Ok(0);
    }
    let row = Type::new(ty.dtype, ty.dims[1..].to_vec()).known();
    let bytes =
        row.and_then(|row| row.byte_size().ok()).and_then(|bytes| i64::try_from(bytes).ok());
    bytes.ok_or_else(|| format!("expected rows of known sizes, found {ty}"))
}

/// Whether a kernel computes small rows, each a row of a matrix, so that many of them are computed together.
fn has_small_rows<'c: 'a, 'a>(kernel: OperationRef<'c, 'a>, types: &[Type]) -> bool {
    let ops = read::body_ops(kernel);
    let fits = |op: &OperationRef<'c, 'a>| match tl::op_of(*op) {
        Ok(work) => tl::symbolic_operand_types(*op).is_ok_and(|types| work.joins_rows(&types)),
        Err(_) => true,
    };
    let small = has_product(kernel)
        || types.iter().filter(|ty| ty.known().is_none()).all(|ty| row_elements(ty) < LARGE);
    small && ops.iter().all(fits)
}

/// Whether a kernel contains a matrix product.
fn has_product(kernel: OperationRef<'_, '_>) -> bool {
    let is_product = |op| tl::op_of(op).is_ok_and(|op| op.family() == Family::Contraction);
    read::body_ops(kernel).into_iter().any(is_product)
}

/// The number of elements of a row of a type.
fn row_elements(ty: &Type) -> i64 {
    Dim::product(&ty.dims[1..]).known().unwrap_or(i64::MAX)
}
