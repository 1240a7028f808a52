//! Convolutions of quantised integers.

use super::conv::{Correlation, correlate, per_channel};
use super::window::groups;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::pieces::{Outside, along};
use crate::ops::product::quantized::{
    centred, less, quantize, ratio, signed_weights, sums, unsigned, weights,
};
use irc_tl::{Binary, DType, Dim, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("ConvInteger", &[10], conv_integer),
    Operator::new("QLinearConv", &[10], conv_quantized),
];

fn conv_integer(cx: &mut Context<'_>) -> Lowered {
    let (x, w) = (cx.input(0)?, cx.input(1)?);
    let (x_zero, w_zero) = (cx.optional(2), cx.optional(3));
    Ok(vec![correlate_integers(cx, [x, w], [x_zero, w_zero], None)?])
}

fn conv_quantized(cx: &mut Context<'_>) -> Lowered {
    let [x, x_scale, x_zero] = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let [w, w_scale, w_zero] = [cx.input(3)?, cx.input(4)?, cx.input(5)?];
    let [y_scale, y_zero] = [cx.input(6)?, cx.input(7)?];
    let bias = cx.optional(8);
    let sum = correlate_integers(cx, [x, w], [Some(x_zero), Some(w_zero)], bias)?;
    let by = ratio(cx.b, x_scale, w_scale, y_scale)?;
    let by = per_channel(cx, by, sum)?;
    let sum = cx.b.cast(sum, DType::F32)?;
    let value = cx.b.binary(Binary::Mul, sum, by)?;
    let y_zero = cx.b.reshape(y_zero, &[])?;
    one(quantize(cx.b, value, y_zero))
}

/// Convolution of small integers minus their zero points, plus a bias, in `i32`; one zero point of the filters
/// may be given per filter.
fn correlate_integers(
    cx: &mut Context<'_>,
    values: [ValueId; 2],
    zeros: [Option<ValueId>; 2],
    bias: Option<ValueId>,
) -> Result<ValueId, LowerError> {
    let rank = cx.b.rank(values[1]);
    let zero = match zeros[1] {
        Some(zero) => Some(along(cx.b, zero, 0, rank)?),
        None => None,
    };
    let (sum, bias) = match correlate_bytes(cx, values, [zeros[0], zero], bias)? {
        Some(found) => found,
        None => (correlate_centred(cx, values, [zeros[0], zero])?, bias),
    };
    let Some(bias) = bias else { return Ok(sum) };
    let bias = per_channel(cx, bias, sum)?;
    Ok(cx.b.binary(Binary::Add, sum, bias)?)
}

/// Convolution of bytes with constant filters, and what is to be added to it for each filter: a bias minus the zero point of
/// the bytes times the sums of the filters. `None` if it has none.
///
/// If the filters minus their zero points do not fit in `i8`, the sums of the windows times what is left of the zero points are
/// subtracted.
fn correlate_bytes(
    cx: &mut Context<'_>,
    [x, w]: [ValueId; 2],
    [zero, w_zero]: [Option<ValueId>; 2],
    bias: Option<ValueId>,
) -> Result<Option<(ValueId, Option<ValueId>)>, LowerError> {
    let is_narrow = |value| matches!(cx.dtype(value), DType::I8 | DType::U8);
    let is_single = |value| cx.b.ty(value).elements().is(1);
    if !is_narrow(x) || !is_narrow(w) || !zero.is_none_or(is_single) {
        return Ok(None);
    }
    let filters = match weights(cx.b, w, w_zero)? {
        Some((w, elements)) => Some((w, elements, None)),
        None => match w_zero {
            Some(zero) if has_short_windows(cx, w)? => {
                let found = signed_weights(cx.b, w, zero)?;
                found.map(|(w, elements, rest)| (w, elements, Some(rest)))
            }
            _ => None,
        },
    };
    let Some((w, elements, rest)) = filters else { return Ok(None) };
    let zero = match zero {
        Some(zero) => Some(cx.b.reshape(zero, &[])?),
        None => None,
    };
    let (x, zero) = unsigned(cx.b, x, zero)?;
    let outside = match zero {
        None => Outside::Number(0),
        Some(zero) => match cx.b.constant_of(zero)? {
            Some(zero) => Outside::Number(zero.to_f64()[0] as i64),
            None => Outside::Value(cx.b.cast(zero, DType::U8)?),
        },
    };
    let convolution = Correlation::of(cx, x, w, outside)?;
    let mut sum = convolution.sums(cx)?;
    if let Some(rest) = rest {
        let windows = convolution.sums_of_windows(cx.b, zero)?;
        let windows = cx.b.cast(windows, DType::I32)?;
        let rest = per_channel(cx, rest, sum)?;
        let moved = cx.b.binary(Binary::Mul, windows, rest)?;
        sum = cx.b.binary(Binary::Sub, sum, moved)?;
    }
    let sums = sums(cx.b, &elements, 0)?;
    let bias = less(cx.b, bias, zero, sums)?;
    Ok(Some((sum, bias)))
}

/// Whether the sums of the windows of filters are exact in `f32`, and take less time than the convolution.
fn has_short_windows(cx: &Context<'_>, w: ValueId) -> Result<bool, LowerError> {
    const MIN_FILTERS: i64 = 4;
    // The sum of as many differences of bytes is exact, in any order.
    const MAX_TERMS: i64 = (1 << 24) / 255;
    let dims = cx.b.dims(w);
    let (filters, terms) = (dims.first().and_then(Dim::known), Dim::product(&dims[1..]).known());
    Ok(filters >= Some(MIN_FILTERS)
        && terms.is_some_and(|terms| terms <= MAX_TERMS)
        && groups(cx, "group")? == 1)
}

/// Convolution of small integers minus their zero points, in `i32`.
fn correlate_centred(
    cx: &mut Context<'_>,
    values: [ValueId; 2],
    zeros: [Option<ValueId>; 2],
) -> Result<ValueId, LowerError> {
    let x = centred(cx.b, values[0], zeros[0])?;
    let w = centred(cx.b, values[1], zeros[1])?;
    if !is_exact(cx, values[1], zeros[1])? {
        return correlate(cx, x, w);
    }
    // Convolutions of `f32` with such filters may be computed by Winograd's algorithm, which rounds.
    let taps = &cx.b.dims(w)[2..];
    let is_transformed = taps.len() == 2 && taps.iter().all(|size| size.is(3));
    let floats = match is_transformed && cx.int_or("group", 1)? == 1 {
        true => DType::F64,
        false => DType::F32,
    };
    let (x, w) = (cx.b.cast(x, floats)?, cx.b.cast(w, floats)?);
    let sums = correlate(cx, x, w)?;
    Ok(cx.b.cast(sums, DType::I32)?)
}

/// Whether all sums with constant filters of small integers, in any order, are exact in `f32`, in which they are
/// computed faster.
fn is_exact(cx: &Context<'_>, w: ValueId, zero: Option<ValueId>) -> Result<bool, LowerError> {
    // The difference of two integers of 8 bits, and the integers that `f32` has.
    const LARGEST: f64 = 255.0;
    const EXACT: f64 = (1 << 24) as f64;
    let (Some(filters), narrow) = (cx.b.constant_of(w)?, cx.dtype(w).size() == 1) else {
        return Ok(false);
    };
    let zeros = match zero {
        None => vec![0.0],
        Some(zero) => match cx.b.constant_of(zero)? {
            Some(zeros) => zeros.to_f64(),
            None => return Ok(false),
        },
    };
    let elements = filters.to_f64();
    let count = filters.shape().first().map_or(1, |count| *count as usize).max(1);
    let each = (elements.len() / count).max(1);
    let fits = |(index, filter): (usize, &[f64])| {
        let zero = zeros.get(index).or(zeros.first()).copied().unwrap_or(0.0);
        let total: f64 = filter.iter().map(|element| (element - zero).abs()).sum();
        total * LARGEST < EXACT
    };
    Ok(narrow && elements.chunks(each).enumerate().all(fits))
}
