//! The cache of keys and values of grouped attention.

use super::expect_rank;
use crate::context::{Context, LowerError};
use crate::ops::indexing::counted;
use crate::ops::pieces::{loops, size, within};
use irc_tl::{Combine, Compute, DType, Dim, Relation, Scalar, ValueId};

/// How many tokens a cache has before and after a call.
pub(super) struct Cache {
    /// By sequence, the index of its last token: `i32[batch]`.
    pub lengths: ValueId,
    /// The number of tokens of the longest sequence, with the new ones.
    pub total: Dim,
    /// The number of new tokens.
    pub new: Dim,
    /// The capacity of the cache after the call.
    capacity: Dim,
}

impl Cache {
    /// The cache of a node whose queries are `[batch, heads, sequence, size]`.
    pub fn of(cx: &mut Context<'_>, queries: ValueId) -> Result<Self, LowerError> {
        let dims = cx.b.dims(queries);
        let lengths = cx.input(5)?;
        let lengths = cx.b.reshape(lengths, &dims[..1])?;
        let total = cx.input(6)?;
        let total = counted(cx.b, total)?;
        let new = dims[2].clone();
        let past = match (cx.optional(3), cx.optional(4)) {
            (Some(keys), Some(values)) => {
                expect_rank(cx, keys, 4)?;
                expect_rank(cx, values, 4)?;
                cx.b.dims(keys)[2].clone()
            }
            (None, None) => 0.into(),
            _ => return Err(LowerError::invalid("expected past keys and values, or neither")),
        };
        let message = "expected a total length of the past and the new tokens";
        cx.b.require(&new, Relation::AtMost, &total, message)?;
        let all = past.clone() + new.clone();
        cx.b.require(&total, Relation::AtMost, &all, message)?;
        let capacity = if past.is(0) { total.clone() } else { past.maximum(&total) };
        let cache = Self { lengths, total, new, capacity };
        cache.expect_lengths(cx, &dims[0])?;
        Ok(cache)
    }

    /// Checks that the last token of each sequence is in the cache: at run time, unless the lengths are constant. A program
    /// whose total length is constant has no sizes that it reads, and no check, so that archives can have it.
    fn expect_lengths(&self, cx: &mut Context<'_>, batch: &Dim) -> Result<(), LowerError> {
        if self.total.known().is_some() && !cx.b.is_constant(self.lengths) {
            return Ok(());
        }
        let inside = within(&self.last(0), Scalar::index(0), size(&self.capacity));
        let outside = Scalar::index(1) - inside.cast(DType::I64);
        let count = Compute::reduce([], Combine::Sum, [batch.clone()], outside);
        let count = cx.b.compute(count, &[self.lengths])?;
        let count = counted(cx.b, count)?;
        let message = "expected seqlens_k from 0 to less than the capacity of the cache";
        Ok(cx.b.require(&count, Relation::Equal, &0.into(), message)?)
    }

    /// `prompt` if there are no tokens before the call, else `later`.
    pub fn if_prompt(&self, prompt: Scalar, later: Scalar) -> Scalar {
        if self.new == self.total {
            return prompt;
        }
        match (self.new.known(), self.total.known()) {
            (Some(_), Some(_)) => later,
            _ => size(&self.new).equals(size(&self.total)).select(prompt, later),
        }
    }

    /// The index of the last token of the sequence that loop 0 counts; `lengths` is that operand.
    pub fn last(&self, lengths: usize) -> Scalar {
        Scalar::load(lengths, [Scalar::Loop(0)]).cast(DType::I64)
    }

    /// The number of tokens of the sequence before the call.
    pub fn past(&self, lengths: usize) -> Scalar {
        let before = self.last(lengths) + Scalar::index(1) - size(&self.new);
        self.if_prompt(Scalar::index(0), before.max(Scalar::index(0)))
    }

    /// The cache in input `input` with the new tokens behind the old ones, and zeros behind those. In place, what is behind
    /// the new tokens stays.
    pub fn extended(
        &self,
        cx: &mut Context<'_>,
        input: usize,
        new: ValueId,
    ) -> Result<ValueId, LowerError> {
        let mut dims = cx.b.dims(new);
        dims[2] = self.capacity.clone();
        let token = || Scalar::Loop(2);
        let past = self.past(1);
        let mut at = loops(0..4);
        at[2] = token() - past.clone();
        let dtype = cx.dtype(new);
        let zero = || Scalar::number(0, dtype);
        let is_new = token().ge(past.clone()).and(token().lt(past.clone() + size(&self.new)));
        let mut kept = zero();
        let mut operands = vec![new, self.lengths];
        if let Some(old) = cx.optional(input) {
            let found = cx.ty(old);
            if found.dtype != dtype {
                let message = format!("a cache of {} is not supported", found.dtype);
                return Err(LowerError::unsupported(message));
            }
            for axis in [0, 1, 3] {
                let message = "expected a cache of the sequences and heads of the new keys";
                cx.b.require(&found.dims[axis], Relation::Equal, &dims[axis], message)?;
            }
            let is_old = token().lt(past.min(size(&found.dims[2])));
            kept = is_old.select(Scalar::load(2, loops(0..4)), zero());
            operands.push(old);
        }
        let body = is_new.select(Scalar::load(0, at), kept);
        Ok(cx.b.compute(Compute::map(dims, body), &operands)?)
    }
}
