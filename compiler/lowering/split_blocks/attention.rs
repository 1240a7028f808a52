//! Kernels of attention in blocks of rows: of the queries of one head of one sequence.
//!
//! A block reads its rows of the queries and all keys and values of its head, where they are: dimensions that are transposed
//! become strides. Its scores are scratch memory of the kernel of a block, in as many rows as stay in the L2 cache.
use super::{add_callee, rewrite};
use crate::attributes::{BLOCK, BLOCKS, Blocks, KERNEL, KernelInfo, LOOPS, STRIDES};
use irc_dialects::tl;
use irc_mlir::{
    BlockLike, Context, OperationLike, OperationRef, RegionLike, Value, attr, read, set_attribute,
};
use irc_tl::{Dim, Op, Type};
use std::collections::BTreeMap;

/// The maximum number of scores of a block: half of an L2 cache of 1 MiB.
const MAX_SCORES: i64 = 1 << 17;

/// Rows of a block: enough to use keys and values that are packed for each block many times.
const MIN_ROWS: i64 = 32;
const MAX_ROWS: i64 = 128;

/// Products and sums that a core computes in a cycle.
const PER_CYCLE: i64 = 16;

/// Whether a kernel is attention.
pub(super) fn is_attention(kernel: OperationRef<'_, '_>) -> bool {
    KERNEL.read(&kernel).is_some_and(|info| info.kind == tl::ATTENTION)
}

/// An operand or result: its memory, seen in the order of dimensions in which a block reads or writes it.
struct View {
    ty: Type,
    /// Elements from one to the next along each dimension.
    strides: Vec<i64>,
    /// The dimension of the grid that divides each of its own.
    grid: Vec<Option<usize>>,
}

/// The grid of blocks: the dimensions of the scores but the last.
struct Grid {
    sizes: Vec<Dim>,
    /// Rows of a block.
    rows: i64,
}

impl Grid {
    /// The grid for scores of a type.
    fn of(scores: &Type) -> Option<Self> {
        let (columns, rest) = scores.dims.split_last()?;
        let (columns, count) = (columns.known()?, rest.last()?.known()?);
        let most = (MAX_SCORES / columns.max(1)).clamp(MIN_ROWS, MAX_ROWS).min(count);
        let blocks = (count + most - 1) / most;
        Some(Self { sizes: rest.to_vec(), rows: (count + blocks - 1) / blocks })
    }

    /// The items of a block along a dimension of the grid.
    fn items(&self, dim: usize) -> i64 {
        if dim + 1 == self.sizes.len() { self.rows } else { 1 }
    }

    /// The dimensions of the grid that divide a value of a type, whose last dimensions are those of the grid and one more.
    fn divides(&self, ty: &Type, is_matrix: bool) -> Vec<Option<usize>> {
        let missing = self.sizes.len() + 1 - ty.rank();
        let divided = if is_matrix { self.sizes.len() - 1 } else { self.sizes.len() };
        let dims = ty.dims.iter().enumerate();
        dims.map(|(at, dim)| Some(at + missing).filter(|at| *at < divided && !dim.is(1))).collect()
    }
}

impl View {
    fn new(ty: Type, order: Option<&[usize]>) -> Result<Self, String> {
        let mut strides = vec![1; ty.rank()];
        for dim in (1..ty.rank()).rev() {
            let size = ty.dims[dim].known().ok_or("expected known sizes after the first")?;
            strides[dim - 1] = strides[dim] * size;
        }
        let Some(order) = order else { return Ok(Self { grid: vec![], ty, strides }) };
        let dims: Vec<Dim> = order.iter().map(|dim| ty.dims[*dim].clone()).collect();
        let strides = order.iter().map(|dim| strides[*dim]).collect();
        Ok(Self { grid: vec![], ty: Type::new(ty.dtype, dims), strides })
    }

    /// The type of a block.
    fn block(&self, grid: &Grid) -> Type {
        let dims = self.ty.dims.iter().zip(&self.grid);
        let dims: Vec<Dim> = dims
            .map(|(dim, by)| by.map_or_else(|| dim.clone(), |by| grid.items(by).into()))
            .collect();
        Type::new(self.ty.dtype, dims)
    }

    /// The bytes from one item to the next along a dimension of the grid.
    fn bytes(&self, dim: usize) -> i64 {
        let own = self.grid.iter().position(|by| *by == Some(dim));
        own.map_or(0, |at| self.strides[at] * self.ty.dtype.size() as i64)
    }
}

/// Adds the kernel of a block, and makes the kernel one of loops of calls of it.
pub(super) fn write<'c: 'a, 'a>(kernel: OperationRef<'c, 'a>) -> Result<(), String> {
    let context = irc_mlir::context_of(&kernel);
    let body =
        kernel.region(0).ok().and_then(|region| region.first_block()).ok_or("has no body")?;
    let ops = read::body_ops(kernel);
    let products: Vec<OperationRef> = ops
        .iter()
        .copied()
        .filter(|op| tl::op_of(*op).is_ok_and(|op| matches!(op, Op::Matmul { .. })))
        .collect();
    let [first, second] = products[..] else { return Err("expected two products".into()) };
    let type_of = |value: Value<'c, 'a>| tl::type_of(irc_mlir::ValueLike::r#type(&value));
    let scores = type_of(first.result(0).map_err(|error| error.to_string())?.into())?;
    let grid = Grid::of(&scores).ok_or("expected scores of known sizes")?;

    // Transposed arguments are views, and so is a result that is transposed last.
    let mut views: Vec<View> = vec![];
    let mut skipped: BTreeMap<usize, Value<'c, 'a>> = BTreeMap::new();
    let matrices = [first, second].map(|product| product.operand(1).map(converted));
    for at in 0..body.argument_count() {
        let argument: Value = body.argument(at).map_err(|error| error.to_string())?.into();
        let order = match &irc_mlir::uses(argument)[..] {
            [(user, _)] => order_of(*user).map(|order| (*user, order)),
            _ => None,
        };
        let mut seen = argument;
        if let Some((transposition, _)) = &order {
            seen = transposition.result(0).map_err(|error| error.to_string())?.into();
            skipped.insert(read::identity(seen), argument);
        }
        let mut view = View::new(type_of(argument)?, order.as_ref().map(|(_, order)| &order[..]))?;
        let is_matrix = matrices.iter().flatten().any(|matrix| *matrix == seen);
        view.grid = grid.divides(&view.ty, is_matrix);
        views.push(view);
    }
    let end = ops.last().ok_or("has no body")?;
    let returned = end.operand(0).map_err(|error| error.to_string())?;
    let mut result = View::new(type_of(returned)?, None)?;
    if let Some(last) = read::defining_op(returned)
        && let Some(order) = order_of(last)
    {
        // The dimension of the result that each dimension before the transposition becomes.
        let becomes = |dim| order.iter().position(|from| *from == dim).unwrap_or(dim);
        let inverse: Vec<usize> = (0..order.len()).map(becomes).collect();
        result = View::new(type_of(returned)?, Some(&inverse))?;
        let before = last.operand(0).map_err(|error| error.to_string())?;
        skipped.insert(read::identity(returned), before);
    }
    result.grid = grid.divides(&result.ty, false);

    let own: Vec<_> =
        views.iter().map(|view| tl::type_to_mlir(context, &view.block(&grid))).collect();
    let (block, returned) = rewrite(kernel, &own, &skipped, &Type::clone)?;
    let mut info = KERNEL.read(&kernel).unwrap_or_default();
    let kind = BLOCK.to_owned();
    // The blocks of a head read the same keys and values.
    let keeps = scores.dims[scores.rank() - 2].known().is_some_and(|rows| rows > grid.rows);
    let callee_info = KernelInfo { kind, entry: None, constants: vec![], keeps, ..info.clone() };
    let callee = format!("{}_block", read::string(&kernel, "sym_name").ok_or("has no name")?);
    let added = add_callee(kernel, &callee, (block, &own, &returned), &callee_info)?;
    set_attribute(added, "arg_attrs", strides(context, &views));
    views.push(result);
    set_attribute(added, "res_attrs", strides(context, &views[views.len() - 1..]));

    info.kind = LOOPS.to_owned();
    info.constants.clear();
    KERNEL.write(kernel, &info);
    let dims = 0..grid.sizes.len();
    let bytes = dims.flat_map(|dim| views.iter().map(move |view| view.bytes(dim))).collect();
    let queries = first.operand(0).map_err(|error| error.to_string())?;
    let depth = type_of(queries)?.dims.last().and_then(Dim::known).unwrap_or(1);
    let columns = scores.dims.last().and_then(Dim::known).unwrap_or(1);
    let width = views.last().and_then(|view| view.ty.dims.last()?.known()).unwrap_or(1);
    let cycles = grid.rows * columns * (depth + width + PER_CYCLE) / PER_CYCLE;
    let counts = grid.sizes.iter().map(ToString::to_string).collect();
    BLOCKS.write(kernel, &Blocks { callee, items: grid.rows, counts, bytes, cycles });
    Ok(())
}

/// What a value is converted from, if it is.
fn converted<'c: 'a, 'a>(value: Value<'c, 'a>) -> Value<'c, 'a> {
    let maker = read::defining_op(value);
    let maker = maker.filter(|op| tl::op_of(*op).is_ok_and(|op| matches!(op, Op::Cast { .. })));
    maker.and_then(|op| op.operand(0).ok()).unwrap_or(value)
}

/// The order of dimensions of a transposition.
fn order_of(op: OperationRef<'_, '_>) -> Option<Vec<usize>> {
    tl::op_of(op).ok()?.permutation().map(<[usize]>::to_vec)
}

fn strides<'c>(context: &'c Context, views: &[View]) -> irc_mlir::Attribute<'c> {
    let of = |view: &View| {
        let entries = (!view.strides.is_empty()).then(|| STRIDES.entry(context, &view.strides));
        attr::dictionary(context, &Vec::from_iter(entries))
    };
    attr::array(context, &views.iter().map(of).collect::<Vec<_>>())
}
