//! Attention of one new token to those before it, or to another sequence.

use super::super::operator;
use super::attend;
use super::mask::Masks;
use super::multi_head::operands;
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::attention::dot_product::after_past;
use crate::ops::indexing::counted;
use crate::ops::pieces::{loops, size, slice};
use irc_tl::{Compute, Dim, Relation, Scalar, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] =
    &[operator("DecoderMaskedMultiHeadAttention", decoder)];

fn decoder(cx: &mut Context<'_>) -> Lowered {
    if cx.optional(9).is_some() {
        return Err(LowerError::unsupported("caches of several beams are not supported"));
    }
    let [q, k, v] = operands(cx, 10)?;
    let pasts = [cx.optional(5), cx.optional(6)];
    let cached = match (pasts, cx.int_or("past_present_share_buffer", 0)? != 0) {
        ([Some(keys), Some(values)], true) => {
            let past = position(cx, keys)?;
            [extended(cx, keys, k, &past)?, extended(cx, values, v, &past)?]
        }
        _ => {
            let (k, v) = (after_past(cx.b, pasts[0], k)?, after_past(cx.b, pasts[1], v)?);
            [[k, k], [v, v]]
        }
    };
    let [[k, present_key], [v, present_value]] = cached;
    let masks = Masks::of(cx, cx.optional(3), cx.optional(4), 0.into())?;
    let [result, masked] = attend(cx, [q, k, v], &masks)?;
    Ok(vec![result, present_key, present_value, masked])
}

/// The number of tokens in a buffer for more, input 7.
fn position(cx: &mut Context<'_>, buffer: ValueId) -> Result<Dim, LowerError> {
    let past = cx.input(7)?;
    let past = counted(cx.b, past)?;
    let next = past.clone() + 1.into();
    let capacity = cx.b.dims(buffer)[2].clone();
    cx.b.require(&0.into(), Relation::AtMost, &past, "expected a past length")?;
    cx.b.require(&next, Relation::AtMost, &capacity, "expected a buffer with room for a token")?;
    Ok(past)
}

/// The first tokens of a buffer after one is added, and the whole buffer.
fn extended(
    cx: &mut Context<'_>,
    buffer: ValueId,
    new: ValueId,
    past: &Dim,
) -> Result<[ValueId; 2], LowerError> {
    let dims = cx.b.dims(buffer);
    let next = past.clone() + 1.into();
    let here = Scalar::Loop(2).ge(size(past)).and(Scalar::Loop(2).lt(size(&next)));
    let at = [Scalar::Loop(0), Scalar::Loop(1), Scalar::index(0), Scalar::Loop(3)];
    let body = here.select(Scalar::load(1, at), Scalar::load(0, loops(0..4)));
    let whole = cx.b.compute(Compute::map(dims, body), &[buffer, new])?;
    let first = slice(cx.b, whole, 2, &0.into(), &next)?;
    Ok([first, whole])
}
