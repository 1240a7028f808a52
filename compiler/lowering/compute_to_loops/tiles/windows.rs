//! Sums over windows of one channel, as depthwise convolutions.
//!
//! A tile is several rows of the result. Each vector of an input row is loaded once for each column of a filter, and added to all
//! rows of the tile whose windows it is in.
use super::{Load, SGE, SLE, Tile, Tiles, ULT, Writer, bound, coefficient, epilogue::Vector};
use crate::kernel::emit::{Buffer, Emit, Lanes, Prefetch};
use crate::lowering::compute_to_loops::expression::{depends_on, loop_number};
use crate::lowering::linalg_to_vector::split::{Extent, Units};
use irc_mlir::ops::{arith, math, memref};
use irc_mlir::{Type as MlirType, Value, ValueLike, melior::ir::r#type::MemRefType};
use irc_tl::{Compute, Dim, Scalar};
use std::convert::Infallible;

/// The rows and vectors of a tile.
pub(super) const ROWS: i64 = 4;
pub(super) const VECTORS: i64 = 2;

/// The maximum number of elements of a channel that is copied whole.
const SMALL: i64 = 2048;

/// The elements of a cache line.
const ELEMENTS_OF_LINE: usize = 16;

/// The maximum number of elements of a window.
const LARGEST: i64 = 49;

/// The maximum distance of elements of a window along an axis.
const WIDEST: i64 = 32;

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
            && !tiles.broadcast.depends_on(row)
            && !depends_on(innermost, row)
            && (1..=2).contains(&stride)
            && tiles.step > 0
            && outer <= row;
        if tiles.row.is_some() || !is_one_channel || !is_plain {
            return None;
        }
        let bound = bound(&tiles.guards, &others[axis])?;
        Some(Self { row, axis, stride, taps, bound })
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
        let end = self.sizes.value(e, &self.dims[windows.row]);
        let (start, to) = match units {
            None => (e.index(0), end),
            Some(units) => (e.scale(units.from, ROWS), e.min(e.scale(units.to, ROWS), end)),
        };
        let columns = self.sizes.value(e, &self.dims[self.dims.len() - 1]);
        let width = self.lanes.count();
        // The last tile of several rows moves up, and that of several columns to the left: they compute some elements again, to
        // the same bits. Masked stores take long on some processors.
        let count = e.binary(arith::SUBI, to, start);
        let is_tall = e.compare(SGE, count, e.index(ROWS));
        let end = e.op(arith::SELECT, &[is_tall, to, start], start.r#type());
        let is_wide = e.compare(SGE, columns, e.index(VECTORS * width));
        let either = |x, y| e.op(arith::SELECT, &[is_wide, x, y], columns.r#type());
        let (wide, narrow) = (either(columns, e.index(0)), either(e.index(0), columns));
        let channel_rows = [start, end];
        at[windows.row] = start;
        at[windows.row + 1] = e.index(0);
        let (size, line) = self.copied_lines(e, windows, e.binary(arith::SUBI, end, start));
        let is_small = e.compare(SLE, size, e.index(SMALL));
        let is_small = e.binary(arith::ANDI, is_small, is_tall);
        let copy = |e: Emit<'c, 'a>| {
            let lines = e.binary(arith::DIVUI, size, line);
            self.copy_channel(e, windows, at, (lines, line));
            Ok::<_, Infallible>(vec![])
        };
        let Ok(_) = e.if_else(is_small, &[], copy, |_| Ok(vec![]));
        let channel = Channel { is_copied: is_small, line, start };
        let tall = [(VECTORS, wide), (1, narrow)];
        self.tiles_of(e, windows, at, (channel_rows, ROWS), &tall, Some(channel));
        self.tiles_of(e, windows, at, ([end, to], 1), &[(1, columns)], None);
    }

    /// The tiles of so many rows of a range of rows, by their vectors, each to its last column.
    fn tiles_of(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        at: &mut [Value<'c, 'a>],
        ([start, to], rows): Range<'c, 'a>,
        columns_of: &[(i64, Value<'c, 'a>)],
        channel: Option<Channel<'c, 'a>>,
    ) {
        let columns = self.sizes.value(e, &self.dims[self.dims.len() - 1]);
        let width = self.lanes.count();
        let Ok(_) = e.for_each::<Infallible>((start, to, rows), &[], |e, row, _| {
            let row = if rows == 1 { row } else { e.min(row, e.offset(to, -rows)) };
            at[windows.row] = row;
            for &(vectors, end) in columns_of {
                let all = (e.index(0), end, vectors * width);
                let Ok(_) = e.for_each::<Infallible>(all, &[], |e, column, _| {
                    let last = e.offset(columns, -vectors * width);
                    at[windows.row + 1] = e.max(e.min(column, last), e.index(0));
                    let rest = (vectors == 1).then_some(columns);
                    self.window(e, windows, &Tile { at, rows, vectors, rest }, channel);
                    Ok(vec![])
                });
            }
            at[windows.row + 1] = e.index(0);
            let first = self.place(e, at, 0);
            self.finish(e, &at[..windows.row], (first, e.scale(columns, rows)));
            Ok(vec![])
        });
    }

    /// The elements of what so many rows of a channel read, copied with zeros around it, and of a line of it.
    fn copied_lines(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        rows: Value<'c, 'a>,
    ) -> (Value<'c, 'a>, Value<'c, 'a>) {
        let (width, step) = (self.lanes.count(), self.tiles.step);
        let columns = self.sizes.value(e, &self.dims[self.dims.len() - 1]);
        let line = e.scale(e.max(columns, e.index(width)), step);
        let line = Extent::Passed(e.offset(line, windows.taps[1].reach())).groups(e, width);
        let line = line.times(e, width).value(e);
        let lines = e.offset(e.scale(rows, windows.stride), windows.lines(1) - windows.stride);
        (e.binary(arith::MULI, lines, line), line)
    }

    /// Copies so many lines of a channel, from those of the tile at `at` on.
    fn copy_channel(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        at: &[Value<'c, 'a>],
        (lines, length): (Value<'c, 'a>, Value<'c, 'a>),
    ) {
        let buffer = self.copies();
        let tile = Tile { at, rows: 1, vectors: 1, rest: None };
        let edges = self.edges(e, windows, &tile);
        let (place, distance) = self.source(e, windows, &tile);
        let columns = edges.columns.map(|wide| e.op(arith::TRUNCI, &[wide], e.int(32)));
        let Ok(_) = e.for_each::<Infallible>((e.index(0), lines, 1), &[], |e, line, _| {
            let is_row = edges.has_row(e, loop_number(e, line));
            let is_row = e.splat(is_row, self.lanes);
            let from = e.add(place, e.binary(arith::MULI, distance, line));
            let to = e.binary(arith::MULI, length, line);
            let vectors = (e.index(0), length, self.lanes.count());
            let Ok(_) = e.for_each::<Infallible>(vectors, &[], |e, vector, _| {
                let moved = e.op(arith::INDEX_CAST, &[vector], e.int(32));
                let [first, size] = columns;
                let mask = self.mask(e, [e.binary(arith::ADDI, first, moved), size], 0);
                let mask = Some(e.binary(arith::ANDI, mask, is_row));
                let from = e.add(from, vector);
                let operand = self.operands[self.tiles.vector.operand].1;
                let value = e.load_lanes(operand, from, self.lanes, mask);
                e.store(value, buffer, e.add(to, vector), self.lanes, None);
                Ok(vec![])
            });
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

    /// The memory for copies of what tiles read.
    fn copies(&self) -> Buffer<'c, 'a> {
        let Some(buffer) = self.packed else {
            unreachable!("windows have memory for copies of what they read")
        };
        buffer
    }

    /// A tile; of a channel that may be copied.
    fn window(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
        channel: Option<Channel<'c, 'a>>,
    ) {
        let operand = self.operands[self.tiles.vector.operand].1;
        let any = any_size(operand.element);
        let types = [any, MlirType::index(e.context), MlirType::index(e.context)];
        let edges = self.edges(e, windows, tile);
        let at_edge =
            |e: Emit<'c, 'a>| Ok::<_, Infallible>(self.copied(e, windows, tile, &edges).to_vec());
        let in_place = |e: Emit<'c, 'a>| {
            let (place, line) = self.source(e, windows, tile);
            Ok(vec![e.op(memref::CAST, &[operand.memref], any), place, line])
        };
        let Ok(source) = match channel {
            None => at_edge(e),
            Some(channel) => {
                let of_channel = |e: Emit<'c, 'a>| {
                    let place = channel.first(e, windows, tile, self.tiles.step);
                    Ok(vec![e.op(memref::CAST, &[self.copies().memref], any), place, channel.line])
                };
                e.if_else(channel.is_copied, &types, of_channel, |e| {
                    self.prefetch_lines(e, windows, tile);
                    let is_inside = self.is_inside(e, windows, tile, &edges);
                    e.if_else(is_inside, &types, in_place, at_edge)
                })
            }
        };
        let [memref, place, line] = source[..] else { unreachable!("a source has three parts") };
        let source = Source { buffer: Buffer { memref, ..operand }, place, line };
        let sums = self.window_sums(e, windows, tile, source);
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
        let values = self.finished(e, &tile.at[..windows.row], vectors);
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

    /// Prefetches what the tile below reads, unless this tile reads it too.
    fn prefetch_lines(&self, e: Emit<'c, 'a>, windows: &Windows, tile: &Tile<'_, 'c, 'a>) {
        let (place, distance) = self.source(e, windows, tile);
        let first = windows.lines(tile.rows);
        let columns = tile.vectors * self.lanes.count() * self.tiles.step;
        for line in first..first + tile.rows * windows.stride {
            let place = e.add(place, e.scale(distance, line));
            for column in (0..columns).step_by(ELEMENTS_OF_LINE) {
                let place = e.offset(place, column);
                let operand = self.operands[self.tiles.vector.operand].1;
                e.prefetch(operand, place, Prefetch::Read);
            }
        }
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
        Edges { rows, columns }
    }

    /// Whether a tile reads no element outside of the operand, nor past the last column of the result.
    fn is_inside(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
        edges: &Edges<'c, 'a>,
    ) -> Value<'c, 'a> {
        let zero = e.integer(0, 64, Lanes::Scalar);
        let columns = tile.vectors * self.lanes.count() * self.tiles.step;
        let columns = columns + windows.taps[1].reach();
        let mut axes = vec![(edges.columns, columns)];
        if windows.bound.is_some() {
            axes.push((edges.rows, windows.lines(tile.rows)));
        }
        let inside = axes.into_iter().flat_map(|([first, size], count)| {
            let last = e.binary(arith::ADDI, first, e.integer(count, 64, Lanes::Scalar));
            [e.compare(SGE, first, zero), e.compare(SLE, last, size)]
        });
        inside
            .reduce(|x, y| e.binary(arith::ANDI, x, y))
            .unwrap_or_else(|| e.integer(1, 1, Lanes::Scalar))
    }

    /// Copies what a tile reads, with zeros outside of the operand, to memory whose lines are [`Windows::line`] apart; returns
    /// the parts of its [`Source`].
    fn copied(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
        edges: &Edges<'c, 'a>,
    ) -> [Value<'c, 'a>; 3] {
        let (buffer, width) = (self.copies(), self.lanes.count());
        let (place, distance) = self.source(e, windows, tile);
        let operand = self.operands[self.tiles.vector.operand].1;
        let columns = edges.columns.map(|wide| e.op(arith::TRUNCI, &[wide], e.int(32)));
        let vectors = windows.vectors(self.tiles.step, tile.vectors, width);
        let masks = (0..vectors).map(|vector| self.mask(e, columns, vector * width));
        let masks: Vec<_> = masks.collect();
        for line in windows.lines_of(tile.rows) {
            let is_row = edges.has_row(e, e.integer(line, 64, Lanes::Scalar));
            let is_row = e.splat(is_row, self.lanes);
            let from = e.add(place, e.scale(distance, line));
            let to = line * windows.line(self.tiles.step, self.vectors, width);
            for (vector, mask) in (0..).zip(&masks) {
                let mask = Some(e.binary(arith::ANDI, *mask, is_row));
                let from = e.offset(from, vector * width);
                let value = e.load_lanes(operand, from, self.lanes, mask);
                e.store(value, buffer, e.index(to + vector * width), self.lanes, None);
            }
        }
        let line = e.index(windows.line(self.tiles.step, self.vectors, width));
        let memref = e.op(memref::CAST, &[buffer.memref], any_size(buffer.element));
        [memref, e.index(0), line]
    }

    /// The sums of a tile. With a step of 2, their lanes are in the order of [`evens`].
    fn window_sums(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
        source: Source<'c, 'a>,
    ) -> Vec<Value<'c, 'a>> {
        let [row_taps, column_taps] = windows.taps;
        let (width, step) = (self.lanes.count(), self.tiles.step);
        let zeros = vec![e.zero(e.f32(), self.lanes); (tile.rows * tile.vectors) as usize];
        let mut loops = self.first_loops(e, tile);
        let all = (e.index(0), e.index(column_taps.count), 1);
        let Ok(sums) = e.for_each::<Infallible>(all, &zeros, |e, tap, sums| {
            let mut sums = sums.to_vec();
            if let Some(loop_) = column_taps.loop_ {
                loops[loop_] = tap;
            }
            let factors: Vec<Value> = (0..row_taps.count)
                .map(|row_tap| {
                    let mut loops = loops.clone();
                    if let Some(loop_) = row_taps.loop_ {
                        loops[loop_] = e.index(row_tap);
                    }
                    let factor = &self.tiles.broadcast;
                    let place = self.body(e, &loops).place(e, factor.operand, &factor.at);
                    e.splat(e.load(self.operands[factor.operand].1, place), self.lanes)
                })
                .collect();
            let place = e.add(source.place, e.scale(tap, column_taps.distance));
            for vector in 0..tile.vectors {
                for number in windows.lines_of(tile.rows) {
                    let place = e.add(place, e.scale(source.line, number));
                    let loads = (0..step).map(|load| {
                        let place = e.offset(place, (vector * step + load) * width);
                        e.load_lanes(source.buffer, place, self.lanes, None)
                    });
                    let value = evens(e, &loads.collect::<Vec<_>>(), self.lanes);
                    for row in 0..tile.rows {
                        if let Some(tap) = windows.tap(number, row) {
                            let sum = &mut sums[(row * tile.vectors + vector) as usize];
                            let factors = [factors[tap as usize], value, *sum];
                            *sum = e.op(math::FMA, &factors, sum.r#type());
                        }
                    }
                }
            }
            Ok(sums)
        });
        sums
    }

    /// Sums of [`Self::window_sums`] with their lanes in order.
    fn in_order(&self, e: Emit<'c, 'a>, sums: Vec<Value<'c, 'a>>) -> Vec<Value<'c, 'a>> {
        let order = order_of_evens(self.lanes.count());
        let count = order.len() as i64;
        let places = (0..count).map(|lane| order.iter().position(|other| *other == lane));
        let places: Vec<i64> = places.map(|place| place.unwrap_or(0) as i64).collect();
        let is_ordered = self.tiles.step == 1 || order.is_sorted();
        match is_ordered {
            true => sums,
            false => sums.into_iter().map(|sum| e.shuffle(sum, sum, &places)).collect(),
        }
    }
}

/// A range of rows, and the rows of a tile of it.
type Range<'c, 'a> = ([Value<'c, 'a>; 2], i64);

/// What a tile reads: the operand, or a copy with zeros around it.
#[derive(Clone, Copy)]
struct Source<'c, 'a> {
    buffer: Buffer<'c, 'a>,
    /// The place of the first element.
    place: Value<'c, 'a>,
    /// The distance of lines.
    line: Value<'c, 'a>,
}

/// The part of the operand that all tiles of a channel read.
#[derive(Clone, Copy)]
struct Channel<'c, 'a> {
    /// Whether it is copied, with zeros around it.
    is_copied: Value<'c, 'a>,
    /// The distance of the copied lines.
    line: Value<'c, 'a>,
    /// The first row of the result.
    start: Value<'c, 'a>,
}

impl<'c: 'a, 'a> Channel<'c, 'a> {
    /// The place in the copy of the first element that a tile reads.
    fn first(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
        step: i64,
    ) -> Value<'c, 'a> {
        let row = e.binary(arith::SUBI, tile.at[windows.row], self.start);
        let line = e.binary(arith::MULI, self.line, e.scale(row, windows.stride));
        e.add(line, e.scale(tile.at[windows.row + 1], step))
    }
}

/// The type of a buffer of any number of elements.
fn any_size<'c>(element: MlirType<'c>) -> MlirType<'c> {
    MemRefType::new(element, &[i64::MIN], None, None).into()
}

/// Where the operand of a tile begins and ends: the rows and columns of the first element that it reads, and their numbers.
struct Edges<'c, 'a> {
    rows: [Value<'c, 'a>; 2],
    columns: [Value<'c, 'a>; 2],
}

impl<'c: 'a, 'a> Edges<'c, 'a> {
    /// Whether the operand has a row, so many after the first.
    fn has_row(&self, e: Emit<'c, 'a>, number: Value<'c, 'a>) -> Value<'c, 'a> {
        let [first, rows] = self.rows;
        e.compare(ULT, e.binary(arith::ADDI, first, number), rows)
    }
}

/// Lanes that processors move together.
const GROUP: i64 = 4;

/// The numbers of the even elements of two vectors in each lane of [`evens`].
fn order_of_evens(lanes: i64) -> Vec<i64> {
    let group = GROUP.min(lanes);
    let of = |lane: i64| {
        let (number, place) = (lane / group, lane % group);
        let vector = place / (group / 2);
        vector * (lanes / 2) + number * (group / 2) + place % (group / 2)
    };
    (0..lanes).map(of).collect()
}

/// A vector, or the even elements of two, in an order that takes one instruction.
fn evens<'c: 'a, 'a>(e: Emit<'c, 'a>, loads: &[Value<'c, 'a>], lanes: Lanes) -> Value<'c, 'a> {
    let [first, second] = loads else { return loads[0] };
    let even: Vec<i64> =
        order_of_evens(lanes.count()).into_iter().map(|number| 2 * number).collect();
    e.shuffle(*first, *second, &even)
}

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

    /// The elements of the copied operand of a tile.
    pub(super) fn elements(&self, step: i64, lanes: i64) -> i64 {
        SMALL.max(self.lines(ROWS) * self.line(step, VECTORS, lanes))
    }

    /// The elements of a line of the copied operand of a tile of so many vectors.
    fn line(&self, step: i64, vectors: i64, lanes: i64) -> i64 {
        self.vectors(step, vectors, lanes) * lanes
    }

    /// The vectors that hold what so many vectors of the result read of a line.
    fn vectors(&self, step: i64, vectors: i64, lanes: i64) -> i64 {
        step * vectors + (self.taps[1].reach() + lanes - 1) / lanes
    }

    /// The rows of the operand under so many rows of the result.
    fn lines(&self, rows: i64) -> i64 {
        (rows - 1) * self.stride + self.taps[0].reach() + 1
    }
}
