//! Cumulative sums, products and extremes.
use super::{each, each_unit};
use crate::kernel::{
    arithmetic,
    element::Element,
    emit::{Buffer, Emit, Lanes},
};
use crate::lowering::compute_to_loops::{
    element,
    expression::{accumulator, from_memory, scope},
    nest::{Part, neutral},
};
use crate::lowering::linalg_to_vector::split::{Extent, indices};
use irc_mlir::Value;
use irc_mlir::ops::arith;
use irc_tl::{Combine, DType, Rounding};
use std::convert::Infallible;

/// `arith.cmpi` predicates.
const EQ: i64 = 0;
const SLE: i64 = 3;

/// Rows that are scanned side by side, as each step of a row waits for the one before.
const ROWS: i64 = 8;

/// Adjacent columns that are scanned together, in vectors.
const COLUMNS: i64 = 256;

/// A scan along the axis of `x[outer, extent, stride]`.
///
/// Where `stride` is 1, elements of the axis are contiguous, and several rows are scanned side by side. Otherwise the totals of
/// a block of columns are in memory, and each step adds a row of it. The units of work are groups of rows, or blocks.
#[derive(Clone, Copy)]
pub(super) struct Scan<'c, 'a> {
    pub(super) combine: Combine,
    pub(super) dtype: DType,
    pub(super) is_reverse: bool,
    pub(super) is_exclusive: bool,
    pub(super) x: Buffer<'c, 'a>,
    pub(super) result: Buffer<'c, 'a>,
    /// Elements along the axis.
    pub(super) extent: Value<'c, 'a>,
    /// The distance between them.
    pub(super) stride: Value<'c, 'a>,
}

impl<'c: 'a, 'a> Scan<'c, 'a> {
    pub(super) fn emit(self, e: Emit<'c, 'a>, outer: Value<'c, 'a>, part: Option<Part<'c, 'a>>) {
        let totals = e.stack(COLUMNS, self.wide(e).storage);
        let is_row = e.compare(EQ, self.stride, e.index(1));
        let rows = |e: Emit<'c, 'a>| {
            let groups = up(e, outer, ROWS);
            each_unit(e, groups, part, |e, group| self.rows(e, group, outer));
            Ok::<_, Infallible>(vec![])
        };
        let columns = |e: Emit<'c, 'a>| {
            let blocks = up(e, self.stride, COLUMNS);
            let all = e.binary(arith::MULI, outer, blocks);
            each_unit(e, all, part, |e, unit| {
                let place = indices(e, unit, &[outer, blocks]);
                self.columns(e, place[0], e.scale(place[1], COLUMNS), totals);
            });
            Ok(vec![])
        };
        let Ok(_) = e.if_else(is_row, &[], rows, columns);
    }

    /// Scans the rows of a group.
    fn rows(&self, e: Emit<'c, 'a>, group: Value<'c, 'a>, outer: Value<'c, 'a>) {
        let first = e.scale(group, ROWS);
        let start = |e: Emit<'c, 'a>, row| e.binary(arith::MULI, row, self.extent);
        let end = e.offset(first, ROWS);
        let is_whole = e.compare(SLE, end, outer);
        let whole = |e: Emit<'c, 'a>| {
            let starts: Vec<_> = (0..ROWS).map(|row| start(e, e.offset(first, row))).collect();
            self.along(e, &starts);
            Ok::<_, Infallible>(vec![])
        };
        let rest = |e: Emit<'c, 'a>| {
            each(e, first, outer, |e, row| self.along(e, &[start(e, row)]));
            Ok(vec![])
        };
        let Ok(_) = e.if_else(is_whole, &[], whole, rest);
    }

    /// Scans contiguous rows that start at these elements.
    fn along(&self, e: Emit<'c, 'a>, starts: &[Value<'c, 'a>]) {
        let totals: Vec<_> = starts.iter().map(|_| self.neutral(e)).collect();
        let bounds = (e.index(0), self.extent, 1);
        let Ok(_) = e.for_each(bounds, &totals, |e, step, totals| {
            let step = self.step(e, step);
            let places: Vec<_> = starts.iter().map(|start| e.add(*start, step)).collect();
            let values: Vec<_> = places.iter().map(|place| e.load(self.x, *place)).collect();
            let next = |(total, value)| self.joined(e, total, value);
            let next: Vec<_> = totals.iter().copied().zip(values).map(next).collect();
            for (index, place) in places.into_iter().enumerate() {
                self.store(e, if self.is_exclusive { totals[index] } else { next[index] }, place);
            }
            Ok::<_, Infallible>(next)
        });
    }

    /// Scans a block of columns from `first` on, of a row of `x`.
    fn columns(
        &self,
        e: Emit<'c, 'a>,
        row: Value<'c, 'a>,
        first: Value<'c, 'a>,
        totals: Buffer<'c, 'a>,
    ) {
        let left = e.binary(arith::SUBI, self.stride, first);
        let count = e.min(left, e.index(COLUMNS));
        let neutral = self.neutral(e);
        each(e, e.index(0), count, |e, column| {
            e.store(neutral, totals, column, Lanes::Scalar, None);
        });
        let start = e.binary(arith::MULI, row, self.extent);
        each(e, e.index(0), self.extent, |e, step| {
            let line = e.add(start, self.step(e, step));
            let line = e.add(e.binary(arith::MULI, line, self.stride), first);
            each(e, e.index(0), count, |e, column| {
                let place = e.add(line, column);
                let total = e.load(totals, column);
                let next = self.joined(e, total, e.load(self.x, place));
                e.store(next, totals, column, Lanes::Scalar, None);
                self.store(e, if self.is_exclusive { total } else { next }, place);
            });
        });
    }

    /// The position along the axis that a step is at.
    fn step(&self, e: Emit<'c, 'a>, step: Value<'c, 'a>) -> Value<'c, 'a> {
        match self.is_reverse {
            true => e.binary(arith::SUBI, e.offset(self.extent, -1), step),
            false => step,
        }
    }

    fn wide(&self, e: Emit<'c, 'a>) -> Element<'c> {
        accumulator(e.context, self.dtype)
    }

    fn neutral(&self, e: Emit<'c, 'a>) -> Value<'c, 'a> {
        neutral(e, self.combine, self.dtype, self.wide(e))
    }

    /// A total combined with an element.
    fn joined(&self, e: Emit<'c, 'a>, total: Value<'c, 'a>, value: Value<'c, 'a>) -> Value<'c, 'a> {
        let value = from_memory(e, value, self.dtype);
        let (narrow, wide) = (element(e.context, self.dtype), self.wide(e));
        let value = arithmetic::cast(&scope(e), value, narrow, wide, Rounding::TowardZero);
        arithmetic::binary(&scope(e), self.combine.function(), total, value, wide)
    }

    fn store(&self, e: Emit<'c, 'a>, total: Value<'c, 'a>, place: Value<'c, 'a>) {
        let (narrow, wide) = (element(e.context, self.dtype), self.wide(e));
        let value = arithmetic::cast(&scope(e), total, wide, narrow, Rounding::TowardZero);
        e.store(value, self.result, place, Lanes::Scalar, None);
    }
}

/// The number of groups of `by` that `count` fills, the last of which may not be whole.
fn up<'c: 'a, 'a>(e: Emit<'c, 'a>, count: Value<'c, 'a>, by: i64) -> Value<'c, 'a> {
    Extent::Passed(count).groups(e, by).value(e)
}
