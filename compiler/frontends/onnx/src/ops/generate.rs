//! Generators: constants, ranges, and other values computed from few numbers.

use super::cast::element_type;
use super::indexing::{counted, from_end, loops};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Binary, Compute, DType, Dim, Rounding, Scalar, Unary, ValueId};
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
        let count = -(start - limit).floor_div(&by);
        return Ok(if cx.b.is_size(&count) { count } else { count.maximum(&0.into()) });
    }
    let wide = |operand| Scalar::load(operand, []).cast(DType::F64);
    let dtype = cx.dtype(ends[0]);
    let count = if dtype.is_float() {
        let count = ((wide(1) - wide(0)) / wide(2)).unary(Unary::Ceil);
        Scalar::Cast(DType::I64, Rounding::TowardZero, Arc::new(count))
    } else {
        let own = |operand| Scalar::load(operand, []).cast(DType::I64);
        let (span, by) = (own(1) - own(0), own(2));
        let quotient = span.clone() / by.clone();
        let rest = span.binary(Binary::Rem, by.clone());
        // Truncation is one too small where a remainder is left in the direction of the step.
        let left = rest.clone().equals(Scalar::index(0));
        let along = rest.lt(Scalar::index(0)).equals(by.lt(Scalar::index(0)));
        let more = along.select(Scalar::index(1), Scalar::index(0));
        quotient + left.select(Scalar::index(0), more)
    };
    let count = count.max(Scalar::index(0));
    let count = cx.b.compute(Compute::map([], count), ends)?;
    Ok(counted(cx.b, count)?)
}
