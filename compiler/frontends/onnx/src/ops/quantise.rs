//! Quantisation.

use super::cast::{converted, element_type};
use super::formula::{Formula, widened};
use super::qdq::on_integers;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{
    Builder, Built, Comparison, Compute, DType, Dim, Reduction, Relation, Scalar, Unary, ValueId,
};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("QuantizeLinear", &[10, 13, 19, 21, 23, 24, 25, 28], quantise),
    Operator::new("DequantizeLinear", &[10, 13, 19, 21, 23, 24, 25, 28], dequantise),
    Operator::new("DynamicQuantizeLinear", &[11], |cx| {
        let x = cx.input(0)?;
        Ok(dynamically_quantised(cx.b, x)?.to_vec())
    }),
];

/// A scale or zero point, shaped to broadcast with the operand: one element, one per index of an axis, or one
/// per block along that axis.
fn spread(cx: &mut Context<'_>, parameter: ValueId, x: ValueId) -> Result<ValueId, LowerError> {
    let (own, dims) = (cx.b.dims(parameter), cx.b.dims(x));
    let single = own.is_empty() || own.len() == 1 && own[0].is(1);
    if single {
        return Ok(cx.b.reshape(parameter, &[])?);
    }
    let axis = cx.axis(cx.int_or("axis", 1)?, dims.len())?;
    let block = cx.int_or("block_size", 0)?;
    let in_blocks = block >= 1 && own.len() == dims.len();
    if own.len() == 1 && !in_blocks {
        let message = "expected one scale for each index of the axis";
        cx.b.require(&own[0], Relation::EqualOrOne, &dims[axis], message)?;
        return Ok(cx.b.along(parameter, axis, dims.len())?);
    }
    if !in_blocks {
        let (x, found) = (cx.ty(x), cx.ty(parameter));
        return Err(LowerError::invalid(format!(
            "expected a scale for {x}, one per index of axis {axis} or with `block_size` one per block, found {found}"
        )));
    }
    for (index, (found, dim)) in own.iter().zip(&dims).enumerate() {
        let blocks = if index == axis { dim.ceil_div(&block.into()) } else { dim.clone() };
        cx.b.require(found, Relation::Equal, &blocks, "expected a scale for each block")?;
    }
    Ok(blocks(cx.b, parameter, &dims, axis, block)?)
}

/// Every element of a parameter repeated along an axis.
fn blocks(b: &mut Builder, parameter: ValueId, dims: &[Dim], axis: usize, size: i64) -> Built {
    let mut at: Vec<Scalar> = (0..dims.len()).map(Scalar::Loop).collect();
    at[axis] = Scalar::Loop(axis) / Scalar::index(size);
    b.compute(Compute::map(dims, Scalar::load(0, at)), &[parameter])
}

/// `saturate(round(x / scale) + zero point)`, ties to even.
fn quantise(cx: &mut Context<'_>) -> Lowered {
    if let Some(results) = on_integers(cx)? {
        return Ok(results);
    }
    let (x, scale, zero) = (cx.input(0)?, cx.input(1)?, cx.optional(2));
    let to = match zero {
        Some(zero) => cx.dtype(zero),
        None => element_type(cx, "output_dtype")?.unwrap_or(DType::U8),
    };
    let saturate = cx.int_or("saturate", 1)? != 0;
    let precision = element_type(cx, "precision")?.unwrap_or(match cx.dtype(scale) {
        // Powers of two divide exactly in the operand's own type.
        DType::F8E8M0 => cx.dtype(x),
        other => other,
    });
    let scale = spread(cx, scale, x)?;
    let (x_wide, scale) = (cx.b.cast(x, precision)?, cx.b.cast(scale, precision)?);
    let ratio = cx.b.div(x_wide, scale)?;
    let ratio = widened(cx.b, ratio)?;
    if to.is_float() {
        // Their zero point is 0.
        return one(converted(cx.b, ratio, to, saturate));
    }
    let zero = zero.map(|zero| spread(cx, zero, x)).transpose()?;
    one(saturated(cx.b, ratio, zero, to))
}

/// Rounds a float, adds a zero point and saturates to an integer type.
pub(super) fn saturated(b: &mut Builder, x: ValueId, zero: Option<ValueId>, to: DType) -> Built {
    let mut result = b.unary(Unary::Round, x)?;
    if let Some(zero) = zero {
        let zero = b.cast(zero, b.dtype(result))?;
        result = b.add(result, zero)?;
    }
    // The conversion of a float saturates.
    b.cast(result, to)
}

/// `(x - zero point) * scale`.
fn dequantise(cx: &mut Context<'_>) -> Lowered {
    let (x, scale, zero) = (cx.input(0)?, cx.input(1)?, cx.optional(2));
    let to = element_type(cx, "output_dtype")?.unwrap_or(cx.dtype(scale));
    let scale = spread(cx, scale, x)?;
    let scale = widened(cx.b, scale)?;
    let zero = zero.map(|zero| spread(cx, zero, x)).transpose()?;
    let difference = match zero {
        Some(zero) if cx.dtype(x).is_integer() => {
            // The difference of two narrow integers is exact; wide ones have a zero point of 0.
            let (x, zero) = (cx.b.cast(x, DType::I32)?, cx.b.cast(zero, DType::I32)?);
            cx.b.sub(x, zero)?
        }
        _ => x,
    };
    let wide = cx.b.cast(difference, cx.dtype(scale))?;
    let result = cx.b.mul(wide, scale)?;
    one(cx.b.cast(result, to))
}

/// Quantises to `u8`, with a scale and a zero point that cover the operand's range and 0, which are the other
/// results.
pub(super) fn dynamically_quantised(b: &mut Builder, x: ValueId) -> Built<[ValueId; 3]> {
    let axes: Vec<usize> = (0..b.rank(x)).collect();
    let nothing = b.number(0.0, x)?;
    let (most, least) =
        (b.reduce(Reduction::Max, x, &axes, false)?, b.reduce(Reduction::Min, x, &axes, false)?);
    let (most, least) = (b.max(most, nothing)?, b.min(least, nothing)?);
    let range = b.sub(most, least)?;
    let (steps, unit) = (b.number(255.0, x)?, b.number(1.0, x)?);
    let flat = b.compare_number(Comparison::Eq, range, 0.0)?;
    let range = b.select(flat, unit, range)?;
    let scale = b.div(range, steps)?;
    let below = b.div(least, scale)?;
    let start = b.sub(nothing, below)?;
    // It is clamped before rounding.
    let bounded = b.max(start, nothing)?;
    let bounded = b.min(bounded, steps)?;
    let zero = saturated(b, bounded, None, DType::U8)?;
    let ratio = b.div(x, scale)?;
    Ok([saturated(b, ratio, Some(zero), DType::U8)?, scale, zero])
}
