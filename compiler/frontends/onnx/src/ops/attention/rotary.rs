//! Rotary position embedding: Su et al., "RoFormer" (2021).

use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::indexing::inside;
use crate::ops::pieces::{loops, size, wide};
use irc_tl::{Binary, Builder, Built, Compute, DType, Dim, Relation, Scalar, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] =
    &[Operator::new("RotaryEmbedding", &[23], rotary)];

/// The layout of a rotation of a value of rank 4 whose last dimension is that of one head.
pub(in crate::ops) struct Rotation {
    /// Number of elements of each head that are rotated.
    pub turned: Dim,
    /// Whether the elements of a pair are adjacent.
    pub interleaved: bool,
    /// The loop over the sequence.
    pub sequence: usize,
    /// The row of the tables of angles.
    pub angles: Angles,
}

/// The row of the tables of angles that a token uses.
pub(in crate::ops) enum Angles {
    /// Tables have a row for each token: `[batch, sequence, pairs]`.
    OfToken,
    /// Tables `[positions, pairs]` have a row for each position. The position of a token is an expression of
    /// the loops over the batch and the sequence, and of operands from 3 on.
    At(Scalar),
}

fn rotary(cx: &mut Context<'_>) -> Lowered {
    let [x, cos, sin] = [cx.input(0)?, cx.input(1)?, cx.input(2)?];
    let own = cx.b.dims(x);
    let (split, sequence) = split(cx, x)?;
    let head = cx.b.dims(split)[3].clone();
    let turned = match cx.int_or("rotary_embedding_dim", 0)? {
        0 => head,
        turned => turned.into(),
    };
    let half = turned.floor_div(&2.into());
    let rank = if cx.optional(3).is_some() { 2 } else { 3 };
    for table in [cos, sin] {
        let found = cx.ty(table);
        if found.rank() != rank {
            return Err(LowerError::invalid(format!("expected rank {rank}, found {found}")));
        }
        let message = "expected half as many angles as rotated elements";
        cx.b.require(&found.dims[rank - 1], Relation::Equal, &half, message)?;
    }
    let interleaved = cx.int_or("interleaved", 0)? != 0;
    let positions = cx.optional(3);
    let angles = match positions {
        Some(_) => Angles::At(Scalar::load(3, [Scalar::Loop(0), Scalar::Loop(sequence)])),
        None => Angles::OfToken,
    };
    let rotation = Rotation { turned, interleaved, sequence, angles };
    let turned = rotation.apply(cx.b, split, [cos, sin], positions.as_slice())?;
    one(cx.b.reshape(turned, &own))
}

/// The operand with heads as a separate dimension, the last but one or the second, and the
/// dimension of the sequence.
fn split(cx: &mut Context<'_>, x: ValueId) -> Result<(ValueId, usize), LowerError> {
    let own = cx.b.dims(x);
    match &own[..] {
        [_, _, _, _] => Ok((x, 2)),
        [batch, sequence, hidden] => {
            let heads = cx.int("num_heads")?.filter(|heads| *heads > 0);
            let heads = heads.ok_or_else(|| cx.missing("num_heads"))?;
            let head = hidden.floor_div(&heads.into());
            let dims = [batch.clone(), sequence.clone(), heads.into(), head];
            Ok((cx.b.reshape(x, &dims)?, 1))
        }
        _ => {
            let found = cx.ty(x);
            Err(LowerError::invalid(format!("expected rank 3 or 4, found {found}")))
        }
    }
}

impl Rotation {
    /// The rotated value. `others` are the operands from 3 on, for positions.
    pub fn apply(
        &self,
        b: &mut Builder,
        x: ValueId,
        tables: [ValueId; 2],
        others: &[ValueId],
    ) -> Built {
        let (dtype, dims) = (b.dtype(x), b.dims(x));
        let rows = b.dims(tables[0])[0].clone();
        let operands = [&[x], &tables[..], others].concat();
        let body = self.body(&dims[3], &rows, wide(dtype)).cast(dtype);
        b.compute(Compute::map(dims, body), &operands)
    }

    fn body(&self, head: &Dim, rows: &Dim, dtype: DType) -> Scalar {
        let index = || Scalar::Loop(3);
        let half = self.turned.floor_div(&2.into());
        let x = |at: Scalar| {
            let mut from = loops(0..3);
            from.push(at);
            Scalar::load(0, from).cast(dtype)
        };
        let two = || Scalar::index(2);
        let (pair, first, step) = if self.interleaved {
            let first = index().binary(Binary::Rem, two()).equals(Scalar::index(0));
            (index() / two(), first, Scalar::index(1))
        } else {
            let pair = index().binary(Binary::Rem, size(&half));
            (pair, index().lt(size(&half)), size(&half))
        };
        let (cos, sin) =
            (self.angle(1, pair.clone(), rows, dtype), self.angle(2, pair, rows, dtype));
        let one = x(index()) * cos.clone() - x(index() + step.clone()) * sin.clone();
        let other = x(index() - step) * sin + x(index()) * cos;
        let turned = first.select(one, other);
        if self.turned == *head {
            return turned;
        }
        index().lt(size(&self.turned)).select(turned, x(index()))
    }

    /// An element of a table of angles.
    fn angle(&self, table: usize, pair: Scalar, rows: &Dim, dtype: DType) -> Scalar {
        let at = match &self.angles {
            Angles::OfToken => vec![Scalar::Loop(0), Scalar::Loop(self.sequence), pair],
            Angles::At(position) => {
                vec![inside(position.clone().cast(DType::I64), rows), pair]
            }
        };
        Scalar::load(table, at).cast(dtype)
    }
}
