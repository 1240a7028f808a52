//! Convolutions and matrix products fused with the ops that follow them.

use super::channels_last::{from_channels_last, images, to_channels_last};
use super::operator;
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::formula::Formula;
use crate::ops::like::like;
use crate::ops::pieces::{loops, scale};
use crate::ops::product::matmul::product;
use crate::ops::spatial::conv::{correlate, per_channel};
use irc_tl::{Binary, Compute, Scalar, Unary, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("FusedConv", |cx| conv(cx, false)),
    operator("FusedGemm", gemm),
    operator("FusedMatMul", matmul),
    operator("FusedMatMulActivation", |cx| {
        let result = matmul(cx)?;
        activated_result(cx, result)
    }),
    operator("GemmFastGelu", |cx| {
        let (x, w) = (cx.input(0)?, cx.input(1)?);
        let mut result = product(cx.b, x, w)?;
        if let Some(bias) = cx.optional(2) {
            result = cx.b.add(result, bias)?;
        }
        Ok(vec![cx.b.unary(Unary::Gelu, result)?])
    }),
    operator("NhwcFusedConv", |cx| conv(cx, true)),
    operator("SparseToDenseMatMul", matmul),
    operator("TransposeMatMul", matmul),
];

fn conv(cx: &mut Context<'_>, channels_last: bool) -> Lowered {
    let (mut x, w, mut added) = (cx.input(0)?, cx.input(1)?, cx.optional(3));
    if channels_last {
        x = images(cx, x)?;
        x = from_channels_last(cx.b, x)?;
        if let Some(given) = added {
            let given = images(cx, given)?;
            added = Some(from_channels_last(cx.b, given)?);
        }
    }
    let mut result = correlate(cx, x, w)?;
    if let Some(bias) = cx.optional(2) {
        let bias = per_channel(cx, bias, result)?;
        result = cx.b.binary(Binary::Add, result, bias)?;
    }
    if let Some(added) = added {
        result = cx.b.binary(Binary::Add, result, added)?;
    }
    let result = activated(cx, result)?;
    Ok(vec![if channels_last { to_channels_last(cx.b, result)? } else { result }])
}

fn gemm(cx: &mut Context<'_>) -> Lowered {
    let result = like(cx, "Gemm", 13)?;
    activated_result(cx, result)
}

fn activated_result(cx: &mut Context<'_>, results: Vec<ValueId>) -> Lowered {
    let first = results.first().copied();
    let first = first.ok_or_else(|| LowerError::invalid("expected a result"))?;
    Ok(vec![activated(cx, first)?])
}

/// Parameters of an activation: one list, or an attribute each.
fn parameters(cx: &Context<'_>) -> Result<Vec<f32>, LowerError> {
    if let Some(listed) = cx.floats("activation_params")? {
        return Ok(listed);
    }
    let mut found = vec![];
    for name in ["activation_alpha", "activation_beta"] {
        found.extend(cx.float(name)?);
    }
    Ok(found)
}

/// The elementwise function that the attribute `activation` names.
fn activated(cx: &mut Context<'_>, x: ValueId) -> Result<ValueId, LowerError> {
    let name = cx.string_or("activation", "")?;
    let given = parameters(cx)?;
    let parameter = |index: usize, default: Option<f64>| -> Result<f64, LowerError> {
        let found = given.get(index).copied().map(f64::from).or(default);
        let message = || format!("expected parameters of the activation {name}, found {given:?}");
        found.ok_or_else(|| LowerError::invalid(message()))
    };
    let dtype = cx.dtype(x);
    let number = |value: f64| Scalar::float(value, dtype);
    let element = || Scalar::load(0, loops(0..cx.b.rank(x)));
    let body = match name.as_str() {
        "" => return Ok(x),
        "Relu" => return Ok(cx.b.unary(Unary::Relu, x)?),
        "Tanh" => return Ok(cx.b.unary(Unary::Tanh, x)?),
        "Sigmoid" => return Ok(cx.b.unary(Unary::Sigmoid, x)?),
        "Elu" => {
            let below = element().unary(Unary::Exp) - number(1.0);
            let below = below * number(parameter(0, Some(1.0))?);
            element().lt(number(0.0)).select(below, element())
        }
        "LeakyRelu" => {
            let below = number(parameter(0, Some(0.01))?) * element();
            element().lt(number(0.0)).select(below, element())
        }
        "Clip" => element().max(number(parameter(0, None)?)).min(number(parameter(1, None)?)),
        "HardSigmoid" => {
            let (alpha, beta) = (parameter(0, Some(0.2))?, parameter(1, Some(0.5))?);
            let line = number(alpha) * element() + number(beta);
            line.max(number(0.0)).min(number(1.0))
        }
        "Softplus" => return Ok(crate::ops::activation::softplus(cx.b, x)?),
        "Softsign" => element() / (element().unary(Unary::Abs) + number(1.0)),
        "ThresholdedRelu" => {
            let above = number(parameter(0, Some(1.0))?).lt(element());
            above.select(element(), number(0.0))
        }
        other => {
            return Err(LowerError::unsupported(format!(
                "the activation {other} is not supported"
            )));
        }
    };
    Ok(cx.b.compute(Compute::map(cx.b.dims(x), body), &[x])?)
}

fn matmul(cx: &mut Context<'_>) -> Lowered {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    let x = transposed(cx, x, "transBatchA", "transA")?;
    let y = transposed(cx, y, "transBatchB", "transB")?;
    let result = product(cx.b, x, y)?;
    let alpha = f64::from(cx.float_or("alpha", 1.0)?);
    Ok(vec![scale(cx.b, result, alpha)?])
}

/// Moves the first dimension before the last, and then swaps the last two dimensions, where attributes request it.
fn transposed(
    cx: &mut Context<'_>,
    x: ValueId,
    batch: &str,
    swap: &str,
) -> Result<ValueId, LowerError> {
    let rank = cx.b.rank(x);
    let mut order: Vec<usize> = (0..rank).collect();
    if rank < 2 {
        return Ok(x);
    }
    if cx.int_or(batch, 0)? != 0 {
        order[..rank - 1].rotate_left(1);
    }
    if cx.int_or(swap, 0)? != 0 {
        order.swap(rank - 2, rank - 1);
    }
    Ok(cx.b.transpose(x, &order)?)
}
