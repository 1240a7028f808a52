//! Sums over windows of one channel, as depthwise convolutions.
//!
//! A tile is several rows of the result. Each vector of an input row is loaded once for each column of a filter, and added to all
//! rows of the tile whose windows it is in.
use super::{Load, SGE, SLE, Tile, Tiles, ULT, Writer, bound, coefficient, epilogue::Vector};
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
        // The last tile of several rows moves up: it computes some rows again, to the same bits.
        let count = e.binary(arith::SUBI, to, start);
        let is_tall = e.compare(SGE, count, e.index(ROWS));
        let end = e.op(arith::SELECT, &[is_tall, to, start], start.r#type());
        for (rows, to) in [(ROWS, end), (1, to)] {
            let Ok(_) = e.for_each::<Infallible>((start, to, rows), &[], |e, row, _| {
                let row = if rows == 1 { row } else { e.min(row, e.offset(to, -rows)) };
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
            start = to;
        }
    }

    /// A tile.
    fn window(&self, e: Emit<'c, 'a>, windows: &Windows, tile: &Tile<'_, 'c, 'a>) {
        let zero = e.zero(e.f32(), self.lanes);
        let zeros = vec![zero; (tile.rows * tile.vectors) as usize];
        let types: Vec<_> = zeros.iter().map(|sum| sum.r#type()).collect();
        let edges = self.edges(e, windows, tile);
        let sums = |e: Emit<'c, 'a>, edges| {
            Ok::<_, Infallible>(self.window_sums(e, windows, tile, edges, &zeros))
        };
        let Ok(sums) = match tile.rows {
            // Those of one row are few.
            1 => sums(e, Some(&edges)),
            _ => {
                let is_inside = self.is_inside(e, windows, tile, &edges);
                e.if_else(is_inside, &types, |e| sums(e, None), |e| sums(e, Some(&edges)))
            }
        };
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

    /// Where the operand of a tile begins and ends.
    fn edges(&self, e: Emit<'c, 'a>, windows: &Windows, tile: &Tile<'_, 'c, 'a>) -> Edges<'c, 'a> {
        let mut loops = tile.at.to_vec();
        loops.resize(self.dims.len() + self.over.len(), e.index(0));
        let mut body = self.body(e, &loops);
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
        let taps = windows.taps[1];
        let columns = tile.vectors * self.lanes.count() * self.tiles.step;
        let columns = columns + (taps.count - 1) * taps.distance;
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

    /// The sums of a tile; with its edges if it may reach beyond them. With a step of 2, their lanes are in the order of
    /// [`evens`].
    fn window_sums(
        &self,
        e: Emit<'c, 'a>,
        windows: &Windows,
        tile: &Tile<'_, 'c, 'a>,
        edges: Option<&Edges<'c, 'a>>,
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
            let vectors = (0..tile.vectors).map(|vector| {
                let mut loops = loops.clone();
                loops[column] = e.offset(loops[column], vector * width);
                let mut body = self.body(e, &loops);
                let place = body.place(e, self.tiles.vector.operand, &self.tiles.vector.at);
                let columns = self.columns(e, tile, vector);
                let limit = edges.and_then(|_| self.limit(e, &mut body, columns, None));
                let masks: Vec<_> = (0..step)
                    .map(|number| limit.map(|limit| self.mask(e, limit, number * width)))
                    .collect();
                (place, masks)
            });
            let vectors: Vec<_> = vectors.collect();
            for number in 0..windows.lines(tile.rows) {
                let rows = (0..tile.rows).filter_map(|row| {
                    let distance = number - row * windows.stride;
                    let row_tap = distance / row_taps.distance;
                    let is_in = distance >= 0
                        && distance % row_taps.distance == 0
                        && row_tap < row_taps.count;
                    is_in.then(|| (row, factors[row_tap as usize]))
                });
                let rows: Vec<_> = rows.collect();
                if rows.is_empty() {
                    continue;
                }
                let places: Vec<_> = rows
                    .iter()
                    .flat_map(|(row, _)| {
                        (0..tile.vectors).map(move |vector| row * tile.vectors + vector)
                    })
                    .map(|place| place as usize)
                    .collect();
                let earlier: Vec<Value> = places.iter().map(|place| sums[*place]).collect();
                let add = |e: Emit<'c, 'a>| {
                    let values = vectors.iter().map(|(place, masks)| {
                        let place = e.add(*place, e.scale(line, number));
                        evens(e, &self.loads(e, place, masks), self.lanes)
                    });
                    let values: Vec<_> = values.collect();
                    let products = rows
                        .iter()
                        .flat_map(|(_, factor)| values.iter().map(move |value| (factor, value)));
                    let next = products.zip(&earlier).map(|((factor, value), sum)| {
                        e.op(math::FMA, &[*factor, *value, *sum], sum.r#type())
                    });
                    Ok::<_, Infallible>(next.collect::<Vec<_>>())
                };
                let Ok(next) = match edges.filter(|_| windows.bound.is_some()) {
                    // Few tiles reach beyond the rows of the operand, so that the branches are predicted.
                    Some(Edges { rows: [first, size], .. }) => {
                        let number = e.integer(number, 64, Lanes::Scalar);
                        let row = e.binary(arith::ADDI, *first, number);
                        let types: Vec<_> = earlier.iter().map(|sum| sum.r#type()).collect();
                        let is_row = e.compare(ULT, row, *size);
                        e.if_else(is_row, &types, add, |_| Ok(earlier.clone()))
                    }
                    None => add(e),
                };
                for (place, sum) in places.into_iter().zip(next) {
                    sums[place] = sum;
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

/// Where the operand of a tile begins and ends: the rows and columns of the first element that it reads, and their numbers.
struct Edges<'c, 'a> {
    rows: [Value<'c, 'a>; 2],
    columns: [Value<'c, 'a>; 2],
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
    /// The rows of the operand under so many rows of the result.
    fn lines(&self, rows: i64) -> i64 {
        (rows - 1) * self.stride + (self.taps[0].count - 1) * self.taps[0].distance + 1
    }
}
