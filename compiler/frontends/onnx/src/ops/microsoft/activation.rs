//! Activation functions, fused with the addition of a bias.

use super::operator;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::activation::{exact_gelu, swish};
use crate::ops::formula::{Formula, rounding_once, widened};
use crate::ops::pieces::slice;
use crate::ops::softmax::softmax;
use irc_tl::{Builder, Built, Unary, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("BiasAdd", bias_add),
    operator("BiasGelu", |cx| with_bias(cx, exact_gelu)),
    operator("BiasSoftmax", bias_softmax),
    operator("BiasSplitGelu", bias_split_gelu),
    operator("FastGelu", |cx| with_bias(cx, |b, x| b.unary(Unary::Gelu, x))),
    operator("Gelu", |cx| with_bias(cx, exact_gelu)),
    operator("QuickGelu", |cx| {
        let alpha = f64::from(cx.float_or("alpha", 1.702)?);
        with_bias(cx, |b, x| swish(b, x, alpha))
    }),
];

/// A function of the sum of input 0 and the bias, input 1, if there is one.
fn with_bias(
    cx: &mut Context<'_>,
    function: impl FnOnce(&mut Builder, ValueId) -> Built,
) -> Lowered {
    let (x, bias) = (cx.input(0)?, cx.optional(1));
    one(rounding_once(cx.b, x, |b, x| {
        let x = match bias {
            Some(bias) => plus_bias(b, x, bias)?,
            None => x,
        };
        function(b, x)
    }))
}

/// The sum with a bias of a narrower type.
fn plus_bias(b: &mut Builder, x: ValueId, bias: ValueId) -> Built {
    let bias = widened(b, bias)?;
    b.add(x, bias)
}

/// The sum of a value, a bias per channel and a residual.
fn bias_add(cx: &mut Context<'_>) -> Lowered {
    let [x, bias, skip] = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    one(rounding_once(cx.b, x, |b, x| {
        let sum = plus_bias(b, x, bias)?;
        plus_bias(b, sum, skip)
    }))
}

/// The first half of the channels times the GELU of the second half.
fn bias_split_gelu(cx: &mut Context<'_>) -> Lowered {
    let (x, bias) = (cx.input(0)?, cx.input(1)?);
    let Some(last) = cx.b.rank(x).checked_sub(1) else {
        return Err(LowerError::invalid("expected channels, found a scalar"));
    };
    let half = cx.b.dims(x)[last].floor_div(&2.into());
    one(rounding_once(cx.b, x, |b, x| {
        let sum = plus_bias(b, x, bias)?;
        let left = slice(b, sum, last, &0.into(), &half)?;
        let right = slice(b, sum, last, &half, &half)?;
        let gate = exact_gelu(b, right)?;
        b.mul(left, gate)
    }))
}

/// Softmax of the sum with a mask that broadcasts, over an axis and all after it.
fn bias_softmax(cx: &mut Context<'_>) -> Lowered {
    let (x, bias) = (cx.input(0)?, cx.input(1)?);
    let rank = cx.b.rank(x);
    let first = cx.axis(cx.int_or("axis", 1)?, rank)?;
    let axes: Vec<usize> = (first..rank).collect();
    one(rounding_once(cx.b, x, |b, x| {
        let sum = plus_bias(b, x, bias)?;
        softmax(b, sum, &axes)
    }))
}
