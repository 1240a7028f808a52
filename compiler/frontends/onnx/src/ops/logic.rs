//! Comparisons, logic and bits.

use super::formula::{Formula, broadcast_operands, widened};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Binary, Comparison, DType, Unary};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Equal", &[1, 7, 11, 13, 19], |cx| compare(cx, Comparison::Eq)),
    Operator::new("Less", &[1, 7, 9, 13], |cx| compare(cx, Comparison::Lt)),
    Operator::new("Greater", &[1, 7, 9, 13], |cx| compare(cx, Comparison::Gt)),
    Operator::new("LessOrEqual", &[12, 16], |cx| compare(cx, Comparison::Le)),
    Operator::new("GreaterOrEqual", &[12, 16], |cx| compare(cx, Comparison::Ge)),
    Operator::new("And", &[1, 7], |cx| logic(cx, Binary::And)),
    Operator::new("Or", &[1, 7], |cx| logic(cx, Binary::Or)),
    Operator::new("Xor", &[1, 7], |cx| logic(cx, Binary::Xor)),
    Operator::new("Not", &[1], not),
    Operator::new("BitwiseAnd", &[18], |cx| bits(cx, Binary::And)),
    Operator::new("BitwiseOr", &[18], |cx| bits(cx, Binary::Or)),
    Operator::new("BitwiseXor", &[18], |cx| bits(cx, Binary::Xor)),
    Operator::new("BitwiseNot", &[18], not),
    Operator::new("BitShift", &[11, 28], shift),
    Operator::new("Where", &[9, 16], |cx| {
        let (condition, yes, no) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
        one(cx.b.select(condition, yes, no))
    }),
    Operator::new("IsNaN", &[9, 13, 20], |cx| {
        let x = cx.input(0)?;
        let x = widened(cx.b, x)?;
        one(cx.b.compare(Comparison::Ne, x, x))
    }),
    Operator::new("IsInf", &[10, 20], is_infinite),
];

fn compare(cx: &mut Context<'_>, comparison: Comparison) -> Lowered {
    let [x, y] = broadcast_operands(cx)?;
    one(cx.b.compare(comparison, x, y))
}

/// Of `bool`s, where [`bits`] takes integers.
fn logic(cx: &mut Context<'_>, function: Binary) -> Lowered {
    let [x, y] = broadcast_operands(cx)?;
    let found = cx.dtype(x);
    if found != DType::Bool {
        return Err(LowerError::invalid(format!("expected bool operands, found {found}")));
    }
    one(cx.b.binary(function, x, y))
}

fn bits(cx: &mut Context<'_>, function: Binary) -> Lowered {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    one(cx.b.binary(function, x, y))
}

fn not(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    one(cx.b.unary(Unary::Not, x))
}

fn shift(cx: &mut Context<'_>) -> Lowered {
    let direction = cx.string("direction")?.ok_or_else(|| cx.missing("direction"))?;
    let function = match direction.as_str() {
        "LEFT" => Binary::Shl,
        "RIGHT" => Binary::Shr,
        other => return Err(LowerError::word("direction", &["LEFT", "RIGHT"], other)),
    };
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    // A negative count is read as the width: all bits are shifted out, and replaced by the sign.
    let width = f64::from(cx.dtype(x).bits());
    let y = if cx.dtype(y).is_signed_integer() {
        let negative = cx.b.compare_number(Comparison::Lt, y, 0.0)?;
        let all = cx.b.number(width, y)?;
        cx.b.select(negative, all, y)?
    } else {
        y
    };
    one(cx.b.binary(function, x, y))
}

fn is_infinite(cx: &mut Context<'_>) -> Lowered {
    let negative = cx.int_or("detect_negative", 1)? != 0;
    let positive = cx.int_or("detect_positive", 1)? != 0;
    let x = cx.input(0)?;
    let x = widened(cx.b, x)?;
    let (number, infinity) = match (negative, positive) {
        (true, true) => (cx.b.unary(Unary::Abs, x)?, f64::INFINITY),
        (true, false) => (x, f64::NEG_INFINITY),
        (false, true) => (x, f64::INFINITY),
        (false, false) => {
            let dims = cx.b.dims(x);
            return one(cx.b.fill(0.0, &dims, DType::Bool));
        }
    };
    one(cx.b.compare_number(Comparison::Eq, number, infinity))
}
