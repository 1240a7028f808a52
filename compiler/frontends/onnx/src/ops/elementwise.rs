//! Arithmetic on every element.

use super::formula::{Formula, broadcast_operands, widened};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Binary, BuildError, Builder, DType, Unary, ValueId};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Add", &[1, 6, 7, 13, 14], |cx| binary(cx, Binary::Add)),
    Operator::new("Sub", &[1, 6, 7, 13, 14], |cx| binary(cx, Binary::Sub)),
    Operator::new("Mul", &[1, 6, 7, 13, 14], |cx| binary(cx, Binary::Mul)),
    Operator::new("Div", &[1, 6, 7, 13, 14], |cx| binary(cx, Binary::Div)),
    Operator::new("Pow", &[1, 7, 12, 13, 15], power),
    Operator::new("Mod", &[10, 13, 28], modulo),
    Operator::new("Sum", &[1, 6, 8, 13], |cx| sum(cx, 1.0)),
    Operator::new("Max", &[1, 6, 8, 12, 13], |cx| variadic(cx, Binary::Max)),
    Operator::new("Min", &[1, 6, 8, 12, 13], |cx| variadic(cx, Binary::Min)),
    Operator::new("Mean", &[1, 6, 8, 13], |cx| sum(cx, cx.input_count() as f64)),
    Operator::new("Neg", &[1, 6, 13], |cx| unary(cx, Unary::Neg)),
    Operator::new("Abs", &[1, 6, 13], absolute),
    Operator::new("Sign", &[9, 13], |cx| unary(cx, Unary::Sign)),
    Operator::new("Exp", &[1, 6, 13], |cx| unary(cx, Unary::Exp)),
    Operator::new("Log", &[1, 6, 13], |cx| unary(cx, Unary::Log)),
    Operator::new("Sqrt", &[1, 6, 13], |cx| unary(cx, Unary::Sqrt)),
    Operator::new("Reciprocal", &[1, 6, 13], reciprocal),
    Operator::new("Floor", &[1, 6, 13], |cx| unary(cx, Unary::Floor)),
    Operator::new("Ceil", &[1, 6, 13], |cx| unary(cx, Unary::Ceil)),
    Operator::new("Round", &[11, 22], |cx| unary(cx, Unary::Round)),
    Operator::new("Erf", &[9, 13], |cx| unary(cx, Unary::Erf)),
    Operator::new("Sin", &[7, 22], |cx| unary(cx, Unary::Sin)),
    Operator::new("Cos", &[7, 22], |cx| unary(cx, Unary::Cos)),
    Operator::new("Tan", &[7, 22], |cx| unary(cx, Unary::Tan)),
    Operator::new("Asin", &[7, 22], |cx| unary(cx, Unary::Asin)),
    Operator::new("Acos", &[7, 22], |cx| unary(cx, Unary::Acos)),
    Operator::new("Atan", &[7, 22], |cx| unary(cx, Unary::Atan)),
    Operator::new("Sinh", &[9, 22], |cx| unary(cx, Unary::Sinh)),
    Operator::new("Cosh", &[9, 22], |cx| unary(cx, Unary::Cosh)),
    Operator::new("Tanh", &[1, 6, 13], |cx| unary(cx, Unary::Tanh)),
    Operator::new("Asinh", &[9, 22], |cx| unary(cx, Unary::Asinh)),
    Operator::new("Acosh", &[9, 22], |cx| unary(cx, Unary::Acosh)),
    Operator::new("Atanh", &[9, 22], |cx| unary(cx, Unary::Atanh)),
    Operator::new("Clip", &[1, 6, 11, 12, 13], clip),
    // Copies between devices, in graphs that ONNX Runtime saves.
    Operator::new("MemcpyFromHost", &[1], |cx| cx.pass_on(0)),
    Operator::new("MemcpyToHost", &[1], |cx| cx.pass_on(0)),
    Operator::new("Identity", &[1, 13, 14, 16, 19, 21, 23, 24, 25], |cx| cx.pass_on(0)),
];

fn unary(cx: &mut Context<'_>, function: Unary) -> Lowered {
    let x = cx.input(0)?;
    // The error function and others of integers are computed as floats.
    if function.takes(cx.dtype(x)) {
        return one(cx.b.unary(function, x));
    }
    let dtype = cx.dtype(x);
    let wide = cx.b.cast(x, DType::F64)?;
    let result = cx.b.unary(function, wide)?;
    one(cx.b.cast(result, dtype))
}

/// Unsigned integers are their own absolute values.
fn absolute(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let dtype = cx.dtype(x);
    if dtype.is_integer() && !dtype.is_signed_integer() {
        return Ok(vec![x]);
    }
    one(cx.b.unary(Unary::Abs, x))
}

fn reciprocal(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let unit = cx.b.number(1.0, x)?;
    one(cx.b.div(unit, x))
}

fn binary(cx: &mut Context<'_>, function: Binary) -> Lowered {
    let [x, y] = broadcast_operands(cx)?;
    one(cx.b.binary(function, x, y))
}

/// The operands may have different types; the result has that of the first.
fn power(cx: &mut Context<'_>) -> Lowered {
    let [x, y] = broadcast_operands(cx)?;
    let (base, exponent) = (cx.dtype(x), cx.dtype(y));
    if base == exponent {
        return one(cx.b.binary(Binary::Pow, x, y));
    }
    let computed = match (base.is_float(), exponent.is_float()) {
        (true, _) if base != DType::F64 && exponent != DType::F64 => DType::F32,
        (false, false) => DType::I64,
        _ => DType::F64,
    };
    let (x, y) = (cx.b.cast(x, computed)?, cx.b.cast(y, computed)?);
    let result = cx.b.binary(Binary::Pow, x, y)?;
    one(cx.b.cast(result, base))
}

/// With the sign of the divisor, or of the dividend as in C's `fmod`.
fn modulo(cx: &mut Context<'_>) -> Lowered {
    let like_c = cx.int_or("fmod", 0)? != 0;
    binary(cx, if like_c { Binary::Rem } else { Binary::Mod })
}

fn variadic(cx: &mut Context<'_>, function: Binary) -> Lowered {
    let inputs = cx.all_inputs()?;
    Ok(vec![joined(cx.b, &inputs, function)?.ok_or_else(no_inputs)?])
}

fn no_inputs() -> LowerError {
    LowerError::invalid("expected at least one input, found none")
}

fn joined(
    b: &mut Builder,
    values: &[ValueId],
    function: Binary,
) -> Result<Option<ValueId>, BuildError> {
    let Some((first, others)) = values.split_first() else { return Ok(None) };
    let mut result = *first;
    for value in others {
        result = b.binary(function, result, *value)?;
    }
    Ok(Some(result))
}

/// The sum over a divisor, rounded once.
fn sum(cx: &mut Context<'_>, divisor: f64) -> Lowered {
    let inputs = cx.all_inputs()?;
    let dtype = inputs.first().map(|first| cx.dtype(*first));
    let wide: Result<Vec<_>, _> = inputs.iter().map(|input| widened(cx.b, *input)).collect();
    let total = joined(cx.b, &wide?, Binary::Add)?.ok_or_else(no_inputs)?;
    let result = if divisor == 1.0 {
        total
    } else {
        let divisor = cx.b.number(divisor, total)?;
        cx.b.div(total, divisor)?
    };
    one(cx.b.cast(result, dtype.unwrap_or(DType::F32)))
}

/// Bounds are attributes before version 11, then scalars; an absent one does not bound, except in
/// version 6, where it is the largest number of `f32`.
fn clip(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let bounds = if cx.version < 11 {
        let mut given = [None, None];
        for (bound, name) in given.iter_mut().zip(["min", "max"]) {
            let default = if name == "min" { f32::MIN } else { f32::MAX };
            let value = cx.float(name)?.or((cx.version == 6).then_some(default));
            *bound = value.map(|value| cx.b.number(f64::from(value), x)).transpose()?;
        }
        given
    } else {
        [cx.optional(1), cx.optional(2)]
    };
    let mut result = x;
    for (bound, function) in bounds.into_iter().zip([Binary::Max, Binary::Min]) {
        let Some(bound) = bound else { continue };
        let bound = cx.b.reshape(bound, &[])?;
        result = cx.b.binary(function, result, bound)?;
    }
    Ok(vec![result])
}
