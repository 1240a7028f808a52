//! Matrix products of quantised integers.

use super::matmul::product;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::cast::converted;
use irc_tl::{Binary, Builder, Built, DType, Dim, Unary, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("MatMulInteger", &[10], |cx| {
        let (a, b) = (cx.input(0)?, cx.input(1)?);
        let (a_zero, b_zero) = (cx.optional(2), cx.optional(3));
        Ok(vec![integers(cx.b, [a, b], [a_zero, b_zero])?])
    }),
    Operator::new("QLinearMatMul", &[10, 21], quantized),
];

/// The product of two matrices of small integers after subtracting their zero points, in `i32`.
pub(in crate::ops) fn integers(
    b: &mut Builder,
    values: [ValueId; 2],
    zeros: [Option<ValueId>; 2],
) -> Result<ValueId, LowerError> {
    let rows = per_row(b, zeros[0])?;
    let left = centred(b, values[0], rows)?;
    let right = centred(b, values[1], zeros[1])?;
    Ok(product(b, left, right)?)
}

/// One element per row of the left matrix, as a column.
fn per_row(b: &mut Builder, value: Option<ValueId>) -> Built<Option<ValueId>> {
    let Some(value) = value.filter(|value| b.rank(*value) == 1) else { return Ok(value) };
    let rows = b.dims(value)[0].clone();
    if rows.is(1) {
        return Ok(Some(b.reshape(value, &[])?));
    }
    Ok(Some(b.reshape(value, &[rows, Dim::Known(1)])?))
}

/// The value minus its zero point, in `i32`; for floats of 8 bits in `f32`.
pub(in crate::ops) fn centred(b: &mut Builder, x: ValueId, zero: Option<ValueId>) -> Built {
    let computed = if b.dtype(x).is_float() { DType::F32 } else { DType::I32 };
    let x = b.cast(x, computed)?;
    let Some(zero) = zero else { return Ok(x) };
    let none = b.constant_of(zero)?.is_some_and(|zero| zero.to_f64().iter().all(|z| *z == 0.0));
    if none {
        return Ok(x);
    }
    let zero = b.cast(zero, computed)?;
    b.binary(Binary::Sub, x, zero)
}

/// Rounds a float to the nearest integer, ties to even, adds the zero point, and saturates to its type.
/// Floats of 8 bits have zero points of 0.
pub(in crate::ops) fn quantize(b: &mut Builder, x: ValueId, zero: ValueId) -> Built {
    if b.dtype(zero).is_float() {
        let to = b.dtype(zero);
        return converted(b, x, to, true);
    }
    let nearest = b.unary(Unary::Round, x)?;
    let to = b.dtype(zero);
    let zero = b.cast(zero, b.dtype(nearest))?;
    let moved = b.binary(Binary::Add, nearest, zero)?;
    b.cast(moved, to)
}

/// `left * right / divisor` of scales, in `f32`.
pub(in crate::ops) fn ratio(
    b: &mut Builder,
    left: ValueId,
    right: ValueId,
    divisor: ValueId,
) -> Built {
    let (left, right) = (b.cast(left, DType::F32)?, b.cast(right, DType::F32)?);
    let divisor = b.cast(divisor, DType::F32)?;
    let scale = b.binary(Binary::Mul, left, right)?;
    b.binary(Binary::Div, scale, divisor)
}

fn quantized(cx: &mut Context<'_>) -> Lowered {
    let [a, a_scale, a_zero] = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let [b, b_scale, b_zero] = [cx.input(3)?, cx.input(4)?, cx.input(5)?];
    let [y_scale, y_zero] = [cx.input(6)?, cx.input(7)?];
    let sum = integers(cx.b, [a, b], [Some(a_zero), Some(b_zero)])?;
    let a_scale = per_row(cx.b, Some(a_scale))?.unwrap_or(a_scale);
    let (y_scale, y_zero) =
        (per_row(cx.b, Some(y_scale))?, per_row(cx.b, Some(y_zero))?.unwrap_or(y_zero));
    let by = ratio(cx.b, a_scale, b_scale, y_scale.unwrap_or(a_scale))?;
    let sum = cx.b.cast(sum, DType::F32)?;
    let value = cx.b.binary(Binary::Mul, sum, by)?;
    one(quantize(cx.b, value, y_zero))
}
