//! LSTM with quantised weights, whose operands are quantised when it runs.

use super::operator;
use crate::context::{Context, LowerError, Lowered};
use crate::operator::Operator;
use crate::ops::product::quantized::centred;
use crate::ops::recurrent::quantised_lstm;
use irc_tl::{Binary, DType, Relation, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[operator("DynamicQuantizeLSTM", lstm)];

fn lstm(cx: &mut Context<'_>) -> Lowered {
    let mut inputs: Vec<_> = (0..8).map(|index| cx.optional(index)).collect();
    for (input, scale) in [(1, 8), (2, 10)] {
        inputs[input] = Some(weights(cx, input, scale)?);
    }
    cx.with_inputs(&inputs, quantised_lstm)
}

/// Weights `[directions, size, gates]` as floats, `[directions, gates, size]`. There is a scale for each
/// direction, or for each of its gates.
fn weights(cx: &mut Context<'_>, input: usize, scale: usize) -> Result<ValueId, LowerError> {
    let (x, scale, zero) = (cx.input(input)?, cx.input(scale)?, cx.optional(scale + 1));
    let ty = cx.ty(x);
    if ty.rank() != 3 {
        return Err(LowerError::invalid(format!("expected weights of rank 3, found {ty}")));
    }
    let spread = |cx: &mut Context<'_>, value: ValueId| -> Result<ValueId, LowerError> {
        let count = cx.b.ty(value).elements();
        let message = "expected a scale for each direction, or for each gate of it";
        let gates = if cx.b.rank(value) == 2 { count.floor_div(&ty.dims[0]) } else { 1.into() };
        cx.b.require(&gates, Relation::EqualOrOne, &ty.dims[2], message)?;
        Ok(cx.b.reshape(value, &[ty.dims[0].clone(), 1.into(), gates])?)
    };
    let scale = spread(cx, scale)?;
    let zero = zero.map(|zero| spread(cx, zero)).transpose()?;
    let number = centred(cx.b, x, zero)?;
    let number = cx.b.cast(number, DType::F32)?;
    let result = cx.b.binary(Binary::Mul, number, scale)?;
    Ok(cx.b.transpose(result, &[0, 2, 1])?)
}
