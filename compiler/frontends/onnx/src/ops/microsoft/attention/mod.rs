//! Attention as ONNX Runtime fuses it: with the projection of its operands, masks in several forms, and caches.

pub(in crate::ops) mod decoder;
pub(in crate::ops) mod grouped;
mod grouped_cache;
mod mask;
pub(in crate::ops) mod multi_head;
pub(in crate::ops) mod projected;
pub(in crate::ops) mod rotary;

use crate::context::{Context, LowerError};
use crate::ops::attention::dot_product::{joined_heads, scores, weighted, wide_softmax};
use crate::ops::pieces::wide;
use irc_tl::{Dim, Relation, ValueId};
use mask::Masks;

/// Queries, keys and values: `[batch, heads, sequence, size]`.
type Heads = [ValueId; 3];

/// The result `[batch, sequence, heads * size]`, and the masked scores.
fn attend(cx: &mut Context<'_>, heads: Heads, masks: &Masks) -> Result<[ValueId; 2], LowerError> {
    let dtype = cx.dtype(heads[0]);
    let mut computed = heads;
    for value in &mut computed {
        *value = cx.b.cast(*value, wide(dtype))?;
    }
    let [q, k, v] = computed;
    let by = cx.float("scale")?.filter(|by| *by != 0.0);
    let products = scores(cx.b, q, k, by)?;
    let masked = masks.apply(cx.b, products)?;
    let weights = wide_softmax(cx.b, masked)?;
    let result = weighted(cx.b, weights, v)?;
    let result = joined_heads(cx.b, result)?;
    Ok([cx.b.cast(result, dtype)?, masked])
}

/// An attribute with a number of heads.
fn heads_of(cx: &Context<'_>, name: &str) -> Result<i64, LowerError> {
    let count = cx.int(name)?.ok_or_else(|| cx.missing(name))?;
    if count < 1 {
        return Err(LowerError::invalid(format!("expected {name} of at least 1, found {count}")));
    }
    Ok(count)
}

/// Checks that a dimension divides into heads.
fn expect_heads(cx: &mut Context<'_>, hidden: &Dim, heads: i64) -> Result<(), LowerError> {
    let message = format!("expected a size that is a multiple of {heads} heads");
    let rest = hidden.modulo(&heads.into());
    Ok(cx.b.require(&rest, Relation::Equal, &0.into(), &message)?)
}

/// Rejects a value of an attribute other than 0, which is its default.
fn reject_flag(cx: &Context<'_>, name: &str) -> Result<(), LowerError> {
    match cx.int_or(name, 0)? {
        0 => Ok(()),
        found => Err(LowerError::unsupported(format!("{name} {found} is not supported"))),
    }
}

/// Rejects a value of another rank.
fn expect_rank(cx: &Context<'_>, x: ValueId, rank: usize) -> Result<(), LowerError> {
    let found = cx.ty(x);
    if found.rank() == rank {
        return Ok(());
    }
    Err(LowerError::invalid(format!("expected rank {rank}, found {found}")))
}
