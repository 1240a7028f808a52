//! Convolutions and matrix products fused with the ops that follow them.

use super::DOMAIN;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::pieces::scale;
use crate::ops::product::matmul::product;
use crate::ops::spatial::conv::{correlate, per_channel};
use irc_tl::{Binary, Compute, Scalar, Unary, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("FusedConv", &[1], conv).in_domain(DOMAIN),
    Operator::new("FusedMatMul", &[1], matmul).in_domain(DOMAIN),
];

fn conv(cx: &mut Context<'_>) -> Lowered {
    let (x, w) = (cx.input(0)?, cx.input(1)?);
    let mut result = correlate(cx, x, w)?;
    if let Some(bias) = cx.optional(2) {
        let bias = per_channel(cx, bias, result)?;
        result = cx.b.binary(Binary::Add, result, bias)?;
    }
    if let Some(added) = cx.optional(3) {
        result = cx.b.binary(Binary::Add, result, added)?;
    }
    Ok(vec![activated(cx, result)?])
}

/// The elementwise function that the attribute `activation` names.
fn activated(cx: &mut Context<'_>, x: ValueId) -> Result<ValueId, LowerError> {
    let name = cx.string_or("activation", "")?;
    let parameters = cx.floats("activation_params")?.unwrap_or_default();
    let parameter = |index: usize| -> Result<f64, LowerError> {
        let found = parameters.get(index).copied().map(f64::from);
        let message = || format!("expected activation_params of {name}, found {parameters:?}");
        found.ok_or_else(|| LowerError::invalid(message()))
    };
    let dtype = cx.dtype(x);
    let number = |value: f64| Scalar::float(value, dtype);
    let element = || Scalar::load(0, crate::ops::pieces::loops(0..cx.b.rank(x)));
    let body = match name.as_str() {
        "" => return Ok(x),
        "Relu" => return Ok(cx.b.unary(Unary::Relu, x)?),
        "Tanh" => return Ok(cx.b.unary(Unary::Tanh, x)?),
        "Sigmoid" => return Ok(cx.b.unary(Unary::Sigmoid, x)?),
        "LeakyRelu" => {
            let below = number(parameter(0)?) * element();
            element().lt(number(0.0)).select(below, element())
        }
        "Clip" => element().max(number(parameter(0)?)).min(number(parameter(1)?)),
        "HardSigmoid" => {
            let line = number(parameter(0)?) * element() + number(parameter(1)?);
            line.max(number(0.0)).min(number(1.0))
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
    for name in ["transBatchA", "transBatchB"] {
        if cx.int_or(name, 0)? != 0 {
            return Err(LowerError::unsupported(format!("{name} is not supported")));
        }
    }
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    let x = transposed(cx, x, "transA")?;
    let y = transposed(cx, y, "transB")?;
    let result = product(cx.b, x, y)?;
    let alpha = f64::from(cx.float_or("alpha", 1.0)?);
    one(scale(cx.b, result, alpha))
}

/// Swaps the last two dimensions if the attribute requests it.
fn transposed(cx: &mut Context<'_>, x: ValueId, name: &str) -> Result<ValueId, LowerError> {
    let rank = cx.b.rank(x);
    if cx.int_or(name, 0)? == 0 || rank < 2 {
        return Ok(x);
    }
    let mut swap: Vec<usize> = (0..rank).collect();
    swap.swap(rank - 2, rank - 1);
    Ok(cx.b.transpose(x, &swap)?)
}
