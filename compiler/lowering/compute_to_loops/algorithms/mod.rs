//! Algorithms that are not loops around an expression.

mod boxes;
mod heap;
mod scan;
mod trees;

use super::{
    element,
    expression::{accumulator, from_memory, scope},
    nest::Part,
    sizes::Sizes,
};
use crate::kernel::{
    arithmetic,
    emit::{Buffer, Emit, Lanes},
};
use crate::lowering::linalg_to_vector::split::{Extent, Units};
use boxes::Boxes;
use heap::{Heap, TopK};
use irc_mlir::ops::arith;
use irc_mlir::{Type as MlirType, Value};
use irc_tl::{Algorithm, Comparison, Dim, Type};
use scan::Scan;
use std::convert::Infallible;
use trees::Ensemble;

/// The cycles that an algorithm on operands of these types takes, if [`emit`] can compute parts of it; otherwise `None`.
pub(super) fn cycles(algorithm: &Algorithm, operands: &[&Type]) -> Option<Dim> {
    match algorithm {
        Algorithm::Scan { .. } => Some(operands[0].elements()),
        Algorithm::TopK { .. } => Some(operands[0].elements() * CYCLES_OF_CANDIDATE.into()),
        _ => None,
    }
}

/// Cycles to look at an element that does not enter the heap of the largest.
const CYCLES_OF_CANDIDATE: i64 = 2;

/// Emits an algorithm that writes its results, or a part of it.
pub(super) fn emit<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    algorithm: &Algorithm,
    operands: &[(&Type, Buffer<'c, 'a>)],
    results: &[Buffer<'c, 'a>],
    sizes: &Sizes<'c, 'a>,
    part: Option<Part<'c, 'a>>,
) {
    match algorithm {
        Algorithm::Scan { axis, combine, reverse, exclusive } => {
            let (ty, x) = operands[0];
            let size = |dims: &[Dim]| sizes.value(e, &Dim::product(dims));
            let scan = Scan {
                combine: *combine,
                dtype: ty.dtype,
                is_reverse: *reverse,
                is_exclusive: *exclusive,
                x,
                result: results[0],
                extent: sizes.value(e, &ty.dims[*axis]),
                stride: size(&ty.dims[axis + 1..]),
            };
            scan.emit(e, size(&ty.dims[..*axis]), part);
        }
        Algorithm::NonZero => non_zero(e, operands[0], results, sizes),
        Algorithm::NonMaxSuppression { by_center } => {
            Boxes::new(e, *by_center, operands, results, sizes).emit(e);
        }
        Algorithm::TreeEnsemble { targets, combine, comparison } => {
            let how = (targets, *combine, *comparison);
            Ensemble::new(e, how, operands, results[0], sizes).emit(e);
        }
        Algorithm::TopK { axis, k, largest } => {
            let (ty, x) = operands[0];
            let size = |dims: &[Dim]| sizes.value(e, &Dim::product(dims));
            let stride = size(&ty.dims[axis + 1..]);
            let (dtype, positions, largest) = (ty.dtype, results[1], *largest);
            let top = TopK {
                heap: Heap { dtype, x, positions, largest, strides: [stride; 2] },
                values: results[0],
                extent: sizes.value(e, &ty.dims[*axis]),
                k: sizes.value(e, k),
            };
            top.emit(e, size(&ty.dims[..*axis]), part);
        }
    }
}

/// Indices of the nonzero elements, one column per element; unused columns are 0.
fn non_zero<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    (ty, x): (&Type, Buffer<'c, 'a>),
    results: &[Buffer<'c, 'a>],
    sizes: &Sizes<'c, 'a>,
) {
    let count = sizes.value(e, &ty.elements());
    let all = e.binary(arith::MULI, count, e.index(ty.rank() as i64));
    let zero = e.integer(0, 64, Lanes::Scalar);
    each(e, e.index(0), all, |e, at| e.store(zero, results[0], at, Lanes::Scalar, None));
    let search = Search { ty, x, indices: results[0], count, sizes };
    let found = search.along(e, &mut vec![], e.index(0), e.index(0));
    let found = e.op(arith::INDEX_CAST, &[found], e.int(64));
    e.store(found, results[1], e.index(0), Lanes::Scalar, None);
}

struct Search<'n, 'c, 'a> {
    ty: &'n Type,
    x: Buffer<'c, 'a>,
    indices: Buffer<'c, 'a>,
    /// The number of elements of `x`, which is also the length of a row of `indices`.
    count: Value<'c, 'a>,
    sizes: &'n Sizes<'c, 'a>,
}

impl<'c: 'a, 'a> Search<'_, 'c, 'a> {
    /// The loops over the remaining axes, given the linear index of the outer ones and the number of elements
    /// found so far; returns the new number.
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
        let start = e.binary(arith::MULI, linear, extent);
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
        let value = arithmetic::widen(&scope(e), value, element(e.context, dtype));
        let ty = accumulator(e.context, dtype);
        let zero = e.zero(ty.storage, Lanes::Scalar);
        let nonzero = arithmetic::compare(&scope(e), Comparison::Ne, value, zero, ty);
        let index = MlirType::index(e.context);
        let Ok(next) = e.if_else(
            nonzero,
            &[index],
            |e| {
                for (axis, position) in at.iter().enumerate() {
                    let row = e.binary(arith::MULI, self.count, e.index(axis as i64));
                    let position = e.op(arith::INDEX_CAST, &[*position], e.int(64));
                    e.store(position, self.indices, e.add(row, found), Lanes::Scalar, None);
                }
                Ok::<_, Infallible>(vec![e.offset(found, 1)])
            },
            |_| Ok(vec![found]),
        );
        next[0]
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

/// A loop over units, or those of a part.
fn each_unit<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    count: Value<'c, 'a>,
    part: Option<Part<'c, 'a>>,
    body: impl FnOnce(Emit<'c, 'a>, Value<'c, 'a>),
) {
    let units = Units::of(e, Extent::Passed(count), part);
    each(e, units.from, units.to, body);
}

/// Emits code that runs if a condition holds.
fn when<'c: 'a, 'a>(e: Emit<'c, 'a>, condition: Value<'c, 'a>, body: impl FnOnce(Emit<'c, 'a>)) {
    let then = |e| {
        body(e);
        Ok::<_, Infallible>(vec![])
    };
    let Ok(_) = e.if_else(condition, &[], then, |_| Ok(vec![]));
}
