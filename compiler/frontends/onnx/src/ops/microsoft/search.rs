//! Searches: a loop around a decoder, each step of which adds a token to every sequence. Greedy search adds the
//! token with the highest score, sampling one that is drawn, beam search keeps the best of several sequences.

mod beams;
mod decoder;
mod one_sequence;
mod sampling;
mod scores;

use super::operator;
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::indexing::{along, counted};
use crate::ops::pieces::{loops, size, squeeze};
use crate::region::Region;
use beams::Beams;
use decoder::{Decoder, First};
use irc_tl::{
    Binary, Builder, Built, Combine, Comparison, Compute, DType, Dim, NodeKind, Relation, Scalar,
    Type, ValueId,
};
use one_sequence::OneSequence;
use sampling::Sampling;
use scores::{Inputs, Scores};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("GreedySearch", |cx| one_sequence(cx, None)),
    operator("Sampling", |cx| {
        let sampling = Sampling::of(cx)?;
        one_sequence(cx, Some(sampling))
    }),
    operator("BeamSearch", several_sequences),
];

/// Maximum length of a sequence, as in ONNX Runtime.
const MAX_LENGTH: i64 = 4096;

/// What is constant during a search. A sequence is a row of each tensor of the decoder.
#[derive(Clone)]
struct Search<'g> {
    decoder: Decoder<'g>,
    batch: Dim,
    /// Number of sequences for each element of the batch.
    beams: Dim,
    max_length: Dim,
    scores: Scores,
    pad: i64,
    choice: Choice,
}

/// How the next tokens are chosen by their scores.
#[derive(Clone)]
enum Choice {
    One(OneSequence),
    Several(Beams),
}

/// What each step changes.
struct State {
    /// The operands of the decoder that change.
    operands: Vec<ValueId>,
    /// The tokens so far, followed by padding: `i32[rows, max_length]`.
    tokens: ValueId,
    /// The number of tokens: an `i64` scalar.
    length: ValueId,
    /// What the choice of tokens carries.
    chosen: Vec<ValueId>,
}

/// The choice of a step.
struct Chosen {
    /// The next token of each row: `i32[rows]`.
    token: ValueId,
    /// The row that each row continues, `i64[rows]`; `None` if each continues itself.
    from: Option<ValueId>,
    carried: Vec<ValueId>,
    /// Whether any sequence goes on: a `bool` scalar.
    goes_on: ValueId,
    /// Scores that are a result of the node, with a dimension for steps: `f32[1, batch, beams, tokens]`.
    scores: Option<ValueId>,
}

/// The end of a search.
struct Found {
    state: State,
    /// `f32[steps, batch, beams, tokens]`.
    scores: Option<ValueId>,
}

fn one_sequence(cx: &mut Context<'_>, sampling: Option<Sampling>) -> Lowered {
    if cx.int_or("model_type", 0)? != 0 {
        return Err(LowerError::unsupported("searches with an encoder are not supported"));
    }
    let [end, pad] = tokens_of(cx)?;
    let inputs = Inputs { min_length: 2, penalty: 3, allowed: 4, allowed_first: 5 };
    let scores = Scores::of(cx, end, inputs, false)?;
    let choice = Choice::One(OneSequence { end, pad, sampling });
    let found = search(cx, 1, 6, Dim::Known(1), scores, choice)?;
    Ok(vec![found.state.tokens])
}

fn several_sequences(cx: &mut Context<'_>) -> Lowered {
    let [end, pad] = tokens_of(cx)?;
    if cx.optional(11).is_some() && cx.constant_ints(11)?.is_some_and(|found| found != [0]) {
        return Err(LowerError::unsupported("the logits_processor of Whisper is not supported"));
    }
    let inputs = Inputs { min_length: 2, penalty: 6, allowed: 7, allowed_first: 8 };
    let scores = Scores::of(cx, end, inputs, true)?;
    let beams = Beams::of(cx, [end, pad])?;
    let found = search(cx, 1, 9, beams.beams.clone(), scores, Choice::Several(beams.clone()))?;
    beams.results(cx, &found)
}

/// The tokens that end sequences and that fill them.
fn tokens_of(cx: &Context<'_>) -> Result<[i64; 2], LowerError> {
    let token = |name: &str| match cx.int(name)?.ok_or_else(|| cx.missing(name))? {
        token if token < 0 => {
            let message = format!("expected `{name}` not to be negative, found {token}");
            Err(LowerError::invalid(message))
        }
        token => Ok(token),
    };
    Ok([token("eos_token_id")?, token("pad_token_id")?])
}

/// The whole search, of which `max_length` and `mask` are the numbers of inputs.
fn search(
    cx: &mut Context<'_>,
    max_length: usize,
    mask: usize,
    beams: Dim,
    scores: Scores,
    choice: Choice,
) -> Result<Found, LowerError> {
    let prompt = cx.input(0)?;
    let ty = cx.ty(prompt);
    let [batch, _] = &ty.dims[..] else {
        return Err(LowerError::invalid(format!("expected tokens of rank 2, found {ty}")));
    };
    let max_length = cx.input(max_length)?;
    let max_length = counted(cx.b, max_length)?;
    let message = format!("expected a max_length of at most {MAX_LENGTH}");
    cx.b.require(&max_length, Relation::AtMost, &MAX_LENGTH.into(), &message)?;
    let pad = tokens_of(cx)?[1];
    let first = Decoder::start(cx, prompt, mask, pad)?;
    let length = cx.b.dims(first.tokens)[1].clone();
    let message = "expected a max_length above the length of the prompt";
    cx.b.require(&(length.clone() + 1.into()), Relation::AtMost, &max_length, message)?;
    let scores = scores.of_rows(cx.b, &beams)?;
    let decoder = first.decoder.of_rows(cx.b, &beams)?;
    let search = Search { decoder, batch: batch.clone(), beams, max_length, scores, pad, choice };
    let state = search.start(cx.b, &first, &length)?;
    let (state, scores, goes_on) = search.next(cx.b, state, &first.results, true)?;
    search.repeat(cx, state, scores, goes_on, &length)
}

impl Search<'_> {
    fn rows(&self) -> Dim {
        self.batch.clone() * self.beams.clone()
    }

    /// The state before the first step.
    fn start(&self, b: &mut Builder, first: &First<'_>, length: &Dim) -> Result<State, LowerError> {
        let mut operands = vec![];
        for operand in &first.operands {
            operands.push(repeated(b, *operand, 0, &self.beams)?);
        }
        let inside = Scalar::Loop(1).lt(size(length));
        let pad = Scalar::Int(self.pad, DType::I32);
        let prompt = Scalar::load(0, [group(&self.beams), Scalar::Loop(1)]);
        let dims = [self.rows(), self.max_length.clone()];
        let tokens = Compute::map(dims, inside.select(prompt, pad));
        let tokens = b.compute(tokens, &[first.tokens])?;
        let chosen = match &self.choice {
            Choice::One(_) => {
                let no = Scalar::Int(0, DType::Bool);
                vec![b.compute(Compute::map([self.batch.clone()], no), &[])?]
            }
            Choice::Several(beams) => beams.start(b, &self.batch, &self.max_length)?,
        };
        let length = b.sizes(std::slice::from_ref(length), true, DType::I64)?;
        Ok(State { operands, tokens, length, chosen })
    }

    /// The state after a step with these results of the decoder, the scores, and whether there are more steps.
    /// Results of the first step have a row for each element of the batch.
    fn next(
        &self,
        b: &mut Builder,
        state: State,
        results: &[ValueId],
        first: bool,
    ) -> Result<(State, Option<ValueId>, ValueId), LowerError> {
        let (logits, caches) = results
            .split_first()
            .filter(|(logits, _)| b.rank(**logits) == 3)
            .ok_or_else(|| LowerError::invalid("expected scores of rank 3 of the decoder"))?;
        let last = b.dims(*logits)[1].clone() - 1.into();
        let logits = along(b, *logits, 1, last, 1)?;
        let mut logits = squeeze(b, logits, 1)?;
        if first {
            logits = repeated(b, logits, 0, &self.beams)?;
        }
        let scores = self.scores.of_tokens(b, logits, [state.tokens, state.length], first)?;
        let chosen = match &self.choice {
            Choice::One(one) => one.choose(b, scores, state.chosen[0], state.length)?,
            Choice::Several(beams) => beams.choose(b, scores, &state)?,
        };
        let row = match chosen.from {
            Some(_) => Scalar::load(3, [Scalar::Loop(0)]),
            None => Scalar::Loop(0),
        };
        let here = Scalar::Loop(1).equals(Scalar::load(2, []));
        let before = Scalar::load(0, [row, Scalar::Loop(1)]);
        let body = here.select(Scalar::load(1, [Scalar::Loop(0)]), before);
        let dims = b.dims(state.tokens);
        let mut operands = vec![state.tokens, chosen.token, state.length];
        operands.extend(chosen.from);
        let tokens = b.compute(Compute::map(dims, body), &operands)?;
        let one = b.scalar(1.0, DType::I64)?;
        let length = b.binary(Binary::Add, state.length, one)?;
        // Rows of the first results are the elements of the batch.
        let beams = if first { self.beams.clone() } else { Dim::Known(1) };
        let caches = self.decoder.picked(b, caches, chosen.from, &self.rows(), &beams)?;
        let token = b.reshape(chosen.token, &[self.rows(), 1.into()])?;
        let mut operands = self.decoder.next(b, &state.operands, [token, tokens, length], first)?;
        operands.extend(caches);
        let state = State { operands, tokens, length, chosen: chosen.carried };
        Ok((state, chosen.scores, chosen.goes_on))
    }

    /// The state after all steps that follow the first, with the scores of all steps.
    fn repeat(
        &self,
        cx: &mut Context<'_>,
        state: State,
        first_scores: Option<ValueId>,
        goes_on: ValueId,
        prompt: &Dim,
    ) -> Result<Found, LowerError> {
        let mut carried = state.operands.clone();
        carried.extend([state.tokens, state.length]);
        carried.extend(&state.chosen);
        let types: Vec<Type> = carried.iter().map(|value| cx.ty(*value)).collect();
        let count = state.operands.len();
        let open = |b: &mut Builder, index: usize| {
            let mut ty = types[index].clone();
            let grows = if index < count { self.decoder.growing(index) } else { None };
            if let Some(axis) = grows {
                ty.dims[axis] = b.fresh_symbol();
            }
            ty
        };
        let mut region = cx.region();
        region.b.input("iteration", Type::new(DType::I64, []));
        let mut own = vec![];
        for index in 0..carried.len() {
            let ty = open(&mut region.b, index);
            own.push(region.b.input(format!("carried_{index}"), ty));
        }
        let inside = Search {
            decoder: self.decoder.captured(&mut region, cx.b),
            scores: self.scores.captured(&mut region, cx.b),
            choice: self.choice.captured(&mut region, cx.b),
            ..self.clone()
        };
        let results = inside.decoder.write(cx, &mut region, &own[..count])?;
        let [tokens, length, ref chosen @ ..] = own[count..] else {
            unreachable!("two values and those of the choice follow")
        };
        let (operands, chosen) = (own[..count].to_vec(), chosen.to_vec());
        let before = State { operands, tokens, length, chosen };
        let (next, scores, go_on) = inside.next(&mut region.b, before, &results, false)?;
        region.b.output("go_on", go_on);
        let mut outputs = next.operands.clone();
        outputs.extend([next.tokens, next.length]);
        outputs.extend(&next.chosen);
        for (index, output) in outputs.iter().enumerate() {
            region.b.output(format!("next_{index}"), *output);
        }
        let mut results: Vec<Type> = (0..types.len()).map(|index| open(cx.b, index)).collect();
        if let (Some(scores), Some(first)) = (scores, first_scores) {
            let step = squeeze(&mut region.b, scores, 0)?;
            region.b.output("scores", step);
            let mut ty = cx.ty(first);
            ty.dims[0] = cx.b.fresh_symbol();
            results.push(ty);
        }
        let trips = self.max_length.clone() - prompt.clone() - 1.into();
        let trips = cx.b.sizes(&[trips], true, DType::I64)?;
        let mut operands = vec![trips, goes_on];
        operands.extend(&carried);
        operands.extend(&region.captured);
        let body = Box::new(region.b.finish());
        let kind = NodeKind::Loop { body, carried: types.len() };
        let results = cx.b.region(kind, &operands, results)?;
        let scores = match (first_scores, results.get(types.len())) {
            (Some(first), Some(others)) => {
                let steps = self.max_length.clone() - prompt.clone();
                Some(steps_of(cx.b, first, *others, steps)?)
            }
            _ => None,
        };
        let state = State {
            operands: results[..count].to_vec(),
            tokens: results[count],
            length: results[count + 1],
            chosen: results[count + 2..types.len()].to_vec(),
        };
        Ok(Found { state, scores })
    }
}

impl Choice {
    /// The choice in the body of a loop.
    fn captured(&self, region: &mut Region, around: &Builder) -> Self {
        match self {
            Self::One(one) => Self::One(one.captured(region, around)),
            Self::Several(beams) => Self::Several(beams.captured(region, around)),
        }
    }
}

/// Whether a sequence has not ended.
fn goes_on(b: &mut Builder, ended: ValueId) -> Built {
    let batch = b.dims(ended);
    let body = Scalar::load(0, loops(0..1)).cast(DType::I32);
    let all = b.compute(Compute::reduce([], Combine::Min, batch, body), &[ended])?;
    let one = b.scalar(1.0, DType::I32)?;
    b.compare(Comparison::Lt, all, one)
}

/// The element of the batch of the row of loop 0.
fn group(beams: &Dim) -> Scalar {
    if beams.is(1) {
        return Scalar::Loop(0);
    }
    Scalar::Loop(0).binary(Binary::Div, size(beams))
}

/// Every row of an axis as often as there are beams.
fn repeated(b: &mut Builder, value: ValueId, axis: usize, beams: &Dim) -> Built {
    if beams.is(1) {
        return Ok(value);
    }
    let mut dims = b.dims(value);
    dims[axis] = dims[axis].clone() * beams.clone();
    let mut at = loops(0..dims.len());
    at[axis] = Scalar::Loop(axis).binary(Binary::Div, size(beams));
    b.compute(Compute::map(dims, Scalar::load(0, at)), &[value])
}

/// The scores of the first step and the others, and 0 for the steps that were not needed.
fn steps_of(b: &mut Builder, first: ValueId, others: ValueId, steps: Dim) -> Built {
    let mut dims = b.dims(first);
    dims[0] = steps;
    let count = size(&b.dims(others)[0].clone());
    let (mut at_first, mut at_others) = (loops(0..4), loops(0..4));
    at_first[0] = Scalar::index(0);
    at_others[0] = Scalar::Loop(0) - Scalar::index(1);
    let none = Scalar::float(0.0, DType::F32);
    let rest = Scalar::Loop(0).compare(Comparison::Le, count);
    let rest = rest.select(Scalar::load(1, at_others), none);
    let body = Scalar::Loop(0).equals(Scalar::index(0)).select(Scalar::load(0, at_first), rest);
    b.compute(Compute::map(dims, body), &[first, others])
}
