//! Convolution over time that looks back only, and carries what it will look back at.

use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::pieces::{along, concat, known, size, wide};
use irc_tl::{Binary, Compute, Conv, Dim, Relation, Scalar, Unary};

pub(in crate::ops) const OPERATORS: &[Operator] =
    &[Operator::new("CausalConvWithState", &[27], causal_conv)];

fn causal_conv(cx: &mut Context<'_>) -> Lowered {
    let (x, w) = (cx.input(0)?, cx.input(1)?);
    let (dims, filters) = (cx.b.dims(x), cx.b.dims(w));
    if dims.len() != 3 || filters.len() != 3 {
        let (x, w) = (cx.ty(x), cx.ty(w));
        return Err(LowerError::invalid(format!("expected rank 3, found {x} and {w}")));
    }
    let message = "expected one filter per channel";
    cx.b.require(&filters[0], Relation::Equal, &dims[1], message)?;
    let groups = known(&filters[0], "channels")?;
    let carried = filters[2].clone() - 1.into();
    let past = cx.optional(3);
    let (padded, before) = match past {
        Some(past) => (concat(cx.b, &[past, x], 2)?, 0),
        None => (x, known(&carried, "filters")?),
    };
    let pads = vec![[before, 0]];
    let conv = Conv { strides: vec![1], dilations: vec![1], pads, groups };
    let mut y = cx.b.conv(conv, padded, w)?;
    if let Some(bias) = cx.optional(2) {
        let bias = along(cx.b, bias, 1, 3)?;
        y = cx.b.binary(Binary::Add, y, bias)?;
    }
    let y = match cx.string_or("activation", "none")?.as_str() {
        "none" => y,
        "silu" | "swish" => {
            let dtype = cx.dtype(y);
            let value = cx.b.cast(y, wide(dtype))?;
            let gate = cx.b.unary(Unary::Sigmoid, value)?;
            let value = cx.b.binary(Binary::Mul, value, gate)?;
            cx.b.cast(value, dtype)?
        }
        other => {
            let message = format!("expected activation none, silu or swish, found {other}");
            return Err(LowerError::invalid(message));
        }
    };
    // The last steps of what lies before and the operand itself.
    let at = Scalar::Loop(2) + size(&(cx.b.dims(padded)[2].clone() - carried.clone()));
    let load = |at| Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1), at]);
    let inside = at.clone().ge(Scalar::index(0));
    let zero = Scalar::number(0, cx.dtype(x));
    let body = if past.is_some() { load(at) } else { inside.select(load(at), zero) };
    let state: [Dim; 3] = [dims[0].clone(), dims[1].clone(), carried];
    let state = cx.b.compute(Compute::map(state, body), &[padded])?;
    Ok(vec![y, state])
}
