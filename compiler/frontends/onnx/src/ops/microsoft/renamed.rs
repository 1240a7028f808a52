//! Operators that ONNX has too, possibly with other inputs.

use super::operator;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::indexing::unsqueeze;
use crate::ops::like::{like, like_with};
use crate::ops::product::inverse::inverse;
use crate::ops::selection::unique;
use irc_tl::{Binary, Combine, Compute, DType, Scalar, Unary};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("CDist", distances),
    operator("ConvTransposeWithDynamicPads", crate::ops::spatial::conv_transpose::dynamic_pads),
    operator("DequantizeLinear", |cx| like(cx, "DequantizeLinear", 19)),
    operator("ExpandDims", |cx| {
        let x = cx.input(0)?;
        let axes = cx.constant_ints(1)?.unwrap_or_default();
        let [axis] = axes[..] else {
            let found = axes.len();
            return Err(LowerError::invalid(format!("expected one axis, found {found}")));
        };
        let axis = cx.axis(axis, cx.b.rank(x) + 1)?;
        one(unsqueeze(cx.b, x, &[axis]))
    }),
    operator("GatherND", |cx| like(cx, "GatherND", 11)),
    operator("Inverse", inverse),
    operator("Pad", |cx| like(cx, "Pad", 13)),
    operator("QuantizeLinear", |cx| like(cx, "QuantizeLinear", 19)),
    operator("Range", |cx| {
        let start = cx.input(0)?;
        let step = match cx.optional(2) {
            Some(step) => step,
            None => cx.b.scalar(1.0, cx.dtype(start))?,
        };
        like_with(cx, "Range", 11, &[Some(start), cx.optional(1), Some(step)])
    }),
    operator("SampleOp", |cx| cx.pass_on(0)),
    operator("TorchEmbedding", |cx| {
        let inputs = [cx.optional(0), cx.optional(1)];
        like_with(cx, "Gather", 13, &inputs)
    }),
    operator("Trilu", |cx| like(cx, "Trilu", 14)),
    operator("Unique", |cx| {
        let [values, _, places, counts] = unique(cx, None, false)?;
        Ok(vec![values, places, counts])
    }),
];

/// The distance of each row of one matrix from each row of another.
fn distances(cx: &mut Context<'_>) -> Lowered {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    let (left, right) = (cx.ty(x), cx.ty(y));
    if left.rank() != 2 || right.rank() != 2 {
        let message = format!("expected matrices, found {left} and {right}");
        return Err(LowerError::invalid(message));
    }
    let root = match cx.string_or("metric", "sqeuclidean")?.as_str() {
        "sqeuclidean" => false,
        "euclidean" => true,
        other => {
            return Err(LowerError::unsupported(format!("the metric {other} is not supported")));
        }
    };
    let message = "expected rows of one size";
    cx.b.require(&left.dims[1], irc_tl::Relation::Equal, &right.dims[1], message)?;
    let element = |operand: usize| {
        let at = [Scalar::Loop(operand), Scalar::Loop(2)];
        Scalar::load(operand, at).cast(DType::F64)
    };
    let apart = element(0).binary(Binary::Sub, element(1));
    let dims = [left.dims[0].clone(), right.dims[0].clone()];
    let sum = Compute::reduce(dims, Combine::Sum, [left.dims[1].clone()], apart.clone() * apart);
    let sum = cx.b.compute(sum, &[x, y])?;
    let result = if root { cx.b.unary(Unary::Sqrt, sum)? } else { sum };
    one(cx.b.cast(result, left.dtype))
}
