//! Conversions between element types.

use crate::context::{Context, LowerError, Lowered, one};
use crate::data::dtype_of;
use crate::operator::Operator;
use irc_common_format::model::{AttributeValue, ElementType};
use irc_tl::{DType, Op};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("Cast", &[1, 6, 9, 13, 19, 21, 23, 24, 25], |cx| {
        let to = element_type(cx, "to")?.ok_or_else(|| cx.missing("to"))?;
        convert(cx, to)
    }),
    Operator::new("CastLike", &[15, 19, 21, 23, 24, 25], |cx| {
        let like = cx.input(1)?;
        let to = cx.dtype(like);
        convert(cx, to)
    }),
    Operator::new("BitCast", &[26], bit_cast),
];

/// An attribute that says an element type: by its number, or by its name in the first version of
/// some operators.
///
/// # Errors
/// An attribute of another kind; a type that is not known or has no counterpart.
pub(super) fn element_type(cx: &Context<'_>, name: &str) -> Result<Option<DType>, LowerError> {
    let element = match cx.attribute(name) {
        None => return Ok(None),
        Some(AttributeValue::String(value)) => {
            let text = String::from_utf8_lossy(value).to_ascii_lowercase();
            ElementType::from_name(&text)
                .ok_or_else(|| LowerError::invalid(format!("no element type is named {text}")))?
        }
        Some(_) => {
            let number = cx.int(name)?.unwrap_or_default();
            ElementType::from_number(i32::try_from(number).unwrap_or_default())
        }
    };
    let unsupported = || LowerError::unsupported(format!("no elements of type {element}"));
    dtype_of(element).map(Some).ok_or_else(unsupported)
}

/// The same bits as another type of as many.
fn bit_cast(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let to = element_type(cx, "to")?.ok_or_else(|| cx.missing("to"))?;
    let (from, ty) = (cx.dtype(x), cx.ty(x));
    if from.size() != to.size() {
        let message = format!("expected types of as many bits, found {from} and {to}");
        return Err(LowerError::invalid(message));
    }
    let known = ty
        .known()
        .ok_or_else(|| LowerError::unsupported(format!("expected known sizes, found {ty}")))?;
    one(cx.b.op(Op::Bitcast { to, shape: known.shape }, &[x]))
}

fn convert(cx: &mut Context<'_>, to: DType) -> Lowered {
    let x = cx.input(0)?;
    one(cx.b.cast(x, to))
}
