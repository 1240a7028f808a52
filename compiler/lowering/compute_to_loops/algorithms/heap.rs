//! The largest or smallest elements, sorted with a heap of their positions.
use super::{each, each_unit, when};
use crate::kernel::{
    arithmetic,
    emit::{Buffer, Emit, Lanes},
};
use crate::lowering::compute_to_loops::{
    element,
    expression::{from_memory, scope},
    nest::Part,
    stored,
};
use crate::lowering::linalg_to_vector::split::indices;
use irc_mlir::ops::{arith, math};
use irc_mlir::{Type as MlirType, Value, ValueLike};
use irc_tl::{Comparison, DType};
use std::convert::Infallible;

/// `arith.cmpi` predicates.
const EQ: i64 = 0;
const SLT: i64 = 2;
const SGT: i64 = 4;

/// The largest or smallest elements along an axis.
///
/// The positions of the first `k` elements form a heap whose root is the last of them in the result order.
/// Every later element that precedes the root replaces it. Then the heap is sorted in place.
pub(super) struct TopK<'c, 'a> {
    pub(super) heap: Heap<'c, 'a>,
    pub(super) values: Buffer<'c, 'a>,
    /// Elements along the axis.
    pub(super) extent: Value<'c, 'a>,
    pub(super) k: Value<'c, 'a>,
}

impl<'c: 'a, 'a> TopK<'c, 'a> {
    /// Sorts all rows, of which there are `outer` times as many as elements between two of a row, or those of a part.
    pub(super) fn emit(&self, e: Emit<'c, 'a>, outer: Value<'c, 'a>, part: Option<Part<'c, 'a>>) {
        let [stride, _] = self.heap.strides;
        each_unit(e, e.binary(arith::MULI, outer, stride), part, |e, unit| {
            let place = indices(e, unit, &[outer, stride]);
            let start = |extent| {
                let step = e.binary(arith::MULI, extent, stride);
                e.add(e.binary(arith::MULI, place[0], step), place[1])
            };
            self.row(e, Row { from: start(self.extent), to: start(self.k) });
        });
    }

    fn row(&self, e: Emit<'c, 'a>, row: Row<'c, 'a>) {
        let (zero, heap) = (e.index(0), &self.heap);
        each(e, zero, self.k, |e, rank| heap.set(e, row, rank, rank));
        heap.build(e, row, self.k);
        // No element can enter an empty heap.
        when(e, e.compare(SGT, self.k, zero), |e| {
            let root = |e| heap.key(e, row, heap.get(e, row, zero));
            let bounds = (self.k, self.extent, 1);
            let Ok(_) = e.for_each(bounds, &[root(e)], |e, candidate, last| {
                // Of equal elements, the one in the heap comes first.
                let key = heap.key(e, row, candidate);
                let enters = heap.before(e, key, last[0]);
                let replaced = |e| {
                    heap.set(e, row, zero, candidate);
                    heap.sift(e, row, zero, self.k);
                    Ok::<_, Infallible>(vec![root(e)])
                };
                e.if_else(enters, &[key.r#type()], replaced, |_| Ok(last.to_vec()))
            });
        });
        heap.sort(e, row, self.k);
        let [from, to] = heap.strides;
        each(e, zero, self.k, |e, rank| {
            let position = heap.get(e, row, rank);
            let value = e.load(heap.x, place(e, row.from, position, from));
            e.store(value, self.values, place(e, row.to, rank, to), Lanes::Scalar, None);
        });
    }
}

/// A heap of positions of elements; each comes after its children in the result order.
///
/// The order is by value, then by position, so that it is total.
pub(super) struct Heap<'c, 'a> {
    pub(super) dtype: DType,
    pub(super) x: Buffer<'c, 'a>,
    pub(super) positions: Buffer<'c, 'a>,
    pub(super) largest: bool,
    /// The strides between elements of `x` and of `positions`.
    pub(super) strides: [Value<'c, 'a>; 2],
}

/// One row: its start in the elements and in their positions.
#[derive(Clone, Copy)]
pub(super) struct Row<'c, 'a> {
    pub(super) from: Value<'c, 'a>,
    pub(super) to: Value<'c, 'a>,
}

impl<'c: 'a, 'a> Heap<'c, 'a> {
    /// Makes a heap of the first `count` positions, in any order.
    pub(super) fn build(&self, e: Emit<'c, 'a>, row: Row<'c, 'a>, count: Value<'c, 'a>) {
        // Parents from the last to the first.
        let parents = e.binary(arith::SHRSI, count, e.index(1));
        each(e, e.index(0), parents, |e, step| {
            let parent = e.binary(arith::SUBI, e.offset(parents, -1), step);
            self.sift(e, row, parent, count);
        });
    }

    /// Sorts a heap of `count` positions, the most extreme first.
    pub(super) fn sort(&self, e: Emit<'c, 'a>, row: Row<'c, 'a>, count: Value<'c, 'a>) {
        let zero = e.index(0);
        let rounds = e.binary(arith::MAXSI, e.offset(count, -1), zero);
        each(e, zero, rounds, |e, round| {
            let end = e.binary(arith::SUBI, e.offset(count, -1), round);
            let (root, last) = (self.get(e, row, zero), self.get(e, row, end));
            self.set(e, row, zero, last);
            self.set(e, row, end, root);
            self.sift(e, row, zero, end);
        });
    }

    /// Moves an entry down the heap of `count` entries until no child comes after it. A heap of
    /// `count` entries has fewer levels than `count` has bits.
    fn sift(&self, e: Emit<'c, 'a>, row: Row<'c, 'a>, from: Value<'c, 'a>, count: Value<'c, 'a>) {
        let wide = e.op(arith::INDEX_CAST, &[count], e.int(64));
        let zeros = e.op(math::CTLZ, &[wide], e.int(64));
        let zeros = e.op(arith::INDEX_CAST, &[zeros], MlirType::index(e.context));
        let levels = e.binary(arith::SUBI, e.index(64), zeros);
        let index = MlirType::index(e.context);
        let Ok(_) = e.for_each((e.index(0), levels, 1), &[from], |e, _, at| {
            let at = at[0];
            let left = e.offset(e.add(at, at), 1);
            let inside = e.compare(SLT, left, count);
            e.if_else(
                inside,
                &[index],
                |e| Ok(vec![self.step(e, row, (at, left), count)]),
                |_| Ok::<_, Infallible>(vec![at]),
            )
        });
    }

    /// One level: swaps an entry with the later of its children, if that comes after it.
    fn step(
        &self,
        e: Emit<'c, 'a>,
        row: Row<'c, 'a>,
        (at, left): (Value<'c, 'a>, Value<'c, 'a>),
        count: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let right = e.min(e.offset(left, 1), e.offset(count, -1));
        let (own, first, second) =
            (self.get(e, row, at), self.get(e, row, left), self.get(e, row, right));
        let right_last = self.precedes(e, row, first, second);
        let child = self.choose(e, right_last, right, left);
        let entry = self.choose(e, right_last, second, first);
        let swaps = self.precedes(e, row, own, entry);
        let index = MlirType::index(e.context);
        let Ok(next) = e.if_else(
            swaps,
            &[index],
            |e| {
                self.set(e, row, at, entry);
                self.set(e, row, child, own);
                Ok::<_, Infallible>(vec![child])
            },
            |_| Ok(vec![at]),
        );
        next[0]
    }

    /// Whether the element at position `a` precedes the one at `b` in the result.
    fn precedes(
        &self,
        e: Emit<'c, 'a>,
        row: Row<'c, 'a>,
        a: Value<'c, 'a>,
        b: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let (x, y) = (self.key(e, row, a), self.key(e, row, b));
        let before = self.before(e, x, y);
        let earlier = e.compare(SLT, a, b);
        let tied = e.binary(arith::ANDI, e.compare(EQ, x, y), earlier);
        e.binary(arith::ORI, before, tied)
    }

    /// Whether an element precedes another, by their keys.
    fn before(&self, e: Emit<'c, 'a>, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        let unsigned = !self.dtype.is_float() && !self.dtype.is_signed_integer();
        let order = if self.largest { SGT } else { SLT };
        e.compare(if unsigned { order + 4 } else { order }, x, y)
    }

    /// An integer with the order of the element: for floats the bits, with all but the sign inverted if
    /// negative, equal zeros, and NaN above all.
    fn key(&self, e: Emit<'c, 'a>, row: Row<'c, 'a>, position: Value<'c, 'a>) -> Value<'c, 'a> {
        let stored = e.load(self.x, place(e, row.from, position, self.strides[0]));
        let value = from_memory(e, stored, self.dtype);
        if !self.dtype.is_float() {
            return value;
        }
        let own = element(e.context, self.dtype);
        let value = arithmetic::widen(&scope(e), value, own);
        let ty = own.compute(e.context);
        let bits = ty.bits;
        let number = |value: i64| e.integer(value, bits, Lanes::Scalar);
        let raw = e.op(arith::BITCAST, &[value], e.int(bits));
        let sign = e.binary(arith::SHRSI, raw, number(i64::from(bits) - 1));
        let most = i64::MAX >> (64 - bits);
        let flipped = e.binary(arith::XORI, raw, e.binary(arith::ANDI, sign, number(most)));
        let is = |comparison, other| arithmetic::compare(&scope(e), comparison, value, other, ty);
        let zero = is(Comparison::Eq, e.zero(ty.storage, Lanes::Scalar));
        let key = self.choose(e, zero, number(0), flipped);
        self.choose(e, is(Comparison::Ne, value), number(most), key)
    }

    /// The position at an index of the heap.
    pub(super) fn get(
        &self,
        e: Emit<'c, 'a>,
        row: Row<'c, 'a>,
        rank: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let found = e.load(self.positions, place(e, row.to, rank, self.strides[1]));
        e.op(arith::INDEX_CAST, &[found], MlirType::index(e.context))
    }

    /// Writes the position at an index of the heap.
    pub(super) fn set(
        &self,
        e: Emit<'c, 'a>,
        row: Row<'c, 'a>,
        rank: Value<'c, 'a>,
        position: Value<'c, 'a>,
    ) {
        let position = e.op(arith::INDEX_CAST, &[position], stored(e.context, DType::I64));
        e.store(
            position,
            self.positions,
            place(e, row.to, rank, self.strides[1]),
            Lanes::Scalar,
            None,
        );
    }

    fn choose(
        &self,
        e: Emit<'c, 'a>,
        condition: Value<'c, 'a>,
        yes: Value<'c, 'a>,
        no: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        e.op(arith::SELECT, &[condition, yes, no], yes.r#type())
    }
}

/// The memory index of the element `along` elements after the start.
fn place<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    start: Value<'c, 'a>,
    along: Value<'c, 'a>,
    stride: Value<'c, 'a>,
) -> Value<'c, 'a> {
    e.add(start, e.binary(arith::MULI, along, stride))
}
