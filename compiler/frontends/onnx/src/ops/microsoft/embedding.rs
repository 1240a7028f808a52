//! Sums of embeddings, normalised: the first layer of BERT.

use super::normalise::small_epsilon;
use super::operator;
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::formula::{Formula, widened};
use crate::ops::gather::data_index;
use crate::ops::normalise::layer_over;
use crate::ops::pieces::loops;
use crate::ops::product::quantized::centred;
use irc_tl::{Combine, Compute, DType, Dim, Relation, Scalar, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("EmbedLayerNormalization", |cx| {
        let parts = Parts::of(cx, |cx, index| Ok(cx.optional(index)))?;
        parts.lower(cx, cx.optional(8))
    }),
    operator("QEmbedLayerNormalization", |cx| {
        let parts = Parts::of(cx, dequantized)?;
        parts.lower(cx, None)
    }),
];

/// The tables of embeddings, and scale and shift of the normalisation.
struct Parts {
    words: ValueId,
    positions: ValueId,
    segments: Option<ValueId>,
    scale: ValueId,
    shift: ValueId,
}

/// An input from 2 to 6 that is quantised: its scale is 6 inputs later, its zero point 11.
fn dequantized(cx: &mut Context<'_>, index: usize) -> Result<Option<ValueId>, LowerError> {
    let Some(x) = cx.optional(index) else { return Ok(None) };
    let (scale, zero) = (cx.input(index + 6)?, cx.optional(index + 11));
    let zero = zero.map(|zero| cx.b.reshape(zero, &[])).transpose()?;
    let scale = cx.b.reshape(scale, &[])?;
    let number = centred(cx.b, x, zero)?;
    let number = cx.b.cast(number, cx.dtype(scale))?;
    Ok(Some(cx.b.mul(number, scale)?))
}

impl Parts {
    fn of(
        cx: &mut Context<'_>,
        read: impl Fn(&mut Context<'_>, usize) -> Result<Option<ValueId>, LowerError>,
    ) -> Result<Self, LowerError> {
        let mut found = [None; 5];
        for (place, index) in found.iter_mut().zip(2..) {
            *place = read(cx, index)?;
        }
        let [Some(words), Some(positions), segments, Some(scale), Some(shift)] = found else {
            let message = "expected tables of words and positions, a scale and a shift";
            return Err(LowerError::invalid(message));
        };
        Ok(Self { words, positions, segments, scale, shift })
    }

    fn lower(&self, cx: &mut Context<'_>, position_ids: Option<ValueId>) -> Lowered {
        let (ids, epsilon) = (cx.input(0)?, small_epsilon(cx)?);
        let found = cx.ty(ids);
        if found.rank() != 2 {
            return Err(LowerError::invalid(format!("expected ids of rank 2, found {found}")));
        }
        let words = rows(cx, self.words, ids)?;
        let positions = match position_ids {
            Some(given) => {
                let given = cx.b.broadcast(given, &found.dims)?;
                rows(cx, self.positions, given)?
            }
            None => first_rows(cx, self.positions, &found.dims)?,
        };
        let mut sum = cx.b.add(words, positions)?;
        let segment_ids = cx.optional(1);
        if let (Some(table), Some(ids)) = (self.segments, segment_ids) {
            let segments = rows(cx, table, ids)?;
            sum = cx.b.add(sum, segments)?;
        }
        let dtype = cx.dtype(self.words);
        let normal =
            layer_over(cx.b, sum, [Some(self.scale), Some(self.shift)], &[2], epsilon)?.result;
        let lengths = lengths(cx, &found.dims)?;
        Ok(vec![cx.b.cast(normal, dtype)?, lengths, cx.b.cast(sum, dtype)?])
    }
}

/// Rows of a table by index, in at least `f32`: `[batch, sequence, width]`.
fn rows(cx: &mut Context<'_>, table: ValueId, ids: ValueId) -> Result<ValueId, LowerError> {
    let own = cx.ty(table);
    if own.rank() != 2 || cx.b.rank(ids) != 2 {
        let ids = cx.ty(ids);
        return Err(LowerError::invalid(format!(
            "expected a table and ids, found {own} and {ids}"
        )));
    }
    let index = data_index(cx, Scalar::load(1, loops(0..2)), ids, &own.dims[0])?;
    let mut dims = cx.b.dims(ids);
    dims.push(own.dims[1].clone());
    let body = Scalar::load(0, [index, Scalar::Loop(2)]);
    let rows = cx.b.compute(Compute::map(dims, body), &[table, ids])?;
    Ok(widened(cx.b, rows)?)
}

/// The first rows of a table, one for each token of a sequence: `[1, sequence, width]`.
fn first_rows(cx: &mut Context<'_>, table: ValueId, tokens: &[Dim]) -> Result<ValueId, LowerError> {
    let own = cx.ty(table);
    if own.rank() != 2 {
        return Err(LowerError::invalid(format!("expected a table, found {own}")));
    }
    let message = "expected an embedding for each position";
    cx.b.require(&tokens[1], Relation::AtMost, &own.dims[0], message)?;
    let dims = [Dim::Known(1), tokens[1].clone(), own.dims[1].clone()];
    let body = Scalar::load(0, loops(1..3));
    let rows = cx.b.compute(Compute::map(dims, body), &[table])?;
    Ok(widened(cx.b, rows)?)
}

/// For each sequence, the number of tokens that the mask, input 7, shows; 0 without a mask.
fn lengths(cx: &mut Context<'_>, tokens: &[Dim]) -> Result<ValueId, LowerError> {
    let Some(mask) = cx.optional(7) else {
        return Ok(cx.b.fill(0.0, &tokens[..1], DType::I32)?);
    };
    let mask = cx.b.broadcast(mask, tokens)?;
    let one = Scalar::number(1, cx.dtype(mask));
    let shown = Scalar::load(0, loops(0..2)).equals(one).cast(DType::I32);
    let count = Compute::reduce(&tokens[..1], Combine::Sum, [tokens[1].clone()], shown);
    Ok(cx.b.compute(count, &[mask])?)
}
