//! Sums over windows of one channel, as depthwise convolutions.
//!
//! A tile is several rows of the result. Each vector of an input row is loaded once for each column of a filter, and added to all
//! rows of the tile whose windows it is in.
use super::{SGE, SLE, SLT, Tile, Tiles, ULT, Writer, bound, coefficient, epilogue::Vector};
use crate::kernel::emit::{Emit, Lanes};
use crate::lowering::compute_to_loops::expression::depends_on;
use crate::lowering::linalg_to_vector::split::Units;
use irc_mlir::ops::{arith, math};
use irc_mlir::{Value, ValueLike};
use irc_tl::{Compute, Dim, Scalar};
use std::convert::Infallible;

/// The rows and vectors of a tile.
pub(super) const ROWS: i64 = 4;
pub(super) const VECTORS: i64 = 2;

/// The maximum number of elements of a window.
const LARGEST: i64 = 49;

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
        let is_plain = !tiles.broadcast.depends_on(row)
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
        let (mut start, to) = match units {
            None => (e.index(0), end),
            Some(units) => (e.scale(units.from, ROWS), e.min(e.scale(units.to, ROWS), end)),
        };
        let columns = self.sizes.value(e, &self.dims[self.dims.len() - 1]);
        let width = self.lanes.count();
        for rows in [ROWS, 1] {
            let count = e.binary(arith::SUBI, to, start);
            let whole = e.scale(e.binary(arith::DIVSI, count, e.index(rows)), rows);
            let end = e.add(start, whole);
            let Ok(_) = e.for_each::<Infallible>((start, end, rows), &[], |e, row, _| {
                at[windows.row] = row;
                let all = (e.index(0), columns, VECTORS * width);
                let Ok(_) = e.for_each::<Infallible>(all, &[], |e, column, _| {
                    at[windows.row + 1] = column;
                    let rest = e.binary(arith::SUBI, columns, column);
                    let tile = |e, vectors| {
                        let tile = Tile { at, rows, vectors, rest: Some(rest) };
                        self.window(e, windows, &tile);
                        Ok::<_, Infallible>(vec![])
                    };
                    let is_short = e.compare(SLE, rest, e.index(width));
                    let Ok(_) = e.if_else(is_short, &[], |e| tile(e, 1), |e| tile(e, VECTORS));
                    Ok(vec![])
                });
                at[windows.row + 1] = e.index(0);
                let first = self.place(e, at, 0);
                self.finish(e, &at[..windows.row], (first, e.scale(columns, rows)));
                Ok(vec![])
            });
            start = end;
        }
    }

    /// A tile.
    fn window(&self, e: Emit<'c, 'a>, windows: &Windows, tile: &Tile<'_, 'c, 'a>) {
        let zero = e.zero(e.f32(), self.lanes);
        let zeros = vec![zero; (tile.rows * tile.vectors) as usize];
        let types: Vec<_> = zeros.iter().map(|sum| sum.r#type()).collect();
        let bounds = windows.bound.as_ref().map(|size| {
            let mut loops = tile.at.to_vec();
            loops.resize(self.dims.len() + self.over.len(), e.index(0));
            let mut body = self.body(e, &loops);
            let (first, _) = body.emit(e, &self.tiles.vector.at[windows.axis]);
            [first, body.emit(e, size).0]
        });
        let sums = match bounds {
            // Most tiles have all rows of the operand; those of one row are few.
            Some([first, size]) if tile.rows > 1 => {
                let last = e.integer(windows.lines(tile.rows) - 1, 64, Lanes::Scalar);
                let begins = e.compare(SGE, first, e.integer(0, 64, Lanes::Scalar));
                let ends = e.compare(SLT, e.binary(arith::ADDI, first, last), size);
                let is_inside = e.binary(arith::ANDI, begins, ends);
                let sums = |e, bounds| {
                    Ok::<_, Infallible>(self.window_sums(e, windows, tile, bounds, &zeros))
                };
                let Ok(sums) = e.if_else(is_inside, &types, |e| sums(e, None), |e| sums(e, bounds));
                sums
            }
            _ => self.window_sums(e, windows, tile, bounds, &zeros),
        };
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
        let store = |e: Emit<'c, 'a>, is_whole: bool| {
            for (number, (value, place)) in (0..).zip(values.iter().zip(&places)) {
                let mask = mask(number).filter(|_| !is_whole);
                e.store(*value, self.result, *place, self.lanes, mask);
            }
            Ok::<_, Infallible>(vec![])
        };
        let all = e.index(tile.vectors * self.lanes.count());
        let is_whole = e.compare(SLE, all, tile.rest.unwrap_or(all));
        let Ok(_) = e.if_else(is_whole, &[], |e| store(e, true), |e| store(e, false));
    }

    /// The sums of a tile. With the first row of the operand and the number of its rows if the tile may reach beyond them.
    fn window_sums(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
        bounds: Option<[Value<'c, 'a>; 2]>,
        zeros: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let [row_taps, column_taps] = windows.taps;
        let (width, step) = (self.lanes.count(), self.tiles.step);
        let column = self.dims.len() - 1;
        let mut loops = tile.at.to_vec();
        loops.resize(self.dims.len() + self.over.len(), e.index(0));
        let line = self.axis_distance(e, self.tiles.vector.operand, windows.axis);
        let all = (e.index(0), e.index(column_taps.count), 1);
        let Ok(sums) = e.for_each::<Infallible>(all, zeros, |e, tap, sums| {
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
            for vector in 0..tile.vectors {
                let mut loops = loops.clone();
                loops[column] = e.offset(loops[column], vector * width);
                let mut body = self.body(e, &loops);
                let place = body.place(e, self.tiles.vector.operand, &self.tiles.vector.at);
                let columns = self.columns(e, tile, vector);
                let limit = self.limit(e, &mut body, columns, None);
                let masks: Vec<_> = (0..step)
                    .map(|number| limit.map(|limit| self.mask(e, limit, number * width)))
                    .collect();
                for number in 0..windows.lines(tile.rows) {
                    let is_inside = bounds.map(|[first, size]| {
                        let number = e.integer(number, 64, Lanes::Scalar);
                        let row = e.binary(arith::ADDI, first, number);
                        e.splat(e.compare(ULT, row, size), self.lanes)
                    });
                    let masks = masks.iter().map(|mask| match (*mask, is_inside) {
                        (Some(mask), Some(inside)) => Some(e.binary(arith::ANDI, mask, inside)),
                        (mask, inside) => mask.or(inside),
                    });
                    let place = e.add(place, e.scale(line, number));
                    let value = self.strided(e, place, &masks.collect::<Vec<_>>());
                    for row in 0..tile.rows {
                        let distance = number - row * windows.stride;
                        let row_tap = distance / row_taps.distance;
                        let is_in = distance >= 0
                            && distance % row_taps.distance == 0
                            && row_tap < row_taps.count;
                        if is_in {
                            let sum = &mut sums[(row * tile.vectors + vector) as usize];
                            let factors = [factors[row_tap as usize], value, *sum];
                            *sum = e.op(math::FMA, &factors, sum.r#type());
                        }
                    }
                }
            }
            Ok(sums)
        });
        sums
    }
}

impl Windows {
    /// The rows of the operand under so many rows of the result.
    fn lines(&self, rows: i64) -> i64 {
        (rows - 1) * self.stride + (self.taps[0].count - 1) * self.taps[0].distance + 1
    }
}
