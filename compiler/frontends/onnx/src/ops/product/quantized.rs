//! Matrix products of quantised integers.

use super::matmul::product;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::cast::converted;
use irc_tl::{Binary, Builder, Built, DType, Dim, Op, Rounding, Tensor, Unary, ValueId};

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
    Ok(products(b, values, [rows, zeros[1]], 1, product)?)
}

/// As [`integers`], by a function that multiplies two matrices, of which the columns of the second are along an axis. Zero
/// points broadcast to the matrices.
///
/// A product with constants that fit in `i8` is one of bytes, minus the zero point of the other operand times the sums of
/// their columns.
pub(in crate::ops) fn products(
    b: &mut Builder,
    values: [ValueId; 2],
    zeros: [Option<ValueId>; 2],
    columns: usize,
    multiply: impl Fn(&mut Builder, ValueId, ValueId) -> Built,
) -> Built {
    let is_narrow = matches!(b.dtype(values[0]), DType::I8 | DType::U8) && b.rank(values[1]) == 2;
    let weights = if is_narrow { weights(b, values[1], zeros[1])? } else { None };
    let Some((weights, elements)) = weights else {
        let left = centred(b, values[0], zeros[0])?;
        let right = centred(b, values[1], zeros[1])?;
        return multiply(b, left, right);
    };
    let (x, zero) = unsigned(b, values[0], zeros[0])?;
    let sum = multiply(b, x, weights)?;
    let sums = sums(b, &elements, columns)?;
    Ok(less(b, Some(sum), zero, sums)?.unwrap_or(sum))
}

/// `value - zero * sums`, the zero point of one operand times the sums of the elements of the other that it is subtracted
/// from. `None` if that is 0.
pub(in crate::ops) fn less(
    b: &mut Builder,
    value: Option<ValueId>,
    zero: Option<ValueId>,
    sums: ValueId,
) -> Built<Option<ValueId>> {
    let Some(zero) = zero else { return Ok(value) };
    if is_zero(b, zero)? {
        return Ok(value);
    }
    let value = match value {
        Some(value) => value,
        None => b.scalar(0.0, DType::I32)?,
    };
    let zero = b.cast(zero, DType::I32)?;
    let moved = b.binary(Binary::Mul, zero, sums)?;
    Ok(Some(b.binary(Binary::Sub, value, moved)?))
}

/// Whether a value is a constant of zeros.
fn is_zero(b: &Builder, value: ValueId) -> Built<bool> {
    let constant = b.constant_of(value)?;
    Ok(constant.is_some_and(|constant| constant.to_f64().iter().all(|number| *number == 0.0)))
}

/// Constant integers of 8 bits minus their zero points, which are given as they broadcast to them, if all of these fit
/// in `i8`.
pub(in crate::ops) fn weights(
    b: &mut Builder,
    w: ValueId,
    zero: Option<ValueId>,
) -> Built<Option<(ValueId, Tensor)>> {
    if !matches!(b.dtype(w), DType::I8 | DType::U8) {
        return Ok(None);
    }
    let Some(elements) = b.constant_of(w)? else { return Ok(None) };
    let zero = match zero {
        None => None,
        Some(zero) => match b.constant_of(zero)? {
            Some(zero) if zero.to_f64().iter().all(|zero| *zero == 0.0) => None,
            Some(zero) => Some(zero),
            None => return Ok(None),
        },
    };
    if zero.is_none() && elements.dtype() == DType::I8 {
        return Ok(Some((w, elements)));
    }
    let eval = |op: Op, operands: &[&Tensor]| op.eval(operands).map_err(|error| error.to_string());
    let wide = Op::Cast { to: DType::I32, rounding: Rounding::TowardZero };
    let mut centred = eval(wide.clone(), &[&elements])?;
    if let Some(zero) = zero {
        centred = eval(Op::Binary(Binary::Sub), &[&centred, &eval(wide, &[&zero])?])?;
    }
    let fits = centred.to_f64().iter().all(|value| (-128.0..=127.0).contains(value));
    let narrow = Op::Cast { to: DType::I8, rounding: Rounding::TowardZero };
    if !fits {
        return Ok(None);
    }
    let elements = eval(narrow, &[&centred])?;
    Ok(Some((b.tensor(&elements), elements)))
}

/// Constant integers of 8 bits as `i8`, unsigned ones minus 128, and their zero points minus as much, in `i32`.
pub(in crate::ops) fn signed_weights(
    b: &mut Builder,
    w: ValueId,
    zero: ValueId,
) -> Built<Option<(ValueId, Tensor, ValueId)>> {
    if !matches!(b.dtype(w), DType::I8 | DType::U8) {
        return Ok(None);
    }
    let Some(elements) = b.constant_of(w)? else { return Ok(None) };
    let zero = b.cast(zero, DType::I32)?;
    if elements.dtype() == DType::I8 {
        return Ok(Some((w, elements, zero)));
    }
    // 128 is the sign of a byte.
    let bytes: Vec<i8> = elements.bytes().iter().map(|byte| (byte ^ 0x80).cast_signed()).collect();
    let shape = elements.shape().to_vec();
    let elements = Tensor::from_values(shape, &bytes).map_err(|error| error.to_string())?;
    let middle = b.scalar(128.0, DType::I32)?;
    let zero = b.binary(Binary::Sub, zero, middle)?;
    Ok(Some((b.tensor(&elements), elements, zero)))
}

/// The sums of constants of `i8` over all axes but one, in `i32`.
pub(in crate::ops) fn sums(b: &mut Builder, weights: &Tensor, axis: usize) -> Built {
    let shape = weights.shape();
    let (count, inner) = (shape[axis] as usize, shape[axis + 1..].iter().product::<i64>() as usize);
    let mut sums = vec![0_i32; count];
    for (index, byte) in weights.bytes().iter().enumerate() {
        sums[index / inner % count] += i32::from(byte.cast_signed());
    }
    let sums = Tensor::from_values([shape[axis]], &sums).map_err(|error| error.to_string())?;
    Ok(b.tensor(&sums))
}

/// Integers of 8 bits as `u8`, signed ones plus 128, and so their zero point.
pub(in crate::ops) fn unsigned(
    b: &mut Builder,
    x: ValueId,
    zero: Option<ValueId>,
) -> Built<(ValueId, Option<ValueId>)> {
    if b.dtype(x) != DType::I8 {
        return Ok((x, zero));
    }
    let middle = b.scalar(128.0, DType::I32)?;
    let moved = |b: &mut Builder, value: ValueId| {
        let wide = b.cast(value, DType::I32)?;
        b.binary(Binary::Add, wide, middle)
    };
    let zero = match zero {
        Some(zero) => moved(b, zero)?,
        None => middle,
    };
    let x = moved(b, x)?;
    Ok((b.cast(x, DType::U8)?, Some(zero)))
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
    if is_zero(b, zero)? {
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
    if is_zero(b, zero)? {
        return b.cast(nearest, to);
    }
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
