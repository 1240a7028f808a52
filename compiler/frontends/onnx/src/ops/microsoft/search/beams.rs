//! Beam search: of all sequences one token longer than those so far, the best go on.

use super::sampling::scalar_input;
use super::{Chosen, Found, State, goes_on};
use crate::context::{Context, LowerError, Lowered};
use crate::ops::indexing::{along, counted};
use crate::ops::pieces::{concat, loops, size};
use crate::region::Region;
use irc_tl::{
    Algorithm, Binary, Builder, Built, Combine, Compute, DType, Dim, Relation, Scalar, ValueId,
};

/// Maximum number of sequences for each element of the batch, as in ONNX Runtime.
const MAX_BEAMS: i64 = 128;

/// The score of the sequences other than the first, which all begin alike.
const ALIKE: f64 = -1e9;

/// The options of `BeamSearch`, as ONNX Runtime applies them.
#[derive(Clone)]
pub(super) struct Beams {
    pub beams: Dim,
    /// Number of sequences returned for each element of the batch.
    returned: Dim,
    /// The exponent of the length, which divides scores: an `f32` scalar.
    penalty: Option<ValueId>,
    /// Whether a search ends when there are enough finished sequences, even if others may be better.
    early_stopping: bool,
    /// Whether the scores of all steps are a result.
    wants_scores: bool,
    end: i64,
    pad: i64,
}

/// What is carried from step to step.
struct Carried {
    /// The scores of the sequences that go on: `f32[batch, beams]`.
    scores: ValueId,
    /// The best finished sequences, the best first: `i32[batch, beams, max_length]`.
    finished: ValueId,
    /// Their scores, negative infinity where there is none yet: `f32[batch, beams]`.
    finished_scores: ValueId,
    /// Number of finished sequences: `i32[batch]`.
    count: ValueId,
    /// Whether the search has ended: `bool[batch]`.
    done: ValueId,
}

impl Carried {
    fn of(values: &[ValueId]) -> Self {
        let [scores, finished, finished_scores, count, done] = values[..] else {
            unreachable!("five values are carried")
        };
        Self { scores, finished, finished_scores, count, done }
    }

    fn values(&self) -> Vec<ValueId> {
        vec![self.scores, self.finished, self.finished_scores, self.count, self.done]
    }
}

fn no_score() -> Scalar {
    Scalar::float(f64::NEG_INFINITY, DType::F32)
}

/// The row of the sequence of loops 0 and 1.
fn row(beams: &Dim, sequence: Scalar) -> Scalar {
    Scalar::Loop(0) * size(beams) + sequence
}

impl Beams {
    /// The options of a node.
    pub fn of(cx: &mut Context<'_>, [end, pad]: [i64; 2]) -> Result<Self, LowerError> {
        let mut number = |index: usize| -> Result<Dim, LowerError> {
            let value = cx.input(index)?;
            Ok(counted(cx.b, value)?)
        };
        let (beams, returned) = (number(3)?, number(4)?);
        let message = "expected a num_return_sequences of at least 1";
        cx.b.require(&1.into(), Relation::AtMost, &returned, message)?;
        let message = "expected a num_return_sequences of at most num_beams";
        cx.b.require(&returned, Relation::AtMost, &beams, message)?;
        let message = format!("expected a num_beams of at most {MAX_BEAMS}");
        cx.b.require(&beams, Relation::AtMost, &MAX_BEAMS.into(), &message)?;
        Ok(Self {
            beams,
            returned,
            penalty: scalar_input(cx, 5, DType::F32)?,
            early_stopping: cx.int_or("early_stopping", 0)? == 1,
            wants_scores: cx.is_used(2),
            end,
            pad,
        })
    }

    /// The options in the body of a loop.
    pub fn captured(&self, region: &mut Region, around: &Builder) -> Self {
        let penalty = self.penalty.map(|value| region.capture(around, value));
        Self { penalty, ..self.clone() }
    }

    /// What is carried to the first step.
    pub fn start(
        &self,
        b: &mut Builder,
        batch: &Dim,
        max_length: &Dim,
    ) -> Result<Vec<ValueId>, LowerError> {
        let dims = [batch.clone(), self.beams.clone()];
        let first = Scalar::Loop(1).equals(Scalar::index(0));
        let score = |value: f64| Scalar::float(value, DType::F32);
        let scores = Compute::map(dims.clone(), first.select(score(0.0), score(ALIKE)));
        let places = [batch.clone(), self.beams.clone(), max_length.clone()];
        let batch = std::slice::from_ref(batch);
        let carried = Carried {
            scores: b.compute(scores, &[])?,
            finished: b.fill(self.pad as f64, &places, DType::I32)?,
            finished_scores: b.compute(Compute::map(dims, no_score()), &[])?,
            count: b.fill(0.0, batch, DType::I32)?,
            done: b.compute(Compute::map(batch, Scalar::Int(0, DType::Bool)), &[])?,
        };
        Ok(carried.values())
    }

    /// The sequences that go on, by the scores of the next token `[rows, tokens]`.
    pub fn choose(
        &self,
        b: &mut Builder,
        scores: ValueId,
        state: &State,
    ) -> Result<Chosen, LowerError> {
        let carried = Carried::of(&state.chosen);
        let batch = b.dims(carried.done)[0].clone();
        let count = b.dims(scores)[1].clone();
        let message = "expected a decoder with at least two tokens";
        b.require(&2.into(), Relation::AtMost, &count, message)?;
        // The scores of all sequences that are one token longer.
        let dims = [batch.clone(), self.beams.clone(), count.clone()];
        let at = Scalar::load(0, [row(&self.beams, Scalar::Loop(1)), Scalar::Loop(2)]);
        let sum = at + Scalar::load(1, loops(0..2));
        let sums = b.compute(Compute::map(dims.clone(), sum), &[scores, carried.scores])?;
        let steps = match self.wants_scores {
            true => {
                let mut dims = dims.to_vec();
                dims.insert(0, 1.into());
                Some(b.reshape(sums, &dims)?)
            }
            false => None,
        };
        let flat = b.reshape(sums, &[batch.clone(), self.beams.clone() * count.clone()])?;
        let twice = self.beams.clone() * 2.into();
        let order = Algorithm::TopK { axis: 1, k: twice.clone(), largest: true };
        let [best, places] = b.algorithm(order, &[flat])?[..] else {
            return Err(LowerError::invalid("expected scores in an order"));
        };
        let wide = [batch.clone(), twice];
        let part = |function: Binary| {
            let place = Scalar::load(0, loops(0..2));
            Compute::map(wide.clone(), place.binary(function, size(&count)))
        };
        let sequence = b.compute(part(Binary::Div), &[places])?;
        let token = b.compute(part(Binary::Mod), &[places])?;
        let next = self.next(b, [best, sequence, token, carried.done])?;
        let finished = self.finish(b, &carried, state, [best, sequence, token])?;
        let goes_on = goes_on(b, finished.done)?;
        let [scores, token, from] = next;
        let carried = Carried { scores, ..finished };
        Ok(Chosen { token, from: Some(from), carried: carried.values(), goes_on, scores: steps })
    }

    fn is_end(&self, token: Scalar) -> Scalar {
        token.equals(Scalar::index(self.end))
    }

    /// The scores `[batch, beams]`, tokens and rows `[rows]` of the sequences that go on: the best that do not
    /// end. Those of a search that has ended are padding, and continue row 0.
    fn next(
        &self,
        b: &mut Builder,
        [best, sequence, token, done]: [ValueId; 4],
    ) -> Result<[ValueId; 3], LowerError> {
        let wide = b.dims(best);
        // The number of sequences before each that do not end.
        let other = Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(2)]);
        let one = || Scalar::index(1);
        let goes_on = self.is_end(other).select(Scalar::index(0), one());
        let before = Scalar::Loop(2).lt(Scalar::Loop(1));
        let before = before.select(goes_on, Scalar::index(0));
        let rank = Compute::reduce(wide.clone(), Combine::Sum, [wide[1].clone()], before);
        let rank = b.compute(rank, &[token])?;
        // The place of the sequence of each rank.
        let at = || [Scalar::Loop(0), Scalar::Loop(2)];
        let has_rank = Scalar::load(1, at()).equals(Scalar::Loop(1));
        let found = self
            .is_end(Scalar::load(0, at()))
            .select(Scalar::index(0), has_rank.select(Scalar::Loop(2), Scalar::index(0)));
        let narrow = [wide[0].clone(), self.beams.clone()];
        let place = Compute::reduce(narrow.clone(), Combine::Max, [wide[1].clone()], found);
        let place = b.compute(place, &[token, rank])?;
        let done_now = || Scalar::load(2, [Scalar::Loop(0)]);
        let here = || Scalar::load(0, [Scalar::Loop(0), Scalar::load(1, loops(0..2))]);
        let zero = Scalar::float(0.0, DType::F32);
        let scores = Compute::map(narrow.clone(), done_now().select(zero, here()));
        let scores = b.compute(scores, &[best, place, done])?;
        let pad = Scalar::Int(self.pad, DType::I32);
        let tokens = done_now().select(pad, here().cast(DType::I32));
        let tokens = b.compute(Compute::map(narrow.clone(), tokens), &[token, place, done])?;
        let rows = done_now().select(Scalar::index(0), row(&self.beams, here()));
        let rows = b.compute(Compute::map(narrow, rows), &[sequence, place, done])?;
        let all = [wide[0].clone() * self.beams.clone()];
        Ok([scores, b.reshape(tokens, &all)?, b.reshape(rows, &all)?])
    }

    /// What is carried once sequences that end are finished.
    fn finish(
        &self,
        b: &mut Builder,
        carried: &Carried,
        state: &State,
        [best, sequence, token]: [ValueId; 3],
    ) -> Result<Carried, LowerError> {
        let batch = b.dims(best)[0].clone();
        let narrow = [batch.clone(), self.beams.clone()];
        // Of the best sequences, only as many as there are beams may finish.
        let divisor = self.divisor(b, state.length)?;
        let ends = self.is_end(Scalar::load(1, loops(0..2)));
        let score = Scalar::load(0, loops(0..2)) / Scalar::load(2, []);
        let open = ends.select(score, no_score());
        let new = Scalar::load(3, [Scalar::Loop(0)]).select(no_score(), open);
        let operands = [best, token, divisor, carried.done];
        let new = b.compute(Compute::map(narrow.clone(), new), &operands)?;
        let sequence = along(b, sequence, 1, 0, self.beams.clone())?;
        let [finished, finished_scores] = self.merged(b, carried, new, sequence, state.tokens)?;
        let ends = self.is_end(Scalar::load(0, loops(0..2)));
        let ends = ends.select(Scalar::Int(1, DType::I32), Scalar::Int(0, DType::I32));
        let added =
            Compute::reduce(std::slice::from_ref(&batch), Combine::Sum, [self.beams.clone()], ends);
        let added = b.compute(added, &[token])?;
        let at = || [Scalar::Loop(0)];
        let sum =
            (Scalar::load(0, at()) + Scalar::load(1, at())).min(size(&self.beams).cast(DType::I32));
        let sum = Scalar::load(2, at()).select(Scalar::load(0, at()), sum);
        let one = std::slice::from_ref(&batch);
        let count = b.compute(Compute::map(one, sum), &[carried.count, added, carried.done])?;
        let enough = Scalar::load(0, at()).ge(size(&self.beams).cast(DType::I32));
        let (ended, operands) = if self.early_stopping {
            (enough, vec![count, carried.done])
        } else {
            let highest = self.highest(b, best)?;
            let last = size(&self.beams) - Scalar::index(1);
            let worst = Scalar::load(3, [Scalar::Loop(0), last]);
            let possible = Scalar::load(2, at()) / Scalar::load(4, []);
            let is_final = worst.ge(possible);
            let operands = vec![count, carried.done, highest, finished_scores, divisor];
            (enough.and(is_final), operands)
        };
        let done = Scalar::load(1, at()).binary(Binary::Or, ended);
        let done = b.compute(Compute::map(one, done), &operands)?;
        Ok(Carried { scores: carried.scores, finished, finished_scores, count, done })
    }

    /// What divides the scores of sequences of a length.
    fn divisor(&self, b: &mut Builder, length: ValueId) -> Result<ValueId, LowerError> {
        let length = b.cast(length, DType::F32)?;
        match self.penalty {
            Some(penalty) => Ok(b.binary(Binary::Pow, length, penalty)?),
            None => Ok(length),
        }
    }

    /// The highest score that decides whether a search may improve: `f32[batch]`. ONNX Runtime looks for it
    /// from element `batch * beams` of all scores, of which each element of the batch has twice as many as
    /// beams.
    fn highest(&self, b: &mut Builder, best: ValueId) -> Built {
        let dims = b.dims(best);
        let place = || row(&self.beams, Scalar::Loop(1));
        let part = |function: Binary| place().binary(function, size(&dims[1]));
        let body = Scalar::load(0, [part(Binary::Div), part(Binary::Mod)]);
        let over = [dims[1].clone()];
        b.compute(Compute::reduce([dims[0].clone()], Combine::Max, over, body), &[best])
    }

    /// The best of the finished sequences and of sequences with these scores `[batch, beams]`, which are rows of
    /// `tokens` by their number.
    fn merged(
        &self,
        b: &mut Builder,
        carried: &Carried,
        new: ValueId,
        sequence: ValueId,
        tokens: ValueId,
    ) -> Result<[ValueId; 2], LowerError> {
        let all = concat(b, &[carried.finished_scores, new], 1)?;
        let order = Algorithm::TopK { axis: 1, k: self.beams.clone(), largest: true };
        let [scores, places] = b.algorithm(order, &[all])?[..] else {
            return Err(LowerError::invalid("expected scores in an order"));
        };
        let place = || Scalar::load(1, loops(0..2));
        let is_old = place().lt(size(&self.beams));
        let old = Scalar::load(0, [Scalar::Loop(0), place(), Scalar::Loop(2)]);
        let number = Scalar::load(3, [Scalar::Loop(0), place() - size(&self.beams)]);
        let new = Scalar::load(2, [row(&self.beams, number), Scalar::Loop(2)]);
        let body = is_old.select(old, new);
        let dims = b.dims(carried.finished);
        let operands = [carried.finished, places, tokens, sequence];
        let finished = b.compute(Compute::map(dims, body), &operands)?;
        Ok([finished, scores])
    }

    /// The results of the node.
    pub fn results(&self, cx: &mut Context<'_>, found: &Found) -> Lowered {
        let state = &found.state;
        let carried = Carried::of(&state.chosen);
        let dtype = cx.declared(1).map_or(DType::F32, |ty| ty.dtype);
        let b = &mut *cx.b;
        // Sequences that have not ended are finished as they are.
        let divisor = self.divisor(b, state.length)?;
        let score = Scalar::load(0, loops(0..2)) / Scalar::load(1, []);
        let new = Scalar::load(2, [Scalar::Loop(0)]).select(no_score(), score);
        let narrow = b.dims(carried.scores);
        let operands = [carried.scores, divisor, carried.done];
        let new = b.compute(Compute::map(narrow.clone(), new), &operands)?;
        let own = b.compute(Compute::map(narrow, Scalar::Loop(1)), &[])?;
        let [finished, scores] = self.merged(b, &carried, new, own, state.tokens)?;
        let sequences = along(b, finished, 1, 0, self.returned.clone())?;
        let scores = along(b, scores, 1, 0, self.returned.clone())?;
        let mut results = vec![sequences, b.cast(scores, dtype)?];
        if let Some(steps) = found.scores {
            results.push(b.cast(steps, dtype)?);
        }
        Ok(results)
    }
}
