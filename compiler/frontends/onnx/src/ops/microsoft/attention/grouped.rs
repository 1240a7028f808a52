//! Attention with fewer heads of keys and values than of queries, and a cache of them.

use super::super::operator;
use super::grouped_cache::Cache;
use super::rotary::tables;
use super::{Heads, expect_heads, expect_rank, heads_of, reject_flag};
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::attention::dot_product::{
    Arrangement, masked_softmax, scores, soft_cap, split_heads, weighted,
};
use crate::ops::attention::rotary::{Angles, Rotation};
use crate::ops::normalise::root_mean_square_over;
use crate::ops::pieces::{loops, size, slice, wide};
use irc_tl::{
    Binary, Builder, Built, Comparison, Compute, DType, Dim, Op, Relation, Scalar, ValueId,
};

pub(in crate::ops) const OPERATORS: &[Operator] = &[operator("GroupQueryAttention", grouped)];

fn grouped(cx: &mut Context<'_>) -> Lowered {
    reject_unsupported(cx)?;
    let [q, k, v] = operands(cx)?;
    let cache = Cache::of(cx, q)?;
    let [q, k] = normalised(cx, [q, k])?;
    let [q, k] = rotated(cx, [q, k], &cache)?;
    let present = [cache.extended(cx, 3, k)?, cache.extended(cx, 4, v)?];
    let dtype = cx.dtype(q);
    let groups = Groups::of(cx, q, present[0], &cache);
    let q = groups.arranged.queries(cx.b, q)?;
    let mut wider = [q, present[0], present[1]];
    for value in &mut wider[1..] {
        // Not what is behind the last token.
        let tokens = slice(cx.b, *value, 2, &0.into(), &cache.total)?;
        *value = groups.arranged.shared(cx.b, tokens)?;
    }
    for value in &mut wider {
        *value = cx.b.cast(*value, wide(dtype))?;
    }
    let [q, k, v] = wider;
    let products = scores(cx.b, q, k, cx.float("scale")?.filter(|by| *by != 0.0))?;
    let cap = f64::from(cx.float_or("softcap", 0.0)?);
    let mut shown = if cap > 0.0 { soft_cap(cx.b, products, cap)? } else { products };
    if let Some(bias) = cx.optional(10) {
        let bias = groups.bias(cx, bias, shown)?;
        shown = cx.b.binary(Binary::Add, shown, bias)?;
    }
    let seen = seen(cx, &cache, &groups)?;
    let masked = masked(cx, shown, seen, f64::NEG_INFINITY)?;
    let masked = groups.without_later(cx, masked, &cache)?;
    let sink = sink(cx, masked)?;
    let weights = masked_softmax(cx.b, masked, sink)?;
    let result = weighted(cx.b, weights, v)?;
    let result = cx.b.cast(result, dtype)?;
    let mut results = vec![groups.joined(cx.b, result)?, present[0], present[1]];
    if cx.is_used(3) {
        let of_heads = match cx.int_or("qk_output", 0)? {
            1 => self::masked(cx, shown, seen, 0.0)?,
            2 => weights,
            other => {
                let message = format!("expected qk_output 1 or 2, found {other}");
                return Err(LowerError::invalid(message));
            }
        };
        let dims = [groups.batch, groups.heads, cache.new.clone(), cache.total.clone()];
        let of_heads = cx.b.reshape(of_heads, &dims)?;
        results.push(cx.b.cast(of_heads, dtype)?);
    }
    Ok(results)
}

/// The heads of queries, in groups that share a head of keys and values.
struct Groups {
    batch: Dim,
    heads: Dim,
    arranged: Arrangement,
    /// Whether later keys are hidden.
    is_causal: bool,
}

impl Groups {
    fn of(cx: &Context<'_>, queries: ValueId, keys: ValueId, cache: &Cache) -> Self {
        let (own, shared) = (cx.b.dims(queries), cx.b.dims(keys)[1].clone());
        let (batch, heads) = (own[0].clone(), own[1].clone());
        let each = heads.floor_div(&shared);
        let is_causal = cx.int_or("causal", 1).is_ok_and(|causal| causal != 0);
        let arranged = Arrangement { shared: Some([shared, each]), is_token: cache.new.is(1) };
        Self { batch, heads, arranged, is_causal }
    }

    /// The shape of what all heads have in common of their scores.
    fn common(&self, cache: &Cache) -> Vec<Dim> {
        let mut shape = vec![self.batch.clone(), 1.into(), 1.into(), cache.total.clone()];
        if !self.arranged.is_token {
            shape.insert(3, cache.new.clone());
        }
        shape
    }

    /// What is added to scores.
    fn bias(
        &self,
        cx: &mut Context<'_>,
        bias: ValueId,
        scores: ValueId,
    ) -> Result<ValueId, LowerError> {
        let (dims, dtype) = (cx.b.dims(scores), cx.dtype(scores));
        let (last, token) = (dims.len() - 1, dims.len() - 2);
        let tokens = if self.arranged.is_token { 1.into() } else { dims[token].clone() };
        let over = [self.batch.clone(), self.heads.clone(), tokens, dims[last].clone()];
        let bias = cx.b.broadcast(bias, &over)?;
        let bias = cx.b.reshape(bias, &dims)?;
        Ok(cx.b.cast(bias, dtype)?)
    }

    /// Scores without those of keys that no sequence sees: keys after a query in the longest one.
    fn without_later(
        &self,
        cx: &mut Context<'_>,
        scores: ValueId,
        cache: &Cache,
    ) -> Result<ValueId, LowerError> {
        if self.arranged.is_token || !self.is_causal {
            return Ok(scores);
        }
        let (dims, dtype) = (cx.b.dims(scores), cx.dtype(scores));
        let past = (cache.total.clone() - cache.new.clone()).maximum(&0.into());
        let [query, key] = [dims.len() - 2, dims.len() - 1].map(Scalar::Loop);
        let seen = key.compare(Comparison::Le, query + size(&past));
        let hidden = Scalar::float(f64::NEG_INFINITY, dtype);
        let body = seen.select(Scalar::load(0, loops(0..dims.len())), hidden);
        Ok(cx.b.compute(Compute::map(dims, body), &[scores])?)
    }

    /// `[batch, tokens, heads * size]` of the results of groups.
    fn joined(&self, b: &mut Builder, x: ValueId) -> Built {
        let mut turned = x;
        if !self.arranged.is_token {
            turned = b.transpose(x, &[0, 3, 1, 2, 4])?;
        }
        let dims = b.dims(turned);
        let tokens = if self.arranged.is_token { 1.into() } else { dims[1].clone() };
        let hidden = self.heads.clone() * dims[dims.len() - 1].clone();
        b.reshape(turned, &[self.batch.clone(), tokens, hidden])
    }
}

fn reject_unsupported(cx: &Context<'_>) -> Result<(), LowerError> {
    reject_flag(cx, "sliding_window_cache")?;
    for name in ["k_quant_type", "v_quant_type"] {
        let kind = cx.string_or(name, "NONE")?;
        if kind != "NONE" {
            return Err(LowerError::unsupported(format!("{name} {kind} is not supported")));
        }
    }
    if cx.optional(16).is_some() {
        return Err(LowerError::unsupported("the input query_seqlens is not supported"));
    }
    Ok(())
}

/// Queries, keys and values by head; they are three inputs, or all are in the first.
fn operands(cx: &mut Context<'_>) -> Result<Heads, LowerError> {
    let (count, shared) = (heads_of(cx, "num_heads")?, heads_of(cx, "kv_num_heads")?);
    if count % shared != 0 {
        let message = format!("expected num_heads in groups of {shared}, found {count}");
        return Err(LowerError::invalid(message));
    }
    let q = cx.input(0)?;
    expect_rank(cx, q, 3)?;
    let counts = [count, shared, shared];
    let parts = match (cx.optional(1), cx.optional(2)) {
        (Some(k), Some(v)) => [q, k, v],
        (None, None) => {
            let whole = cx.b.dims(q)[2].clone();
            let all = shared.checked_mul(2).and_then(|both| both.checked_add(count));
            let all = all.ok_or_else(|| LowerError::invalid("expected fewer heads"))?;
            expect_heads(cx, &whole, all)?;
            let head = whole.floor_div(&all.into());
            let mut start = Dim::Known(0);
            let mut parts = [q; 3];
            for (part, count) in parts.iter_mut().zip(counts) {
                let size = head.clone() * count.into();
                *part = slice(cx.b, q, 2, &start, &size)?;
                start = start + size;
            }
            parts
        }
        _ => return Err(LowerError::invalid("expected both keys and values, or neither")),
    };
    let mut heads = parts;
    for (head, count) in heads.iter_mut().zip(counts) {
        expect_rank(cx, *head, 3)?;
        let hidden = cx.b.dims(*head)[2].clone();
        expect_heads(cx, &hidden, count)?;
        *head = split_heads(cx.b, *head, count)?;
    }
    Ok(heads)
}

/// Queries and keys normalised by head, if the node has weights for that.
fn normalised(cx: &mut Context<'_>, values: [ValueId; 2]) -> Result<[ValueId; 2], LowerError> {
    let common = cx.float_or("qk_norm_epsilon", 1e-6)?;
    let mut results = values;
    for (result, (input, name)) in
        results.iter_mut().zip([(14, "q_norm_epsilon"), (15, "k_norm_epsilon")])
    {
        let Some(weight) = cx.optional(input) else { continue };
        let dtype = cx.dtype(*result);
        let epsilon = f64::from(cx.float_or(name, common)?);
        let x = cx.b.cast(*result, wide(dtype))?;
        let [normal, _] = root_mean_square_over(cx.b, x, weight, &[3], epsilon)?;
        *result = cx.b.cast(normal, dtype)?;
    }
    Ok(results)
}

/// Queries and keys rotated by their positions, if the node requests it.
fn rotated(
    cx: &mut Context<'_>,
    values: [ValueId; 2],
    cache: &Cache,
) -> Result<[ValueId; 2], LowerError> {
    if cx.int_or("do_rotary", 0)? == 0 {
        return Ok(values);
    }
    let [cos, sin] = tables(cx, [7, 8])?;
    let turned = cx.b.dims(cos)[1].clone() * 2.into();
    let head = cx.b.dims(values[0])[3].clone();
    let message = "expected at most half as many angles as elements of a head";
    cx.b.require(&turned, Relation::AtMost, &head, message)?;
    let mut others = vec![cache.lengths];
    let mut position = cache.past(3) + Scalar::Loop(2);
    if let Some(given) = cx.optional(9) {
        expect_rank(cx, given, 2)?;
        others.push(given);
        // Of a prompt only the first position is given, the others follow it.
        let first = Scalar::load(4, [Scalar::index(0), Scalar::index(0)]).cast(DType::I64);
        let own = Scalar::load(4, [Scalar::Loop(0), Scalar::Loop(2)]).cast(DType::I64);
        position = cache.if_prompt(first + Scalar::Loop(2), own);
    }
    let interleaved = cx.int_or("rotary_interleaved", 0)? != 0;
    let rotation = Rotation { turned, interleaved, sequence: 2, angles: Angles::At(position) };
    let mut results = values;
    for result in &mut results {
        *result = rotation.apply(cx.b, *result, [cos, sin], &others)?;
    }
    Ok(results)
}

/// Whether a query sees a key: of the shape that all heads have in common.
fn seen(cx: &mut Context<'_>, cache: &Cache, groups: &Groups) -> Result<ValueId, LowerError> {
    let dims = groups.common(cache);
    let key = || Scalar::Loop(dims.len() - 1);
    let query =
        if groups.arranged.is_token { Scalar::index(0) } else { Scalar::Loop(dims.len() - 2) };
    let position = cache.past(0) + query;
    let mut seen = key().compare(Comparison::Le, cache.last(0));
    if groups.is_causal {
        seen = seen.and(key().compare(Comparison::Le, position.clone()));
    }
    let window = cx.int_or("local_window_size", -1)?;
    if window > 0 {
        seen = seen.and(position.lt(key() + Scalar::index(window)));
    }
    Ok(cx.b.compute(Compute::map(dims, seen), &[cache.lengths])?)
}

/// Scores, and another value for keys that are hidden from the query.
fn masked(
    cx: &mut Context<'_>,
    scores: ValueId,
    seen: ValueId,
    hidden: f64,
) -> Result<ValueId, LowerError> {
    let dtype = cx.dtype(scores);
    let hidden = cx.b.scalar(hidden, dtype)?;
    Ok(cx.b.op(Op::Select, &[seen, scores, hidden])?)
}

/// One more score of each head, without a key: given, or 0 for a smooth softmax.
fn sink(cx: &mut Context<'_>, scores: ValueId) -> Result<Option<ValueId>, LowerError> {
    if let Some(given) = cx.optional(11) {
        let mut shape = vec![1.into(); cx.b.rank(scores)];
        shape[1..3].clone_from_slice(&cx.b.dims(scores)[1..3]);
        return Ok(Some(cx.b.reshape(given, &shape)?));
    }
    if cx.int_or("smooth_softmax", -1)? != 1 {
        return Ok(None);
    }
    let dtype = cx.dtype(scores);
    Ok(Some(cx.b.scalar(0.0, dtype)?))
}
