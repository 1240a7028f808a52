//! Index expressions shared by several operators.

use crate::context::LowerError;
use irc_tl::{Binary, Builder, Built, Compute, DType, Dim, Op, Relation, Scalar, ValueId};

/// The indices of some loops.
pub(super) fn loops(range: std::ops::Range<usize>) -> Vec<Scalar> {
    range.map(Scalar::Loop).collect()
}

/// A size as a number.
pub(super) fn size(dim: &Dim) -> Scalar {
    match dim.known() {
        Some(value) => Scalar::index(value),
        None => Scalar::Size(dim.clone()),
    }
}

/// An index that counts from the end if negative.
pub(super) fn from_end(index: Scalar, extent: &Dim) -> Scalar {
    let end = index.clone() + size(extent);
    index.clone().lt(Scalar::index(0)).select(end, index)
}

/// An index clamped to its range, so that memory out of bounds is never read.
pub(super) fn inside(index: Scalar, extent: &Dim) -> Scalar {
    let last = size(&(extent.clone() - 1.into()));
    index.min(last).max(Scalar::index(0))
}

/// Conjunction; `true` for no conditions.
pub(super) fn all(conditions: impl IntoIterator<Item = Scalar>) -> Scalar {
    let all = conditions.into_iter().reduce(Scalar::and);
    all.unwrap_or(Scalar::Int(1, DType::Bool))
}

/// A part of a dimension.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// The first index.
    pub start: Dim,
    /// The step between indices.
    pub step: i64,
    /// The number of indices.
    pub count: Dim,
}

impl Part {
    /// Consecutive indices.
    pub(super) fn run(start: impl Into<Dim>, count: impl Into<Dim>) -> Self {
        Self { start: start.into(), step: 1, count: count.into() }
    }
}

/// Slices each dimension; the caller guarantees that indices are in range.
pub(super) fn slice(b: &mut Builder, x: ValueId, parts: &[Part]) -> Built {
    let ty = b.ty(x).clone();
    let whole =
        |(part, dim): (&Part, &Dim)| part.start.is(0) && part.step == 1 && part.count == *dim;
    if parts.iter().zip(&ty.dims).all(whole) {
        return Ok(x);
    }
    let offsets: Option<Vec<i64>> = parts.iter().map(|part| part.start.known()).collect();
    let sizes: Option<Vec<i64>> = parts.iter().map(|part| part.count.known()).collect();
    let plain = ty.known().is_some() && parts.iter().all(|part| part.step == 1);
    if let (Some(offsets), Some(sizes), true) = (offsets, sizes, plain) {
        return b.op(Op::Slice { offsets, sizes }, &[x]);
    }
    let at = |(axis, part): (usize, &Part)| {
        let scaled = match part.step {
            1 => Scalar::Loop(axis),
            step => Scalar::Loop(axis) * Scalar::index(step),
        };
        if part.start.is(0) { scaled } else { size(&part.start) + scaled }
    };
    let dims: Vec<Dim> = parts.iter().map(|part| part.count.clone()).collect();
    let at: Vec<Scalar> = parts.iter().enumerate().map(at).collect();
    b.compute(Compute::map(dims, Scalar::load(0, at)), &[x])
}

/// The slice `start .. start + count` of an axis.
pub(super) fn along(
    b: &mut Builder,
    x: ValueId,
    axis: usize,
    start: impl Into<Dim>,
    count: impl Into<Dim>,
) -> Built {
    let mut parts: Vec<Part> = b.dims(x).into_iter().map(|dim| Part::run(0, dim)).collect();
    parts[axis] = Part::run(start, count);
    slice(b, x, &parts)
}

/// Maximum number of operands of one concatenation: longer lists are concatenated in several levels, so
/// that no kernel has thousands of operands.
const MAX_JOINED: usize = 32;

/// Concatenates at least one value along an axis.
pub(super) fn concat(
    b: &mut Builder,
    values: &[ValueId],
    axis: usize,
) -> Result<ValueId, LowerError> {
    let Some(first) = values.first() else {
        return Err(LowerError::invalid("expected at least one value to concatenate, found none"));
    };
    if values.len() > MAX_JOINED {
        let parts = values.chunks(MAX_JOINED).map(|part| concat(b, part, axis));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        return concat(b, &parts, axis);
    }
    let mut dims = b.dims(*first);
    let mut ends = vec![dims[axis].clone()];
    for value in &values[1..] {
        let own = b.ty(*value).clone();
        if own.rank() != dims.len() || own.dtype != b.dtype(*first) {
            let message = format!("expected values like {}, found {own}", b.ty(*first));
            return Err(LowerError::invalid(message));
        }
        for (other, (left, right)) in dims.iter().zip(&own.dims).enumerate() {
            if other != axis {
                let message = format!("concat: expected equal sizes of dimension {other}");
                b.require(left, Relation::Equal, right, &message)?;
            }
        }
        ends.push(ends[ends.len() - 1].clone() + own.dims[axis].clone());
    }
    if values.len() == 1 {
        return Ok(*first);
    }
    dims[axis] = ends[ends.len() - 1].clone();
    let body = pick(0, values.len(), &ends, axis, dims.len());
    Ok(b.compute(Compute::map(dims, body), values)?)
}

/// The element of the values `from .. to`, found by bisection.
fn pick(from: usize, to: usize, ends: &[Dim], axis: usize, rank: usize) -> Scalar {
    if to - from == 1 {
        let mut at = loops(0..rank);
        if from > 0 {
            at[axis] = Scalar::Loop(axis) - size(&ends[from - 1]);
        }
        return Scalar::load(from, at);
    }
    let middle = from + (to - from) / 2;
    let before = Scalar::Loop(axis).lt(size(&ends[middle - 1]));
    before.select(pick(from, middle, ends, axis, rank), pick(middle, to, ends, axis, rank))
}

/// The remainder with the sign of the divisor.
pub(super) fn modulo(index: Scalar, by: Scalar) -> Scalar {
    index.binary(Binary::Mod, by)
}

/// Inserts dimensions of extent 1 at the given positions of the result, in ascending
/// order.
pub(super) fn unsqueeze(b: &mut Builder, x: ValueId, places: &[usize]) -> Built {
    let mut dims = b.dims(x);
    for place in places {
        dims.insert(*place, Dim::Known(1));
    }
    b.reshape(x, &dims)
}

/// An integer tensor of one element, as a size.
pub(super) fn counted(b: &mut Builder, count: ValueId) -> Built<Dim> {
    let count = b.reshape(count, &[])?;
    let elements = b.elements_or_symbols(count)?;
    elements.into_iter().next().ok_or_else(|| "expected one number, found none".into())
}
