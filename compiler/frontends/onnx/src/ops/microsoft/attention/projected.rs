//! Self-attention with the projection of its operand, of floats or quantised integers.

use super::super::operator;
use super::super::quantized_products::scaled_product;
use super::mask::Masks;
use super::{Heads, attend, expect_heads, expect_rank, heads_of, reject_flag};
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::attention::dot_product::{after_past, split_heads};
use crate::ops::pieces::{concat, slice, squeeze, unsqueeze, wide};
use crate::ops::product::matmul::product;
use irc_tl::{Binary, Dim, Relation, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("Attention", |cx| {
        let (x, w) = (cx.input(0)?, cx.input(1)?);
        let dtype = cx.dtype(x);
        let (x, w) = (cx.b.cast(x, wide(dtype))?, cx.b.cast(w, wide(dtype))?);
        let projected = product(cx.b, x, w)?;
        let inputs = Inputs { bias: cx.optional(2), mask: cx.optional(3), past: cx.optional(4) };
        let added = cx.optional(5);
        let dtype = cx.dtype(cx.input(0)?);
        let projected = biased(cx, projected, inputs.bias)?;
        let projected = cx.b.cast(projected, dtype)?;
        attention(cx, projected, &inputs, added)
    }),
    operator("QAttention", |cx| {
        let (values, scales) = ([cx.input(0)?, cx.input(1)?], [cx.input(3)?, cx.input(4)?]);
        let projected = scaled_product(cx.b, values, scales, [cx.optional(6), cx.optional(7)])?;
        let inputs = Inputs { bias: cx.optional(2), mask: cx.optional(5), past: cx.optional(8) };
        let projected = biased(cx, projected, inputs.bias)?;
        attention(cx, projected, &inputs, None)
    }),
];

/// The inputs that both operators have, at different places.
struct Inputs {
    bias: Option<ValueId>,
    mask: Option<ValueId>,
    past: Option<ValueId>,
}

fn biased(cx: &mut Context<'_>, x: ValueId, bias: Option<ValueId>) -> Result<ValueId, LowerError> {
    let Some(bias) = bias else { return Ok(x) };
    let bias = cx.b.cast(bias, cx.dtype(x))?;
    Ok(cx.b.binary(Binary::Add, x, bias)?)
}

fn attention(
    cx: &mut Context<'_>,
    projected: ValueId,
    inputs: &Inputs,
    added: Option<ValueId>,
) -> Lowered {
    reject_flag(cx, "do_rotary")?;
    reject_flag(cx, "past_present_share_buffer")?;
    expect_rank(cx, projected, 3)?;
    let [q, k, v] = separated(cx, projected)?;
    let pasts = match inputs.past {
        Some(past) => {
            expect_rank(cx, past, 5)?;
            let message = "expected keys and values of the past";
            cx.b.require(&cx.b.dims(past)[0].clone(), Relation::Equal, &2.into(), message)?;
            [Some(half(cx, past, 0)?), Some(half(cx, past, 1)?)]
        }
        None => [None, None],
    };
    let past = pasts[0].map_or(0.into(), |past| cx.b.dims(past)[2].clone());
    let (k, v) = (after_past(cx.b, pasts[0], k)?, after_past(cx.b, pasts[1], v)?);
    let masks = Masks::of(cx, inputs.mask, added, past)?;
    let [result, _] = attend(cx, [q, k, v], &masks)?;
    let mut results = vec![result];
    if cx.is_used(1) {
        let (k, v) = (unsqueeze(cx.b, k, 0)?, unsqueeze(cx.b, v, 0)?);
        results.push(concat(cx.b, &[k, v], 0)?);
    }
    Ok(results)
}

fn half(cx: &mut Context<'_>, past: ValueId, index: i64) -> Result<ValueId, LowerError> {
    let half = slice(cx.b, past, 0, &index.into(), &1.into())?;
    Ok(squeeze(cx.b, half, 0)?)
}

/// Queries, keys and values, which follow each other in the last dimension.
fn separated(cx: &mut Context<'_>, x: ValueId) -> Result<Heads, LowerError> {
    let count = heads_of(cx, "num_heads")?;
    let whole = cx.b.dims(x)[2].clone();
    let sizes: Vec<Dim> = match cx.ints("qkv_hidden_sizes")?.as_deref() {
        None | Some([]) => {
            let rest = whole.modulo(&3.into());
            let message = "expected queries, keys and values of one size";
            cx.b.require(&rest, Relation::Equal, &0.into(), message)?;
            vec![whole.floor_div(&3.into()); 3]
        }
        Some(sizes @ [_, _, _]) if sizes.iter().all(|size| *size > 0) => {
            sizes.iter().map(|size| Dim::Known(*size)).collect()
        }
        Some(other) => {
            let message = format!("expected three sizes of qkv_hidden_sizes, found {other:?}");
            return Err(LowerError::invalid(message));
        }
    };
    let total = sizes.iter().fold(Dim::Known(0), |sum, size| sum + size.clone());
    let message = "expected weights of queries, keys and values";
    cx.b.require(&total, Relation::Equal, &whole, message)?;
    let mut start = Dim::Known(0);
    let mut parts = [x; 3];
    for (part, size) in parts.iter_mut().zip(sizes) {
        expect_heads(cx, &size, count)?;
        let own = slice(cx.b, x, 2, &start, &size)?;
        *part = split_heads(cx.b, own, count)?;
        start = start + size;
    }
    Ok(parts)
}
