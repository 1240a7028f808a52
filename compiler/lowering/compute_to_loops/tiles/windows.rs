//! Sums over windows of one channel, as depthwise convolutions.
//!
//! A tile is several rows of the result. Each vector of an input row is loaded once for each column of a filter, and added to all
//! rows of the tile whose windows it is in. Elements outside of an image are masked.
mod bytes;
mod pairs;

use super::{
    Load, SGE, SLE, Tile, Tiles, ULT, Writer, bound, coefficient, epilogue::Vector, mask_of,
};
use crate::kernel::emit::{Emit, Lanes, Prefetch};
use crate::lowering::compute_to_loops::expression::depends_on;
use crate::lowering::linalg_to_vector::{body::extremum, split::Units};
use bytes::mask_of_bytes;
use irc_mlir::ops::{arith, math};
use irc_mlir::{Value, ValueLike};
use irc_tl::{Binary, Combine, Compute, DType, Dim, Number, Scalar};
use std::{collections::BTreeMap, convert::Infallible};

/// The rows and vectors of a tile: as many sums as it takes to keep two multipliers busy, in as many vectors as there are
/// registers for.
pub(super) fn shape(lanes: Lanes) -> (i64, i64) {
    if lanes.count() >= MAX_FLOATS { (7, 1) } else { (4, 2) }
}

/// The bytes of a cache line.
const LINE: usize = 64;

/// The maximum number of elements of a window.
const LARGEST: i64 = 49;

/// The maximum distance of elements of a window along an axis.
const WIDEST: i64 = 32;

/// As [`WIDEST`], of bytes: so many are loaded at once.
const WIDEST_OF_BYTES: i64 = 16;

/// How a nest is computed in windows.
pub(super) struct Windows {
    /// The loop over rows of the result.
    pub(super) row: usize,
    /// The dimension of the operand that has its rows.
    axis: usize,
    /// The rows of the operand from one row of the result to the next.
    stride: i64,
    /// The loops of the reduction over the window, its extents, and the distance between its elements.
    taps: [Taps; 2],
    /// The number of rows of the operand, if the window may reach beyond them.
    bound: Option<Scalar>,
    /// Whether windows begin at odd columns, where they begin at every second one.
    is_odd: bool,
}

/// A loop of the reduction over rows or columns of a window.
#[derive(Clone, Copy)]
struct Taps {
    /// `None` if there is one.
    loop_: Option<usize>,
    count: i64,
    distance: i64,
}

impl Taps {
    /// The distance of the last one from the first one.
    fn reach(self) -> i64 {
        (self.count - 1) * self.distance
    }
}

/// An index at the first iterations of all loops, if it is known.
fn first_of(index: &Scalar) -> Option<i64> {
    match index {
        Scalar::Loop(_) => Some(0),
        Scalar::Int(value, _) => Some(*value),
        Scalar::Binary(function, x, y) => {
            let (x, y) = (first_of(x)?, first_of(y)?);
            match function {
                Binary::Add => x.checked_add(y),
                Binary::Sub => x.checked_sub(y),
                Binary::Mul => x.checked_mul(y),
                _ => None,
            }
        }
        _ => None,
    }
}

impl Windows {
    /// The windows of a nest whose epilogue depends on so many outer loops.
    pub(super) fn of(tiles: &Tiles, compute: &Compute, outer: usize) -> Option<Self> {
        let column = compute.dims.len() - 1;
        let row = column.checked_sub(1)?;
        let (innermost, others) = tiles.vector.at.split_last()?;
        let mut moving = (0..others.len()).filter(|axis| depends_on(&others[*axis], row));
        let (axis, None) = (moving.next()?, moving.next()) else { return None };
        let stride = coefficient(&others[axis], row)?;
        let over = &compute.reduction.as_ref()?.dims;
        let taps = |index: &Scalar| {
            let mut found = Taps { loop_: None, count: 1, distance: 1 };
            for (number, dim) in over.iter().enumerate() {
                let (loop_, count) = (compute.dims.len() + number, dim.known()?);
                let distance = coefficient(index, loop_)?;
                if count != 1 && distance != 0 {
                    let is_only = found.loop_.is_none() && distance > 0;
                    is_only.then_some(())?;
                    found = Taps { loop_: Some(loop_), count, distance };
                }
            }
            Some(found)
        };
        let taps = [taps(&others[axis])?, taps(innermost)?];
        let all: Option<i64> = over.iter().map(Dim::known).product();
        let is_one_channel = all == Some(taps[0].count * taps[1].count)
            && taps[0].loop_ != taps[1].loop_
            && all <= Some(LARGEST);
        let is_plain = taps.iter().all(|taps| taps.reach() <= WIDEST)
            && !tiles.broadcast.as_ref().is_some_and(|broadcast| broadcast.depends_on(row))
            && !depends_on(innermost, row)
            && (1..=2).contains(&stride)
            && (1..=2).contains(&tiles.step)
            && outer <= row;
        let has_words = !tiles.are_bytes() || taps[1].reach() < WIDEST_OF_BYTES;
        if tiles.row.is_some() || !is_one_channel || !is_plain || !has_words {
            return None;
        }
        let bound = bound(&tiles.guards, &others[axis])?;
        let is_odd = first_of(innermost).is_some_and(|first| first % 2 != 0);
        Some(Self { row, axis, stride, taps, bound, is_odd })
    }
}

impl<'c: 'a, 'a> Writer<'_, 'c, 'a> {
    /// The tiles of an image, or of some units of rows.
    pub(super) fn windows(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        at: &mut [Value<'c, 'a>],
        units: Option<Units<'c, 'a>>,
    ) {
        let (rows, vectors) = shape(self.lanes);
        let end = self.sizes.value(e, &self.dims[windows.row]);
        at[windows.row + 1] = e.index(0);
        let (start, to) = match units {
            None => (e.index(0), end),
            Some(units) => (e.scale(units.from, rows), e.min(e.scale(units.to, rows), end)),
        };
        let columns = self.sizes.value(e, &self.dims[self.dims.len() - 1]);
        let width = self.lanes.count();
        // The last tile of several rows moves up, and that of several columns to the left: they compute some elements again, to
        // the same bits. Masked stores take long on some processors.
        let count = e.binary(arith::SUBI, to, start);
        let is_tall = e.compare(SGE, count, e.index(rows));
        let has_few_outside = self.has_few_outside(e, windows, at);
        let is_tall = e.binary(arith::ANDI, is_tall, has_few_outside);
        let end = e.op(arith::SELECT, &[is_tall, to, start], start.r#type());
        let tall = match vectors {
            1 => vec![(1, columns)],
            _ => {
                let is_wide = e.compare(SGE, columns, e.index(vectors * width));
                let either = |x, y| e.op(arith::SELECT, &[is_wide, x, y], columns.r#type());
                let none = e.index(0);
                vec![(vectors, either(columns, none)), (1, either(none, columns))]
            }
        };
        self.tiles_of(e, windows, at, ([start, end], rows), &tall);
        self.tiles_of(e, windows, at, ([end, to], 1), &[(1, columns)]);
    }

    /// The tiles of so many rows of a range of rows, by their vectors, each to its last column.
    fn tiles_of(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        at: &mut [Value<'c, 'a>],
        ([start, to], rows): Range<'c, 'a>,
        columns_of: &[(i64, Value<'c, 'a>)],
    ) {
        let columns = self.sizes.value(e, &self.dims[self.dims.len() - 1]);
        let width = self.lanes.count();
        let Ok(_) = e.for_each::<Infallible>((start, to, rows), &[], |e, row, _| {
            let row = if rows == 1 { row } else { e.min(row, e.offset(to, -rows)) };
            at[windows.row] = row;
            for &(vectors, end) in columns_of {
                let all = (e.index(0), end, vectors * width);
                let Ok(_) = e.for_each::<Infallible>(all, &[], |e, column, _| {
                    let last = e.max(e.offset(columns, -vectors * width), e.index(0));
                    at[windows.row + 1] = e.min(column, last);
                    let rest = (vectors == 1).then_some(columns);
                    self.window(e, windows, &Tile { at, rows, vectors, rest });
                    Ok(vec![])
                });
            }
            at[windows.row + 1] = e.index(0);
            let first = self.place(e, at, 0);
            self.finish(e, &at[..windows.row], (first, e.scale(columns, rows)));
            Ok(vec![])
        });
    }

    /// The loops at the first element of a tile and of its sum.
    fn first_loops(&self, e: Emit<'c, 'a>, tile: &Tile<'_, 'c, 'a>) -> Vec<Value<'c, 'a>> {
        let mut loops = tile.at.to_vec();
        loops.resize(self.dims.len() + self.over.len(), e.index(0));
        loops
    }

    /// The place of the first element of the operand that a tile reads, and the distance of its lines.
    fn source(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
    ) -> (Value<'c, 'a>, Value<'c, 'a>) {
        let loops = self.first_loops(e, tile);
        let Load { operand, at } = &self.tiles.vector;
        let place = self.body(e, &loops).place(e, *operand, at);
        (place, self.axis_distance(e, *operand, windows.axis))
    }

    /// A tile.
    fn window(&self, e: Emit<'c, 'a>, windows: &Windows, tile: &Tile<'_, 'c, 'a>) {
        let edges = self.edges(e, windows, tile);
        if tile.rows > 1 {
            self.prefetch_lines(e, windows, tile);
        }
        let sums = self.sums_of_tile(e, windows, tile, &edges);
        let sums = self.in_order(e, sums);
        let columns = self.sizes.value(e, &self.dims[self.dims.len() - 1]);
        let first = self.place(e, tile.at, 0);
        let mask = |vector: i64| {
            self.columns(e, tile, vector).and_then(|rest| e.first_lanes(rest, self.lanes))
        };
        let masks: Vec<_> = (0..tile.vectors).map(mask).collect();
        let mask = |number: i64| masks[(number % tile.vectors) as usize];
        let place = |number: i64| {
            let row = e.add(first, e.scale(columns, number / tile.vectors));
            e.offset(row, number % tile.vectors * self.lanes.count())
        };
        let places: Vec<_> = (0..tile.rows * tile.vectors).map(place).collect();
        let vectors = (0..).zip(sums.into_iter().zip(&places));
        let vectors = vectors.map(|(number, (value, place))| Vector {
            value,
            place: *place,
            mask: mask(number),
        });
        let values = self.finished(e, &tile.at[..windows.row], vectors).into_iter();
        let values: Vec<_> = values.map(|value| self.narrowed(e, value, self.lanes)).collect();
        // The first so many rows are stored without masks.
        let store = |e: Emit<'c, 'a>, whole: i64| {
            for (number, (value, place)) in (0..).zip(values.iter().zip(&places)) {
                let mask = mask(number).filter(|_| number / tile.vectors >= whole);
                e.store(*value, self.result, *place, self.lanes, mask);
            }
            Ok::<_, Infallible>(vec![])
        };
        let Some(rest) = tile.rest else {
            let Ok(_) = store(e, tile.rows);
            return;
        };
        // What a row stores after its end is stored again by those below, if they reach as far.
        let width = self.lanes.count();
        let is_whole = e.compare(SLE, e.index(width), rest);
        let is_half = e.compare(SLE, e.index(width / 2), rest);
        let partly =
            |e: Emit<'c, 'a>| e.if_else(is_half, &[], |e| store(e, tile.rows - 1), |e| store(e, 0));
        let Ok(_) = e.if_else(is_whole, &[], |e| store(e, tile.rows), partly);
    }

    /// The sums of a tile, without masks inside of the image where these take as long as branches.
    fn sums_of_tile(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
        edges: &Edges<'c, 'a>,
    ) -> Vec<Value<'c, 'a>> {
        if self.lanes.count() >= MIN_MASKED || tile.rows == 1 {
            return self.window_sums(e, windows, tile, Some(edges));
        }
        let Edges { rows, columns } = *edges;
        let reach = tile.vectors * self.lanes.count() * self.tiles.step + windows.taps[1].reach();
        let wide = columns.map(|narrow| e.op(arith::EXTSI, &[narrow], e.int(64)));
        let in_columns = is_inside(e, wide, reach);
        let inside = match rows {
            None => in_columns,
            Some(rows) => {
                let in_rows = is_inside(e, rows, windows.lines(tile.rows));
                e.binary(arith::ANDI, in_columns, in_rows)
            }
        };
        let types = vec![self.lanes.of(e.f32()); (tile.rows * tile.vectors) as usize];
        let sums =
            |e: Emit<'c, 'a>, edges| Ok::<_, Infallible>(self.window_sums(e, windows, tile, edges));
        let Ok(sums) = e.if_else(inside, &types, |e| sums(e, None), |e| sums(e, Some(edges)));
        sums
    }

    /// Prefetches what the tile below reads, unless this tile reads it too.
    fn prefetch_lines(&self, e: Emit<'c, 'a>, windows: &Windows, tile: &Tile<'_, 'c, 'a>) {
        let (place, distance) = self.source(e, windows, tile);
        let (below, end) = (tile.rows * windows.stride, windows.lines(tile.rows));
        // The same lines as the tile reads, from a place below.
        let place = e.add(place, e.scale(distance, below));
        let columns = tile.vectors * self.lanes.count() * self.tiles.step;
        for line in end - below..end {
            let place = e.add(place, e.scale(distance, line));
            for column in (0..columns).step_by(LINE / self.tiles.dtype.bits() as usize * 8) {
                let place = e.offset(place, column);
                let operand = self.operands[self.tiles.vector.operand].1;
                e.prefetch(operand, place, Prefetch::Read);
            }
        }
    }

    /// Whether no windows of an image reach further beyond its first and last rows than [`Windows::outside`].
    fn has_few_outside(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        at: &[Value<'c, 'a>],
    ) -> Value<'c, 'a> {
        let mut at = at.to_vec();
        let mut rows_at = |row: Value<'c, 'a>| {
            at[windows.row] = row;
            self.edges(e, windows, &Tile { at: &at, rows: 1, vectors: 1, rest: None }).rows
        };
        let last = e.offset(self.sizes.value(e, &self.dims[windows.row]), -1);
        let (Some([top, _]), Some([first, size])) = (rows_at(e.index(0)), rows_at(last)) else {
            return e.integer(1, 1, Lanes::Scalar);
        };
        let offset =
            |value, by: i64| e.binary(arith::ADDI, value, e.integer(by, 64, Lanes::Scalar));
        let zero = e.integer(0, 64, Lanes::Scalar);
        let end = offset(first, windows.lines(1) - windows.outside());
        let conditions =
            [e.compare(SGE, offset(top, windows.outside()), zero), e.compare(SLE, end, size)];
        e.binary(arith::ANDI, conditions[0], conditions[1])
    }

    /// Where the operand of a tile begins and ends.
    fn edges(&self, e: Emit<'c, 'a>, windows: &Windows, tile: &Tile<'_, 'c, 'a>) -> Edges<'c, 'a> {
        let mut body = self.body(e, &self.first_loops(e, tile));
        let Load { operand, at } = &self.tiles.vector;
        let dims = &self.operands[*operand].0.dims;
        let axes = [(windows.axis, &windows.bound), (at.len() - 1, &self.tiles.bound)];
        let [rows, columns] = axes.map(|(axis, bound)| {
            let (first, _) = body.emit(e, &at[axis]);
            let size = match bound {
                Some(size) => body.emit(e, size).0,
                None => body.size(e, &dims[axis]),
            };
            [first, size]
        });
        let columns = columns.map(|wide| e.op(arith::TRUNCI, &[wide], e.int(32)));
        Edges { rows: windows.bound.is_some().then_some(rows), columns }
    }

    /// The sums of a tile; without edges, of one inside of the image. With a step of 2, their lanes are in the order of [`of_order`].
    fn window_sums(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
        edges: Option<&Edges<'c, 'a>>,
    ) -> Vec<Value<'c, 'a>> {
        let (place, distance) = self.source(e, windows, tile);
        let inside = windows.outside()..windows.lines(tile.rows) - windows.outside();
        let factors = match self.tiles.are_bytes() {
            true => self.words(e, windows, tile),
            false => self.factors(e, windows, tile),
        };
        let masks = edges.map_or(BTreeMap::new(), |edges| self.masks(e, windows, tile, edges));
        let mut sums = vec![self.neutral(e, self.lanes); (tile.rows * tile.vectors) as usize];
        for line in windows.lines_of(tile.rows) {
            let place = e.add(place, e.scale(distance, line));
            let of_line = Line { line, factors: &factors, masks: &masks };
            let exists = match tile.rows > 1 && inside.contains(&line) {
                true => None,
                false => edges.and_then(|edges| edges.has(e, line)),
            };
            let Some(exists) = exists else {
                self.add_line(e, windows, tile, &of_line, Some(place), &mut sums);
                continue;
            };
            // Only these sums change.
            let rows = (0..tile.rows).filter(|row| windows.tap(line, *row).is_some());
            let changed = rows.flat_map(|row| row * tile.vectors..(row + 1) * tile.vectors);
            let changed: Vec<usize> = changed.map(|number| number as usize).collect();
            let types = vec![sums[0].r#type(); changed.len()];
            let with = |e: Emit<'c, 'a>, place| {
                let mut sums = sums.clone();
                self.add_line(e, windows, tile, &of_line, place, &mut sums);
                Ok::<_, Infallible>(changed.iter().map(|number| sums[*number]).collect())
            };
            let Ok(values) = e.if_else(exists, &types, |e| with(e, Some(place)), |e| with(e, None));
            changed.iter().zip(values).for_each(|(number, value)| sums[*number] = value);
        }
        sums
    }

    /// The vectors of a line that a tile loads: their places from the first element on, and their lanes.
    fn places(&self, windows: &Windows, tile: &Tile<'_, 'c, 'a>) -> Vec<(i64, Lanes)> {
        let Taps { count, distance, .. } = windows.taps[1];
        let places = (0..count).flat_map(|tap| match self.tiles.step {
            1 => vec![(tap * distance, self.lanes)],
            _ => windows.pair(self.lanes, tap * distance).loads(self.lanes),
        });
        let places: Vec<_> = places.collect();
        let width = self.tiles.step * self.lanes.count();
        let of = |at| places.iter().map(move |(place, lanes)| (at * width + place, *lanes));
        (0..tile.vectors).flat_map(of).collect()
    }

    /// The masks of the elements that vectors of a tile load, by their places and numbers of lanes.
    fn masks(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
        edges: &Edges<'c, 'a>,
    ) -> BTreeMap<(i64, i64), Value<'c, 'a>> {
        let mut masks = BTreeMap::new();
        if self.tiles.are_bytes() {
            let lanes = self.bytes_of_line();
            let mask = mask_of_bytes(e, lanes, edges.columns);
            masks.insert((0, lanes.count()), mask);
            return masks;
        }
        for (place, lanes) in self.places(windows, tile) {
            masks
                .entry((place, lanes.count()))
                .or_insert_with(|| mask_of(e, lanes, edges.columns, |lane| place + lane));
        }
        masks
    }

    /// Adds the products of the elements of a line, or combines these, from a place on; `None` of a line outside of the image.
    fn add_line(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
        line: &Line<'_, 'c, 'a>,
        place: Option<Value<'c, 'a>>,
        sums: &mut [Value<'c, 'a>],
    ) {
        if self.tiles.are_bytes() {
            return self.add_bytes(e, windows, tile, line, place, sums);
        }
        let Some(place) = place else { return };
        let taps = windows.taps[1];
        let (width, step) = (self.lanes.count(), self.tiles.step);
        for at in 0..tile.vectors {
            let (mut loaded, mut halves) = (BTreeMap::new(), BTreeMap::new());
            let mut load = |from: i64, lanes: Lanes| {
                let from = at * step * width + from;
                *loaded.entry((from, lanes.count())).or_insert_with(|| {
                    let place = e.offset(place, from);
                    let mask = line.masks.get(&(from, lanes.count()));
                    self.load(e, place, lanes, mask.map(|mask| (*mask, self.outside(e, lanes))))
                })
            };
            for tap in 0..taps.count {
                let value = match step {
                    1 => load(tap * taps.distance, self.lanes),
                    _ => self.of_two(e, windows, tap * taps.distance, &mut load, &mut halves),
                };
                for row in 0..tile.rows {
                    if let Some(above) = windows.tap(line.line, row) {
                        let sum = &mut sums[(row * tile.vectors + at) as usize];
                        let factor = line.factors.get((above * taps.count + tap) as usize);
                        *sum = self.combined(e, *sum, value, factor.copied());
                    }
                }
            }
        }
    }

    /// What does not change sums, in the type of the sums.
    fn neutral(&self, e: Emit<'c, 'a>, lanes: Lanes) -> Value<'c, 'a> {
        if self.tiles.are_bytes() {
            return e.integer(0, 32, lanes);
        }
        match self.tiles.combine.neutral(self.tiles.dtype) {
            Number::Float(neutral) => e.float(neutral, e.f32(), lanes),
            Number::Int(neutral) => e.integer(i64::from(neutral as i8), 8, lanes),
        }
    }

    /// What the operand has outside of an image.
    fn outside(&self, e: Emit<'c, 'a>, lanes: Lanes) -> Value<'c, 'a> {
        match self.tiles.are_bytes() {
            true => e.integer(i64::from(self.tiles.outside as i8), 8, lanes),
            false => self.narrowed(e, self.neutral(e, lanes), lanes),
        }
    }

    /// A vector of the operand in the type of the sums, or of bytes; where a mask does not hold, of the elements of another vector.
    fn load(
        &self,
        e: Emit<'c, 'a>,
        at: Value<'c, 'a>,
        lanes: Lanes,
        mask: Option<(Value<'c, 'a>, Value<'c, 'a>)>,
    ) -> Value<'c, 'a> {
        let operand = self.operands[self.tiles.vector.operand].1;
        let value = match mask {
            None => e.load_lanes(operand, at, lanes, None),
            Some(mask) => e.load_beside(operand, at, mask),
        };
        match self.tiles.dtype {
            DType::F16 => e.op(arith::EXTF, &[value], lanes.of(e.f32())),
            _ => value,
        }
    }

    /// A sum in the type of the operand.
    fn narrowed(&self, e: Emit<'c, 'a>, sum: Value<'c, 'a>, lanes: Lanes) -> Value<'c, 'a> {
        let element = self.operands[self.tiles.vector.operand].1.element;
        match self.tiles.dtype {
            DType::F16 => e.op(arith::TRUNCF, &[sum], lanes.of(element)),
            _ => sum,
        }
    }

    /// What has been combined, with another element, or its product with a factor.
    fn combined(
        &self,
        e: Emit<'c, 'a>,
        sum: Value<'c, 'a>,
        value: Value<'c, 'a>,
        factor: Option<Value<'c, 'a>>,
    ) -> Value<'c, 'a> {
        let integers = match (self.tiles.combine, self.tiles.dtype) {
            _ if factor.is_some() => None,
            (Combine::Max, DType::U8) => Some(arith::MAXUI),
            (Combine::Max, DType::I8) => Some(arith::MAXSI),
            (_, DType::U8) => Some(arith::MINUI),
            (_, DType::I8) => Some(arith::MINSI),
            _ => None,
        };
        if let Some(function) = integers {
            return e.binary(function, sum, value);
        }
        match (self.tiles.combine, factor) {
            (_, Some(factor)) => e.op(math::FMA, &[factor, value, sum], sum.r#type()),
            (Combine::Max, None) => extremum(e, true, [sum, value], e.f32(), self.lanes),
            (Combine::Min, None) => extremum(e, false, [sum, value], e.f32(), self.lanes),
            (Combine::Sum | Combine::Product, None) => e.binary(arith::ADDF, sum, value),
        }
    }

    /// The factors of a window, each in all lanes, row after row; none of a pool.
    fn factors(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
    ) -> Vec<Value<'c, 'a>> {
        let [rows, columns] = windows.taps;
        if self.tiles.broadcast.is_none() {
            return vec![];
        }
        let taps =
            (0..rows.count).flat_map(|row| (0..columns.count).map(move |column| [row, column]));
        taps.map(|tap| e.splat(self.factor(e, windows, tile, tap), self.lanes)).collect()
    }

    /// The factor in a row and a column of a window.
    fn factor(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
        tap: [i64; 2],
    ) -> Value<'c, 'a> {
        let Load { operand, at } = self.broadcast();
        let mut loops = self.first_loops(e, tile);
        for (taps, at) in windows.taps.iter().zip(tap) {
            if let Some(loop_) = taps.loop_ {
                loops[loop_] = e.index(at);
            }
        }
        let place = self.body(e, &loops).place(e, *operand, at);
        e.load(self.operands[*operand].1, place)
    }
}

/// A range of rows, and the rows of a tile of it.
type Range<'c, 'a> = ([Value<'c, 'a>; 2], i64);

/// A line of the operand that a tile reads: its number from the first one on, the factors of the window, and the masks of the
/// vectors that are loaded.
struct Line<'l, 'c, 'a> {
    line: i64,
    factors: &'l [Value<'c, 'a>],
    masks: &'l BTreeMap<(i64, i64), Value<'c, 'a>>,
}

/// Where the operand of a tile begins and ends: the rows, if it may end before them, and columns of the first element that it
/// reads, and their numbers.
#[derive(Clone, Copy)]
struct Edges<'c, 'a> {
    rows: Option<[Value<'c, 'a>; 2]>,
    columns: [Value<'c, 'a>; 2],
}

impl<'c: 'a, 'a> Edges<'c, 'a> {
    /// Whether a line, so many after the first, exists, if it may not.
    fn has(&self, e: Emit<'c, 'a>, line: i64) -> Option<Value<'c, 'a>> {
        let [first, rows] = self.rows?;
        let line = e.binary(arith::ADDI, first, e.integer(line, 64, Lanes::Scalar));
        Some(e.compare(ULT, line, rows))
    }
}

/// Whether so many elements from a first one on are among so many.
fn is_inside<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    [first, size]: [Value<'c, 'a>; 2],
    count: i64,
) -> Value<'c, 'a> {
    let last = e.binary(arith::ADDI, first, e.integer(count, 64, Lanes::Scalar));
    let zero = e.integer(0, 64, Lanes::Scalar);
    e.binary(arith::ANDI, e.compare(SGE, first, zero), e.compare(SLE, last, size))
}

/// The smallest vector that is loaded with a mask by one instruction.
const MIN_MASKED: i64 = 8;

/// The maximum number of `f32` of a vector.
pub(super) const MAX_FLOATS: i64 = 16;

impl Windows {
    /// The row of a window that is on a line of the operand, for a row of the result.
    fn tap(&self, line: i64, row: i64) -> Option<i64> {
        let Taps { count, distance, .. } = self.taps[0];
        let down = line - row * self.stride;
        let is_in = down >= 0 && down % distance == 0 && down / distance < count;
        is_in.then_some(down / distance)
    }

    /// The lines of the operand that so many rows of the result read.
    fn lines_of(&self, rows: i64) -> Vec<i64> {
        let is_read = |line: &i64| (0..rows).any(|row| self.tap(*line, row).is_some());
        (0..self.lines(rows)).filter(is_read).collect()
    }

    /// The lines of a tile of several rows that may be above the operand, and below: half of those of a window.
    fn outside(&self) -> i64 {
        (self.taps[0].reach() + 1) / 2
    }

    /// The rows of the operand under so many rows of the result.
    fn lines(&self, rows: i64) -> i64 {
        (rows - 1) * self.stride + self.taps[0].reach() + 1
    }
}
