//! Greedy search and sampling: a loop around a decoder, each step of which adds the token with the highest score,
//! or one that is drawn.

mod sampling;
mod scores;

use super::operator;
use crate::context::{Context, LowerError, Lowered};
use crate::data::dtype_of;
use crate::item::Item;
use crate::operator::Operator;
use crate::ops::indexing::counted;
use crate::ops::pieces::{loops, size};
use irc_common_format::model::{Dim as FileDim, Graph, Type as FileType};
use irc_tl::{
    Binary, Builder, Built, Combine, Compute, DType, Dim, NodeKind, Reduction, Relation, Scalar,
    Type, ValueId,
};
use sampling::Sampling;
use scores::Scores;

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("GreedySearch", |cx| search(cx, None)),
    operator("Sampling", |cx| {
        let sampling = Sampling::of(cx)?;
        search(cx, Some(sampling))
    }),
];

/// Maximum length of a sequence, as in ONNX Runtime.
const MAX_LENGTH: i64 = 4096;

/// The inputs of a decoder before its caches: tokens, their positions, and the mask of all tokens.
const BEFORE_CACHES: usize = 3;

/// What is constant during a search.
#[derive(Clone)]
struct Search<'g> {
    decoder: &'g Graph,
    batch: Dim,
    max_length: Dim,
    scores: Scores,
    end: i64,
    pad: i64,
}

/// What each step changes.
struct State {
    /// The operands of the decoder.
    operands: Vec<ValueId>,
    /// The tokens so far, followed by padding: `i32[batch, max_length]`.
    tokens: ValueId,
    /// Which sequences have ended: `bool[batch]`.
    ended: ValueId,
    /// The number of tokens: an `i64` scalar.
    length: ValueId,
}

fn search(cx: &mut Context<'_>, sampling: Option<Sampling>) -> Lowered {
    let prompt = cx.input(0)?;
    let found = cx.ty(prompt);
    let [batch, length] = &found.dims[..] else {
        return Err(LowerError::invalid(format!("expected tokens of rank 2, found {found}")));
    };
    if cx.int_or("model_type", 0)? != 0 {
        return Err(LowerError::unsupported("searches with an encoder are not supported"));
    }
    let search = Search::of(cx, batch, length, sampling)?;
    let first = cx.graph("init_decoder")?.unwrap_or(search.decoder);
    let state = search.start(cx, prompt, length)?;
    let items: Vec<Item> = state.operands.iter().copied().map(Item::Tensor).collect();
    let results = tensors(cx.inline(first, &items)?)?;
    let state = search.next(cx.b, state, &results, true)?;
    Ok(vec![search.repeat(cx, state, length)?])
}

fn tensors(items: Vec<Item>) -> Result<Vec<ValueId>, LowerError> {
    let tensors: Option<Vec<ValueId>> = items.iter().map(Item::tensor).collect();
    tensors.ok_or_else(|| LowerError::invalid("expected a decoder of tensors"))
}

impl<'g> Search<'g> {
    fn of(
        cx: &mut Context<'g>,
        batch: &Dim,
        length: &Dim,
        sampling: Option<Sampling>,
    ) -> Result<Self, LowerError> {
        let decoder = cx.graph("decoder")?.ok_or_else(|| cx.missing("decoder"))?;
        let caches = decoder.inputs.len().checked_sub(BEFORE_CACHES).filter(|count| *count > 0);
        if caches.is_none_or(|caches| decoder.outputs.len() != caches + 1) {
            let (inputs, outputs) = (decoder.inputs.len(), decoder.outputs.len());
            let message = format!(
                "expected a decoder of tokens, positions, a mask and caches, whose results are scores and the \
                 same caches, found {inputs} inputs and {outputs} outputs"
            );
            return Err(LowerError::unsupported(message));
        }
        let max_length = cx.input(1)?;
        let max_length = counted(cx.b, max_length)?;
        let next = length.clone() + 1.into();
        let message = "expected a max_length above the length of the prompt";
        cx.b.require(&next, Relation::AtMost, &max_length, message)?;
        let message = format!("expected a max_length of at most {MAX_LENGTH}");
        cx.b.require(&max_length, Relation::AtMost, &MAX_LENGTH.into(), &message)?;
        let token = |name: &str| cx.int(name)?.ok_or_else(|| cx.missing(name));
        let (end, pad) = (token("eos_token_id")?, token("pad_token_id")?);
        let (scores, batch) = (Scores::of(cx, end, sampling)?, batch.clone());
        Ok(Self { decoder, batch, max_length, scores, end, pad })
    }

    /// The state before the first step.
    fn start(
        &self,
        cx: &mut Context<'_>,
        prompt: ValueId,
        length: &Dim,
    ) -> Result<State, LowerError> {
        let prompt = cx.b.cast(prompt, DType::I32)?;
        let mask = match cx.optional(6) {
            Some(given) => cx.b.cast(given, DType::I32)?,
            None => {
                let pad = cx.b.scalar(self.pad as f64, DType::I32)?;
                let shown = cx.b.compare(irc_tl::Comparison::Ne, prompt, pad)?;
                cx.b.cast(shown, DType::I32)?
            }
        };
        let positions = positions(cx.b, mask)?;
        let mut operands = vec![prompt, positions, mask];
        for index in BEFORE_CACHES..self.decoder.inputs.len() {
            operands.push(self.empty_cache(cx, index)?);
        }
        let inside = Scalar::Loop(1).lt(size(length));
        let pad = Scalar::Int(self.pad, DType::I32);
        let body = inside.select(Scalar::load(0, loops(0..2)), pad);
        let dims = [self.batch.clone(), self.max_length.clone()];
        let tokens = cx.b.compute(Compute::map(dims, body), &[prompt])?;
        let no = Scalar::Int(0, DType::Bool);
        let ended = cx.b.compute(Compute::map([self.batch.clone()], no), &[])?;
        let length = cx.b.sizes(std::slice::from_ref(length), true, DType::I64)?;
        Ok(State { operands, tokens, ended, length })
    }

    /// A cache of no tokens, with the heads that the decoder states: `[2, batch, heads, 0, size]`.
    fn empty_cache(&self, cx: &mut Context<'_>, index: usize) -> Result<ValueId, LowerError> {
        let input = &self.decoder.inputs[index];
        let message = || {
            let name = input.name();
            LowerError::unsupported(format!("expected heads and a size of the cache '{name}'"))
        };
        let Some(FileType::Tensor(tensor)) = &input.ty else { return Err(message()) };
        let shape = tensor.shape.as_ref().or(input.shape.as_ref()).ok_or_else(message)?;
        let (5, Some(dtype)) = (shape.dims.len(), dtype_of(tensor.element)) else {
            return Err(message());
        };
        let known = |axis: usize| match &shape.dims[axis] {
            FileDim::Size(size) if *size > 0 => Ok(Dim::Known(*size)),
            _ => Err(message()),
        };
        let dims = [2.into(), self.batch.clone(), known(2)?, 0.into(), known(4)?];
        Ok(cx.b.fill(0.0, &dims, dtype)?)
    }

    /// The state after a step with these results of the decoder.
    fn next(
        &self,
        b: &mut Builder,
        state: State,
        results: &[ValueId],
        first: bool,
    ) -> Result<State, LowerError> {
        let (logits, caches) = results
            .split_first()
            .filter(|(logits, _)| b.rank(**logits) == 3)
            .ok_or_else(|| LowerError::invalid("expected scores of rank 3 of the decoder"))?;
        let best = self.scores.choose(b, *logits, [state.tokens, state.length], first)?;
        let ends = b.scalar(self.end as f64, DType::I32)?;
        let ends = b.compare(irc_tl::Comparison::Eq, best, ends)?;
        let ended = b.binary(Binary::Or, state.ended, ends)?;
        let pad = b.scalar(self.pad as f64, DType::I32)?;
        let token = b.select(ended, pad, best)?;
        let here = Scalar::Loop(1).equals(Scalar::load(2, []));
        let body = here.select(Scalar::load(1, [Scalar::Loop(0)]), Scalar::load(0, loops(0..2)));
        let dims = b.dims(state.tokens);
        let operands = [state.tokens, token, state.length];
        let tokens = b.compute(Compute::map(dims, body), &operands)?;
        let one = b.scalar(1.0, DType::I64)?;
        let length = b.binary(Binary::Add, state.length, one)?;
        let column = b.reshape(token, &[self.batch.clone(), 1.into()])?;
        let mut operands = vec![column];
        operands.push(next_position(b, state.operands[1], state.operands[2], first)?);
        operands.push(longer(b, state.operands[2])?);
        operands.extend(caches);
        Ok(State { operands, tokens, ended, length })
    }

    /// The tokens after all steps that follow the first.
    fn repeat(
        &self,
        cx: &mut Context<'_>,
        state: State,
        prompt: &Dim,
    ) -> Result<ValueId, LowerError> {
        let mut carried = state.operands.clone();
        carried.extend([state.tokens, state.ended, state.length]);
        let types: Vec<Type> = carried.iter().map(|value| cx.ty(*value)).collect();
        let count = state.operands.len();
        let open = |b: &mut Builder, index: usize| {
            let mut ty = types[index].clone();
            // The mask and the caches grow.
            match index {
                2 => ty.dims[1] = b.fresh_symbol(),
                BEFORE_CACHES.. if index < count && ty.rank() == 5 => ty.dims[3] = b.fresh_symbol(),
                _ => {}
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
        let items: Vec<Item> = own[..count].iter().copied().map(Item::Tensor).collect();
        let results = tensors(cx.write(&mut region, self.decoder, &items)?)?;
        let operands = own[..count].to_vec();
        let [tokens, ended, length] = own[count..] else { unreachable!("three values follow") };
        let inside = State { operands, tokens, ended, length };
        let scores = self.scores.captured(&mut region, cx.b);
        let search = Search { scores, ..self.clone() };
        let next = search.next(&mut region.b, inside, &results, false)?;
        let go_on = goes_on(&mut region.b, next.ended)?;
        region.b.output("go_on", go_on);
        let outputs = next.operands.iter().chain([&next.tokens, &next.ended, &next.length]);
        for (index, output) in outputs.enumerate() {
            region.b.output(format!("next_{index}"), *output);
        }
        let results: Vec<Type> = (0..types.len()).map(|index| open(cx.b, index)).collect();
        let trips = self.max_length.clone() - prompt.clone() - 1.into();
        let trips = cx.b.sizes(&[trips], true, DType::I64)?;
        let start = goes_on(cx.b, state.ended)?;
        let mut operands = vec![trips, start];
        operands.extend(&carried);
        operands.extend(&region.captured);
        let body = Box::new(region.b.finish());
        let kind = NodeKind::Loop { body, carried: types.len() };
        Ok(cx.b.region(kind, &operands, results)?[count])
    }
}

/// Whether a sequence has not ended.
fn goes_on(b: &mut Builder, ended: ValueId) -> Built {
    let batch = b.dims(ended);
    let body = Scalar::load(0, loops(0..1)).cast(DType::I32);
    let all = b.compute(Compute::reduce([], Combine::Min, batch, body), &[ended])?;
    let one = b.scalar(1.0, DType::I32)?;
    b.compare(irc_tl::Comparison::Lt, all, one)
}

/// The positions of the tokens that a mask shows, counted from 0; of others 0.
fn positions(b: &mut Builder, mask: ValueId) -> Built {
    let dims = b.dims(mask);
    let at = |column: Scalar| Scalar::load(0, [Scalar::Loop(0), column]);
    let shown = |column: Scalar| Scalar::Int(0, DType::I32).lt(at(column));
    let before = Scalar::Loop(2).lt(Scalar::Loop(1)).and(shown(Scalar::Loop(2)));
    let counted = before.and(shown(Scalar::Loop(1))).cast(DType::I32);
    let over = [dims[1].clone()];
    b.compute(Compute::reduce(dims, Combine::Sum, over, counted), &[mask])
}

/// The position of the next token: one more than the last, or after the prompt the number of tokens shown.
fn next_position(b: &mut Builder, positions: ValueId, mask: ValueId, first: bool) -> Built {
    if first {
        let one = b.scalar(0.0, DType::I32)?;
        let shown = b.compare(irc_tl::Comparison::Gt, mask, one)?;
        let shown = b.cast(shown, DType::I32)?;
        return b.reduce(Reduction::Sum, shown, &[1], true);
    }
    let one = b.scalar(1.0, b.dtype(positions))?;
    b.binary(Binary::Add, positions, one)
}

/// The mask with one more token, which is shown.
fn longer(b: &mut Builder, mask: ValueId) -> Built {
    let mut dims = b.dims(mask);
    let old = dims[1].clone();
    dims[1] = old.clone() + 1.into();
    let inside = Scalar::Loop(1).lt(size(&old));
    let body = inside.select(Scalar::load(0, loops(0..2)), Scalar::Int(1, DType::I32));
    b.compute(Compute::map(dims, body), &[mask])
}
