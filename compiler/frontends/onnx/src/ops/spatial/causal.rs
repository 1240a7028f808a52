//! Causal convolution over time, with carried state.

use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::pieces::{along, concat, known, size, wide, with_extent};
use irc_tl::{Binary, Compute, Conv, Dim, Scalar, Unary};

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
    let x = with_extent(cx.b, x, 1, &filters[0], message)?;
    let groups = known(&filters[0], "channels")?;
    let carried = filters[2].clone() - 1.into();
    let past = cx.optional(3);
    let (padded, before) = match past {
        Some(past) => {
            let past = with_extent(cx.b, past, 1, &filters[0], message)?;
            (concat(cx.b, &[past, x], 2)?, 0)
        }
        None => (x, known(&carried, "filters")?),
    };
    let pads = vec![[before, 0]];
    let conv = Conv { strides: vec![1], dilations: vec![1], pads, groups, outside: 0 };
    let dtype = cx.dtype(x);
    let (read, w) = (cx.b.cast(padded, wide(dtype))?, cx.b.cast(w, wide(dtype))?);
    let mut y = cx.b.conv(conv, read, w)?;
    if let Some(bias) = cx.optional(2) {
        let bias = cx.b.cast(bias, wide(dtype))?;
        let bias = along(cx.b, bias, 1, 3)?;
        y = cx.b.binary(Binary::Add, y, bias)?;
    }
    let y = match cx.string_or("activation", "none")?.as_str() {
        "none" => y,
        "silu" | "swish" => {
            let gate = cx.b.unary(Unary::Sigmoid, y)?;
            cx.b.binary(Binary::Mul, y, gate)?
        }
        other => return Err(LowerError::word("activation", &["none", "silu", "swish"], other)),
    };
    let y = cx.b.cast(y, dtype)?;
    // The last elements of the state and the operand concatenated.
    let at = Scalar::Loop(2) + size(&(cx.b.dims(padded)[2].clone() - carried.clone()));
    let load = |at| Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1), at]);
    let inside = at.clone().ge(Scalar::index(0));
    let zero = Scalar::number(0, dtype);
    let body = if past.is_some() { load(at) } else { inside.select(load(at), zero) };
    let state: [Dim; 3] = [dims[0].clone(), dims[1].clone(), carried];
    let state = cx.b.compute(Compute::map(state, body), &[padded])?;
    Ok(vec![y, state])
}
