//! Masks of keys, and terms added to scores.

use crate::context::{Context, LowerError};
use crate::ops::attention::dot_product::has_each_key;
use crate::ops::pieces::{loops, size};
use irc_tl::{Binary, Builder, Comparison, Compute, DType, Dim, Relation, Scalar, ValueId};

/// What changes scores before the softmax.
pub(super) struct Masks {
    /// Which keys are shown, in one of the forms of [`Masks::shown`].
    pub padding: Option<ValueId>,
    /// Added to the scores; broadcasts.
    pub bias: Option<ValueId>,
    /// Added to the scores of keys that the padding mask hides.
    pub filter: f64,
    /// Whether a query sees no later key.
    pub causal: bool,
    /// The number of keys before the first query's.
    pub past: Dim,
}

impl Masks {
    /// The masks of a node.
    pub fn of(
        cx: &Context<'_>,
        padding: Option<ValueId>,
        bias: Option<ValueId>,
        past: Dim,
    ) -> Result<Self, LowerError> {
        Ok(Self {
            padding,
            bias,
            filter: f64::from(cx.float_or("mask_filter_value", -10_000.0)?),
            causal: cx.int_or("unidirectional", 0)? != 0,
            past,
        })
    }

    /// Masked scores, of `[batch, heads, queries, keys]`.
    pub fn apply(&self, b: &mut Builder, scores: ValueId) -> Result<ValueId, LowerError> {
        let (dims, dtype) = (b.dims(scores), b.dtype(scores));
        let (plain, bias) = match self.bias {
            Some(bias) if has_each_key(&b.dims(bias), &dims) => (Some(bias), None),
            bias => (None, bias),
        };
        let mut scores = scores;
        if let Some(bias) = plain {
            let bias = b.cast(bias, dtype)?;
            scores = b.binary(Binary::Add, scores, bias)?;
        }
        let mut body = Scalar::load(0, loops(0..4));
        let mut operands = vec![scores];
        if let Some(bias) = bias {
            let bias = b.broadcast(bias, &dims)?;
            body = body + Scalar::load(operands.len(), loops(0..4)).cast(dtype);
            operands.push(bias);
        }
        if let Some(padding) = self.padding {
            let shown = self.shown(b, padding, operands.len(), &dims)?;
            let hidden = body.clone() + Scalar::float(self.filter, dtype);
            body = shown.select(body, hidden);
            operands.push(padding);
        }
        if self.causal {
            let position = Scalar::Loop(2) + size(&self.past);
            let seen = Scalar::Loop(3).compare(Comparison::Le, position);
            body = seen.select(body, Scalar::float(f64::from(f32::MIN), dtype));
        }
        if operands.len() == 1 && !self.causal {
            return Ok(scores);
        }
        Ok(b.compute(Compute::map(dims, body), &operands)?)
    }

    /// Whether a padding mask shows the key counted by loop 3.
    ///
    /// The mask is the length of each sequence, the ends and then the starts of the sequences, or nonzero for
    /// keys that are shown: `[batch, keys]`, `[batch, queries, keys]` or `[batch, 1, positions, positions]`.
    fn shown(
        &self,
        b: &mut Builder,
        mask: ValueId,
        operand: usize,
        dims: &[Dim],
    ) -> Result<Scalar, LowerError> {
        let ty = b.ty(mask).clone();
        let (batch, key) = (|| Scalar::Loop(0), || Scalar::Loop(3));
        let number = |at: Vec<Scalar>| Scalar::load(operand, at).cast(DType::I64);
        let expected: Vec<Dim> = match ty.rank() {
            1 => return bounds(b, &ty.dims[0], operand, &dims[0]),
            2 => vec![dims[0].clone(), dims[3].clone()],
            3 => vec![dims[0].clone(), dims[2].clone(), dims[3].clone()],
            4 => {
                let message = "expected a mask of all positions";
                b.require(&dims[3], Relation::AtMost, &ty.dims[3], message)?;
                let last = self.past.clone() + dims[2].clone();
                b.require(&last, Relation::AtMost, &ty.dims[2], message)?;
                b.require(&ty.dims[0], Relation::Equal, &dims[0], message)?;
                let query = Scalar::Loop(2) + size(&self.past);
                let at = vec![batch(), Scalar::index(0), query, key()];
                return Ok(Scalar::index(0).lt(number(at)));
            }
            _ => {
                let message = format!("expected a mask of rank 1 to 4, found {ty}");
                return Err(LowerError::invalid(message));
            }
        };
        for (found, expected) in ty.dims.iter().zip(&expected) {
            b.require(found, Relation::Equal, expected, "expected a mask of queries and keys")?;
        }
        let at = if ty.rank() == 2 {
            vec![batch(), key()]
        } else {
            vec![batch(), Scalar::Loop(2), key()]
        };
        Ok(Scalar::index(0).lt(number(at)))
    }
}

/// Whether a key is before the end of its sequence, and not before its start if the mask has starts.
fn bounds(b: &mut Builder, count: &Dim, operand: usize, batch: &Dim) -> Result<Scalar, LowerError> {
    let number = |at: Scalar| Scalar::load(operand, [at]).cast(DType::I64);
    let before_end = Scalar::Loop(3).lt(number(Scalar::Loop(0)));
    let twice = batch.clone() * 2.into();
    let both = count.clone() - twice.clone();
    if count == batch {
        return Ok(before_end);
    }
    b.require(batch, Relation::AtMost, count, "expected a length for each sequence")?;
    let message = "expected lengths, or ends and starts, of the sequences";
    b.require(count, Relation::AtMost, &twice, message)?;
    let start = number(Scalar::Loop(0) + size(batch));
    let after_start = Scalar::Loop(3).ge(start);
    if both.is(0) {
        return Ok(before_end.and(after_start));
    }
    let has_starts = size(count).equals(size(&twice));
    let always = Scalar::Int(1, DType::Bool);
    Ok(before_end.and(has_starts.select(after_start, always)))
}
