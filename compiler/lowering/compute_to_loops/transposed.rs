//! Transposition: copies of elements in another order, in vectors; also of elements that are repeated a few times each.
use super::{
    nest::{Nest, Part},
    sizes::Sizes,
};
use crate::kernel::{
    emit::{Buffer, Emit, Lanes},
    transpose::{self, Form},
};
use crate::lowering::linalg_to_vector::split::{self, Extent, Units};
use irc_mlir::{Value, ops::arith};
use irc_tl::{Dim, Scalar, Type};
use std::convert::Infallible;

/// `arith.cmpi` predicate: unsigned, at least.
const UGE: i64 = 9;

/// A copy of all elements of an operand in another order, or as often as dimensions say that it does not have.
pub(super) struct Transposed {
    operand: usize,
    /// The extents of the result, of which those that stay neighbours are one.
    dims: Vec<Dim>,
    /// The place of each of them among the dimensions of the operand; `None` for one that repeats it.
    order: Vec<Option<usize>>,
    /// The dimension of the result along which the operand is contiguous; not the last.
    across: usize,
    form: Form,
    lanes: i64,
}

impl Transposed {
    /// What a nest copies, if that is all it does.
    pub(super) fn of(nest: &Nest, types: &[&Type], lanes: i64) -> Option<Self> {
        let compute = &nest.compute;
        let Scalar::Load(operand, at) = &compute.body else { return None };
        if nest.epilogue.is_some() || nest.is_view || compute.reduction.is_some() || lanes < 2 {
            return None;
        }
        let mut order: Vec<Option<usize>> = vec![None; compute.dims.len()];
        let mut axes = 0;
        for (index, extent) in at.iter().zip(&types[*operand].dims) {
            match index {
                // The operand has no other elements.
                Scalar::Loop(loop_) if *extent == compute.dims[*loop_] => {
                    if order[*loop_].replace(axes).is_some() {
                        return None;
                    }
                    axes += 1;
                }
                Scalar::Int(0, _) if extent.is(1) => {}
                _ => return None,
            }
        }
        let (dims, order) = merged(&compute.dims, &order);
        let last = dims.len().checked_sub(1)?;
        let innermost = order.iter().flatten().max()?;
        let across = order.iter().position(|axis| axis.as_ref() == Some(innermost));
        let across = across.filter(|loop_| *loop_ != last)?;
        let bytes = i64::try_from(types[*operand].dtype.size()).ok()?;
        let form = form(&dims, &order, across, (bytes, lanes))?;
        Some(Self { operand: *operand, dims, order, across, form, lanes })
    }

    /// Emits the copy, or a part of it; `otherwise` emits it for sizes that are too small.
    pub(super) fn emit<'c: 'a, 'a>(
        &self,
        e: Emit<'c, 'a>,
        operands: &[(&Type, Buffer<'c, 'a>)],
        result: Buffer<'c, 'a>,
        sizes: &Sizes<'c, 'a>,
        part: Option<Part<'c, 'a>>,
        otherwise: impl FnOnce(Emit<'c, 'a>),
    ) {
        let last = self.dims.len() - 1;
        let size = |dim: usize| sizes.value(e, &self.dims[dim]);
        let (rows, columns) = (size(self.across), size(last));
        let fits = |extent: &Dim, at_least: i64, value| match extent.known() {
            Some(_) => None,
            None => Some(e.compare(UGE, value, e.index(at_least))),
        };
        let (dim_rows, dim_columns) = (&self.dims[self.across], &self.dims[last]);
        let fit = match self.form {
            Form::Tiles(tiles) => {
                [fits(dim_rows, tiles.height, rows), fits(dim_columns, self.lanes, columns)]
            }
            Form::Deinterleaved => [None, fits(dim_columns, self.lanes, columns)],
            Form::Interleaved => [fits(dim_rows, self.lanes, rows), None],
        };
        let fit = fit.into_iter().flatten().reduce(|all, one| e.binary(arith::ANDI, all, one));
        let all = |e| {
            self.all(e, operands[self.operand].1, result, sizes, part);
            Ok::<_, Infallible>(vec![])
        };
        let Ok(_) = match fit {
            None => all(e),
            Some(fit) => e.if_else(fit, &[], all, |e| {
                otherwise(e);
                Ok(vec![])
            }),
        };
    }

    fn all<'c: 'a, 'a>(
        &self,
        e: Emit<'c, 'a>,
        from: Buffer<'c, 'a>,
        to: Buffer<'c, 'a>,
        sizes: &Sizes<'c, 'a>,
        part: Option<Part<'c, 'a>>,
    ) {
        let last = self.dims.len() - 1;
        let mut own = self.dims.clone();
        own.truncate(self.order.iter().flatten().count());
        for (axis, dim) in self.order.iter().zip(&self.dims) {
            if let Some(axis) = axis {
                own[*axis] = dim.clone();
            }
        }
        let stride = |dims: &[Dim], axis: Option<usize>| match axis {
            Some(axis) => sizes.value(e, &Dim::product(&dims[axis + 1..])),
            None => e.index(0),
        };
        // The distance of elements along each dimension of the result, in the operand and in the result.
        let strides: Vec<[Value; 2]> = (0..self.dims.len())
            .map(|dim| [stride(&own, self.order[dim]), stride(&self.dims, Some(dim))])
            .collect();
        let (rows, columns) =
            (sizes.value(e, &self.dims[self.across]), sizes.value(e, &self.dims[last]));
        let both = [rows, columns];
        let (dim, count) = self.form.unit(self.lanes);
        let blocks = Extent::Passed(both[dim]).groups(e, count).value(e);
        let outer: Vec<usize> = (0..last).filter(|dim| *dim != self.across).collect();
        let extents = outer.iter().map(|dim| sizes.value(e, &self.dims[*dim]));
        let extents: Vec<_> = extents.chain([blocks]).collect();
        let count: Vec<_> = extents.iter().copied().map(Extent::Passed).collect();
        let units = Units::of(e, Extent::product(e, &count), part);
        let Ok(_) = e.for_each((units.from, units.to, 1), &[], |e, unit, _| {
            let at = split::indices(e, unit, &extents);
            let block = at[outer.len()];
            let mut start = [e.index(0); 2];
            for (dim, index) in outer.iter().zip(at) {
                start = [0, 1].map(|side| {
                    e.add(start[side], e.binary(arith::MULI, index, strides[*dim][side]))
                });
            }
            let place = |e: Emit<'c, 'a>, side: usize, row, column| {
                let row = e.binary(arith::MULI, row, strides[self.across][side]);
                let column = e.binary(arith::MULI, column, strides[last][side]);
                e.add(start[side], e.add(row, column))
            };
            let lanes = Lanes::Vector(self.lanes);
            let of = (lanes, to.element);
            let zero = e.index(0);
            match self.form {
                Form::Tiles(tiles) => {
                    tiles.each(e, block, both, self.lanes, |e, row, column| {
                        let from = (from, place(e, 0, row, column), strides[last][0]);
                        let to = (to, place(e, 1, row, column), strides[self.across][1]);
                        self.tile(e, tiles.height, from, to);
                        Ok::<_, Infallible>(())
                    })?;
                }
                Form::Deinterleaved => {
                    let count = self.dims[self.across].known().unwrap_or(1);
                    let column = e.scale(block, self.lanes);
                    let column = transpose::within(e, column, self.lanes, columns);
                    let first = place(e, 0, zero, column);
                    let read = |vector: i64| {
                        e.load_lanes(from, e.offset(first, vector * self.lanes), lanes, None)
                    };
                    let read: Vec<_> = (0..count).map(read).collect();
                    let rows = transpose::deinterleave(e, &read, of);
                    for (row, value) in rows.into_iter().enumerate() {
                        let at = place(e, 1, e.index(row as i64), column);
                        e.store(value, to, at, lanes, None);
                    }
                }
                Form::Interleaved => {
                    let count = self.dims[last].known().unwrap_or(1);
                    let row = e.scale(block, self.lanes);
                    let row = transpose::within(e, row, self.lanes, rows);
                    let read = |column: i64| {
                        let at = place(e, 0, row, e.index(column));
                        e.load_lanes(from, at, lanes, None)
                    };
                    let read: Vec<_> = (0..count).map(read).collect();
                    let at = place(e, 1, row, zero);
                    for (index, value) in
                        transpose::interleave(e, &read, of).into_iter().enumerate()
                    {
                        e.store(value, to, e.offset(at, index as i64 * self.lanes), lanes, None);
                    }
                }
            }
            Ok::<_, Infallible>(vec![])
        });
    }

    /// A tile: its memory, place, and the distance between its columns in the operand, and between its rows in the result.
    fn tile<'c: 'a, 'a>(
        &self,
        e: Emit<'c, 'a>,
        height: i64,
        (from, read, across): (Buffer<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>),
        (to, written, along): (Buffer<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>),
    ) {
        let live = |dim: usize, all: i64| self.dims[dim].known().map_or(all, |it| it.min(all));
        let (rows, columns) = (live(self.across, height), live(self.dims.len() - 1, self.lanes));
        let (lanes, width) = (Lanes::Vector(height), Lanes::Vector(self.lanes));
        let at =
            |start, index: i64, stride| e.add(start, e.binary(arith::MULI, e.index(index), stride));
        let load = |column: i64| match column < columns {
            true => e.load_lanes(from, at(read, column, across), lanes, e.tail_mask(rows, lanes)),
            false => e.zero(from.element, lanes),
        };
        let mut vectors: Vec<_> = (0..self.lanes).map(load).collect();
        let tile = transpose::tile(e, &mut vectors, (lanes, from.element));
        for (row, value) in (0..rows).zip(tile) {
            e.store(value, to, at(written, row, along), width, e.tail_mask(columns, width));
        }
    }
}

/// The extents of a result and their places in an operand, those that are neighbours in the same order in both as one, as are
/// those that repeat the operand.
fn merged(dims: &[Dim], order: &[Option<usize>]) -> (Vec<Dim>, Vec<Option<usize>>) {
    let mut found: Vec<(Dim, Option<usize>)> = vec![];
    for (index, (dim, axis)) in dims.iter().zip(order).enumerate() {
        match found.last_mut() {
            Some((joined, _)) if order[index - 1].map(|before| before + 1) == *axis => {
                *joined = Dim::product([&*joined, dim]);
            }
            _ => found.push((dim.clone(), *axis)),
        }
    }
    let firsts: Vec<usize> = found.iter().filter_map(|(_, axis)| *axis).collect();
    let place = |axis: usize| firsts.iter().filter(|other| **other < axis).count();
    let order = found.iter().map(|(_, axis)| axis.map(place)).collect();
    (found.into_iter().map(|(dim, _)| dim).collect(), order)
}

/// How the dimension across, and the last one, are traversed; `None` if too few elements fill vectors.
fn form(
    dims: &[Dim],
    order: &[Option<usize>],
    across: usize,
    (bytes, lanes): (i64, i64),
) -> Option<Form> {
    let last = dims.len() - 1;
    let are_adjacent = [order[last].map(|axis| axis + 1) == order[across], across + 1 == last];
    let inner = |after: Vec<&Dim>| Dim::product(after).known().map(|stride| stride * bytes);
    let read = (0..dims.len()).filter(|dim| order[*dim] > order[last]).map(|dim| &dims[dim]);
    let strides = [inner(read.collect()), inner(dims[across + 1..].iter().collect())];
    let form =
        Form::of([dims[across].known(), dims[last].known()], are_adjacent, strides, (bytes, lanes));
    form.filter(|form| order[last].is_some() || matches!(form, Form::Interleaved))
}
