//! Conversions between element types.

use super::formula::Formula;
use crate::context::{Context, LowerError, Lowered, one};
use crate::data::dtype_of;
use crate::operator::Operator;
use irc_common_format::model::{AttributeValue, ElementType};
use irc_tl::{Binary, Builder, Built, Comparison, DType, Function, Op, Unary, ValueId};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("BitCast", &[26], bit_cast),
    Operator::new("Cast", &[1, 6, 9, 13, 19, 21, 23, 24, 25, 28], |cx| {
        let to = element_type(cx, "to")?.ok_or_else(|| cx.missing("to"))?;
        convert(cx, to)
    }),
    Operator::new("CastLike", &[15, 19, 21, 23, 24, 25], |cx| {
        let like = cx.input(1)?;
        let to = cx.dtype(like);
        convert(cx, to)
    }),
];

/// An attribute that states an element type: by its number, or by its name in the first version of
/// some operators.
///
/// # Errors
/// An attribute of another kind; a type that is unknown or unsupported.
pub(super) fn element_type(cx: &Context<'_>, name: &str) -> Result<Option<DType>, LowerError> {
    let element = match cx.attribute(name) {
        None => return Ok(None),
        Some(AttributeValue::String(value)) => {
            let text = String::from_utf8_lossy(value).to_ascii_lowercase();
            ElementType::from_name(&text)
                .ok_or_else(|| LowerError::invalid(format!("unknown element type {text}")))?
        }
        Some(_) => {
            let number = cx.int(name)?.unwrap_or_default();
            ElementType::from_number(i32::try_from(number).unwrap_or_default())
        }
    };
    let unsupported = || LowerError::unsupported(format!("unsupported element type {element}"));
    dtype_of(element).map(Some).ok_or_else(unsupported)
}

/// Reinterprets the bits as another type of the same width.
fn bit_cast(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let to = element_type(cx, "to")?.ok_or_else(|| cx.missing("to"))?;
    let (from, ty) = (cx.dtype(x), cx.ty(x));
    let has_strings = from == DType::String || to == DType::String;
    if from.size() != to.size() || has_strings {
        let message = format!("expected types of the same width, found {from} and {to}");
        return Err(LowerError::invalid(message));
    }
    let known = ty.known().ok_or_else(|| LowerError::NeedsSize(ty.elements()))?;
    one(cx.b.op(Op::Bitcast { to, shape: known.shape }, &[x]))
}

/// A conversion from or to strings; `None` if neither type is that of strings.
pub(super) fn of_strings(
    cx: &mut Context<'_>,
    x: ValueId,
    to: DType,
) -> Result<Option<ValueId>, LowerError> {
    let from = cx.dtype(x);
    Ok(match (from == DType::String, to == DType::String) {
        (true, true) => Some(x),
        (true, false) => Some(cx.b.host(Function::Parse(to), &[x])?),
        (false, true) => Some(cx.b.host(Function::Format(from), &[x])?),
        (false, false) => None,
    })
}

fn convert(cx: &mut Context<'_>, to: DType) -> Lowered {
    let x = cx.input(0)?;
    if let Some(converted) = of_strings(cx, x, to)? {
        return Ok(vec![converted]);
    }
    let saturate = cx.int_or("saturate", 1)? != 0;
    if to != DType::F8E8M0 {
        return one(converted(cx.b, x, to, saturate));
    }
    let toward = match cx.string_or("round_mode", "up")?.as_str() {
        "up" => Toward::Up,
        "down" => Toward::Down,
        "nearest" => Toward::Nearest,
        other => return Err(LowerError::word("round_mode", &["up", "down", "nearest"], other)),
    };
    one(scale_of(cx.b, x, toward, saturate))
}

/// A conversion to floats of 8 bits either saturates numbers out of range, including infinities,
/// or does not.
pub(super) fn converted(b: &mut Builder, x: ValueId, to: DType, saturate: bool) -> Built {
    if to.is_integer() && to.is_small() && b.dtype(x).is_float() {
        // Integers below a byte keep the low bits of a wider integer.
        let whole = b.cast(x, DType::I32)?;
        return b.cast(whole, to);
    }
    let bounded = to.is_small() && to.is_float() && saturate;
    let (Some(largest), true) = (to.largest_float(), bounded) else { return b.cast(x, to) };
    let wide = if b.dtype(x).is_float() { x } else { b.cast(x, DType::F32)? };
    let (low, high) = (b.number(-largest, wide)?, b.number(largest, wide)?);
    let wide = b.max(wide, low)?;
    let wide = b.min(wide, high)?;
    b.cast(wide, to)
}

/// The rounding to a power of two.
#[derive(Clone, Copy, PartialEq)]
enum Toward {
    /// Up.
    Up,
    /// Down.
    Down,
    /// To the nearest, ties up.
    Nearest,
}

/// The power of two for a number's magnitude. With saturation, numbers out of range become the largest
/// power; infinities become NaN.
fn scale_of(b: &mut Builder, x: ValueId, toward: Toward, saturate: bool) -> Built {
    const LARGEST: f64 = 1.701_411_834_604_692_3e38;
    let wide = b.cast(x, DType::F32)?;
    let mut size = b.unary(Unary::Abs, wide)?;
    if saturate || toward == Toward::Down {
        let finite = b.compare_number(Comparison::Lt, size, f64::INFINITY)?;
        let largest = b.number(LARGEST, size)?;
        let bounded = b.min(size, largest)?;
        size = b.select(finite, bounded, size)?;
    }
    if toward == Toward::Up {
        return b.cast(size, DType::F8E8M0);
    }
    // The conversion rounds up: the power below is half of the result if it did.
    let above = b.cast(size, DType::F8E8M0)?;
    let above = b.cast(above, DType::F32)?;
    let half = b.times(above, 0.5)?;
    let inexact = b.compare(Comparison::Gt, above, size)?;
    let down = if toward == Toward::Nearest {
        let middle = b.times(above, 0.75)?;
        let lower = b.compare(Comparison::Lt, size, middle)?;
        b.binary(Binary::And, inexact, lower)?
    } else {
        inexact
    };
    let power = b.select(down, half, above)?;
    b.cast(power, DType::F8E8M0)
}
