//! Algorithms that are not loops around an expression.
use super::{
    element,
    expression::{from_memory, scope},
    sizes::Sizes,
    stored,
};
use crate::lowering::{
    arithmetic,
    linalg_to_vector::emit::{Buffer, Emit, Lanes},
};
use irc_mlir::{Type as MlirType, Value, ValueLike};
use irc_tl::{Algorithm, Comparison, DType, Dim, Type};
use std::convert::Infallible;

/// `arith.cmpi` predicates.
const EQ: i64 = 0;
const SLT: i64 = 2;
const SGT: i64 = 4;

/// Emits an algorithm that writes its results.
pub(super) fn emit<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    algorithm: &Algorithm,
    operand: (&Type, Buffer<'c, 'a>),
    results: &[Buffer<'c, 'a>],
    sizes: &Sizes<'c, 'a>,
) {
    match algorithm {
        Algorithm::NonZero => non_zero(e, operand, results, sizes),
        Algorithm::NonMaxSuppression { .. } => unreachable!("the reader of kernels refuses it"),
        Algorithm::TopK { axis, k, largest } => {
            let (ty, x) = operand;
            let size = |dims: &[Dim]| sizes.value(e, &Dim::product(dims));
            let top = TopK {
                dtype: ty.dtype,
                x,
                values: results[0],
                positions: results[1],
                largest: *largest,
                extent: sizes.value(e, &ty.dims[*axis]),
                k: sizes.value(e, k),
                stride: size(&ty.dims[axis + 1..]),
            };
            top.emit(e, size(&ty.dims[..*axis]));
        }
    }
}

/// Indices of what is not zero, one column after another; the columns that are left are 0.
fn non_zero<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    (ty, x): (&Type, Buffer<'c, 'a>),
    results: &[Buffer<'c, 'a>],
    sizes: &Sizes<'c, 'a>,
) {
    let count = sizes.value(e, &ty.elements());
    let all = e.binary("arith.muli", count, e.index(ty.rank() as i64));
    let zero = e.integer(0, 64, Lanes::Scalar);
    each(e, e.index(0), all, |e, at| e.store(zero, results[0], at, Lanes::Scalar, None));
    let search = Search { ty, x, indices: results[0], count, sizes };
    let found = search.along(e, &mut vec![], e.index(0), e.index(0));
    let found = e.op("arith.index_cast", &[found], e.int(64));
    e.store(found, results[1], e.index(0), Lanes::Scalar, None);
}

struct Search<'n, 'c, 'a> {
    ty: &'n Type,
    x: Buffer<'c, 'a>,
    indices: Buffer<'c, 'a>,
    /// Elements of `x`, which is also the length of a row of `indices`.
    count: Value<'c, 'a>,
    sizes: &'n Sizes<'c, 'a>,
}

impl<'c: 'a, 'a> Search<'_, 'c, 'a> {
    /// The loops over the axes that are left, from the linear index of those before; the number
    /// found so far goes in and comes out.
    fn along(
        &self,
        e: Emit<'c, 'a>,
        at: &mut Vec<Value<'c, 'a>>,
        linear: Value<'c, 'a>,
        found: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let Some(dim) = self.ty.dims.get(at.len()) else {
            return self.element(e, at, linear, found);
        };
        let extent = self.sizes.value(e, dim);
        let start = e.binary("arith.muli", linear, extent);
        let loops = e.for_each((e.index(0), extent, 1), &[found], |e, index, found| {
            at.push(index);
            let found = self.along(e, at, e.add(start, index), found[0]);
            at.pop();
            Ok::<_, Infallible>(vec![found])
        });
        let Ok(found) = loops;
        found[0]
    }

    fn element(
        &self,
        e: Emit<'c, 'a>,
        at: &[Value<'c, 'a>],
        linear: Value<'c, 'a>,
        found: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let dtype = self.ty.dtype;
        let value = from_memory(e, e.load(self.x, linear), dtype);
        let ty = element(e.context, dtype);
        let zero = e.zero(ty.storage, Lanes::Scalar);
        let nonzero = arithmetic::compare(&scope(e), Comparison::Ne, value, zero, ty);
        let index = MlirType::index(e.context);
        let Ok(next) = e.if_else(
            nonzero,
            &[index],
            |e| {
                for (axis, position) in at.iter().enumerate() {
                    let row = e.binary("arith.muli", self.count, e.index(axis as i64));
                    let position = e.op("arith.index_cast", &[*position], e.int(64));
                    e.store(position, self.indices, e.add(row, found), Lanes::Scalar, None);
                }
                Ok::<_, Infallible>(vec![e.offset(found, 1)])
            },
            |_| Ok(vec![found]),
        );
        next[0]
    }
}

/// The largest or smallest elements along an axis.
///
/// The positions of the first `k` elements make a heap whose root comes last of them in the result;
/// every later element that comes before the root takes its place. Then the heap is sorted in place.
/// Order is by value, and by position where values are equal, so that it is total.
struct TopK<'c, 'a> {
    dtype: DType,
    x: Buffer<'c, 'a>,
    values: Buffer<'c, 'a>,
    positions: Buffer<'c, 'a>,
    largest: bool,
    /// Elements along the axis.
    extent: Value<'c, 'a>,
    k: Value<'c, 'a>,
    /// From one element along the axis to the next.
    stride: Value<'c, 'a>,
}

/// One row along the axis: where it starts in the operand and in the results.
#[derive(Clone, Copy)]
struct Row<'c, 'a> {
    from: Value<'c, 'a>,
    to: Value<'c, 'a>,
}

impl<'c: 'a, 'a> TopK<'c, 'a> {
    fn emit(&self, e: Emit<'c, 'a>, outer: Value<'c, 'a>) {
        each(e, e.index(0), outer, |e, before| {
            each(e, e.index(0), self.stride, |e, after| {
                let start = |extent| {
                    let step = e.binary("arith.muli", extent, self.stride);
                    e.add(e.binary("arith.muli", before, step), after)
                };
                self.row(e, Row { from: start(self.extent), to: start(self.k) });
            });
        });
    }

    fn row(&self, e: Emit<'c, 'a>, row: Row<'c, 'a>) {
        let zero = e.index(0);
        each(e, zero, self.k, |e, rank| self.set(e, row, rank, rank));
        // Parents from the last to the first.
        let parents = e.binary("arith.shrsi", self.k, e.index(1));
        each(e, zero, parents, |e, step| {
            let parent = e.binary("arith.subi", e.offset(parents, -1), step);
            self.sift(e, row, parent, self.k);
        });
        // No element can enter an empty heap.
        let some = e.compare(SGT, self.k, zero);
        let last = self.choose(e, some, self.extent, self.k);
        each(e, self.k, last, |e, candidate| {
            let root = self.get(e, row, zero);
            let enters = self.precedes(e, row, candidate, root);
            when(e, enters, |e| {
                self.set(e, row, zero, candidate);
                self.sift(e, row, zero, self.k);
            });
        });
        let rounds = e.binary("arith.maxsi", e.offset(self.k, -1), zero);
        each(e, zero, rounds, |e, round| {
            let end = e.binary("arith.subi", e.offset(self.k, -1), round);
            let (root, last) = (self.get(e, row, zero), self.get(e, row, end));
            self.set(e, row, zero, last);
            self.set(e, row, end, root);
            self.sift(e, row, zero, end);
        });
        each(e, zero, self.k, |e, rank| {
            let position = self.get(e, row, rank);
            let value = e.load(self.x, self.place(e, row.from, position));
            e.store(value, self.values, self.place(e, row.to, rank), Lanes::Scalar, None);
        });
    }

    /// Moves an entry down the heap of `count` entries until none below comes after it. A heap of
    /// `count` entries has fewer levels than `count` has bits.
    fn sift(&self, e: Emit<'c, 'a>, row: Row<'c, 'a>, from: Value<'c, 'a>, count: Value<'c, 'a>) {
        let wide = e.op("arith.index_cast", &[count], e.int(64));
        let zeros = e.op("math.ctlz", &[wide], e.int(64));
        let zeros = e.op("arith.index_cast", &[zeros], MlirType::index(e.context));
        let levels = e.binary("arith.subi", e.index(64), zeros);
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

    /// One level: swaps an entry with the child that comes last, if that comes after it.
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

    /// Whether the element at position `a` comes before the one at `b` in the result.
    fn precedes(
        &self,
        e: Emit<'c, 'a>,
        row: Row<'c, 'a>,
        a: Value<'c, 'a>,
        b: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let (x, y) = (self.key(e, row, a), self.key(e, row, b));
        let unsigned = !self.dtype.is_float() && !self.dtype.is_signed_integer();
        let order = if self.largest { SGT } else { SLT };
        let before = e.compare(if unsigned { order + 4 } else { order }, x, y);
        let earlier = e.compare(SLT, a, b);
        let tied = e.binary("arith.andi", e.compare(EQ, x, y), earlier);
        e.binary("arith.ori", before, tied)
    }

    /// An integer that orders as the element does: of floats the bits, of negative ones inverted but
    /// for the sign, zeros alike and NaN above all.
    fn key(&self, e: Emit<'c, 'a>, row: Row<'c, 'a>, position: Value<'c, 'a>) -> Value<'c, 'a> {
        let value = e.load(self.x, self.place(e, row.from, position));
        if !self.dtype.is_float() {
            return value;
        }
        let bits = 8 * self.dtype.size() as u32;
        let ty = element(e.context, self.dtype);
        let number = |value: i64| e.integer(value, bits, Lanes::Scalar);
        let raw = e.op("arith.bitcast", &[value], e.int(bits));
        let sign = e.binary("arith.shrsi", raw, number(i64::from(bits) - 1));
        let most = i64::MAX >> (64 - bits);
        let flipped = e.binary("arith.xori", raw, e.binary("arith.andi", sign, number(most)));
        let is = |comparison, other| arithmetic::compare(&scope(e), comparison, value, other, ty);
        let zero = is(Comparison::Eq, e.zero(ty.storage, Lanes::Scalar));
        let key = self.choose(e, zero, number(0), flipped);
        self.choose(e, is(Comparison::Ne, value), number(most), key)
    }

    fn get(&self, e: Emit<'c, 'a>, row: Row<'c, 'a>, rank: Value<'c, 'a>) -> Value<'c, 'a> {
        let found = e.load(self.positions, self.place(e, row.to, rank));
        e.op("arith.index_cast", &[found], MlirType::index(e.context))
    }

    fn set(&self, e: Emit<'c, 'a>, row: Row<'c, 'a>, rank: Value<'c, 'a>, position: Value<'c, 'a>) {
        let position = e.op("arith.index_cast", &[position], stored(e.context, DType::I64));
        e.store(position, self.positions, self.place(e, row.to, rank), Lanes::Scalar, None);
    }

    fn place(&self, e: Emit<'c, 'a>, start: Value<'c, 'a>, along: Value<'c, 'a>) -> Value<'c, 'a> {
        e.add(start, e.binary("arith.muli", along, self.stride))
    }

    fn choose(
        &self,
        e: Emit<'c, 'a>,
        condition: Value<'c, 'a>,
        yes: Value<'c, 'a>,
        no: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        e.op("arith.select", &[condition, yes, no], yes.r#type())
    }
}

/// A loop over `from..to`.
fn each<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    from: Value<'c, 'a>,
    to: Value<'c, 'a>,
    body: impl FnOnce(Emit<'c, 'a>, Value<'c, 'a>),
) {
    let Ok(_) = e.for_each((from, to, 1), &[], |e, index, _| {
        body(e, index);
        Ok::<_, Infallible>(vec![])
    });
}

/// What runs where a condition holds.
fn when<'c: 'a, 'a>(e: Emit<'c, 'a>, condition: Value<'c, 'a>, body: impl FnOnce(Emit<'c, 'a>)) {
    let then = |e| {
        body(e);
        Ok::<_, Infallible>(vec![])
    };
    let Ok(_) = e.if_else(condition, &[], then, |_| Ok(vec![]));
}
