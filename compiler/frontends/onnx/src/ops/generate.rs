//! Generators: constants, ranges, and other values computed from few numbers.

use super::cast::element_type;
use super::indexing::{counted, from_end, loops};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Binary, Compute, DType, Dim, Relation, Rounding, Scalar, Unary, ValueId};
use std::sync::Arc;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("EyeLike", &[9, 22], eye_like),
    Operator::new("OneHot", &[9, 11], one_hot),
    Operator::new("Range", &[11, 27], range),
];

fn eye_like(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let ty = cx.ty(x);
    if ty.rank() != 2 {
        return Err(LowerError::invalid(format!("expected a matrix, found {ty}")));
    }
    let dtype = element_type(cx, "dtype")?.unwrap_or(ty.dtype);
    let diagonal = Scalar::index(cx.int_or("k", 0)?);
    let on = (Scalar::Loop(1) - Scalar::Loop(0)).equals(diagonal);
    let body = on.select(Scalar::number(1, dtype), Scalar::number(0, dtype));
    one(cx.b.compute(Compute::map(ty.dims, body), &[]))
}

fn one_hot(cx: &mut Context<'_>) -> Lowered {
    let (indices, depth, values) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let by = cx.b.dims(indices);
    let depth = cx.b.cast(depth, DType::I64)?;
    let depth = counted(cx.b, depth)?;
    let axis = cx.axis(cx.int_or("axis", -1)?, by.len() + 1)?;
    let mut dims = by;
    dims.insert(axis, depth.clone());
    let mut at = loops(0..dims.len());
    at.remove(axis);
    let index = from_end(Scalar::load(0, at).cast(DType::I64), &depth);
    let hot = index.equals(Scalar::Loop(axis));
    let value = |at: i64| Scalar::load(1, [Scalar::index(at)]);
    let body = hot.select(value(1), value(0));
    one(cx.b.compute(Compute::map(dims, body), &[indices, values]))
}

fn range(cx: &mut Context<'_>) -> Lowered {
    let mut ends = vec![];
    for input in 0..3 {
        let value = cx.input(input)?;
        ends.push(cx.b.reshape(value, &[])?);
    }
    let dtype = cx.dtype(ends[0]);
    let count = steps(cx, &ends)?;
    // A 16-bit float would round at every step.
    let wide = if dtype.is_float() { DType::F64 } else { dtype };
    let load = |operand| Scalar::load(operand, []).cast(wide);
    let body = load(0) + Scalar::Loop(0).cast(wide) * load(1);
    one(cx.b.compute(Compute::map([count], body.cast(dtype)), &[ends[0], ends[2]]))
}

/// The number of steps from the start to before the limit.
fn steps(cx: &mut Context<'_>, ends: &[ValueId]) -> Result<Dim, LowerError> {
    let known =
        |value: ValueId| cx.b.elements(value).and_then(|elements| elements.first()).cloned();
    if let [Some(start), Some(limit), Some(by)] = [ends[0], ends[1], ends[2]].map(known) {
        if by.is(0) {
            return Err(LowerError::invalid("expected steps other than 0"));
        }
        let count = match [&start, &limit, &by].map(Dim::known) {
            [Some(start), Some(limit), Some(by)] => steps_between(start, limit, by).into(),
            _ => -(start - limit).floor_div(&by),
        };
        return Ok(if cx.b.is_size(&count) { count } else { count.maximum(&0.into()) });
    }
    let wide = |operand| Scalar::load(operand, []).cast(DType::F64);
    let dtype = cx.dtype(ends[0]);
    let count = if dtype.is_float() {
        let count = ((wide(1) - wide(0)) / wide(2)).unary(Unary::Ceil);
        Scalar::Cast(DType::I64, Rounding::TowardZero, Arc::new(count))
    } else {
        let own = |operand| Scalar::load(operand, []).cast(DType::I64);
        let zero = || Scalar::index(0);
        let up = steps_up(own(0), own(1), own(2));
        let down = steps_up(own(1), own(0), zero() - own(2));
        let steps = zero().lt(own(2)).select(up, down);
        own(2).equals(zero()).select(Scalar::index(-1), steps)
    };
    let count = if dtype.is_float() { count.max(Scalar::index(0)) } else { count };
    let count = cx.b.compute(Compute::map([], count), ends)?;
    let count = counted(cx.b, count)?;
    cx.b.require(&0.into(), Relation::AtMost, &count, "expected steps other than 0")?;
    Ok(count)
}

/// How many steps there are from the start to before the limit, at most as many as a size can be.
fn steps_between(start: i64, limit: i64, by: i64) -> i64 {
    let (span, by) = (i128::from(limit) - i128::from(start), i128::from(by));
    let whole = span / by + i128::from(span % by != 0 && (span < 0) == (by < 0));
    i64::try_from(whole.max(0)).unwrap_or(i64::MAX)
}

/// The same when the program runs, upward. The distance of two `i64` fits `u64`.
fn steps_up(start: Scalar, limit: Scalar, by: Scalar) -> Scalar {
    let wide = |scalar: Scalar| scalar.cast(DType::U64);
    let one = || Scalar::number(1, DType::U64);
    let last = (wide(limit.clone()) - wide(start.clone()) - one()) / wide(by);
    let most = wide(Scalar::index(i64::MAX - 1));
    let count = last.binary(Binary::Min, most).cast(DType::I64) + Scalar::index(1);
    start.lt(limit).select(count, Scalar::index(0))
}
