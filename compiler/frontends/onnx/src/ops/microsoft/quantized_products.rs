//! Matrix products of quantised integers whose results are floats, or integers.

use super::operator;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::product::matmul::product;
use crate::ops::product::quantized::{centred, integers};
use crate::ops::quantise::dynamically_quantised;
use irc_tl::{Binary, Builder, DType, Reduction, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("DynamicQuantizeMatMul", dynamic),
    operator("MatMulInteger16", |cx| {
        let (x, y) = (cx.input(0)?, cx.input(1)?);
        let to = if cx.dtype(x).is_signed_integer() { DType::I32 } else { DType::U32 };
        let (x, y) = (cx.b.cast(x, to)?, cx.b.cast(y, to)?);
        one(product(cx.b, x, y))
    }),
    operator("MatMulIntegerToFloat", |cx| {
        let (values, scales) = ([cx.input(0)?, cx.input(1)?], [cx.input(2)?, cx.input(3)?]);
        let zeros = [cx.optional(4), cx.optional(5)];
        let result = scaled_product(cx.b, values, scales, zeros)?;
        with_bias(cx, result, 6)
    }),
    operator("MulInteger", |cx| {
        let (x, x_zero, y, y_zero) = (cx.input(0)?, cx.optional(1), cx.input(2)?, cx.optional(3));
        let (x, y) = (centred(cx.b, x, x_zero)?, centred(cx.b, y, y_zero)?);
        one(cx.b.binary(Binary::Mul, x, y))
    }),
    operator("ReduceSumInteger", |cx| {
        let x = cx.input(0)?;
        let signed = cx.dtype(x).is_signed_integer();
        let x = cx.b.cast(x, if signed { DType::I32 } else { DType::U32 })?;
        let axes = cx.ints("axes")?.ok_or_else(|| cx.missing("axes"))?;
        let axes = cx.axes(&axes, cx.b.rank(x))?;
        let kept = cx.int_or("keepdims", 1)? != 0;
        one(cx.b.reduce(Reduction::Sum, x, &axes, kept))
    }),
];

/// The product of quantised matrices, in the type of the scales: one of each matrix, or one per column.
pub(super) fn scaled_product(
    b: &mut Builder,
    values: [ValueId; 2],
    [left, right]: [ValueId; 2],
    zeros: [Option<ValueId>; 2],
) -> Result<ValueId, LowerError> {
    let sum = integers(b, values, zeros)?;
    let dtype = b.dtype(left);
    let (left, right) = (b.cast(left, DType::F32)?, b.cast(right, DType::F32)?);
    let by = b.binary(Binary::Mul, left, right)?;
    let rank = b.rank(sum);
    let by = if b.rank(by) > rank { b.reshape(by, &[])? } else { by };
    let sum = b.cast(sum, DType::F32)?;
    let result = b.binary(Binary::Mul, sum, by)?;
    Ok(b.cast(result, dtype)?)
}

fn with_bias(cx: &mut Context<'_>, x: ValueId, input: usize) -> Lowered {
    match cx.optional(input) {
        Some(bias) => one(cx.b.binary(Binary::Add, x, bias)),
        None => Ok(vec![x]),
    }
}

/// The left matrix is quantised first, with a scale and a zero point that cover its range.
fn dynamic(cx: &mut Context<'_>) -> Lowered {
    let (x, y, y_scale) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let [quantised, scale, zero] = dynamically_quantised(cx.b, x)?;
    let zeros = [Some(zero), cx.optional(3)];
    let result = scaled_product(cx.b, [quantised, y], [scale, y_scale], zeros)?;
    with_bias(cx, result, 4)
}
