//! Operators that ONNX has withdrawn; they occur in old files.

use super::formula::Formula;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Binary, Unary};

/// The first version of the operator set without them.
const GONE: i64 = 10;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Affine", &[1], |cx| linear(cx, 1.0, 0.0)).removed_in(GONE),
    Operator::new("Scale", &[1], |cx| {
        let (x, scale) = (cx.input(0)?, cx.float_or("scale", 1.0)?);
        one(cx.b.times(x, f64::from(scale)))
    })
    .removed_in(GONE),
    Operator::new("ImageScaler", &[1], image_scaler).removed_in(GONE),
    Operator::new("ScaledTanh", &[1], |cx| {
        // alpha * tanh(beta * x)
        let (alpha, beta) = (cx.float_or("alpha", 1.0)?, cx.float_or("beta", 1.0)?);
        let x = cx.input(0)?;
        let scaled = cx.b.times(x, f64::from(beta))?;
        let bent = cx.b.unary(Unary::Tanh, scaled)?;
        one(cx.b.times(bent, f64::from(alpha)))
    })
    .removed_in(GONE),
    Operator::new("ParametricSoftplus", &[1], |cx| {
        // alpha * log(1 + e^(beta * x))
        let (alpha, beta) = (cx.float_or("alpha", 1.0)?, cx.float_or("beta", 1.0)?);
        let x = cx.input(0)?;
        let scaled = cx.b.times(x, f64::from(beta))?;
        let soft = super::activation::softplus(cx.b, scaled)?;
        one(cx.b.times(soft, f64::from(alpha)))
    })
    .removed_in(GONE),
];

/// `alpha * x + beta`.
fn linear(cx: &mut Context<'_>, alpha: f32, beta: f32) -> Lowered {
    let x = cx.input(0)?;
    let (alpha, beta) = (cx.float_or("alpha", alpha)?, cx.float_or("beta", beta)?);
    let scaled = cx.b.times(x, f64::from(alpha))?;
    one(cx.b.plus(scaled, f64::from(beta)))
}

/// `scale * x + bias`, with a bias for each channel, which is axis 1.
fn image_scaler(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let scaled = cx.b.times(x, f64::from(cx.float_or("scale", 1.0)?))?;
    let bias = cx.floats("bias")?.unwrap_or_default();
    if bias.is_empty() {
        return Ok(vec![scaled]);
    }
    if cx.b.rank(x) < 2 {
        return Err(LowerError::invalid(format!("expected an image, found {}", cx.ty(x))));
    }
    let bias = irc_tl::Tensor::from_values([bias.len() as i64], &bias)
        .map_err(|error| LowerError::invalid(error.to_string()))?;
    let bias = cx.b.tensor(&bias);
    let bias = cx.b.cast(bias, cx.dtype(x))?;
    let bias = cx.b.along(bias, 1, cx.b.rank(x))?;
    one(cx.b.binary(Binary::Add, scaled, bias))
}
