//! The scores of the next token, and the rules that change them.

use super::repeated;
use super::sampling::scalar_input;
use crate::context::{Context, LowerError};
use crate::ops::indexing::along;
use crate::ops::microsoft::tokens::without_repetition;
use crate::ops::pieces::loops;
use crate::ops::softmax::log_softmax;
use crate::region::Region;
use irc_tl::{Builder, Combine, Compute, DType, Dim, Relation, Scalar, ValueId};

/// The rules of a search.
#[derive(Clone)]
pub(super) struct Scores {
    /// The token that ends a sequence.
    end: i64,
    /// Divides the scores of tokens that occur already: a scalar.
    penalty: Option<ValueId>,
    /// No sequence ends before it has so many tokens: an `i64` scalar.
    min_length: Option<ValueId>,
    /// Which tokens are allowed: `[tokens]`.
    allowed: Option<ValueId>,
    /// Which tokens are allowed in the first step: `[batch, tokens]`.
    allowed_first: Option<ValueId>,
    /// Sequences of so many tokens do not occur twice; 0 for no such rule.
    no_repeat: i64,
    /// Whether scores are logarithms of probabilities.
    normalised: bool,
    /// The number of tokens, if the decoder has scores of more.
    tokens: Option<i64>,
}

/// The numbers of the inputs of rules.
pub(super) struct Inputs {
    pub min_length: usize,
    pub penalty: usize,
    pub allowed: usize,
    pub allowed_first: usize,
}

impl Scores {
    /// The rules of a node.
    pub fn of(
        cx: &mut Context<'_>,
        end: i64,
        inputs: Inputs,
        normalised: bool,
    ) -> Result<Self, LowerError> {
        let no_repeat = cx.int_or("no_repeat_ngram_size", 0)?;
        Ok(Self {
            end,
            min_length: scalar_input(cx, inputs.min_length, DType::I64)?,
            penalty: scalar_input(cx, inputs.penalty, DType::F32)?,
            allowed: cx.optional(inputs.allowed),
            allowed_first: cx.optional(inputs.allowed_first),
            no_repeat: no_repeat.max(0),
            normalised,
            tokens: cx.int("vocab_size")?.filter(|tokens| *tokens > 0),
        })
    }

    /// The rules with a row for each sequence.
    pub fn of_rows(&self, b: &mut Builder, beams: &Dim) -> Result<Self, LowerError> {
        let allowed_first = match self.allowed_first {
            Some(allowed) => Some(repeated(b, allowed, 0, beams)?),
            None => None,
        };
        Ok(Self { allowed_first, ..self.clone() })
    }

    /// The rules in the body of a loop.
    pub fn captured(&self, region: &mut Region, around: &Builder) -> Self {
        let mut capture = |value: Option<ValueId>| value.map(|value| region.capture(around, value));
        Self {
            penalty: capture(self.penalty),
            min_length: capture(self.min_length),
            allowed: capture(self.allowed),
            allowed_first: None,
            ..self.clone()
        }
    }

    /// The scores of the next token by the logits `[rows, tokens]`.
    pub fn of_tokens(
        &self,
        b: &mut Builder,
        logits: ValueId,
        [tokens, length]: [ValueId; 2],
        first: bool,
    ) -> Result<ValueId, LowerError> {
        let mut scores = b.cast(logits, DType::F32)?;
        if let Some(tokens) = self.tokens {
            let found = b.dims(scores)[1].clone();
            let message = "expected scores of as many tokens as `vocab_size`";
            b.require(&tokens.into(), Relation::AtMost, &found, message)?;
            scores = along(b, scores, 1, 0, tokens)?;
        }
        if self.normalised {
            scores = log_softmax(b, scores, &[1])?;
        }
        if let Some(penalty) = self.penalty {
            scores = penalised(b, scores, [tokens, length, penalty])?;
        }
        if self.no_repeat > 0 {
            let texts = [tokens, scores];
            scores = without_repetition(b, texts, self.no_repeat, Some(length), LOWEST)?;
        }
        if let Some(min_length) = self.min_length {
            scores = self.no_end(b, scores, [length, min_length])?;
        }
        for allowed in [self.allowed, self.allowed_first.filter(|_| first)].into_iter().flatten() {
            scores = only(b, scores, allowed)?;
        }
        Ok(scores)
    }

    /// The score of the end is the lowest while there are too few tokens.
    fn no_end(
        &self,
        b: &mut Builder,
        scores: ValueId,
        [length, min_length]: [ValueId; 2],
    ) -> Result<ValueId, LowerError> {
        let early = Scalar::load(1, []).lt(Scalar::load(2, []));
        let hidden = early.and(Scalar::Loop(1).equals(Scalar::index(self.end)));
        let body = hidden.select(lowest(), Scalar::load(0, loops(0..2)));
        let dims = b.dims(scores);
        Ok(b.compute(Compute::map(dims, body), &[scores, length, min_length])?)
    }
}

/// The score of a token that is not allowed.
const LOWEST: f64 = f32::MIN as f64;

fn lowest() -> Scalar {
    Scalar::float(LOWEST, DType::F32)
}

/// Negative scores of tokens that occur times the penalty, others divided by it.
fn penalised(
    b: &mut Builder,
    scores: ValueId,
    [tokens, length, penalty]: [ValueId; 3],
) -> Result<ValueId, LowerError> {
    let dims = b.dims(scores);
    let capacity = b.dims(tokens)[1].clone();
    let token = Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(2)]).cast(DType::I64);
    let here = token.equals(Scalar::Loop(1));
    let occurs = Scalar::Loop(2).lt(Scalar::load(1, [])).and(here).cast(DType::I32);
    let occurs = Compute::reduce(dims.clone(), Combine::Max, [capacity], occurs);
    let occurs = b.compute(occurs, &[tokens, length])?;
    let score = || Scalar::load(0, loops(0..2));
    let penalty_now = || Scalar::load(2, []);
    let below = score().lt(Scalar::float(0.0, DType::F32));
    let changed = below.select(score() * penalty_now(), score() / penalty_now());
    let does = Scalar::load(1, loops(0..2)).ge(Scalar::Int(1, DType::I32));
    let body = does.select(changed, score());
    Ok(b.compute(Compute::map(dims, body), &[scores, occurs, penalty])?)
}

/// The lowest score for tokens that a mask, which broadcasts, does not allow.
fn only(b: &mut Builder, scores: ValueId, allowed: ValueId) -> Result<ValueId, LowerError> {
    let dims = b.dims(scores);
    let allowed = b.broadcast(allowed, &dims)?;
    let number = Scalar::load(1, loops(0..2)).cast(DType::I64);
    let body = number.equals(Scalar::index(0)).select(lowest(), Scalar::load(0, loops(0..2)));
    Ok(b.compute(Compute::map(dims, body), &[scores, allowed])?)
}
