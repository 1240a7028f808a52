//! Operators on images whose channels are the last dimension.
//!
//! ONNX Runtime's layout transformation writes them in a domain of its own, under ONNX's names and versions;
//! weights keep ONNX's layout.

use super::operator;
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::like::like_with;
use irc_tl::{Builder, Built, ValueId};

/// The domain of the layout transformation.
const INTERNAL: &str = "com.ms.internal.nhwc";

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("NhwcConv", |cx| channels_last(cx, "Conv", 11)),
    operator("NhwcMaxPool", |cx| channels_last(cx, "MaxPool", 12)),
    internal("AveragePool", &[7, 10, 11, 19, 22], |cx| same(cx, "AveragePool")),
    internal("BatchNormalization", &[9, 14, 15], |cx| same(cx, "BatchNormalization")),
    internal("Conv", &[1, 11, 22], |cx| same(cx, "Conv")),
    internal("ConvTranspose", &[1, 11, 22], |cx| same(cx, "ConvTranspose")),
    internal("DepthToSpace", &[1, 11, 13], |cx| same(cx, "DepthToSpace")),
    internal("GlobalAveragePool", &[1, 22], |cx| same(cx, "GlobalAveragePool")),
    internal("GlobalLpPool", &[2, 22], |cx| same(cx, "GlobalLpPool")),
    internal("GlobalMaxPool", &[1, 22], |cx| same(cx, "GlobalMaxPool")),
    internal("InstanceNormalization", &[6, 22], |cx| same(cx, "InstanceNormalization")),
    internal("LRN", &[1, 13], |cx| same(cx, "LRN")),
    internal("LpPool", &[11, 18, 22], |cx| same(cx, "LpPool")),
    internal("MaxPool", &[8, 10, 11, 12, 22], |cx| same(cx, "MaxPool")),
    internal("SpaceToDepth", &[1, 13], |cx| same(cx, "SpaceToDepth")),
];

const fn internal(
    name: &'static str,
    versions: &'static [i64],
    lower: fn(&mut Context<'_>) -> Lowered,
) -> Operator {
    Operator::new(name, versions, lower).in_domain(INTERNAL)
}

/// ONNX's operator of the same version.
fn same(cx: &mut Context<'_>, name: &str) -> Lowered {
    channels_last(cx, name, cx.version)
}

/// ONNX's operator applied to images whose channels are last, input 0 and output 0.
fn channels_last(cx: &mut Context<'_>, name: &str, version: i64) -> Lowered {
    let x = cx.input(0)?;
    let x = images(cx, x)?;
    let mut inputs: Vec<_> = (0..cx.input_count()).map(|index| cx.optional(index)).collect();
    inputs[0] = Some(from_channels_last(cx.b, x)?);
    let results = like_with(cx, name, version, &inputs)?;
    let first = results.into_iter().next();
    let first = first.ok_or_else(|| LowerError::invalid("expected a result"))?;
    Ok(vec![to_channels_last(cx.b, first)?])
}

/// A value with channels.
///
/// # Errors
/// If its rank is below 3.
pub(super) fn images(cx: &Context<'_>, x: ValueId) -> Result<ValueId, LowerError> {
    if cx.b.rank(x) >= 3 {
        return Ok(x);
    }
    Err(LowerError::invalid(format!("expected a batch of channels, found {}", cx.ty(x))))
}

/// Moves the last dimension to the second place.
pub(super) fn from_channels_last(b: &mut Builder, x: ValueId) -> Built {
    let rank = b.rank(x);
    let mut order = vec![0, rank - 1];
    order.extend(1..rank - 1);
    b.transpose(x, &order)
}

/// Moves the second dimension to the last place.
pub(super) fn to_channels_last(b: &mut Builder, x: ValueId) -> Built {
    let rank = b.rank(x);
    let mut order = vec![0];
    order.extend(2..rank);
    order.push(1);
    b.transpose(x, &order)
}
