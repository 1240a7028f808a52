//! Non-maximum suppression: of overlapping boxes, selects the one with the highest score.
use super::{
    each,
    heap::{Heap, Row},
    when,
};
use crate::kernel::{
    arithmetic,
    element::Element,
    emit::{Buffer, Emit, Lanes},
};
use crate::lowering::compute_to_loops::{
    element,
    expression::{accumulator, from_memory, scope},
    sizes::Sizes,
};
use irc_mlir::ops::arith;
use irc_mlir::{Type as MlirType, Value};
use irc_tl::{Binary, Comparison, DType, Rounding, Type};
use std::convert::Infallible;

/// `arith.cmpi` predicates.
const SLT: i64 = 2;

/// Numbers in a row of the result: `batch, class, box`.
const COLUMNS: i64 = 3;

type Operand<'n, 'c, 'a> = (&'n Type, Buffer<'c, 'a>);

/// Operands and results as defined by [`irc_tl::Algorithm::NonMaxSuppression`].
///
/// The sorted candidates of a batch element and class are stored in the result itself, after the rows found
/// so far, in its last column. Selected candidates move to the front of them. For every class, at least as
/// many rows remain there as there are boxes.
pub(super) struct Boxes<'n, 'c, 'a> {
    by_center: bool,
    boxes: Operand<'n, 'c, 'a>,
    scores: Operand<'n, 'c, 'a>,
    rows: Buffer<'c, 'a>,
    found: Buffer<'c, 'a>,
    /// Batches, classes, boxes.
    sizes: [Value<'c, 'a>; 3],
    /// The maximum number of boxes per class.
    limit: Value<'c, 'a>,
    /// The maximum overlap, an `f32`.
    most: Value<'c, 'a>,
    /// The minimum score, of the type in which scores are compared.
    least: Value<'c, 'a>,
}

impl<'n, 'c: 'a, 'a> Boxes<'n, 'c, 'a> {
    pub(super) fn new(
        e: Emit<'c, 'a>,
        by_center: bool,
        operands: &[Operand<'n, 'c, 'a>],
        results: &[Buffer<'c, 'a>],
        sizes: &Sizes<'c, 'a>,
    ) -> Self {
        let (boxes, scores) = (operands[0], operands[1]);
        let single = Element::f32(e.context);
        let compared = accumulator(e.context, scores.0.dtype);
        Self {
            by_center,
            boxes,
            scores,
            rows: results[0],
            found: results[1],
            sizes: [0, 1, 2].map(|axis| sizes.value(e, &scores.0.dims[axis])),
            limit: limit(e, operands[2]),
            most: number(e, operands[3], e.index(0), single),
            least: number(e, operands[4], e.index(0), compared),
        }
    }

    pub(super) fn emit(&self, e: Emit<'c, 'a>) {
        let [batches, classes, count] = self.sizes;
        let zero = e.index(0);
        let over = |e: Emit<'c, 'a>, extent, found, body: &dyn Fn(_, _, _) -> Value<'c, 'a>| {
            let Ok(found) = e.for_each((zero, extent, 1), &[found], |e, index, found| {
                Ok::<_, Infallible>(vec![body(e, index, found[0])])
            });
            found[0]
        };
        let found = over(e, batches, zero, &|e: Emit<'c, 'a>, batch, found| {
            over(e, classes, found, &|e: Emit<'c, 'a>, class, found| {
                let kept = self.class(e, [batch, class], found);
                e.add(found, kept)
            })
        });
        let all = e.binary(arith::MULI, e.binary(arith::MULI, batches, classes), count);
        each(e, e.scale(found, COLUMNS), e.scale(all, COLUMNS), |e, at| {
            e.store(e.integer(0, 64, Lanes::Scalar), self.rows, at, Lanes::Scalar, None);
        });
        let found = e.op(arith::INDEX_CAST, &[found], e.int(64));
        e.store(found, self.found, zero, Lanes::Scalar, None);
    }

    /// The number of boxes selected for a class; they are the rows from `first` on.
    fn class(
        &self,
        e: Emit<'c, 'a>,
        [batch, class]: [Value<'c, 'a>; 2],
        first: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let [_, classes, count] = self.sizes;
        let (zero, (ty, x)) = (e.index(0), self.scores);
        let list = e.add(e.binary(arith::MULI, batch, classes), class);
        let heap = Heap {
            dtype: ty.dtype,
            x,
            positions: self.rows,
            largest: true,
            strides: [e.index(1), e.index(COLUMNS)],
        };
        let row = Row {
            from: e.binary(arith::MULI, list, count),
            to: e.offset(e.scale(first, COLUMNS), COLUMNS - 1),
        };
        let compared = accumulator(e.context, ty.dtype);
        let Ok(candidates) = e.for_each((zero, count, 1), &[zero], |e, index, found| {
            let score = number(e, self.scores, e.add(row.from, index), compared);
            let above = arithmetic::compare(&scope(e), Comparison::Gt, score, self.least, compared);
            counted(e, above, found[0], |e| heap.set(e, row, found[0], index))
        });
        heap.build(e, row, candidates[0]);
        heap.sort(e, row, candidates[0]);
        let Ok(kept) = e.for_each((zero, candidates[0], 1), &[zero], |e, rank, kept| {
            let kept = kept[0];
            let index = heap.get(e, row, rank);
            let room = e.compare(SLT, kept, self.limit);
            let keep =
                self.stands_apart(e, batch, index, (kept, room), |e, rank| heap.get(e, row, rank));
            counted(e, keep, kept, |e| {
                heap.set(e, row, kept, index);
                let start = e.scale(e.add(first, kept), COLUMNS);
                for (column, value) in [batch, class].into_iter().enumerate() {
                    let value = e.op(arith::INDEX_CAST, &[value], e.int(64));
                    let place = e.offset(start, column as i64);
                    e.store(value, self.rows, place, Lanes::Scalar, None);
                }
            })
        });
        kept[0]
    }

    /// Whether another box may be selected and no selected box overlaps this one by more than the maximum.
    fn stands_apart(
        &self,
        e: Emit<'c, 'a>,
        batch: Value<'c, 'a>,
        index: Value<'c, 'a>,
        (kept, room): (Value<'c, 'a>, Value<'c, 'a>),
        other: impl Fn(Emit<'c, 'a>, Value<'c, 'a>) -> Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let flag = e.int(1);
        let whether = |e: Emit<'c, 'a>, condition, body: &dyn Fn(Emit<'c, 'a>) -> Value<'c, 'a>| {
            let Ok(values) = e.if_else(
                condition,
                &[flag],
                |e| Ok::<_, Infallible>(vec![body(e)]),
                |_| Ok(vec![condition]),
            );
            values[0]
        };
        let count = self.sizes[2];
        let corners = |e: Emit<'c, 'a>, index| {
            let at = e.add(e.binary(arith::MULI, batch, count), index);
            self.corners(e, e.scale(at, 4))
        };
        whether(e, room, &|e| {
            let own = corners(e, index);
            let Ok(apart) = e.for_each((e.index(0), kept, 1), &[room], |e, rank, apart| {
                let apart = whether(e, apart[0], &|e| {
                    let overlap = own.overlap(e, &corners(e, other(e, rank)));
                    compare(e, Comparison::Le, overlap, self.most)
                });
                Ok::<_, Infallible>(vec![apart])
            });
            apart[0]
        })
    }

    /// The box whose coordinates start here.
    fn corners(&self, e: Emit<'c, 'a>, at: Value<'c, 'a>) -> Corners<'c, 'a> {
        let single = Element::f32(e.context);
        let [a, b, c, d] =
            [0, 1, 2, 3].map(|side| number(e, self.boxes, e.offset(at, side), single));
        if self.by_center {
            let half = |size| float(e, Binary::Div, size, scope(e).constant(single, 2.0));
            let (width, height) = (half(c), half(d));
            let beside = |function| [float(e, function, b, height), float(e, function, a, width)];
            return Corners { low: beside(Binary::Sub), high: beside(Binary::Add) };
        }
        let of = |function| [float(e, function, a, c), float(e, function, b, d)];
        Corners { low: of(Binary::Min), high: of(Binary::Max) }
    }
}

/// A box by its minimum and maximum coordinates, as `f32`.
struct Corners<'c, 'a> {
    low: [Value<'c, 'a>; 2],
    high: [Value<'c, 'a>; 2],
}

impl<'c: 'a, 'a> Corners<'c, 'a> {
    fn area(&self, e: Emit<'c, 'a>) -> Value<'c, 'a> {
        let side = |axis: usize| float(e, Binary::Sub, self.high[axis], self.low[axis]);
        float(e, Binary::Mul, side(0), side(1))
    }

    /// The intersection over the union; 0 for boxes without area.
    fn overlap(&self, e: Emit<'c, 'a>, other: &Self) -> Value<'c, 'a> {
        let zero = scope(e).constant(Element::f32(e.context), 0.0);
        let side = |axis: usize| {
            let low = float(e, Binary::Max, self.low[axis], other.low[axis]);
            let high = float(e, Binary::Min, self.high[axis], other.high[axis]);
            float(e, Binary::Max, float(e, Binary::Sub, high, low), zero)
        };
        let both = float(e, Binary::Mul, side(0), side(1));
        let areas = [self.area(e), other.area(e)];
        let union = float(e, Binary::Sub, float(e, Binary::Add, areas[0], areas[1]), both);
        let ratio = float(e, Binary::Div, both, union);
        areas.into_iter().chain([union]).fold(ratio, |ratio, size| {
            let none = compare(e, Comparison::Le, size, zero);
            e.op(arith::SELECT, &[none, zero, ratio], e.f32())
        })
    }
}

/// An element as a float of another type.
fn number<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    (ty, buffer): Operand<'_, 'c, 'a>,
    at: Value<'c, 'a>,
    to: Element<'c>,
) -> Value<'c, 'a> {
    let from = element(e.context, ty.dtype);
    arithmetic::cast(&scope(e), e.load(buffer, at), from, to, Rounding::TowardZero)
}

/// A limit as an index, saturated to `i64`.
fn limit<'c: 'a, 'a>(e: Emit<'c, 'a>, (ty, buffer): Operand<'_, 'c, 'a>) -> Value<'c, 'a> {
    let limit = from_memory(e, e.load(buffer, e.index(0)), ty.dtype);
    let limit = match ty.dtype {
        DType::U64 => e.binary(arith::MINUI, limit, e.integer(i64::MAX, 64, Lanes::Scalar)),
        _ => {
            let [from, to] = [ty.dtype, DType::I64].map(|dtype| element(e.context, dtype));
            arithmetic::cast(&scope(e), limit, from, to, Rounding::TowardZero)
        }
    };
    e.op(arith::INDEX_CAST, &[limit], MlirType::index(e.context))
}

/// A count, incremented if a condition holds; `body` runs in that case.
fn counted<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    condition: Value<'c, 'a>,
    count: Value<'c, 'a>,
    body: impl FnOnce(Emit<'c, 'a>),
) -> Result<Vec<Value<'c, 'a>>, Infallible> {
    when(e, condition, body);
    let next = e.offset(count, 1);
    Ok(vec![e.op(arith::SELECT, &[condition, next, count], MlirType::index(e.context))])
}

fn float<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    function: Binary,
    x: Value<'c, 'a>,
    y: Value<'c, 'a>,
) -> Value<'c, 'a> {
    arithmetic::binary(&scope(e), function, x, y, Element::f32(e.context))
}

fn compare<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    comparison: Comparison,
    x: Value<'c, 'a>,
    y: Value<'c, 'a>,
) -> Value<'c, 'a> {
    arithmetic::compare(&scope(e), comparison, x, y, Element::f32(e.context))
}
