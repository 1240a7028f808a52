//! Sums of products in vectors, with sizes that are known at run time: matrix products and convolutions.
//!
//! One factor is read along the columns of the result, a vector at a time; the other does not depend on the column. The sums
//! of a tile of rows and columns stay in registers. Vectors at the end of a row, and those that are partly outside of an
//! image, are masked.
mod epilogue;
mod form;
mod groups;
mod panels;
mod windows;
mod winograd;

use super::{
    expression::{Body, Known, depends_on, loop_number},
    nest::{Nest, Part},
    sizes::Sizes,
};
use crate::kernel::emit::{Buffer, Emit, Lanes};
use crate::lowering::linalg_to_vector::{
    Dots,
    split::{self, Extent, Units},
};
use epilogue::{Epilogue, Finish, Vector};
use form::{Load, Tiles, bound, coefficient};
use irc_mlir::ops::{arith, math};
use irc_mlir::{Value, ValueLike, attr};
use irc_packing::Packing;
use irc_tl::{Compute, DType, Dim, Type};
use panels::Panels;
use std::convert::Infallible;
use windows::Windows;
use winograd::Winograd;

// Predicates of comparisons.
const EQ: i64 = 0;
const SLE: i64 = 3;
const SGE: i64 = 5;
const ULT: i64 = 6;

/// What a nest is computed with.
#[derive(Clone, Copy)]
pub(super) struct How<'c, 'a> {
    /// The part to compute, if it is not all.
    pub(super) part: Option<Part<'c, 'a>>,
    /// Elements of a vector.
    pub(super) lanes: i64,
    /// The instructions for sums of products of bytes.
    pub(super) dots: Dots,
    /// How an operand is packed, if one is as [`packing`] says.
    pub(super) packed: Option<Packing>,
    /// Memory of the part.
    pub(super) memory: Value<'c, 'a>,
}

/// Emits a nest that writes `result`, or a part of it, if it is computed in tiles; returns whether it is.
pub(super) fn emit<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    nest: &Nest,
    operands: &[(&Type, Buffer<'c, 'a>)],
    result: Buffer<'c, 'a>,
    sizes: &Sizes<'c, 'a>,
    how: How<'c, 'a>,
) -> bool {
    let types: Vec<&Type> = operands.iter().map(|(ty, _)| *ty).collect();
    // Groups of filters have a loop of their own; what is left has as few loops over columns as possible.
    let found = groups::divided(nest, &types).or_else(|| Tiles::joined(nest, &types));
    if let Some((nest, types)) = found {
        let buffers = operands.iter().map(|(_, buffer)| *buffer);
        let operands: Vec<_> = types.iter().zip(buffers).collect();
        return emit(e, &nest, &operands, result, sizes, how);
    }
    let tiles = Tiles::of(nest, &types).filter(|tiles| tiles.suit(how.lanes, how.dots));
    if let Some(tiles) = &tiles {
        let finish = Finish::of(nest, operands);
        tiles.emit(e, nest, operands, (result, finish.as_ref()), sizes, how);
    }
    tiles.is_some()
}

/// An operand that a nest can read packed, and how.
pub(super) struct Packed {
    pub(super) operand: usize,
    pub(super) packing: Packing,
    /// Bytes of the memory of a part: with the packed operand, and with that as it is.
    pub(super) part_bytes: [i64; 2],
}

/// The operand that a nest can read packed.
pub(super) fn packing(nest: &Nest, types: &[&Type], how: (i64, Dots)) -> Option<Packed> {
    of_divided(nest, types, |nest, types| packing_of(nest, types, how))
}

/// A function of a nest, with its loop over filters divided if they are in groups.
fn of_divided<R>(nest: &Nest, types: &[&Type], of: impl FnOnce(&Nest, &[&Type]) -> R) -> R {
    match groups::divided(nest, types) {
        Some((nest, types)) => of(&nest, &types.iter().collect::<Vec<_>>()),
        None => of(nest, types),
    }
}

/// As [`packing`], of a nest without groups of filters in one loop.
fn packing_of(nest: &Nest, types: &[&Type], (lanes, dots): (i64, Dots)) -> Option<Packed> {
    let tiles = Tiles::of(nest, types).filter(|tiles| tiles.suit(lanes, dots))?;
    let panels = Panels::of(&tiles, &nest.compute, types, lanes)?;
    let operand = tiles.broadcast.as_ref()?.operand;
    let is_vector = Epilogue::of(nest, types).is_none_or(|epilogue| epilogue.is_vector);
    if is_vector
        && !tiles.are_bytes()
        && let Some(winograd) = Winograd::of(&tiles, &panels, &nest.compute, types, lanes)
    {
        let packing = Packing::Winograd(winograd.packing(operand));
        return Some(Packed { operand, packing, part_bytes: [winograd.part_bytes(), 0] });
    }
    let packing = Packing::Panels(panels.packing(operand));
    Some(Packed { operand, packing, part_bytes: [panels.part_bytes(); 2] })
}

/// Whether a nest adds products of bytes in tiles.
pub(super) fn add_bytes(nest: &Nest, types: &[&Type]) -> bool {
    of_divided(nest, types, Tiles::of).is_some_and(|tiles| tiles.are_bytes())
}

/// Whether a nest is computed in tiles.
pub(super) fn apply(nest: &Nest, types: &[&Type]) -> bool {
    of_divided(nest, types, Tiles::of).is_some()
}

impl Tiles {
    /// Whether a target with vectors of so many elements and these instructions computes them: others load no masked bytes and
    /// halves, or do not add products of bytes.
    fn suit(&self, lanes: i64, dots: Dots) -> bool {
        let has_masks = self.dtype == DType::F32 || lanes >= windows::MAX_FLOATS;
        has_masks && (dots == Dots::Vnni || !self.are_bytes())
    }

    /// Memory for the columns of a tile, if they are packed: so that many rows read them from adjacent lines.
    fn packed<'c: 'a, 'a>(
        &self,
        e: Emit<'c, 'a>,
        compute: &Compute,
        over: &[Dim],
        columns: i64,
    ) -> Option<Buffer<'c, 'a>> {
        const FEWEST_ROWS: i64 = 32;
        const DEEPEST: i64 = 512;
        let [depth] = over else { return None };
        let depth = depth.known().filter(|depth| *depth <= DEEPEST)?;
        let rows = compute.dims[self.row?].known().unwrap_or(i64::MAX);
        let is_plain = self.guards.is_empty() && self.bound.is_none() && self.step < 2;
        (is_plain && rows >= FEWEST_ROWS).then(|| e.stack(depth * columns, e.f32()))
    }

    /// Emits the nest, or a part of it.
    fn emit<'c: 'a, 'a>(
        &self,
        e: Emit<'c, 'a>,
        nest: &Nest,
        operands: &[(&Type, Buffer<'c, 'a>)],
        (result, finish): (Buffer<'c, 'a>, Option<&Finish<'_, 'c, 'a>>),
        sizes: &Sizes<'c, 'a>,
        How { part, lanes, packed, memory, .. }: How<'c, 'a>,
    ) {
        let compute = &nest.compute;
        let is_of_bytes = !self.dtype.is_float() && !self.are_bytes();
        let lanes = if is_of_bytes { lanes * 4 } else { lanes };
        let reduced = compute.reduction.iter().flat_map(|over| &over.dims);
        let column = compute.dims.len() - 1;
        let rows = match (self.row, lanes) {
            (None, _) => 1,
            (Some(_), 16..) => 8,
            (Some(_), _) => 4,
        };
        let types: Vec<&Type> = operands.iter().map(|(ty, _)| *ty).collect();
        let panels = Panels::of(self, compute, &types, lanes);
        let winograd = match (packed, &panels) {
            (Some(Packing::Winograd(_)), Some(panels)) => {
                Winograd::of(self, panels, compute, &types, lanes)
            }
            _ => None,
        };
        let windows = Windows::of(self, compute, finish.map_or(0, Finish::outer));
        let over: Vec<Dim> = reduced.cloned().collect();
        // The longest loop is innermost: LLVM would unroll a short one there, and run out of registers.
        let mut order: Vec<usize> = (0..over.len()).collect();
        order.sort_by_key(|loop_| over[*loop_].known().unwrap_or(i64::MAX));
        let writer = Writer {
            tiles: self,
            dims: &compute.dims,
            over: &over,
            order,
            operands,
            result,
            finish,
            sizes,
            lanes: Lanes::Vector(lanes),
            rows,
            vectors: match (&windows, self.row) {
                (Some(_), _) => windows::shape(Lanes::Vector(lanes)).1,
                (None, Some(_)) if panels.is_some() => panels::vectors(lanes),
                (None, Some(_)) => 2,
                (None, None) => 4,
            },
            packed: match &panels {
                _ if winograd.is_some() => None,
                Some(panels) if panels.has_quads() => {
                    Some(e.workspace_view(memory, 0, panels.elements(), e.int(32)))
                }
                Some(panels) => Some(e.stack(panels.elements(), e.f32())),
                None if windows.is_some() => None,
                None => self.packed(e, compute, &over, 2 * lanes),
            },
            windows,
        };
        if let Some(winograd) = winograd {
            return writer.in_winograd(e, &winograd, part, memory);
        }
        if let Some(panels) = panels {
            return writer.in_panels(e, &panels, part, packed.is_some());
        }
        let row = writer.windows.as_ref().map(|windows| windows.row).or(self.row);
        let outer: Vec<usize> = (0..column).filter(|at| Some(*at) != row).collect();
        let mut at = vec![e.index(0); compute.dims.len()];
        let counts: Vec<Extent> =
            outer.iter().map(|dim| writer.sizes.extent(e, &compute.dims[*dim])).collect();
        let strips = writer.strips(e);
        let units = part.map(|[part, parts]| {
            let all = Extent::product(e, &[&counts[..], &[strips]].concat());
            Units::of_part(e, all, part, parts)
        });
        writer.outer(e, (&outer, &counts), &mut at, units);
    }
}

struct Writer<'n, 'c, 'a> {
    tiles: &'n Tiles,
    dims: &'n [Dim],
    over: &'n [Dim],
    /// The loops of the reduction, outermost first.
    order: Vec<usize>,
    operands: &'n [(&'n Type, Buffer<'c, 'a>)],
    result: Buffer<'c, 'a>,
    /// What follows the sums.
    finish: Option<&'n Finish<'n, 'c, 'a>>,
    sizes: &'n Sizes<'c, 'a>,
    lanes: Lanes,
    /// Rows and vectors of a tile.
    rows: i64,
    vectors: i64,
    /// Memory for the columns of a tile, if they are packed.
    packed: Option<Buffer<'c, 'a>>,
    windows: Option<Windows>,
}

/// A tile: indices of its first element, and its extent.
struct Tile<'p, 'c, 'a> {
    at: &'p [Value<'c, 'a>],
    rows: i64,
    vectors: i64,
    /// The columns from its first one on, if there may be fewer than it has.
    rest: Option<Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Writer<'_, 'c, 'a> {
    /// The number of groups of rows that are divided among threads.
    fn strips(&self, e: Emit<'c, 'a>) -> Extent<'c, 'a> {
        if let Some(windows) = &self.windows {
            return self
                .sizes
                .extent(e, &self.dims[windows.row])
                .groups(e, windows::shape(self.lanes).0);
        }
        self.tiles.row.map_or(Extent::Known(1), |row| {
            self.sizes.extent(e, &self.dims[row]).groups(e, self.rows)
        })
    }

    fn outer(
        &self,
        e: Emit<'c, 'a>,
        (dims, counts): (&[usize], &[Extent<'c, 'a>]),
        at: &mut [Value<'c, 'a>],
        units: Option<Units<'c, 'a>>,
    ) {
        let (Some((dim, rest)), Some((count, counts))) = (dims.split_first(), counts.split_first())
        else {
            return match &self.windows {
                Some(windows) => self.windows(e, windows, at, units),
                None => self.matrix(e, at, units),
            };
        };
        let inner = Extent::product(e, &[counts, &[self.strips(e)]].concat());
        let Ok(()) =
            split::loop_over::<Infallible>(e, (*count, inner), units, |e, index, units| {
                at[*dim] = index;
                self.outer(e, (rest, counts), at, units);
                Ok(())
            });
    }

    /// The tiles of all columns, and of all rows or those of some units.
    fn matrix(&self, e: Emit<'c, 'a>, at: &mut [Value<'c, 'a>], units: Option<Units<'c, 'a>>) {
        let column = self.dims.len() - 1;
        let end = match self.tiles.row {
            None => e.index(1),
            Some(row) => self.sizes.value(e, &self.dims[row]),
        };
        let rows = match units {
            None => (e.index(0), end),
            Some(units) => {
                (e.scale(units.from, self.rows), e.min(e.scale(units.to, self.rows), end))
            }
        };
        let columns = self.sizes.value(e, &self.dims[column]);
        let width = self.lanes.count();
        let rest = e.binary(arith::REMSI, columns, e.index(self.vectors * width));
        let whole = e.binary(arith::SUBI, columns, rest);
        // The last columns take one vector or as many as the others.
        let is_short = e.compare(SLE, rest, e.index(width));
        let short = e.op(arith::SELECT, &[is_short, columns, whole], columns.r#type());
        let long = e.op(arith::SELECT, &[is_short, whole, columns], columns.r#type());
        let panels = [
            (e.index(0), whole, self.vectors, false),
            (whole, long, self.vectors, true),
            (whole, short, 1, true),
        ];
        for (from, to, vectors, is_last) in panels {
            let Ok(_) =
                e.for_each::<Infallible>((from, to, vectors * width), &[], |e, first, _| {
                    at[column] = first;
                    self.panel(e, at, rows, (vectors, is_last.then_some(rest)));
                    Ok(vec![])
                });
        }
        if !self.finishes_later() {
            return;
        }
        let Ok(_) = e.for_each::<Infallible>((rows.0, rows.1, 1), &[], |e, row, _| {
            at[column] = e.index(0);
            if let Some(dim) = self.tiles.row {
                at[dim] = row;
            }
            self.finish(e, &at[..column], (self.place(e, at, 0), columns));
            Ok(vec![])
        });
    }

    /// The place of an element of the result, so many rows after an index.
    fn place(&self, e: Emit<'c, 'a>, at: &[Value<'c, 'a>], row: i64) -> Value<'c, 'a> {
        let mut place = e.index(0);
        for (dim, index) in at.iter().enumerate() {
            let index = if Some(dim) == self.tiles.row { e.offset(*index, row) } else { *index };
            let extent = self.sizes.value(e, &self.dims[dim]);
            place = e.add(e.binary(arith::MULI, place, extent), index);
        }
        place
    }

    /// The tiles of some columns: whole ones, then those of the remaining rows.
    fn panel(
        &self,
        e: Emit<'c, 'a>,
        at: &mut [Value<'c, 'a>],
        (from, to): (Value<'c, 'a>, Value<'c, 'a>),
        (vectors, rest): (i64, Option<Value<'c, 'a>>),
    ) {
        if let Some(packed) = self.packed {
            if let Some(dim) = self.tiles.row {
                at[dim] = from;
            }
            self.pack(e, &Tile { at, rows: 1, vectors, rest }, packed);
        }
        let mut start = from;
        for rows in [self.rows, 2, 1].into_iter().filter(|rows| *rows <= self.rows) {
            let count = e.binary(arith::SUBI, to, start);
            let whole = e.scale(e.binary(arith::DIVSI, count, e.index(rows)), rows);
            let end = e.add(start, whole);
            let Ok(_) = e.for_each::<Infallible>((start, end, rows), &[], |e, row, _| {
                if let Some(dim) = self.tiles.row {
                    at[dim] = row;
                }
                self.tile(e, &Tile { at, rows, vectors, rest });
                Ok(vec![])
            });
            start = end;
            if rows == 1 {
                return;
            }
        }
    }

    fn tile(&self, e: Emit<'c, 'a>, tile: &Tile<'_, 'c, 'a>) {
        let zero = e.zero(e.f32(), self.lanes);
        let zeros = vec![zero; (tile.rows * tile.vectors) as usize];
        let sums = self.sums(e, tile, &mut vec![], &zeros);
        let masks = (0..tile.vectors).map(|vector| {
            let columns = self.columns(e, tile, vector)?;
            e.first_lanes(columns, self.lanes)
        });
        let masks: Vec<Option<Value>> = masks.collect();
        for (row, sums) in (0..).zip(sums.chunks(masks.len())) {
            let first = self.place(e, tile.at, row);
            let place = |vector: i64| e.offset(first, vector * self.lanes.count());
            let places: Vec<_> = (0..tile.vectors).map(place).collect();
            let mut outer = tile.at[..self.dims.len() - 1].to_vec();
            if let Some(dim) = self.tiles.row {
                outer[dim] = e.offset(outer[dim], row);
            }
            let vectors = sums.iter().zip(&places).zip(&masks);
            let vectors = vectors.map(|((value, place), mask)| Vector {
                value: *value,
                place: *place,
                mask: *mask,
            });
            let values = self.finished(e, &outer, vectors);
            for ((value, place), mask) in values.into_iter().zip(places).zip(&masks) {
                e.store(value, self.result, place, self.lanes, *mask);
            }
        }
    }

    /// The columns of a vector of a tile, if there may be fewer than it has lanes.
    fn columns(
        &self,
        e: Emit<'c, 'a>,
        tile: &Tile<'_, 'c, 'a>,
        vector: i64,
    ) -> Option<Value<'c, 'a>> {
        let left = e.offset(tile.rest?, -vector * self.lanes.count());
        Some(e.max(left, e.index(0)))
    }

    /// The loops of the reduction that are left, around the sums.
    fn sums(
        &self,
        e: Emit<'c, 'a>,
        tile: &Tile<'_, 'c, 'a>,
        reduced: &mut Vec<Value<'c, 'a>>,
        sums: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let Some(loop_) = self.order.get(reduced.len()) else {
            let in_order = (0..reduced.len()).filter_map(|loop_| {
                Some(reduced[self.order.iter().position(|other| *other == loop_)?])
            });
            return self.products(e, tile, &in_order.collect::<Vec<_>>(), sums);
        };
        let bounds = (e.index(0), self.sizes.value(e, &self.over[*loop_]), 1);
        let Ok(sums) = e.for_each::<Infallible>(bounds, sums, |e, index, sums| {
            reduced.push(index);
            let next = self.sums(e, tile, reduced, sums);
            reduced.pop();
            Ok(next)
        });
        sums
    }

    /// Adds the products at one iteration of the reduction.
    fn products(
        &self,
        e: Emit<'c, 'a>,
        tile: &Tile<'_, 'c, 'a>,
        reduced: &[Value<'c, 'a>],
        sums: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let loops = [tile.at, reduced].concat();
        let mut body = self.body(e, &loops);
        let guard = self.guard(e, &mut body);
        let vectors = (0..tile.vectors).map(|vector| self.vector(e, tile, &loops, (vector, guard)));
        let vectors: Vec<Value> = vectors.collect();
        let mut next = vec![];
        for row in 0..tile.rows {
            let mut loops = loops.clone();
            if let Some(dim) = self.tiles.row {
                loops[dim] = e.offset(loops[dim], row);
            }
            let Load { operand, at } = self.broadcast();
            let place = self.body(e, &loops).place(e, *operand, at);
            let factor = e.splat(e.load(self.operands[*operand].1, place), self.lanes);
            for (vector, values) in vectors.iter().enumerate() {
                let sum = sums[(row * tile.vectors) as usize + vector];
                next.push(e.op(math::FMA, &[factor, *values, sum], sum.r#type()));
            }
        }
        next
    }

    /// The factor that does not depend on the column.
    fn broadcast(&self) -> &Load {
        let Some(broadcast) = &self.tiles.broadcast else {
            unreachable!("only windows have elements without factors")
        };
        broadcast
    }

    /// Whether all conditions that do not depend on the column hold.
    fn guard(&self, e: Emit<'c, 'a>, body: &mut Body<'_, 'c, 'a>) -> Option<Value<'c, 'a>> {
        let holds = self.tiles.guards.iter().map(|guard| body.emit(e, guard).0);
        holds.reduce(|x, y| e.binary(arith::ANDI, x, y))
    }

    /// The elements of the vector factor for a vector of columns; zeros where a condition does not hold.
    fn vector(
        &self,
        e: Emit<'c, 'a>,
        tile: &Tile<'_, 'c, 'a>,
        loops: &[Value<'c, 'a>],
        (vector, guard): (i64, Option<Value<'c, 'a>>),
    ) -> Value<'c, 'a> {
        if let Some(packed) = self.packed {
            let depth = loops[self.dims.len()];
            let width = self.lanes.count();
            let place = e.offset(e.scale(depth, tile.vectors * width), vector * width);
            return e.load_lanes(packed, place, self.lanes, None);
        }
        self.read(e, tile, loops, (vector, guard))
    }

    /// Copies the columns of a tile to adjacent lines.
    fn pack(&self, e: Emit<'c, 'a>, tile: &Tile<'_, 'c, 'a>, packed: Buffer<'c, 'a>) {
        let bounds = (e.index(0), self.sizes.value(e, &self.over[0]), 1);
        let Ok(_) = e.for_each::<Infallible>(bounds, &[], |e, depth, _| {
            let loops = [tile.at, &[depth]].concat();
            let row = e.scale(depth, tile.vectors * self.lanes.count());
            for vector in 0..tile.vectors {
                let values = self.read(e, tile, &loops, (vector, None));
                let place = e.offset(row, vector * self.lanes.count());
                e.store(values, packed, place, self.lanes, None);
            }
            Ok(vec![])
        });
    }

    /// As [`Self::vector`], from the operand itself.
    fn read(
        &self,
        e: Emit<'c, 'a>,
        tile: &Tile<'_, 'c, 'a>,
        loops: &[Value<'c, 'a>],
        (vector, guard): (i64, Option<Value<'c, 'a>>),
    ) -> Value<'c, 'a> {
        let Load { operand, at } = &self.tiles.vector;
        let (column, width, step) = (self.dims.len() - 1, self.lanes.count(), self.tiles.step);
        let mut loops = loops.to_vec();
        loops[column] = e.offset(loops[column], vector * width);
        let mut body = self.body(e, &loops);
        let place = body.place(e, *operand, at);
        let buffer = self.operands[*operand].1;
        let columns = self.columns(e, tile, vector);
        let limit = self.limit(e, &mut body, columns, guard);
        if step == 0 {
            let after = at.iter().position(|index| depends_on(index, column)).unwrap_or(0);
            let along = self.axis_distance(e, *operand, after);
            let lanes = e.splat(along, self.lanes);
            let offsets = e.binary(arith::MULI, e.iota(1, self.lanes), lanes);
            let mask = limit.map(|limit| self.mask(e, limit, 0));
            return e.gather(buffer, place, offsets, self.lanes, mask);
        }
        if step > 2 {
            let mask = limit.map(|limit| mask_of(e, self.lanes, limit, |lane| lane * step));
            return e.gather(buffer, place, e.iota(step, self.lanes), self.lanes, mask);
        }
        let masks: Vec<_> = (0..step)
            .map(|number| limit.map(|limit| self.mask(e, limit, number * width)))
            .collect();
        self.strided(e, place, &masks)
    }

    /// A vector of the vector factor: each of its elements is as many after the one before as there are masks.
    fn strided(
        &self,
        e: Emit<'c, 'a>,
        place: Value<'c, 'a>,
        masks: &[Option<Value<'c, 'a>>],
    ) -> Value<'c, 'a> {
        let buffer = self.operands[self.tiles.vector.operand].1;
        let width = self.lanes.count();
        let loads = masks.iter().zip(0..).map(|(mask, number)| {
            let place = e.offset(place, number * width);
            match mask.filter(|_| self.tiles.outside != 0) {
                None => e.load_lanes(buffer, place, self.lanes, *mask),
                Some(mask) => {
                    let outside = e.integer(i64::from(self.tiles.outside as i8), 8, self.lanes);
                    e.load_beside(buffer, place, (mask, outside))
                }
            }
        });
        let loads: Vec<Value> = loads.collect();
        match loads[..] {
            [only] => only,
            [first, second] => {
                let even: Vec<i64> = (0..width).map(|lane| 2 * lane).collect();
                e.shuffle(first, second, &even)
            }
            _ => unreachable!("a step is 1 or 2"),
        }
    }

    /// The distance of elements that are next to each other along an axis of an operand.
    fn axis_distance(&self, e: Emit<'c, 'a>, operand: usize, axis: usize) -> Value<'c, 'a> {
        self.sizes.value(e, &Dim::product(&self.operands[operand].0.dims[axis + 1..]))
    }

    /// The elements that may be read: lanes whose number plus the first value is below the second one, as unsigned numbers.
    /// `None` for all.
    fn limit(
        &self,
        e: Emit<'c, 'a>,
        body: &mut Body<'_, 'c, 'a>,
        columns: Option<Value<'c, 'a>>,
        guard: Option<Value<'c, 'a>>,
    ) -> Option<[Value<'c, 'a>; 2]> {
        let none = e.integer(0, 32, Lanes::Scalar);
        let narrow = |wide| e.op(arith::TRUNCI, &[wide], e.int(32));
        let guarded = |count: Value<'c, 'a>| match guard {
            Some(guard) => e.op(arith::SELECT, &[guard, count, none], e.int(32)),
            None => count,
        };
        if let Some(size) = &self.tiles.bound {
            let innermost = self.tiles.vector.at.last()?;
            let first = narrow(body.emit(e, innermost).0);
            return Some([first, guarded(narrow(body.emit(e, size).0))]);
        }
        let (width, step) = (self.lanes.count(), self.tiles.step);
        let step = step.max(1);
        let columns = match columns {
            Some(columns) => columns,
            None if step > 1 || guard.is_some() => e.index(width),
            None => return None,
        };
        // The last column is read at `step * (columns - 1)`.
        let count = e.max(e.offset(e.scale(columns, step), 1 - step), e.index(0));
        let count = e.op(arith::INDEX_CAST, &[count], e.int(32));
        Some([none, guarded(count)])
    }

    /// The mask of such lanes, with numbers from `first` on.
    fn mask(&self, e: Emit<'c, 'a>, limit: [Value<'c, 'a>; 2], first: i64) -> Value<'c, 'a> {
        mask_of(e, self.lanes, limit, |lane| first + lane)
    }

    fn body(&self, e: Emit<'c, 'a>, loops: &[Value<'c, 'a>]) -> Body<'_, 'c, 'a> {
        Body {
            operands: self.operands,
            sizes: self.sizes,
            loops: loops.iter().map(|index| loop_number(e, *index)).collect(),
            reduced: None,
            known: vec![Known::new()],
        }
    }
}

/// The mask of lanes with such numbers, as [`Writer::limit`] states which.
fn mask_of<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    lanes: Lanes,
    [start, end]: [Value<'c, 'a>; 2],
    number: impl Fn(i64) -> i64,
) -> Value<'c, 'a> {
    let numbers: Vec<String> = (0..lanes.count()).map(|lane| number(lane).to_string()).collect();
    let ty = lanes.of(e.int(32));
    let numbers = format!("dense<[{}]> : {ty}", numbers.join(", "));
    let numbers = attr::parse(e.context, &numbers);
    let numbers = e.value(e.spec(arith::CONSTANT).attr("value", numbers).results(&[ty]));
    let spec =
        e.spec(arith::CMPI).operands(&[e.add(e.splat(start, lanes), numbers), e.splat(end, lanes)]);
    let spec = spec.attr("predicate", attr::i64(e.context, ULT));
    e.value(spec.results(&[lanes.of(e.int(1))]))
}
