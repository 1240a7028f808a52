//! Rotary position embedding with tables of all positions.

use super::super::operator;
use super::{expect_rank, reject_flag};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::attention::rotary::{Angles, Rotation};
use irc_tl::{DType, Dim, Relation, Scalar, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[operator("RotaryEmbedding", rotary)];

fn rotary(cx: &mut Context<'_>) -> Lowered {
    reject_flag(cx, "is_packed_batching")?;
    let (x, positions) = (cx.input(0)?, cx.input(1)?);
    let [cos, sin] = tables(cx, [2, 3])?;
    let own = cx.b.dims(x);
    let turned = cx.b.dims(cos)[1].clone() * 2.into();
    let (split, sequence) = split(cx, x, &turned)?;
    let token = [Scalar::Loop(0), Scalar::Loop(sequence)];
    let position = match cx.b.rank(positions) {
        // The position of the first token.
        0 => Scalar::load(3, []).cast(DType::I64) + Scalar::Loop(sequence),
        1 => Scalar::load(3, [Scalar::index(0)]).cast(DType::I64) + Scalar::Loop(sequence),
        2 => {
            let message = "expected a position for each token";
            let (found, split) = (cx.b.dims(positions), cx.b.dims(split));
            cx.b.require(&found[0], Relation::Equal, &split[0], message)?;
            cx.b.require(&found[1], Relation::Equal, &split[sequence], message)?;
            Scalar::load(3, token)
        }
        _ => {
            let found = cx.ty(positions);
            let message = format!("expected positions of rank 1 or 2, found {found}");
            return Err(LowerError::invalid(message));
        }
    };
    let interleaved = cx.int_or("interleaved", 0)? != 0;
    let rotation = Rotation { turned, interleaved, sequence, angles: Angles::At(position) };
    let result = rotation.apply(cx.b, split, [cos, sin], &[positions])?;
    one(cx.b.reshape(result, &own))
}

/// Tables of cosines and sines by position, and half as many columns as elements are rotated.
pub(super) fn tables(cx: &mut Context<'_>, inputs: [usize; 2]) -> Result<[ValueId; 2], LowerError> {
    let [cos, sin] = [cx.input(inputs[0])?, cx.input(inputs[1])?];
    expect_rank(cx, cos, 2)?;
    expect_rank(cx, sin, 2)?;
    let (left, right) = (cx.b.dims(cos), cx.b.dims(sin));
    for (left, right) in left.iter().zip(&right) {
        cx.b.require(left, Relation::Equal, right, "expected tables of one shape")?;
    }
    Ok([cos, sin])
}

/// The operand with heads as a separate dimension, and the dimension of the sequence.
fn split(cx: &mut Context<'_>, x: ValueId, turned: &Dim) -> Result<(ValueId, usize), LowerError> {
    let own = cx.b.dims(x);
    let (split, sequence) = match &own[..] {
        [_, _, _, _] => (x, 2),
        [batch, sequence, hidden] => {
            let (heads, head) = match cx.int_or("num_heads", 0)? {
                0 => (hidden.floor_div(turned), turned.clone()),
                heads if heads > 0 => (heads.into(), hidden.floor_div(&heads.into())),
                heads => {
                    let message = format!("expected num_heads of at least 1, found {heads}");
                    return Err(LowerError::invalid(message));
                }
            };
            let dims = [batch.clone(), sequence.clone(), heads, head];
            (cx.b.reshape(x, &dims)?, 1)
        }
        _ => {
            let found = cx.ty(x);
            return Err(LowerError::invalid(format!("expected rank 3 or 4, found {found}")));
        }
    };
    let head = cx.b.dims(split)[3].clone();
    let message = "expected at most half as many angles as elements of a head";
    cx.b.require(turned, Relation::AtMost, &head, message)?;
    Ok((split, sequence))
}
