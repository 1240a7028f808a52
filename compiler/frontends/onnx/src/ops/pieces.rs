//! Helpers shared by several operators.

use crate::context::LowerError;
use irc_tl::{
    Binary, Builder, Built, Compute, DType, Dim, Op, Reduction, Relation, Scalar, ValueId,
};
use std::ops::Range;

/// The iterations of some loops.
pub(super) fn loops(range: Range<usize>) -> Vec<Scalar> {
    range.map(Scalar::Loop).collect()
}

/// A size as an index.
pub(super) fn size(dim: &Dim) -> Scalar {
    match dim.known() {
        Some(known) => Scalar::index(known),
        None => Scalar::Size(dim.clone()),
    }
}

/// `low <= index < high`.
pub(super) fn within(index: &Scalar, low: Scalar, high: Scalar) -> Scalar {
    index.clone().ge(low).and(index.clone().lt(high))
}

/// Disjunction of `bool`s.
pub(super) fn either(left: Scalar, right: Scalar) -> Scalar {
    left.binary(Binary::Or, right)
}

/// Conjunction of conditions; `None` if there are none.
pub(super) fn all(conditions: impl IntoIterator<Item = Scalar>) -> Option<Scalar> {
    conditions.into_iter().reduce(Scalar::and)
}

/// `value` if the guard holds, else `otherwise`; always `value` without a guard.
pub(super) fn guarded(guard: Option<Scalar>, value: Scalar, otherwise: Scalar) -> Scalar {
    match guard {
        Some(guard) => guard.select(value, otherwise),
        None => value,
    }
}

/// The type in which sums and products of elements of a type are computed.
pub(super) const fn wide(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// What elements outside of a value are.
#[derive(Clone, Copy)]
pub(super) enum Outside {
    Number(i64),
    /// A scalar of the type of the elements.
    Value(ValueId),
}

/// Pads the dimensions of `x` from the axis `first` on.
pub(super) fn pad(
    b: &mut Builder,
    x: ValueId,
    first: usize,
    pads: &[[Dim; 2]],
    outside: Outside,
) -> Built {
    let own = b.dims(x);
    let mut dims = own.clone();
    let mut at = loops(0..dims.len());
    let mut conditions = vec![];
    for (axis, [before, after]) in (first..).zip(pads) {
        dims[axis] = own[axis].clone() + before.clone() + after.clone();
        at[axis] = Scalar::Loop(axis) - size(before);
        conditions.push(within(&at[axis], Scalar::index(0), size(&own[axis])));
    }
    let (outside, operands) = match outside {
        Outside::Number(number) => (Scalar::number(number, b.dtype(x)), vec![x]),
        Outside::Value(value) => (Scalar::load(1, []), vec![x, value]),
    };
    let body = guarded(all(conditions), Scalar::load(0, at), outside);
    b.compute(Compute::map(dims, body), &operands)
}

/// What is repeated along an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// All of its elements, as `Tile` does.
    Tile,
    /// Each element.
    Each,
}

/// A value repeated so many times along each axis: a broadcast to an axis of its own before or after each.
pub(super) fn repeated(b: &mut Builder, x: ValueId, times: &[Dim], what: Repeat) -> Built {
    let (mut split, mut broadcast, mut joined) = (vec![], vec![], vec![]);
    for (extent, times) in b.dims(x).into_iter().zip(times) {
        joined.push(extent.clone() * times.clone());
        let [own, repeated] = [(extent.clone(), extent), (1.into(), times.clone())];
        let parts = match what {
            _ if times.is(1) => vec![own],
            Repeat::Tile => vec![repeated, own],
            Repeat::Each => vec![own, repeated],
        };
        for (from, to) in parts {
            split.push(from);
            broadcast.push(to);
        }
    }
    let x = b.reshape(x, &split)?;
    let x = b.broadcast(x, &broadcast)?;
    b.reshape(x, &joined)
}

/// Slices a value from `offset` along one axis.
pub(super) fn slice(b: &mut Builder, x: ValueId, axis: usize, offset: &Dim, extent: &Dim) -> Built {
    let mut dims = b.dims(x);
    if offset.is(0) && dims[axis] == *extent {
        return Ok(x);
    }
    let mut offsets = vec![Dim::Known(0); dims.len()];
    offsets[axis] = offset.clone();
    dims[axis] = extent.clone();
    let known = |dims: &[Dim]| -> Option<Vec<i64>> { dims.iter().map(Dim::known).collect() };
    if let (Some(offsets), Some(sizes), Some(_)) = (known(&offsets), known(&dims), b.ty(x).known())
    {
        return b.op(Op::Slice { offsets, sizes }, &[x]);
    }
    let mut at = loops(0..dims.len());
    if !offset.is(0) {
        at[axis] = Scalar::Loop(axis) + size(offset);
    }
    b.compute(Compute::map(dims, Scalar::load(0, at)), &[x])
}

/// Asserts an extent of a value: checked at run time, and assumed afterwards.
pub(super) fn with_extent(
    b: &mut Builder,
    x: ValueId,
    axis: usize,
    extent: &Dim,
    message: &str,
) -> Built {
    let mut dims = b.dims(x);
    if dims[axis] == *extent {
        return Ok(x);
    }
    b.require(&dims[axis], Relation::Equal, extent, message)?;
    dims[axis] = extent.clone();
    let body = Scalar::load(0, loops(0..dims.len()));
    b.compute(Compute::map(dims, body), &[x])
}

/// Concatenates values along an axis; their other extents are equal.
pub(super) fn concat(b: &mut Builder, parts: &[ValueId], axis: usize) -> Built {
    let Some((first, rest)) = parts.split_first() else {
        return Err("expected a value to concatenate".into());
    };
    let mut joined = *first;
    for part in rest {
        let mut dims = b.dims(joined);
        let first = dims[axis].clone();
        dims[axis] = first.clone() + b.dims(*part)[axis].clone();
        let at = loops(0..dims.len());
        let mut shifted = at.clone();
        shifted[axis] = Scalar::Loop(axis) - size(&first);
        let before = Scalar::Loop(axis).lt(size(&first));
        let body = before.select(Scalar::load(0, at), Scalar::load(1, shifted));
        joined = b.compute(Compute::map(dims, body), &[joined, *part])?;
    }
    Ok(joined)
}

/// Inserts a dimension of extent 1 at `axis`.
pub(super) fn unsqueeze(b: &mut Builder, x: ValueId, axis: usize) -> Built {
    let mut dims = b.dims(x);
    dims.insert(axis, 1.into());
    b.reshape(x, &dims)
}

/// Removes the dimension of extent 1 at `axis`.
pub(super) fn squeeze(b: &mut Builder, x: ValueId, axis: usize) -> Built {
    let mut dims = b.dims(x);
    dims.remove(axis);
    b.reshape(x, &dims)
}

/// Reshapes a vector to extend along one axis of `rank`, the others of extent 1. Scalars are unchanged.
pub(super) fn along(b: &mut Builder, x: ValueId, axis: usize, rank: usize) -> Built {
    if b.rank(x) == 0 {
        return Ok(x);
    }
    let mut dims = vec![Dim::Known(1); rank];
    dims[axis] = b.ty(x).elements();
    b.reshape(x, &dims)
}

/// Multiplies every element by a number.
pub(super) fn scale(b: &mut Builder, x: ValueId, by: f64) -> Built {
    if by == 1.0 {
        return Ok(x);
    }
    let by = b.scalar(by, b.dtype(x))?;
    b.binary(Binary::Mul, x, by)
}

/// `e^x` over its sum along the last axis.
pub(super) fn softmax(b: &mut Builder, x: ValueId) -> Built {
    let last = [b.rank(x) - 1];
    let highest = b.reduce(Reduction::Max, x, &last, true)?;
    let below = b.binary(Binary::Sub, x, highest)?;
    let powers = b.unary(irc_tl::Unary::Exp, below)?;
    let sum = b.reduce(Reduction::Sum, powers, &last, true)?;
    b.binary(Binary::Div, powers, sum)
}

/// A size that must be known when the model is compiled.
pub(super) fn known(dim: &Dim, what: &str) -> Result<i64, LowerError> {
    let message = || LowerError::unsupported(format!("expected {what} of known size, found {dim}"));
    dim.known().ok_or_else(message)
}
