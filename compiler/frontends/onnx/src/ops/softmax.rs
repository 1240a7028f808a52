//! Softmax and related operators.

use super::formula::{Formula, rounding_once};
use super::reduce::place_of;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Builder, Built, Compute, Dim, Reduction, Scalar, Unary, ValueId};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Softmax", &[1, 11, 13], |cx| {
        let (x, axes) = operand(cx)?;
        one(softmax(cx.b, x, &axes))
    }),
    Operator::new("LogSoftmax", &[1, 11, 13], |cx| {
        let (x, axes) = operand(cx)?;
        one(log_softmax(cx.b, x, &axes))
    }),
    Operator::new("Hardmax", &[1, 11, 13], hardmax),
];

/// The operand and the axes: one from version 13 on, before that an axis and all after it.
fn operand(cx: &Context<'_>) -> Result<(ValueId, Vec<usize>), LowerError> {
    let x = cx.input(0)?;
    let rank = cx.b.rank(x);
    if cx.version >= 13 {
        return Ok((x, vec![cx.axis(cx.int_or("axis", -1)?, rank)?]));
    }
    let axis = cx.int_or("axis", 1)?;
    // An axis after the last is that of an empty product.
    let first = if axis == rank as i64 { rank } else { cx.axis(axis, rank)? };
    Ok((x, (first..rank).collect()))
}

/// `e^(x - max x) / sum e^(x - max x)`.
pub(super) fn softmax(b: &mut Builder, x: ValueId, axes: &[usize]) -> Built {
    rounding_once(b, x, |b, x| {
        let most = b.reduce(Reduction::Max, x, axes, true)?;
        let moved = b.sub(x, most)?;
        let powers = b.unary(Unary::Exp, moved)?;
        let sum = b.reduce(Reduction::Sum, powers, axes, true)?;
        b.div(powers, sum)
    })
}

/// `x - max x - log sum e^(x - max x)`.
pub(super) fn log_softmax(b: &mut Builder, x: ValueId, axes: &[usize]) -> Built {
    rounding_once(b, x, |b, x| {
        let most = b.reduce(Reduction::Max, x, axes, true)?;
        let moved = b.sub(x, most)?;
        let powers = b.unary(Unary::Exp, moved)?;
        let sum = b.reduce(Reduction::Sum, powers, axes, true)?;
        let log = b.unary(Unary::Log, sum)?;
        b.sub(moved, log)
    })
}

/// 1 at the first of the largest elements, 0 elsewhere.
fn hardmax(cx: &mut Context<'_>) -> Lowered {
    let (x, axes) = operand(cx)?;
    let own = cx.b.dims(x);
    let (axis, flat) = match axes[..] {
        [axis] => (axis, x),
        _ => {
            let (outer, inner) = own.split_at(own.len() - axes.len());
            (1, cx.b.reshape(x, &[Dim::product(outer), Dim::product(inner)])?)
        }
    };
    let dims = cx.b.dims(flat);
    let place = place_of(cx.b, Reduction::Max, flat, axis, false)?;
    let mut at: Vec<Scalar> = (0..dims.len()).map(Scalar::Loop).collect();
    at[axis] = Scalar::index(0);
    let here = Scalar::load(0, at).equals(Scalar::Loop(axis));
    let result = cx.b.compute(Compute::map(dims, here.cast(cx.dtype(x))), &[place])?;
    one(cx.b.reshape(result, &own))
}
