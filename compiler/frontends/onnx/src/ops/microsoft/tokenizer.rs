//! Strings in tokens.

use super::operator;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::indexing::{counted, loops};
use crate::ops::strings::{largest, parts};
use irc_tl::{Binary, Compute, DType, Function, Pattern, Scalar, Splitter};
use std::num::NonZeroU64;

pub(in crate::ops) const OPERATORS: &[Operator] = &[operator("Tokenizer", tokenize)];

/// The first and the last token of each string, if they are marked.
const MARKS: [&[u8]; 2] = [b"\x02", b"\x03"];

/// The tokens of each string along a new last dimension, marked, and filled up.
fn tokenize(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let mut dims = cx.b.dims(x);
    if !matches!(dims.len(), 1 | 2) {
        let message = format!("expected strings of shape [C] or [N,C], found {}", cx.ty(x));
        return Err(LowerError::invalid(message));
    }
    let is_marked = cx.int("mark")?.ok_or_else(|| cx.missing("mark"))? != 0;
    let fill = cx.bytes("pad_value")?.ok_or_else(|| cx.missing("pad_value"))?.to_vec();
    let splitter = splitter(cx)?;
    let counts = cx.b.host(Function::CountParts(splitter.clone()), &[x])?;
    let mut length = largest(cx, counts)?;
    if is_marked {
        // Without any token there are no marks either.
        let one = cx.b.scalar(1.0, DType::I64)?;
        let mark = cx.b.binary(Binary::Min, length, one)?;
        length = cx.b.binary(Binary::Add, length, mark)?;
        length = cx.b.binary(Binary::Add, length, mark)?;
    }
    let length = counted(cx.b, length)?;
    let first = i64::from(is_marked);
    let tokens = parts(cx, x, &length, first, Function::Part(splitter))?;
    let others = cx.b.strings(&[MARKS[0], MARKS[1], &fill])?;
    let rank = dims.len();
    let place = || Scalar::Loop(rank) - Scalar::index(first);
    let other = |number: i64| Scalar::load(2, [Scalar::index(number)]);
    let count = || Scalar::load(1, loops(0..rank));
    let mut end = other(2);
    if is_marked {
        end = place().equals(count()).select(other(1), end);
    }
    let mut token = place().lt(count()).select(Scalar::load(0, loops(0..rank + 1)), end);
    if is_marked {
        token = place().lt(Scalar::index(0)).select(other(0), token);
    }
    dims.push(length);
    one(cx.b.compute(Compute::map(dims, token), &[tokens, counts, others]))
}

/// How the attributes split a string.
fn splitter(cx: &Context<'_>) -> Result<Splitter, LowerError> {
    let least = cx.int("mincharnum")?.ok_or_else(|| cx.missing("mincharnum"))?;
    let least = u64::try_from(least).ok().and_then(NonZeroU64::new).ok_or_else(|| {
        LowerError::invalid(format!("expected `mincharnum` of at least 1, found {least}"))
    })?;
    let separators = cx.texts("separators")?;
    let token = cx.string("tokenexp")?;
    let is_of_characters = match &separators {
        Some(separators) => matches!(&separators[..], [only] if only.is_empty()),
        None => token.as_deref() == Some("."),
    };
    if is_of_characters {
        return match least.get() {
            1 => Ok(Splitter::Characters),
            _ => Err(LowerError::invalid("expected `mincharnum` 1 for tokens of one character")),
        };
    }
    let pattern = |text: &str| Pattern::new(text).map_err(LowerError::unsupported);
    match (separators, token) {
        (Some(separators), _) if separators.is_empty() => {
            Err(LowerError::invalid("expected at least one of `separators`"))
        }
        (Some(separators), _) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let patterns = separators.iter().map(|separator| pattern(&text(separator)));
            Ok(Splitter::Separators(patterns.collect::<Result<_, _>>()?, least))
        }
        (None, Some(token)) if !token.is_empty() => {
            Ok(Splitter::Tokens(Box::new(pattern(&token)?), least))
        }
        _ => Err(LowerError::invalid("expected `separators` or `tokenexp`")),
    }
}
