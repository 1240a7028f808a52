//! Convolutions of floats and quantised integers.

use super::window::{Window, groups, spatial_rank};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::pieces::{along, pad, with_extent};
use crate::ops::product::quantized::{centred, less, quantize, ratio, sums, unsigned, weights};
use irc_tl::{Binary, Conv, DType, Dim, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("Conv", &[1, 11, 22], conv),
    Operator::new("ConvInteger", &[10], conv_integer),
    Operator::new("QLinearConv", &[10], conv_quantized),
];

fn conv(cx: &mut Context<'_>) -> Lowered {
    let (x, w) = (cx.input(0)?, cx.input(1)?);
    let result = correlate(cx, x, w)?;
    let Some(bias) = cx.optional(2) else { return Ok(vec![result]) };
    let bias = per_channel(cx, bias, result)?;
    one(cx.b.binary(Binary::Add, result, bias))
}

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

/// Convolution of bytes with constant filters, and what is to be added to it: a bias minus the zero point of the bytes
/// times the sums of the filters, for each filter. `None` if the filters minus their zero points do not fit in `i8`, or
/// the zero point of the bytes is not known.
fn correlate_bytes(
    cx: &mut Context<'_>,
    [x, w]: [ValueId; 2],
    [zero, w_zero]: [Option<ValueId>; 2],
    bias: Option<ValueId>,
) -> Result<Option<(ValueId, Option<ValueId>)>, LowerError> {
    let is_narrow =
        |value: ValueId, cx: &Context<'_>| matches!(cx.dtype(value), DType::I8 | DType::U8);
    if !is_narrow(x, cx) || !is_narrow(w, cx) {
        return Ok(None);
    }
    let known = match zero {
        Some(zero) => match cx.b.constant_of(zero)?.map(|zero| zero.to_f64()).as_deref() {
            Some([zero]) => Some(*zero),
            _ => return Ok(None),
        },
        None => None,
    };
    let Some((w, elements)) = weights(cx.b, w, w_zero)? else { return Ok(None) };
    let zero = match known {
        Some(zero) => Some(cx.b.scalar(zero, cx.dtype(x))?),
        None => None,
    };
    let (x, zero) = unsigned(cx.b, x, zero)?;
    let outside = match zero {
        Some(zero) => cx.b.constant_of(zero)?.map_or(0.0, |zero| zero.to_f64()[0]),
        None => 0.0,
    };
    let sum = correlate_beside(cx, x, w, outside as i64)?;
    let sums = sums(cx.b, &elements, 0)?;
    let bias = less(cx.b, bias, zero, sums)?;
    Ok(Some((sum, bias)))
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

/// Convolution according to the node's attributes.
pub(in crate::ops) fn correlate(
    cx: &mut Context<'_>,
    x: ValueId,
    w: ValueId,
) -> Result<ValueId, LowerError> {
    correlate_beside(cx, x, w, 0)
}

/// As [`correlate`], of an operand that is padded with `outside`.
fn correlate_beside(
    cx: &mut Context<'_>,
    x: ValueId,
    w: ValueId,
    outside: i64,
) -> Result<ValueId, LowerError> {
    let rank = spatial_rank(cx, x)?;
    let (dims, filters) = (cx.b.dims(x), cx.b.dims(w));
    if filters.len() != dims.len() {
        let (x, w) = (cx.ty(x), cx.ty(w));
        let message = format!("expected filters of rank {}, found {w} for {x}", rank + 2);
        return Err(LowerError::invalid(message));
    }
    let kernel = filters[2..].to_vec();
    if let Some(stated) = cx.ints("kernel_shape")?
        && stated.iter().map(|size| Dim::Known(*size)).ne(kernel.iter().cloned())
        && kernel.iter().all(|size| size.known().is_some())
    {
        let message = format!("expected kernel_shape {kernel:?}, found {stated:?}");
        return Err(LowerError::invalid(message));
    }
    let window = Window::of(cx, kernel, &dims[2..])?;
    let groups = groups(cx, "group")?;
    let message = "expected as many channels as the filters have";
    let channels = filters[1].clone() * groups.into();
    let x = with_extent(cx.b, x, 1, &channels, message)?;
    let each = filters[0].floor_div(&groups.into());
    let message = "expected as many filters for every group";
    let w = with_extent(cx.b, w, 0, &(each * groups.into()), message)?;
    let (strides, dilations) = (window.strides.clone(), window.dilations.clone());
    let (x, pads) = match window.known_pads() {
        Some(pads) => (x, pads),
        None => (pad(cx.b, x, 2, &window.pads, outside)?, vec![[0, 0]; rank]),
    };
    Ok(cx.b.conv(Conv { strides, dilations, pads, groups, outside }, x, w)?)
}

/// One element per channel, shaped to broadcast to a batch of channels.
pub(in crate::ops) fn per_channel(
    cx: &mut Context<'_>,
    vector: ValueId,
    of: ValueId,
) -> Result<ValueId, LowerError> {
    let rank = cx.b.rank(of);
    Ok(along(cx.b, vector, 1, rank)?)
}
