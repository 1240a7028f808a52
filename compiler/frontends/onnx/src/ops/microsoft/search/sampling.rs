//! Draws of the next token: from the tokens with the highest scores, whose chances sum to a limit.

use crate::context::{Context, LowerError};
use crate::ops::formula::Formula;
use crate::ops::pieces::loops;
use crate::ops::random::{default_seed, draws_of};
use crate::ops::scan::running_sums;
use crate::ops::softmax::softmax;
use crate::region::Region;
use irc_tl::{Algorithm, Builder, Combine, Compute, DType, Relation, Scalar, ValueId};

/// The options of `Sampling`, as ONNX Runtime applies them.
#[derive(Clone)]
pub(super) struct Sampling {
    /// Divides the scores.
    temperature: f32,
    /// The sum of the chances of the tokens to draw from.
    top_p: f32,
    /// So many tokens with the highest scores are always drawn from.
    min_tokens: i64,
    /// The score of all others.
    filter: f32,
    /// Whether tokens are filtered from the highest score on; `min_tokens` then has no effect.
    from_highest: bool,
    /// Which tokens are present, `[batch, tokens]`, and what each subtracts from its score.
    presence: Option<(ValueId, f32)>,
    /// The seed: an `i64` scalar.
    seed: ValueId,
}

impl Sampling {
    /// The options of a node.
    pub fn of(cx: &mut Context<'_>) -> Result<Self, LowerError> {
        let temperature = cx.float_or("temperature", 1.0)?;
        if temperature.is_nan() || temperature <= 0.0 {
            let message = format!("expected a temperature above 0, found {temperature}");
            return Err(LowerError::invalid(message));
        }
        let seed = match scalar_input(cx, 8, DType::I64)? {
            Some(seed) => seed,
            None => {
                let seed = default_seed(cx) as i64;
                let seed = cx.b.integers(&[seed])?;
                cx.b.reshape(seed, &[])?
            }
        };
        let penalty = cx.float_or("presence_penalty", 0.0)?;
        Ok(Self {
            temperature,
            top_p: cx.float_or("top_p", 0.0)?,
            min_tokens: cx.int_or("min_tokens_to_keep", 0)?.max(0),
            filter: cx.float_or("filter_value", -1e20)?,
            from_highest: cx.int_or("custom", 0)? != 0,
            presence: cx.optional(7).map(|mask| (mask, penalty)),
            seed,
        })
    }

    /// The options in the body of a loop.
    pub fn captured(&self, region: &mut Region, around: &Builder) -> Self {
        let presence = self.presence.map(|(mask, by)| (region.capture(around, mask), by));
        Self { presence, seed: region.capture(around, self.seed), ..self.clone() }
    }

    /// A token of each text, drawn by its scores `[batch, tokens]`: `i64[batch]`. The draws of each length
    /// differ.
    pub fn draw(
        &self,
        b: &mut Builder,
        scores: ValueId,
        length: ValueId,
    ) -> Result<ValueId, LowerError> {
        let temperature = b.number(f64::from(self.temperature), scores)?;
        let mut scores = b.div(scores, temperature)?;
        if let Some((mask, penalty)) = self.presence {
            let mask = b.cast(mask, DType::F32)?;
            let penalty = b.times(mask, f64::from(penalty))?;
            scores = b.sub(scores, penalty)?;
        }
        let dims = b.dims(scores);
        let (batch, count) = (dims[0].clone(), dims[1].clone());
        let message = "expected a decoder with at least one token";
        b.require(&1.into(), Relation::AtMost, &count, message)?;
        let order = Algorithm::TopK { axis: 1, k: count.clone(), largest: self.from_highest };
        let [sorted, tokens] = b.algorithm(order, &[scores])?[..] else {
            return Err(LowerError::invalid("expected scores in an order"));
        };
        let sorted = self.filtered(b, sorted)?;
        let chances = softmax(b, sorted, &[1])?;
        let sums = running_sums(b, chances, 1)?;
        let drawn = draws_of(b, &batch, self.seed, length)?;
        // The drawn token is the number of tokens whose cumulative sum is at most the number drawn; the last
        // sum may be below 1 after rounding, and is ignored.
        let sum = Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1)]);
        let before = sum.compare(irc_tl::Comparison::Le, Scalar::load(1, [Scalar::Loop(0)]));
        let others = (count - 1.into()).maximum(&0.into());
        let place =
            Compute::reduce([batch.clone()], Combine::Sum, [others], before.cast(DType::I64));
        let place = b.compute(place, &[sums, drawn])?;
        let token = Scalar::load(0, [Scalar::Loop(0), Scalar::load(1, [Scalar::Loop(0)])]);
        Ok(b.compute(Compute::map([batch], token), &[tokens, place])?)
    }

    /// Sorted scores, those of tokens that are not drawn from replaced.
    fn filtered(&self, b: &mut Builder, sorted: ValueId) -> Result<ValueId, LowerError> {
        let chances = softmax(b, sorted, &[1])?;
        let sums = running_sums(b, chances, 1)?;
        let dims = b.dims(sorted);
        let sum = |column: Scalar| Scalar::load(1, [Scalar::Loop(0), column]);
        let limit = |limit: f32| Scalar::float(f64::from(limit), DType::F32);
        let (column, first) = (Scalar::Loop(1), Scalar::index(0));
        let removed = if self.from_highest {
            let before = (column.clone() - Scalar::index(1)).max(first.clone());
            first.lt(column).and(limit(self.top_p).lt(sum(before)))
        } else {
            let below =
                sum(column.clone()).compare(irc_tl::Comparison::Le, limit(1.0 - self.top_p));
            let end = Scalar::Size(dims[1].clone()) - Scalar::index(self.min_tokens);
            below.and(column.lt(end.max(Scalar::index(1))))
        };
        let body = removed.select(limit(self.filter), Scalar::load(0, loops(0..2)));
        Ok(b.compute(Compute::map(dims, body), &[sorted, sums])?)
    }
}

/// An input of one number, as a scalar of a type.
pub(super) fn scalar_input(
    cx: &mut Context<'_>,
    input: usize,
    to: DType,
) -> Result<Option<ValueId>, LowerError> {
    let Some(value) = cx.optional(input) else { return Ok(None) };
    let value = cx.b.reshape(value, &[])?;
    Ok(Some(cx.b.cast(value, to)?))
}
