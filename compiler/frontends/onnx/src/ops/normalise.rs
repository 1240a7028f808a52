//! Normalisation by statistics of the operand itself.

use super::formula::{Formula, rounding_once, widened};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{
    Binary, Builder, Built, Combine, Comparison, Compute, DType, Dim, Reduction, Relation, Scalar,
    Unary, ValueId,
};

pub(super) const OPERATORS: &[Operator] = &[
    // ONNX Runtime has it, and a simplified form, in every version of ONNX's operator set.
    Operator::new("LayerNormalization", &[1, 17], layer),
    Operator::new("SimplifiedLayerNormalization", &[1], root_mean_square),
    Operator::new("RMSNormalization", &[23], root_mean_square),
    Operator::new("InstanceNormalization", &[1, 6, 22], instance),
    Operator::new("GroupNormalization", &[18, 21], group),
    Operator::new("MeanVarianceNormalization", &[1, 9, 13], mean_variance),
    Operator::new("LpNormalization", &[1, 22], lp),
    Operator::new("LRN", &[1, 13], local_response),
];

/// The mean and the variance over axes, which are kept with extent 1, and the centred operand.
pub(super) struct Moments {
    pub mean: ValueId,
    pub variance: ValueId,
    pub centred: ValueId,
}

pub(super) fn moments(b: &mut Builder, x: ValueId, axes: &[usize]) -> Built<Moments> {
    let mean = b.mean_over(x, axes)?;
    let centred = b.sub(x, mean)?;
    let squares = b.mul(centred, centred)?;
    Ok(Moments { mean, variance: b.mean_over(squares, axes)?, centred })
}

/// `(x - mean) / sqrt(variance + epsilon)` over axes.
fn standardised(b: &mut Builder, x: ValueId, axes: &[usize], epsilon: f64) -> Built {
    let moments = moments(b, x, axes)?;
    let inverse = b.inverse_root(moments.variance, epsilon)?;
    b.mul(moments.centred, inverse)
}

fn epsilon(cx: &Context<'_>) -> Result<f64, LowerError> {
    Ok(f64::from(cx.float_or("epsilon", 1e-5)?))
}

/// The operand in the type in which statistics are computed: that of the attribute, or a wider one.
fn stashed(cx: &mut Context<'_>, x: ValueId) -> Result<(ValueId, DType), LowerError> {
    let stash = super::cast::element_type(cx, "stash_type")?.unwrap_or(DType::F32);
    let narrow = cx.dtype(x).size() < stash.size();
    Ok((if narrow { cx.b.cast(x, stash)? } else { x }, stash))
}

/// The axes starting at an attribute's.
fn last_axes(cx: &Context<'_>, x: ValueId) -> Result<Vec<usize>, LowerError> {
    let rank = cx.b.rank(x);
    Ok((cx.axis(cx.int_or("axis", -1)?, rank)?..rank).collect())
}

fn layer(cx: &mut Context<'_>) -> Lowered {
    let (x, scale, bias) = (cx.input(0)?, cx.input(1)?, cx.optional(2));
    let (axes, epsilon) = (last_axes(cx, x)?, epsilon(cx)?);
    let (wide, stash) = stashed(cx, x)?;
    let normal = layer_over(cx.b, wide, [Some(scale), bias], &axes, epsilon)?;
    // ONNX Runtime's own version, in operator sets before 17, has a type of its own for scale and result.
    let result = cx.b.cast(normal.result, cx.dtype(scale))?;
    Ok(vec![result, cx.b.cast(normal.mean, stash)?, cx.b.cast(normal.inverse, stash)?])
}

/// A normalised value, the mean, and the reciprocal of the standard deviation.
pub(super) struct Normal {
    pub result: ValueId,
    pub mean: ValueId,
    pub inverse: ValueId,
}

/// `(x - mean) / sqrt(variance + epsilon) * scale + bias` over axes, in the type of `x`.
pub(super) fn layer_over(
    b: &mut Builder,
    x: ValueId,
    [scale, bias]: [Option<ValueId>; 2],
    axes: &[usize],
    epsilon: f64,
) -> Built<Normal> {
    let moments = moments(b, x, axes)?;
    let inverse = b.inverse_root(moments.variance, epsilon)?;
    let mut result = b.mul(moments.centred, inverse)?;
    if let Some(scale) = scale {
        result = scaled(b, result, scale)?;
    }
    if let Some(bias) = bias {
        let bias = b.cast(bias, b.dtype(result))?;
        result = b.add(result, bias)?;
    }
    Ok(Normal { result, mean: moments.mean, inverse })
}

/// `x / sqrt(mean(x^2) + epsilon) * scale` over axes, in the type of `x`; and the factor before the scale.
pub(super) fn root_mean_square_over(
    b: &mut Builder,
    x: ValueId,
    scale: ValueId,
    axes: &[usize],
    epsilon: f64,
) -> Built<[ValueId; 2]> {
    let squares = b.mul(x, x)?;
    let mean = b.mean_over(squares, axes)?;
    let inverse = b.inverse_root(mean, epsilon)?;
    let normal = b.mul(x, inverse)?;
    Ok([scaled(b, normal, scale)?, inverse])
}

/// The normalised value times its scale, in the type of the statistics: rounded once, at the end.
fn scaled(b: &mut Builder, normal: ValueId, scale: ValueId) -> Built {
    let scale = b.cast(scale, b.dtype(normal))?;
    b.mul(normal, scale)
}

fn root_mean_square(cx: &mut Context<'_>) -> Lowered {
    let (x, scale) = (cx.input(0)?, cx.input(1)?);
    let (axes, epsilon) = (last_axes(cx, x)?, epsilon(cx)?);
    let (wide, stash) = stashed(cx, x)?;
    let [result, inverse] = root_mean_square_over(cx.b, wide, scale, &axes, epsilon)?;
    Ok(vec![cx.b.cast(result, cx.dtype(scale))?, cx.b.cast(inverse, stash)?])
}

/// `x * scale + bias` with one element per channel, which is axis 1.
fn per_channel(b: &mut Builder, x: ValueId, scale: ValueId, bias: ValueId) -> Built {
    let rank = b.rank(x);
    let (scale, bias) = (widened(b, scale)?, widened(b, bias)?);
    let (scale, bias) = (b.along(scale, 1, rank)?, b.along(bias, 1, rank)?);
    let scaled = b.mul(x, scale)?;
    b.add(scaled, bias)
}

fn needs_channels(cx: &Context<'_>, x: ValueId) -> Result<(), LowerError> {
    if cx.b.rank(x) >= 2 {
        return Ok(());
    }
    Err(LowerError::invalid(format!("expected a batch of channels, found {}", cx.ty(x))))
}

fn instance(cx: &mut Context<'_>) -> Lowered {
    let (x, scale, bias) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    needs_channels(cx, x)?;
    let epsilon = epsilon(cx)?;
    one(rounding_once(cx.b, x, |b, x| {
        let axes: Vec<usize> = (2..b.rank(x)).collect();
        let normal = standardised(b, x, &axes, epsilon)?;
        per_channel(b, normal, scale, bias)
    }))
}

/// Scale and bias are per group before version 21, then per channel.
fn group(cx: &mut Context<'_>) -> Lowered {
    let (x, scale, bias) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    needs_channels(cx, x)?;
    let epsilon = epsilon(cx)?;
    let groups = cx.int("num_groups")?.ok_or_else(|| cx.missing("num_groups"))?;
    if groups < 1 {
        return Err(LowerError::invalid(format!("expected at least one group, found {groups}")));
    }
    let per_group = cx.version < 21;
    Ok(vec![grouped(cx, x, [scale, bias], groups, epsilon, per_group)?])
}

/// The normalisation of groups of channels, which are axis 1, with a scale and a bias per channel or per group.
pub(super) fn grouped(
    cx: &mut Context<'_>,
    x: ValueId,
    [scale, bias]: [ValueId; 2],
    groups: i64,
    epsilon: f64,
    per_group: bool,
) -> Result<ValueId, LowerError> {
    let (dims, groups, dtype) = (cx.b.dims(x), Dim::Known(groups), cx.dtype(x));
    let rest = dims[1].modulo(&groups);
    let message = format!("expected channels in {groups} groups of one size");
    cx.b.require(&rest, Relation::Equal, &0.into(), &message)?;
    let (wide, _) = stashed(cx, x)?;
    let mut grouped = vec![dims[0].clone(), groups.clone(), dims[1].floor_div(&groups)];
    grouped.extend_from_slice(&dims[2..]);
    let wide = cx.b.reshape(wide, &grouped)?;
    let axes: Vec<usize> = (2..grouped.len()).collect();
    let mut normal = standardised(cx.b, wide, &axes, epsilon)?;
    if per_group {
        normal = per_channel(cx.b, normal, scale, bias)?;
    }
    let mut result = cx.b.reshape(normal, &dims)?;
    if !per_group {
        result = per_channel(cx.b, result, scale, bias)?;
    }
    Ok(cx.b.cast(result, dtype)?)
}

/// The first version has two flags instead of axes.
fn mean_variance(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let rank = cx.b.rank(x);
    let (axes, scaled) = if cx.version < 9 {
        let across = cx.int_or("across_channels", 0)? != 0;
        let axes = (if across { 1 } else { 2 }..rank).collect();
        (axes, cx.int_or("normalize_variance", 1)? != 0)
    } else {
        let axes = cx.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
        (cx.axes(&axes, rank)?, true)
    };
    one(rounding_once(cx.b, x, |b, x| {
        let moments = moments(b, x, &axes)?;
        if !scaled {
            return Ok(moments.centred);
        }
        let deviation = b.unary(Unary::Sqrt, moments.variance)?;
        let deviation = b.plus(deviation, 1e-9)?;
        b.div(moments.centred, deviation)
    }))
}

/// Zero if the norm is zero.
fn lp(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let axis = cx.axis(cx.int_or("axis", -1)?, cx.b.rank(x))?;
    let p = cx.int_or("p", 2)?;
    if !matches!(p, 1 | 2) {
        return Err(LowerError::invalid(format!("expected `p` 1 or 2, found {p}")));
    }
    one(rounding_once(cx.b, x, |b, x| {
        let size = if p == 1 { b.unary(Unary::Abs, x)? } else { b.mul(x, x)? };
        let sum = b.reduce(Reduction::Sum, size, &[axis], true)?;
        let norm = if p == 1 { sum } else { b.unary(Unary::Sqrt, sum)? };
        let nothing = b.compare_number(Comparison::Eq, norm, 0.0)?;
        let unit = b.number(1.0, x)?;
        let norm = b.select(nothing, unit, norm)?;
        b.div(x, norm)
    }))
}

/// `x / (bias + alpha / size * sum x^2)^beta`, the sum over a window of channels.
fn local_response(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    needs_channels(cx, x)?;
    let size = cx.int("size")?.ok_or_else(|| cx.missing("size"))?;
    if size < 1 {
        return Err(LowerError::invalid(format!("expected a window of 1 or more, found {size}")));
    }
    let number = |name, default| cx.float_or(name, default).map(f64::from);
    let (alpha, beta, bias) = (number("alpha", 1e-4)?, number("beta", 0.75)?, number("bias", 1.0)?);
    one(rounding_once(cx.b, x, |b, x| {
        let sum = window_of_squares(b, x, size)?;
        let scaled = b.times(sum, alpha / size as f64)?;
        let base = b.plus(scaled, bias)?;
        let exponent = b.number(beta, x)?;
        let power = b.binary(Binary::Pow, base, exponent)?;
        b.div(x, power)
    }))
}

/// Sums of squares over channels from `(size - 1) / 2` before to `size / 2` after.
fn window_of_squares(b: &mut Builder, x: ValueId, size: i64) -> Built {
    let dims = b.dims(x);
    let channel = Scalar::Loop(1) + Scalar::Loop(dims.len()) - Scalar::index((size - 1) / 2);
    let inside = channel.clone().ge(Scalar::index(0));
    let inside = inside.and(channel.clone().lt(Scalar::Size(dims[1].clone())));
    let mut at: Vec<Scalar> = (0..dims.len()).map(Scalar::Loop).collect();
    at[1] = channel;
    let element = Scalar::load(0, at);
    let square = element.clone() * element;
    let body = inside.select(square, Scalar::number(0, b.dtype(x)));
    b.compute(Compute::reduce(dims, Combine::Sum, [Dim::Known(size)], body), &[x])
}
