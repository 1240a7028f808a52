//! Attention whose operands are projected already.

use super::super::operator;
use super::mask::Masks;
use super::{Heads, attend, expect_heads, heads_of};
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::attention::dot_product::{after_past, split_heads};
use crate::ops::pieces::{slice, squeeze};
use irc_tl::{Binary, Dim, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[operator("MultiHeadAttention", multi_head)];

fn multi_head(cx: &mut Context<'_>) -> Lowered {
    for input in [8, 9] {
        if cx.optional(input).is_some() {
            let message = "a cache whose buffer past and present share is not supported";
            return Err(LowerError::unsupported(message));
        }
    }
    let [q, k, v] = operands(cx, 3)?;
    let pasts = [cx.optional(6), cx.optional(7)];
    let past = pasts[0].map_or(0.into(), |past| cx.b.dims(past)[2].clone());
    let (k, v) = (after_past(cx.b, pasts[0], k)?, after_past(cx.b, pasts[1], v)?);
    let masks = Masks::of(cx, cx.optional(4), cx.optional(5), past)?;
    let [result, masked] = attend(cx, [q, k, v], &masks)?;
    Ok(vec![result, k, v, masked])
}

/// Queries, keys and values by head, from inputs 0 to 2 and the bias of the projection, input `bias`.
///
/// They are three inputs, or the keys and values are packed in the second, or all are in the first.
pub(super) fn operands(cx: &mut Context<'_>, bias: usize) -> Result<Heads, LowerError> {
    let count = heads_of(cx, "num_heads")?;
    let q = cx.input(0)?;
    let parts = match (cx.b.rank(q), cx.optional(1), cx.optional(2)) {
        (5, None, None) => [part(cx, q, 0)?, part(cx, q, 1)?, part(cx, q, 2)?],
        (3, None, None) => thirds(cx, q)?,
        (3, Some(packed), None) if cx.b.rank(packed) == 5 => {
            [q, part(cx, packed, 0)?, part(cx, packed, 1)?]
        }
        (3, Some(k), Some(v)) => [q, k, v],
        _ => {
            let found = cx.ty(q);
            let message = format!("expected queries, keys and values, found {found} and others");
            return Err(LowerError::invalid(message));
        }
    };
    let biases = biases(cx, bias, parts)?;
    let mut heads = parts;
    for (index, head) in heads.iter_mut().enumerate() {
        let found = cx.ty(*head);
        if found.rank() == 4 && index > 0 {
            // Keys and values of another sequence, by head already.
            continue;
        }
        if found.rank() != 3 {
            return Err(LowerError::invalid(format!("expected rank 3, found {found}")));
        }
        if let Some(bias) = biases[index] {
            *head = cx.b.binary(Binary::Add, *head, bias)?;
        }
        expect_heads(cx, &found.dims[2], count)?;
        *head = split_heads(cx.b, *head, count)?;
    }
    Ok(heads)
}

/// One of several operands packed before the last dimension, `[batch, sequence, heads, parts, size]`, as
/// `[batch, sequence, heads * size]`.
fn part(cx: &mut Context<'_>, packed: ValueId, index: i64) -> Result<ValueId, LowerError> {
    let own = slice(cx.b, packed, 3, &index.into(), &1.into())?;
    let own = squeeze(cx.b, own, 3)?;
    let dims = cx.b.dims(own);
    let hidden = dims[2].clone() * dims[3].clone();
    Ok(cx.b.reshape(own, &[dims[0].clone(), dims[1].clone(), hidden])?)
}

/// Three operands of one size that follow each other in the last dimension.
fn thirds(cx: &mut Context<'_>, x: ValueId) -> Result<Heads, LowerError> {
    let size = cx.b.dims(x)[2].floor_div(&3.into());
    let mut parts = [x; 3];
    for (part, index) in parts.iter_mut().zip(0..) {
        *part = slice(cx.b, x, 2, &(size.clone() * Dim::Known(index)), &size)?;
    }
    Ok(parts)
}

/// The parts of the bias for queries, keys and values.
fn biases(
    cx: &mut Context<'_>,
    input: usize,
    parts: Heads,
) -> Result<[Option<ValueId>; 3], LowerError> {
    let mut biases = [None; 3];
    let Some(bias) = cx.optional(input) else { return Ok(biases) };
    let queries = cx.b.dims(parts[0])[2].clone();
    let whole = cx.b.ty(bias).elements();
    let values = whole - queries.clone() * 2.into();
    let mut start = Dim::Known(0);
    for (own, size) in biases.iter_mut().zip([&queries, &queries, &values]) {
        *own = Some(slice(cx.b, bias, 0, &start, size)?);
        start = start + size.clone();
    }
    Ok(biases)
}
