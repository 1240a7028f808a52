//! Kernels of attention in blocks of rows: of the queries of one head of one sequence.
//!
//! A block reads its rows of the queries and all keys and values of its head, where they are: dimensions that are
//! transposed become strides. Its scores are scratch memory of the kernel of a block, in as many rows as stay in the
//! L2 cache.
//!
//! If the number of keys depends on symbols, a block computes some columns of its scores at a time, up to a maximum.
//! The highest score of each row so far, the sum of powers and the weighted sum of values pass from one call to the
//! next, as in M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018. So does a block with a
//! causal mask, which skips the columns that the mask hides from all of its rows.
mod carried;

use super::{add_callee, rewrite};
use crate::attributes::{BLOCK, BLOCKS, Blocks, Columns, KERNEL, KernelInfo, LOOPS, STRIDES};
use crate::fusion::{causal, prefix};
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

/// The maximum numbers of rows and columns of a call, if a number is passed to it. One of them is no other extent of
/// a kernel.
const PASSED_ROWS: [i64; 4] = [64, 72, 56, 80];
const PASSED_COLUMNS: [i64; 4] = [1008, 976, 944, 912];

/// Products and sums that a core computes in a cycle.
const PER_CYCLE: i64 = 16;

/// Whether a kernel is attention.
pub(super) fn is_attention(kernel: OperationRef<'_, '_>) -> bool {
    KERNEL.read(&kernel).is_some_and(|info| info.kind == tl::ATTENTION)
}

/// An operand or result: its memory, seen in the order of dimensions in which a block reads or writes it.
#[derive(Clone)]
struct View {
    ty: Type,
    /// Elements from one to the next along each dimension.
    strides: Vec<Dim>,
    /// The dimension of the grid that divides each of its own.
    grid: Vec<Option<usize>>,
    /// The dimension of which a call gets some columns.
    column: Option<usize>,
}

/// The grid of blocks: the dimensions of the scores but the last.
struct Grid {
    sizes: Vec<Dim>,
    /// Rows of a block; the maximum, if their number is passed.
    rows: i64,
    is_passed: bool,
    /// The number of columns, and the maximum of those of a call, if their number is passed.
    columns: Option<(Dim, i64)>,
}

impl Grid {
    /// The grid for scores of a type, of a kernel with these known extents and possibly a causal mask.
    fn of(scores: &Type, extents: &[i64], is_causal: bool) -> Option<Self> {
        let (columns, rest) = scores.dims.split_last()?;
        let unused = |all: [i64; 4]| all.into_iter().find(|extent| !extents.contains(extent));
        let (sizes, count) = (rest.to_vec(), rest.last()?);
        let (most, columns) = match columns.known() {
            Some(known) if !is_causal => {
                ((MAX_SCORES / known.max(1)).clamp(MIN_ROWS, MAX_ROWS), None)
            }
            _ => (PASSED_ROWS[0], Some((columns.clone(), unused(PASSED_COLUMNS)?))),
        };
        let Some(count) = count.known() else {
            return Some(Self { sizes, rows: unused(PASSED_ROWS)?, is_passed: true, columns });
        };
        let most = most.min(count).max(1);
        let blocks = (count + most - 1) / most;
        let rows = (count + blocks - 1) / blocks.max(1);
        Some(Self { sizes, rows, is_passed: false, columns })
    }

    /// The items of a block along a dimension of the grid.
    fn items(&self, dim: usize) -> i64 {
        if dim + 1 == self.sizes.len() { self.rows } else { 1 }
    }

    /// The dimensions of the grid that divide a value of a type, whose last dimensions are those of the grid and one
    /// more.
    fn divides(&self, ty: &Type, is_matrix: bool) -> Vec<Option<usize>> {
        let missing = self.sizes.len() + 1 - ty.rank();
        let divided = if is_matrix { self.sizes.len() - 1 } else { self.sizes.len() };
        let dims = ty.dims.iter().enumerate();
        dims.map(|(at, dim)| Some(at + missing).filter(|at| *at < divided && !dim.is(1))).collect()
    }
}

impl View {
    fn new(ty: Type, order: Option<&[usize]>) -> Self {
        let mut strides = vec![Dim::from(1); ty.rank()];
        for dim in (1..ty.rank()).rev() {
            strides[dim - 1] = Dim::product([&strides[dim], &ty.dims[dim]]);
        }
        let whole = Self { ty, strides, grid: vec![], column: None };
        order.map_or_else(|| whole.clone(), |order| whole.transposed(order))
    }

    /// With the dimensions in another order.
    fn transposed(&self, order: &[usize]) -> Self {
        let dims: Vec<Dim> = order.iter().map(|dim| self.ty.dims[*dim].clone()).collect();
        let strides = order.iter().map(|dim| self.strides[*dim].clone()).collect();
        Self { ty: Type::new(self.ty.dtype, dims), strides, ..self.clone() }
    }

    /// The type of a block.
    fn block(&self, grid: &Grid) -> Type {
        let columns = grid.columns.as_ref().map_or(1, |(_, most)| *most);
        let dims = self.ty.dims.iter().zip(&self.grid).enumerate();
        let dims: Vec<Dim> = dims
            .map(|(at, (dim, by))| match by {
                _ if self.column == Some(at) => columns.into(),
                Some(by) => grid.items(*by).into(),
                None => dim.clone(),
            })
            .collect();
        Type::new(self.ty.dtype, dims)
    }

    /// The strides of a block along its dimensions of more than one element; `None` if one depends on a symbol.
    /// Others are 1.
    fn known_strides(&self, grid: &Grid) -> Option<Vec<i64>> {
        let dims = self.block(grid).dims;
        let known = |(stride, dim): (&Dim, &Dim)| match stride.known() {
            None if dim.is(1) => Some(1),
            known => known,
        };
        self.strides.iter().zip(&dims).map(known).collect()
    }

    /// The bytes from one item to the next along a dimension of the grid, as a size.
    fn bytes(&self, dim: usize) -> Dim {
        let own = self.grid.iter().position(|by| *by == Some(dim));
        own.map_or(Dim::from(0), |at| self.in_bytes(&self.strides[at]))
    }

    fn in_bytes(&self, elements: &Dim) -> Dim {
        Dim::product([elements, &Dim::from(self.ty.dtype.size() as i64)])
    }

    /// The bytes from one column to the next.
    fn column_bytes(&self) -> Result<i64, String> {
        let Some(column) = self.column else { return Ok(0) };
        let bytes = self.in_bytes(&self.strides[column]).known();
        bytes.ok_or_else(|| format!("expected columns a known distance apart, found {}", self.ty))
    }

    /// The bytes from one row to the next, if the rows of a block are copied before because these are a symbolic size.
    fn copied(&self, grid: &Grid) -> Result<Dim, String> {
        if self.known_strides(grid).is_some() {
            return Ok(0.into());
        }
        let dims = self.block(grid).dims;
        let wide: Vec<usize> = (0..dims.len()).filter(|dim| !dims[*dim].is(1)).collect();
        match wide[..] {
            [row, column] if self.column == Some(column) && self.strides[column].is(1) => {
                Ok(self.in_bytes(&self.strides[row]))
            }
            _ => Err(format!("expected rows of columns, found {}", self.ty)),
        }
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
    let mut masks = ops.iter().filter_map(|op| match tl::op_of(*op).ok()? {
        Op::Compute(compute) => Some((*op, causal::offset_of(&compute)?)),
        _ => None,
    });
    let mask = masks.next();
    let grid = Grid::of(&scores, &extents(kernel)?, mask.is_some());
    let grid = grid.ok_or("expected an extent for a number")?;

    // Transposed arguments are views, and so is a result that is transposed last.
    let mut views: Vec<View> = vec![];
    let mut skipped: BTreeMap<usize, Value<'c, 'a>> = BTreeMap::new();
    let matrices = [first, second].map(|product| product.operand(1).map(converted));
    let queries = converted(first.operand(0).map_err(|error| error.to_string())?);
    if let Some((mask, _)) = &mask {
        // Blocks get the numbers of columns that it does not hide.
        let [masked, scores] = [mask.result(0).map(Value::from), mask.operand(0)];
        let masked = masked.map_err(|error| error.to_string())?;
        skipped.insert(read::identity(masked), scores.map_err(|error| error.to_string())?);
    }
    for at in 0..body.argument_count() {
        let argument: Value = body.argument(at).map_err(|error| error.to_string())?.into();
        let (seen, views_of) = seen_as(argument)?;
        let mut view = View::new(type_of(argument)?, None);
        for (value, order) in views_of {
            skipped.insert(read::identity(value), argument);
            view = match order {
                // Of a buffer for more: its strides remain.
                None => View { ty: type_of(value)?, ..view },
                Some(order) => view.transposed(&order),
            };
        }
        let number = matrices.iter().position(|matrix| *matrix == Ok(seen));
        view.grid = grid.divides(&view.ty, number.is_some());
        if grid.columns.is_some() && queries != seen {
            let product = number.map(|number| tl::op_of(products[number]));
            let is_turned = matches!(product, Some(Ok(Op::Matmul { transpose_rhs: true, .. })));
            // The columns of scores are rows of values.
            let back = if (number == Some(1)) != is_turned { 2 } else { 1 };
            let column = view.ty.rank().checked_sub(back);
            view.column = column.filter(|at| !view.ty.dims[*at].is(1));
        }
        views.push(view);
    }
    let end = ops.last().ok_or("has no body")?;
    let returned = end.operand(0).map_err(|error| error.to_string())?;
    let mut result = View::new(type_of(returned)?, None);
    if let Some(last) = read::defining_op(returned)
        && let Some(order) = order_of(last)
    {
        // The dimension of the result that each dimension before the transposition becomes.
        let becomes = |dim| order.iter().position(|from| *from == dim).unwrap_or(dim);
        let inverse: Vec<usize> = (0..order.len()).map(becomes).collect();
        result = View::new(type_of(returned)?, Some(&inverse));
        let before = last.operand(0).map_err(|error| error.to_string())?;
        skipped.insert(read::identity(returned), before);
    }
    result.grid = grid.divides(&result.ty, false);

    let own: Vec<_> =
        views.iter().map(|view| tl::type_to_mlir(context, &view.block(&grid))).collect();
    let mut info = KERNEL.read(&kernel).unwrap_or_default();
    let count = scores.dims[scores.rank() - 2].known();
    let columns = grid.columns.as_ref();
    let callee_info = KernelInfo {
        kind: BLOCK.to_owned(),
        entry: None,
        constants: vec![],
        // The blocks of a head read the same keys and values.
        keeps: count.is_none_or(|rows| rows > grid.rows),
        rows: grid.is_passed.then_some(grid.rows),
        columns: columns.map(|(_, most)| *most),
        ..info.clone()
    };
    let name = read::string(&kernel, "sym_name").ok_or("has no name")?;
    let add = |suffix: &str, part: Option<carried::Part>| -> Result<String, String> {
        let (block, mut returned) = rewrite(kernel, &own, &skipped, &Type::clone)?;
        let mut own = own.clone();
        if let Some(part) = part {
            let carried = carried::add(context, &block, part, mask.is_some())?;
            own.extend(carried.arguments);
            returned = carried.returned;
        }
        let callee = format!("{name}_{suffix}");
        let added = add_callee(kernel, &callee, (block, &own, &returned), &callee_info)?;
        let mut strides: Vec<_> = views.iter().map(|view| view.known_strides(&grid)).collect();
        strides.resize(own.len(), None);
        set_attribute(added, "arg_attrs", strides_of(context, &strides));
        if part != Some(carried::Part::First) {
            let strides = result.known_strides(&grid).ok_or("expected rows of known sizes")?;
            set_attribute(added, "res_attrs", strides_of(context, &[Some(strides)]));
        }
        Ok(callee)
    };
    let callee = add("block", columns.map(|_| carried::Part::Last))?;
    let columns = match columns {
        None => None,
        Some((count, items)) => Some(Columns {
            callee: add("columns", Some(carried::Part::First))?,
            items: *items,
            count: count.to_string(),
            bytes: views.iter().map(View::column_bytes).collect::<Result<_, String>>()?,
            copied: views
                .iter()
                .map(|view| Ok(view.copied(&grid)?.to_string()))
                .collect::<Result<_, String>>()?,
            causal: mask.as_ref().map(|(_, offset)| offset.to_string()),
        }),
    };
    views.push(result);

    info.kind = LOOPS.to_owned();
    info.constants.clear();
    KERNEL.write(kernel, &info);
    let dims = 0..grid.sizes.len();
    let bytes = dims.flat_map(|dim| views.iter().map(move |view| view.bytes(dim).to_string()));
    let bytes = bytes.collect();
    let depth = type_of(queries)?.dims.last().and_then(Dim::known).unwrap_or(1);
    // Of a column, if their number is not known.
    let width = views.last().and_then(|view| view.ty.dims.last()?.known()).unwrap_or(1);
    let per_column = grid.rows * (depth + width + PER_CYCLE);
    let cycles = scores.dims.last().and_then(Dim::known).unwrap_or(1) * per_column / PER_CYCLE;
    let counts = grid.sizes.iter().map(ToString::to_string).collect();
    BLOCKS.write(kernel, &Blocks { callee, items: grid.rows, counts, bytes, cycles, columns });
    Ok(())
}

/// The known extents of the values of a kernel.
fn extents(kernel: OperationRef<'_, '_>) -> Result<Vec<i64>, String> {
    let mut extents = vec![];
    for op in read::body_ops(kernel) {
        for value in op.operands().chain(op.results().map(Value::from)) {
            let ty = tl::type_of(irc_mlir::ValueLike::r#type(&value))?;
            extents.extend(ty.dims.iter().filter_map(Dim::known));
        }
    }
    Ok(extents)
}

/// What a value is converted from, if it is.
fn converted<'c: 'a, 'a>(value: Value<'c, 'a>) -> Value<'c, 'a> {
    let maker = read::defining_op(value);
    let maker = maker.filter(|op| tl::op_of(*op).is_ok_and(|op| matches!(op, Op::Cast { .. })));
    maker.and_then(|op| op.operand(0).ok()).unwrap_or(value)
}

/// A view of an argument: its value, and the order of its dimensions, or `None` for the first elements.
type ViewOf<'c, 'a> = (Value<'c, 'a>, Option<Vec<usize>>);

/// What a block sees of an argument, and the views on the way.
fn seen_as<'c: 'a, 'a>(
    argument: Value<'c, 'a>,
) -> Result<(Value<'c, 'a>, Vec<ViewOf<'c, 'a>>), String> {
    let (mut seen, mut found) = (argument, vec![]);
    while let [(user, _)] = irc_mlir::uses(seen)[..] {
        let order = order_of(user);
        let ty = tl::type_of(irc_mlir::ValueLike::r#type(&seen))?;
        if order.is_none() && !tl::op_of(user).is_ok_and(|op| prefix::is_prefix(&op, &ty)) {
            break;
        }
        seen = user.result(0).map_err(|error| error.to_string())?.into();
        found.push((seen, order));
    }
    Ok((seen, found))
}

/// The order of dimensions of a transposition.
fn order_of(op: OperationRef<'_, '_>) -> Option<Vec<usize>> {
    tl::op_of(op).ok()?.permutation().map(<[usize]>::to_vec)
}

/// The attributes of arguments or results with these strides.
fn strides_of<'c>(context: &'c Context, all: &[Option<Vec<i64>>]) -> irc_mlir::Attribute<'c> {
    let of = |strides: &Option<Vec<i64>>| {
        let strides = strides.as_ref().filter(|strides| !strides.is_empty());
        let entry = strides.map(|strides| STRIDES.entry(context, strides));
        attr::dictionary(context, &Vec::from_iter(entry))
    };
    attr::array(context, &all.iter().map(of).collect::<Vec<_>>())
}
