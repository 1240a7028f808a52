//! Normalisation of the sum of a value and a residual.

use super::channels_last::{from_channels_last, to_channels_last};
use super::operator;
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::activation::swish;
use crate::ops::formula::{Formula, rounding_once, widened};
use crate::ops::normalise::{grouped, layer_over, root_mean_square_over};
use irc_tl::ValueId;

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("GroupNorm", |cx| group(cx, None)),
    operator("SkipGroupNorm", skip_group),
    operator("SkipLayerNormalization", skip_layer),
    operator("SkipSimplifiedLayerNormalization", skip_simplified),
];

/// The default of the attribute `epsilon` where it does not have ONNX's.
pub(super) fn small_epsilon(cx: &Context<'_>) -> Result<f64, LowerError> {
    Ok(f64::from(cx.float_or("epsilon", 1e-12)?))
}

/// The sum of inputs 0, 1 and possibly a bias, in at least `f32`.
fn with_residual(cx: &mut Context<'_>, bias: usize) -> Result<ValueId, LowerError> {
    let (x, skip, bias) = (cx.input(0)?, cx.input(1)?, cx.optional(bias));
    let dims = cx.b.dims(x);
    if dims.is_empty() {
        return Err(LowerError::invalid("expected a row to normalise, found a scalar"));
    }
    let skip = cx.b.broadcast(skip, &dims)?;
    let mut sum = widened(cx.b, x)?;
    for added in [Some(skip), bias].into_iter().flatten() {
        let added = widened(cx.b, added)?;
        sum = cx.b.add(sum, added)?;
    }
    Ok(sum)
}

fn skip_layer(cx: &mut Context<'_>) -> Lowered {
    let (scale, shift, epsilon) = (cx.input(2)?, cx.optional(3), small_epsilon(cx)?);
    let sum = with_residual(cx, 4)?;
    let last = [cx.b.rank(sum) - 1];
    let normal = layer_over(cx.b, sum, [Some(scale), shift], &last, epsilon)?;
    let dtype = cx.dtype(cx.input(0)?);
    let result = cx.b.cast(normal.result, dtype)?;
    Ok(vec![result, normal.mean, normal.inverse, cx.b.cast(sum, dtype)?])
}

fn skip_simplified(cx: &mut Context<'_>) -> Lowered {
    let (scale, epsilon) = (cx.input(2)?, small_epsilon(cx)?);
    let sum = with_residual(cx, 3)?;
    let last = [cx.b.rank(sum) - 1];
    let [result, inverse] = root_mean_square_over(cx.b, sum, scale, &last, epsilon)?;
    // There is no mean; the output exists for the other operator's sake.
    let zero = cx.b.number(0.0, inverse)?;
    let mean = cx.b.mul(inverse, zero)?;
    let dtype = cx.dtype(cx.input(0)?);
    Ok(vec![cx.b.cast(result, dtype)?, mean, inverse, cx.b.cast(sum, dtype)?])
}

/// Groups of channels, which are last by default; of `sum` or of input 0.
fn group(cx: &mut Context<'_>, sum: Option<ValueId>) -> Lowered {
    let (scale, shift) = (cx.input(1)?, cx.input(2)?);
    let x = match sum {
        Some(sum) => sum,
        None => cx.input(0)?,
    };
    let groups = cx.int("groups")?.filter(|groups| *groups > 0);
    let groups = groups.ok_or_else(|| LowerError::invalid("expected `groups` of at least 1"))?;
    let epsilon = f64::from(cx.float_or("epsilon", 1e-5)?);
    let last = cx.int_or("channels_last", 1)? != 0;
    if cx.b.rank(x) < 3 {
        return Err(LowerError::invalid(format!("expected images, found {}", cx.ty(x))));
    }
    let x = if last { from_channels_last(cx.b, x)? } else { x };
    let normal = grouped(cx, x, [scale, shift], groups, epsilon, false)?;
    let result = match cx.int_or("activation", 0)? {
        0 => normal,
        1 => rounding_once(cx.b, normal, |b, x| swish(b, x, 1.0))?,
        other => {
            return Err(LowerError::invalid(format!("expected activation 0 or 1, found {other}")));
        }
    };
    Ok(vec![if last { to_channels_last(cx.b, result)? } else { result }])
}

/// The residual of images may be `[batch, channels]`.
fn skip_group(cx: &mut Context<'_>) -> Lowered {
    let (x, mut skip, bias) = (cx.input(0)?, cx.input(3)?, cx.optional(4));
    let last = cx.int_or("channels_last", 1)? != 0;
    let (rank, own) = (cx.b.rank(x), cx.b.dims(skip));
    if own.len() == 2 && rank > 2 {
        let mut dims = own;
        let place = if last { 1 } else { 2 };
        (2..rank).for_each(|_| dims.insert(place, 1.into()));
        skip = cx.b.reshape(skip, &dims)?;
    }
    let channels = if last { rank.saturating_sub(1) } else { 1 };
    let bias = bias.map(|bias| cx.b.along(bias, channels, rank)).transpose()?;
    let sum = rounding_once(cx.b, x, |b, x| {
        let mut sum = x;
        for added in [Some(skip), bias].into_iter().flatten() {
            let added = widened(b, added)?;
            sum = b.add(sum, added)?;
        }
        Ok(sum)
    })?;
    let mut results = group(cx, Some(sum))?;
    results.push(sum);
    Ok(results)
}
