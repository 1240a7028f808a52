//! Activation functions.

use super::formula::{Formula, rounding_once, widened};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Builder, Built, Comparison, DType, Unary, ValueId};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Relu", &[1, 6, 13, 14], |cx| {
        let x = cx.input(0)?;
        one(cx.b.unary(Unary::Relu, x))
    }),
    Operator::new("Sigmoid", &[1, 6, 13], |cx| {
        let x = cx.input(0)?;
        one(cx.b.unary(Unary::Sigmoid, x))
    }),
    Operator::new("HardSigmoid", &[1, 6, 22], |cx| {
        let (alpha, beta) = (cx.float_or("alpha", 0.2)?, cx.float_or("beta", 0.5)?);
        map(cx, |b, x| hard_sigmoid(b, x, f64::from(alpha), f64::from(beta)))
    }),
    Operator::new("HardSwish", &[14, 22], |cx| {
        map(cx, |b, x| {
            let gate = hard_sigmoid(b, x, 1.0 / 6.0, 0.5)?;
            b.mul(x, gate)
        })
    }),
    Operator::new("LeakyRelu", &[1, 6, 16], |cx| {
        let alpha = f64::from(cx.float_or("alpha", 0.01)?);
        map(cx, |b, x| {
            let scaled = b.times(x, alpha)?;
            below_zero(b, x, scaled)
        })
    }),
    Operator::new("PRelu", &[1, 6, 7, 9, 16], parametric_relu),
    Operator::new("Elu", &[1, 6, 22], |cx| {
        let alpha = f64::from(cx.float_or("alpha", 1.0)?);
        map(cx, |b, x| {
            let bent = exponential(b, x, alpha)?;
            below_zero(b, x, bent)
        })
    }),
    Operator::new("Selu", &[1, 6, 22], scaled_elu),
    Operator::new("Celu", &[12, 28], |cx| {
        let alpha = f64::from(cx.float_or("alpha", 1.0)?);
        map(cx, |b, x| {
            let scale = b.number(alpha, x)?;
            let scaled = b.div(x, scale)?;
            let bent = exponential(b, scaled, alpha)?;
            below_zero(b, x, bent)
        })
    }),
    Operator::new("ThresholdedRelu", &[1, 10, 22], |cx| {
        let alpha = f64::from(cx.float_or("alpha", 1.0)?);
        map(cx, |b, x| {
            let above = b.compare_number(Comparison::Gt, x, alpha)?;
            let zero = b.number(0.0, x)?;
            b.select(above, x, zero)
        })
    }),
    Operator::new("Softplus", &[1, 22], |cx| map(cx, softplus)),
    Operator::new("Softsign", &[1, 22], |cx| {
        map(cx, |b, x| {
            let size = b.unary(Unary::Abs, x)?;
            let above = b.plus(size, 1.0)?;
            b.div(x, above)
        })
    }),
    Operator::new("Shrink", &[9], shrink),
    Operator::new("Swish", &[24], |cx| {
        let alpha = f64::from(cx.float_or("alpha", 1.0)?);
        map(cx, |b, x| swish(b, x, alpha))
    }),
    Operator::new("SwiGLU", &[28], |cx| {
        let alpha = f64::from(cx.float_or("alpha", 1.0)?);
        let other = cx.input(1)?;
        map(cx, |b, x| {
            let other = widened(b, other)?;
            let gate = swish(b, x, alpha)?;
            b.mul(gate, other)
        })
    }),
    Operator::new("Mish", &[18, 22], |cx| {
        map(cx, |b, x| {
            let soft = softplus(b, x)?;
            let gate = b.unary(Unary::Tanh, soft)?;
            b.mul(x, gate)
        })
    }),
    Operator::new("Gelu", &[20], gelu),
];

fn map(cx: &mut Context<'_>, formula: impl FnOnce(&mut Builder, ValueId) -> Built) -> Lowered {
    let x = cx.input(0)?;
    one(rounding_once(cx.b, x, formula))
}

/// `other` where `x` is below zero, else `x`.
fn below_zero(b: &mut Builder, x: ValueId, other: ValueId) -> Built {
    let below = b.compare_number(Comparison::Lt, x, 0.0)?;
    b.select(below, other, x)
}

/// `x / (1 + e^(-alpha x))`.
pub(super) fn swish(b: &mut Builder, x: ValueId, alpha: f64) -> Built {
    let scaled = b.times(x, alpha)?;
    let gate = b.unary(Unary::Sigmoid, scaled)?;
    b.mul(x, gate)
}

/// `alpha (e^x - 1)`.
fn exponential(b: &mut Builder, x: ValueId, alpha: f64) -> Built {
    let power = b.unary(Unary::Exp, x)?;
    let less = b.plus(power, -1.0)?;
    b.times(less, alpha)
}

fn hard_sigmoid(b: &mut Builder, x: ValueId, alpha: f64, beta: f64) -> Built {
    let line = b.times(x, alpha)?;
    let line = b.plus(line, beta)?;
    let (zero, unit) = (b.number(0.0, x)?, b.number(1.0, x)?);
    let bounded = b.max(line, zero)?;
    b.min(bounded, unit)
}

/// `log(1 + e^x)`, as `max(x, 0) + log(1 + e^-|x|)`, which does not overflow.
pub(super) fn softplus(b: &mut Builder, x: ValueId) -> Built {
    let size = b.unary(Unary::Abs, x)?;
    let negative = b.unary(Unary::Neg, size)?;
    let power = b.unary(Unary::Exp, negative)?;
    let log = b.unary(Unary::Log1p, power)?;
    let ramp = b.unary(Unary::Relu, x)?;
    b.add(ramp, log)
}

/// The slope broadcasts to `x`; before version 7 it is one number, or one per channel.
fn parametric_relu(cx: &mut Context<'_>) -> Lowered {
    let (x, mut slope) = (cx.input(0)?, cx.input(1)?);
    let rank = cx.b.rank(x);
    if cx.version < 7 && cx.b.rank(slope) == 1 && rank > 1 {
        let shared = cx.b.dims(slope)[0].is(1);
        slope = if shared { cx.b.reshape(slope, &[])? } else { cx.b.along(slope, 1, rank)? };
    }
    let dims = cx.b.dims(x);
    if cx.b.rank(slope) > rank {
        let (x, slope) = (cx.ty(x), cx.ty(slope));
        return Err(LowerError::invalid(format!(
            "expected a slope that broadcasts to {x}, found {slope}"
        )));
    }
    let slope = if cx.b.rank(slope) == 0 { slope } else { cx.b.broadcast(slope, &dims)? };
    let scaled = cx.b.mul(x, slope)?;
    one(below_zero(cx.b, x, scaled))
}

fn scaled_elu(cx: &mut Context<'_>) -> Lowered {
    // The defaults have more digits from version 6 on.
    let (alpha, gamma) = if cx.version < 6 { (1.6732, 1.0507) } else { (1.673_263_2, 1.050_701) };
    let alpha = f64::from(cx.float_or("alpha", alpha)?);
    let gamma = f64::from(cx.float_or("gamma", gamma)?);
    map(cx, |b, x| {
        let bent = exponential(b, x, alpha)?;
        let joined = below_zero(b, x, bent)?;
        b.times(joined, gamma)
    })
}

/// Computes an operator with float attributes on integers as floats.
fn shrink(cx: &mut Context<'_>) -> Lowered {
    let (bias, bound) =
        (f64::from(cx.float_or("bias", 0.0)?), f64::from(cx.float_or("lambd", 0.5)?));
    let x = cx.input(0)?;
    let dtype = cx.dtype(x);
    let wide = if dtype.is_float() { x } else { cx.b.cast(x, DType::F64)? };
    let result = rounding_once(cx.b, wide, |b, x| {
        let low = b.compare_number(Comparison::Lt, x, -bound)?;
        let high = b.compare_number(Comparison::Gt, x, bound)?;
        let (up, down, zero) = (b.plus(x, bias)?, b.plus(x, -bias)?, b.number(0.0, x)?);
        let upper = b.select(high, down, zero)?;
        b.select(low, up, upper)
    })?;
    one(cx.b.cast(result, dtype))
}

/// `x / 2 (1 + erf(x / sqrt 2))`.
pub(super) fn exact_gelu(b: &mut Builder, x: ValueId) -> Built {
    let scaled = b.times(x, std::f64::consts::FRAC_1_SQRT_2)?;
    let erf = b.unary(Unary::Erf, scaled)?;
    let above = b.plus(erf, 1.0)?;
    let half = b.times(x, 0.5)?;
    b.mul(half, above)
}

fn gelu(cx: &mut Context<'_>) -> Lowered {
    match cx.string_or("approximate", "none")?.as_str() {
        "tanh" => {
            let x = cx.input(0)?;
            one(cx.b.unary(Unary::Gelu, x))
        }
        "none" => map(cx, exact_gelu),
        other => Err(LowerError::word("approximate", &["none", "tanh"], other)),
    }
}
