//! The decoder of a search: what it is called with, and how that changes from step to step.

use super::{repeated, size};
use crate::context::{Context, LowerError};
use crate::data::dtype_of;
use crate::item::Item;
use crate::ops::indexing::{along, counted};
use crate::ops::pieces::loops;
use crate::region::Region;
use irc_common_format::model::{Dim as FileDim, Graph, Type as FileType, Value};
use irc_tl::{
    Binary, Builder, Built, Combine, Comparison, Compute, DType, Dim, Reduction, Scalar, ValueId,
};

/// A decoder. Its operands are those that change first (the tokens, in some forms others), what an encoder
/// computed, the caches, which grow, and the caches of the encoder.
#[derive(Clone)]
pub(super) struct Decoder<'g> {
    graph: &'g Graph,
    form: Form,
    /// What an encoder computed: operands after the tokens.
    encoded: Vec<ValueId>,
    /// The caches of the encoder: the last operands.
    cross: Vec<ValueId>,
}

#[derive(Clone, Copy)]
enum Form {
    /// As GPT-2: tokens, their positions and the mask of all tokens change; caches are
    /// `[2, rows, heads, tokens, size]`.
    Alone,
    /// As T5: tokens change, either the last or all so far; caches are `[rows, heads, tokens, size]`.
    Encoded { all_tokens: bool },
}

/// The first call of a decoder, with one row for each element of the batch.
pub(super) struct First<'g> {
    pub decoder: Decoder<'g>,
    /// The operands that change, without caches, as [`Decoder::next`] takes them.
    pub operands: Vec<ValueId>,
    pub results: Vec<ValueId>,
    /// The first tokens: `i32[batch, length]`.
    pub tokens: ValueId,
}

impl<'g> Decoder<'g> {
    /// The decoder of a node, after its first call; `mask` is the number of the input that masks the prompt.
    pub fn start(
        cx: &mut Context<'g>,
        prompt: ValueId,
        mask: usize,
        pad: i64,
    ) -> Result<First<'g>, LowerError> {
        let graph = cx.graph("decoder")?.ok_or_else(|| cx.missing("decoder"))?;
        let prompt = cx.b.cast(prompt, DType::I32)?;
        let mask = match cx.optional(mask) {
            Some(given) => Some(cx.b.cast(given, DType::I32)?),
            None => None,
        };
        match cx.int_or("model_type", 0)? {
            0 => Self::start_alone(cx, graph, prompt, mask, pad),
            1 => Self::start_encoded(cx, graph, prompt, mask, pad),
            other => {
                let message = format!("expected `model_type` 0 or 1, found {other}");
                Err(LowerError::unsupported(message))
            }
        }
    }

    fn start_alone(
        cx: &mut Context<'g>,
        graph: &'g Graph,
        prompt: ValueId,
        mask: Option<ValueId>,
        pad: i64,
    ) -> Result<First<'g>, LowerError> {
        let decoder = Self { graph, form: Form::Alone, encoded: vec![], cross: vec![] };
        let before = decoder.changing();
        let caches = graph.inputs.len().checked_sub(before).filter(|count| *count > 0);
        if caches.is_none_or(|caches| graph.outputs.len() != caches + 1) {
            let (inputs, outputs) = (graph.inputs.len(), graph.outputs.len());
            let message = format!(
                "expected a decoder of tokens, positions, a mask and caches, whose results are scores and the \
                 same caches, found {inputs} inputs and {outputs} outputs"
            );
            return Err(LowerError::unsupported(message));
        }
        let shown = shown(cx.b, prompt, pad)?;
        let mask = mask.unwrap_or(shown);
        let positions = positions(cx.b, shown)?;
        let mut operands = vec![prompt, positions, mask];
        let batch = cx.b.dims(prompt)[0].clone();
        for input in &graph.inputs[before..] {
            operands.push(empty_cache(cx.b, input, &batch)?);
        }
        let first = cx.graph("init_decoder")?.unwrap_or(graph);
        let items: Vec<Item> = operands.iter().copied().map(Item::Tensor).collect();
        let results = tensors(cx.inline(first, &items)?)?;
        // The next position is the number of tokens shown.
        let next = cx.b.reduce(Reduction::Sum, shown, &[1], true)?;
        Ok(First { decoder, operands: vec![prompt, next, mask], results, tokens: prompt })
    }

    fn start_encoded(
        cx: &mut Context<'g>,
        graph: &'g Graph,
        prompt: ValueId,
        mask: Option<ValueId>,
        pad: i64,
    ) -> Result<First<'g>, LowerError> {
        let encoder = cx.graph("encoder")?.ok_or_else(|| cx.missing("encoder"))?;
        let batch = cx.b.dims(prompt)[0].clone();
        let mask = match mask {
            Some(mask) => mask,
            None => after_padding(cx.b, prompt, pad)?,
        };
        let start = cx.int_or("decoder_start_token_id", -1)?;
        let start = cx.b.fill(start as f64, &[batch, 1.into()], DType::I32)?;
        let has_scores = encoder.inputs.len() > 2;
        let mut operands = vec![prompt, mask];
        operands.extend(has_scores.then_some(start));
        let items: Vec<Item> = operands.into_iter().map(Item::Tensor).collect();
        let results = tensors(cx.inline(encoder, &items)?)?;
        let is = |place: usize, name: &str| {
            graph.inputs.get(place).is_some_and(|input| input.name() == name)
        };
        let mut encoded = vec![];
        encoded.extend(is(1, "encoder_input_ids").then_some(prompt));
        encoded.push(mask);
        let takes_states = is(1 + encoded.len(), "encoder_hidden_states");
        let before = 1 + encoded.len() + usize::from(takes_states);
        let layers = (graph.inputs.len().saturating_sub(before)) / 4;
        let computed = if has_scores { 2 + 4 * layers } else { 2 * layers };
        let is_sound = layers > 0
            && graph.inputs.len() == before + 4 * layers
            && graph.outputs.len() == 1 + 2 * layers
            && results.len() == computed
            && (has_scores || !takes_states);
        if !is_sound {
            let (inputs, outputs) = (graph.inputs.len(), graph.outputs.len());
            let message = format!(
                "expected a decoder of tokens, what the encoder computes, four caches of each layer, found \
                 {inputs} inputs and {outputs} outputs, and {} outputs of the encoder",
                results.len()
            );
            return Err(LowerError::unsupported(message));
        }
        if takes_states {
            encoded.push(results[1]);
        }
        let cross = results[results.len() - 2 * layers..].to_vec();
        let form = Form::Encoded { all_tokens: extent(&graph.inputs[0], 1) != Some(1) };
        let decoder = Self { graph, form, encoded, cross };
        // The first scores are those of the encoder, or of the decoder for the first token.
        let results = if has_scores {
            let mut first = vec![results[0]];
            first.extend(&results[2..2 + 2 * layers]);
            first
        } else {
            let mut own = vec![start];
            for cross in decoder.cross.clone() {
                let mut dims = cx.b.dims(cross);
                if dims.len() != 4 {
                    return Err(LowerError::invalid("expected caches of rank 4 of the encoder"));
                }
                dims[2] = 0.into();
                let dtype = cx.b.dtype(cross);
                own.push(cx.b.fill(0.0, &dims, dtype)?);
            }
            let items = decoder.items(&own);
            tensors(cx.inline(graph, &items)?)?
        };
        Ok(First { decoder, operands: vec![start], results, tokens: start })
    }

    /// The number of operands that change before the caches.
    fn changing(&self) -> usize {
        match self.form {
            Form::Alone => 3,
            Form::Encoded { .. } => 1,
        }
    }

    /// The axis of the rows of the caches.
    fn row_axis(&self) -> usize {
        match self.form {
            Form::Alone => 1,
            Form::Encoded { .. } => 0,
        }
    }

    /// The axis of an operand that changes which grows with every step.
    pub fn growing(&self, operand: usize) -> Option<usize> {
        match self.form {
            Form::Alone if operand < 2 => None,
            Form::Alone if operand == 2 => Some(1),
            Form::Encoded { all_tokens } if operand == 0 => all_tokens.then_some(1),
            _ => Some(self.row_axis() + 2),
        }
    }

    /// All operands, of those that change.
    fn items(&self, changing: &[ValueId]) -> Vec<Item> {
        let (tokens, caches) = match self.form {
            Form::Alone => (changing, &[][..]),
            Form::Encoded { .. } => changing.split_at(1),
        };
        let all = tokens.iter().chain(&self.encoded).chain(caches).chain(&self.cross);
        all.copied().map(Item::Tensor).collect()
    }

    /// The decoder with a row for each sequence.
    pub fn of_rows(&self, b: &mut Builder, beams: &Dim) -> Result<Self, LowerError> {
        let mut rows = |values: &[ValueId]| -> Built<Vec<ValueId>> {
            values.iter().map(|value| repeated(b, *value, 0, beams)).collect()
        };
        Ok(Self { encoded: rows(&self.encoded)?, cross: rows(&self.cross)?, ..self.clone() })
    }

    /// The decoder in the body of a loop.
    pub fn captured(&self, region: &mut Region, around: &Builder) -> Self {
        let mut capture = |values: &[ValueId]| -> Vec<ValueId> {
            values.iter().map(|value| region.capture(around, *value)).collect()
        };
        Self { encoded: capture(&self.encoded), cross: capture(&self.cross), ..self.clone() }
    }

    /// Writes a call of the decoder to the body of a loop.
    pub fn write(
        &self,
        cx: &mut Context<'_>,
        region: &mut Region,
        changing: &[ValueId],
    ) -> Result<Vec<ValueId>, LowerError> {
        let items = self.items(changing);
        tensors(cx.write(region, self.graph, &items)?)
    }

    /// The caches of the rows that each row continues. A row of the caches is `repeats` sequences.
    pub fn picked(
        &self,
        b: &mut Builder,
        caches: &[ValueId],
        from: Option<ValueId>,
        rows: &Dim,
        repeats: &Dim,
    ) -> Result<Vec<ValueId>, LowerError> {
        let Some(from) = from else { return Ok(caches.to_vec()) };
        let axis = self.row_axis();
        let mut picked = vec![];
        for cache in caches {
            let mut dims = b.dims(*cache);
            if dims.len() != axis + 4 {
                let message = format!("expected caches of rank {} of the decoder", axis + 4);
                return Err(LowerError::invalid(message));
            }
            dims[axis] = rows.clone();
            let mut at = loops(0..dims.len());
            let row = Scalar::load(1, [Scalar::Loop(axis)]);
            at[axis] = if repeats.is(1) { row } else { row.binary(Binary::Div, size(repeats)) };
            picked.push(b.compute(Compute::map(dims, Scalar::load(0, at)), &[*cache, from])?);
        }
        Ok(picked)
    }

    /// The operands of the next call before its caches: the next token is a column, `tokens` and `length` are
    /// those with it.
    pub fn next(
        &self,
        b: &mut Builder,
        before: &[ValueId],
        [column, tokens, length]: [ValueId; 3],
        first: bool,
    ) -> Result<Vec<ValueId>, LowerError> {
        match self.form {
            Form::Alone => {
                let position = if first {
                    before[1]
                } else {
                    let one = b.scalar(1.0, b.dtype(before[1]))?;
                    b.binary(Binary::Add, before[1], one)?
                };
                Ok(vec![column, position, longer(b, before[2])?])
            }
            Form::Encoded { all_tokens: false } => Ok(vec![column]),
            Form::Encoded { all_tokens: true } => {
                let length = counted(b, length)?;
                Ok(vec![along(b, tokens, 1, 0, length)?])
            }
        }
    }
}

fn tensors(items: Vec<Item>) -> Result<Vec<ValueId>, LowerError> {
    let tensors: Option<Vec<ValueId>> = items.iter().map(Item::tensor).collect();
    tensors.ok_or_else(|| LowerError::invalid("expected a decoder of tensors"))
}

/// The extent that an input states.
fn extent(input: &Value, axis: usize) -> Option<i64> {
    let Some(FileType::Tensor(tensor)) = &input.ty else { return None };
    match tensor.shape.as_ref().or(input.shape.as_ref())?.dims.get(axis)? {
        FileDim::Size(size) => Some(*size),
        _ => None,
    }
}

/// A cache of no tokens, with the heads that the decoder states: `[2, batch, heads, 0, size]`.
fn empty_cache(b: &mut Builder, input: &Value, batch: &Dim) -> Result<ValueId, LowerError> {
    let message = || {
        let name = input.name();
        LowerError::unsupported(format!("expected heads and a size of the cache '{name}'"))
    };
    let Some(FileType::Tensor(tensor)) = &input.ty else { return Err(message()) };
    let dtype = dtype_of(tensor.element).ok_or_else(message)?;
    let known = |axis: usize| extent(input, axis).filter(|size| *size > 0).ok_or_else(message);
    let dims = [2.into(), batch.clone(), known(2)?.into(), 0.into(), known(4)?.into()];
    Ok(b.fill(0.0, &dims, dtype)?)
}

/// 1 for tokens that are no padding, 0 for others.
fn shown(b: &mut Builder, prompt: ValueId, pad: i64) -> Built {
    let pad = b.scalar(pad as f64, DType::I32)?;
    let shown = b.compare(Comparison::Ne, prompt, pad)?;
    b.cast(shown, DType::I32)
}

/// 0 for padding before all other tokens, 1 for what follows: padding may be the end of a text.
fn after_padding(b: &mut Builder, prompt: ValueId, pad: i64) -> Built {
    let shown = shown(b, prompt, pad)?;
    let dims = b.dims(prompt);
    let over = [dims[1].clone()];
    let before = Scalar::Loop(2).compare(Comparison::Le, Scalar::Loop(1));
    let none = Scalar::Int(0, DType::I32);
    let body = before.select(Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(2)]), none);
    b.compute(Compute::reduce(dims, Combine::Max, over, body), &[shown])
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

/// The mask with one more token, which is shown.
fn longer(b: &mut Builder, mask: ValueId) -> Built {
    let mut dims = b.dims(mask);
    let old = dims[1].clone();
    dims[1] = old.clone() + 1.into();
    let inside = Scalar::Loop(1).lt(size(&old));
    let body = inside.select(Scalar::load(0, loops(0..2)), Scalar::Int(1, DType::I32));
    b.compute(Compute::map(dims, body), &[mask])
}
