//! Batch normalisation.

use super::formula::{Formula, widened};
use super::normalise::{Moments, moments};
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use irc_tl::{Builder, Built, DType, Dim, ValueId};

pub(super) const OPERATORS: &[Operator] =
    &[Operator::new("BatchNormalization", &[1, 6, 7, 9, 14, 15], batch)];

/// With given statistics, or in training with those of the batch.
///
/// Statistics are per channel, which is axis 1; before version 9 the attribute `spatial` may request
/// one per element of a sample.
fn batch(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let (dtype, rank) = (cx.dtype(x), cx.b.rank(x));
    let spatial = cx.version >= 9 || cx.int_or("spatial", 1)? != 0;
    let epsilon = f64::from(cx.float_or("epsilon", 1e-5)?);
    let training = is_training(cx)?;
    let wide = widened(cx.b, x)?;
    let mut given = vec![];
    for index in 1..5 {
        let value = cx.input(index)?;
        let value = widened(cx.b, value)?;
        // Statistics may have a wider type than the operand, but are used in its type.
        let value = cx.b.cast(value, cx.dtype(wide))?;
        given.push(cx.b.reshape(value, &layout(cx.b, x, spatial))?);
    }
    let [scale, bias, mean, variance] = given[..] else {
        return Err(LowerError::invalid("expected five inputs"));
    };
    if !training {
        let result = scaled(cx.b, wide, [scale, bias, mean, variance], epsilon)?;
        return Ok(vec![cx.b.cast(result, dtype)?]);
    }
    let axes: Vec<usize> = (0..rank).filter(|axis| *axis == 0 || spatial && *axis > 1).collect();
    let batch = moments(cx.b, wide, &axes)?;
    let result = normalised(cx.b, &batch, scale, bias, epsilon)?;
    let momentum = f64::from(cx.float_or("momentum", 0.9)?);
    let mut results = vec![cx.b.cast(result, dtype)?];
    for (index, (old, new)) in [(3, (mean, batch.mean)), (4, (variance, batch.variance))] {
        let kept = cx.b.times(old, momentum)?;
        let added = cx.b.times(new, 1.0 - momentum)?;
        let running = cx.b.add(kept, added)?;
        results.push(like_input(cx, index, running)?);
    }
    for (index, of_batch) in [(3, batch.mean), (4, batch.variance)] {
        results.push(like_input(cx, index, of_batch)?);
    }
    Ok(results)
}

/// Training is an attribute before version 7 and from 14 on; in between it is implied by outputs that
/// only training has.
fn is_training(cx: &Context<'_>) -> Result<bool, LowerError> {
    Ok(match cx.version {
        ..7 => cx.int_or("is_test", 0)? == 0 && cx.output_count() > 1,
        7..14 => (1..5).any(|output| cx.is_used(output)),
        _ => cx.int_or("training_mode", 0)? != 0,
    })
}

/// Extents of statistics that broadcast with the operand.
fn layout(b: &Builder, x: ValueId, spatial: bool) -> Vec<Dim> {
    let dims = b.dims(x).into_iter().enumerate();
    let keep = |axis: usize| axis == 1 || !spatial && axis > 1;
    dims.map(|(axis, dim)| if keep(axis) { dim } else { Dim::Known(1) }).collect()
}

/// `x * factor + offset` with `factor = scale / sqrt(variance + epsilon)` and
/// `offset = bias - mean * factor`, which are constants if the parameters are.
fn scaled(b: &mut Builder, x: ValueId, parameters: [ValueId; 4], epsilon: f64) -> Built {
    let [scale, bias, mean, variance] = parameters;
    let inverse = b.inverse_root(variance, epsilon)?;
    let factor = b.mul(scale, inverse)?;
    let moved = b.mul(mean, factor)?;
    let offset = b.sub(bias, moved)?;
    let scaled = b.mul(x, factor)?;
    b.add(scaled, offset)
}

/// The same with the statistics of the batch; the operand is centred first, as its mean may be far from 0.
fn normalised(
    b: &mut Builder,
    batch: &Moments,
    scale: ValueId,
    bias: ValueId,
    epsilon: f64,
) -> Built {
    let inverse = b.inverse_root(batch.variance, epsilon)?;
    let factor = b.mul(scale, inverse)?;
    let scaled = b.mul(batch.centred, factor)?;
    b.add(scaled, bias)
}

/// A statistic in the shape and type of the corresponding input.
fn like_input(cx: &mut Context<'_>, index: usize, value: ValueId) -> Result<ValueId, LowerError> {
    let given = cx.input(index)?;
    let (dims, dtype): (Vec<Dim>, DType) = (cx.b.dims(given), cx.dtype(given));
    let value = cx.b.reshape(value, &dims)?;
    Ok(cx.b.cast(value, dtype)?)
}
