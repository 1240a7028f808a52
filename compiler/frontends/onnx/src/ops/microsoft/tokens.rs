//! Scores of the next token of a text.

use super::operator;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::pieces::{loops, size};
use irc_tl::{Builder, Built, Combine, Compute, DType, Relation, Scalar, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[operator("NGramRepeatBlock", repeat_block)];

fn repeat_block(cx: &mut Context<'_>) -> Lowered {
    let (ids, scores) = (cx.input(0)?, cx.input(1)?);
    let (text, ty) = (cx.ty(ids), cx.ty(scores));
    let length = cx.int("ngram_size")?.filter(|length| *length > 0);
    let length = length.ok_or_else(|| LowerError::invalid("expected ngram_size of at least 1"))?;
    if text.rank() != 2 || ty.rank() != 2 {
        let message = format!("expected texts and scores, found {text} and {ty}");
        return Err(LowerError::invalid(message));
    }
    let message = "expected scores of each text";
    cx.b.require(&text.dims[0], Relation::Equal, &ty.dims[0], message)?;
    one(without_repetition(cx.b, [ids, scores], length, None, f64::NEG_INFINITY))
}

/// The score of a token is the lowest if the last tokens, with it, are a sequence of so many tokens that the
/// text has already. Texts may end before their last column: then at a length, a scalar.
pub(super) fn without_repetition(
    b: &mut Builder,
    [ids, scores]: [ValueId; 2],
    length: i64,
    end: Option<ValueId>,
    lowest: f64,
) -> Built {
    let (text, ty) = (b.dims(ids), b.ty(scores).clone());
    let before = length - 1;
    let starts = (text[1].clone() - before.into()).maximum(&0.into());
    let token = |at: Scalar| Scalar::load(0, [Scalar::Loop(0), at]).cast(DType::I64);
    let end_at = |operand: usize| match end {
        Some(_) => Scalar::load(operand, []),
        None => size(&text[1]),
    };
    let with_end = |values: &[ValueId]| [values, end.as_slice()].concat();
    // By start, whether the tokens from there on are the last ones.
    let last = end_at(1) - Scalar::index(before) + Scalar::Loop(2);
    let same = token(Scalar::Loop(1) + Scalar::Loop(2)).equals(token(last.max(Scalar::index(0))));
    let dims = [text[0].clone(), starts.clone()];
    let same = Compute::reduce(dims, Combine::Min, [before.into()], same.cast(DType::I64));
    let same = b.compute(same, &with_end(&[ids]))?;
    let next = Scalar::Loop(2) + Scalar::index(before);
    let matched = Scalar::load(1, [Scalar::Loop(0), Scalar::Loop(2)]).ge(Scalar::index(1));
    let matched = matched.and(next.clone().lt(end_at(2)));
    let repeated = matched.and(token(next).equals(Scalar::Loop(1))).cast(DType::I64);
    let repeated = Compute::reduce(ty.dims.clone(), Combine::Max, [starts], repeated);
    let repeated = b.compute(repeated, &with_end(&[ids, same]))?;
    let hidden = Scalar::load(1, loops(0..2)).ge(Scalar::index(1));
    let lowest = Scalar::float(lowest, ty.dtype);
    let body = hidden.select(lowest, Scalar::load(0, loops(0..2)));
    b.compute(Compute::map(ty.dims, body), &[scores, repeated])
}
