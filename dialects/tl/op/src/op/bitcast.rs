//! Reinterpretation of bytes as another type.

use super::{Family, Op, Operands, Row, no_loops};
use crate::{Compute, EvalError, Type};
use irc_tensor::{DType, Tensor, TensorType};

pub(super) static ROW: Row = Row {
    operands: Operands::Named(&["operand"]),
    family: Family::View,
    read: |attributes| {
        let TensorType { dtype: to, shape } = attributes.known_result()?;
        Ok(Op::Bitcast { to, shape })
    },
    example: || {
        let op = Op::Bitcast { to: DType::I32, shape: vec![2, 8] };
        (op, vec![TensorType::new(DType::F32, [2, 8])])
    },
    ..Row::new("bitcast", "the same bytes as another element type")
};

pub(super) fn infer(
    operands: &[TensorType],
    to: &DType,
    shape: &[i64],
) -> Result<TensorType, String> {
    let operand = &operands[0];
    let ty = TensorType::new(*to, shape);
    let expected = operand.byte_size().map_err(|error| error.to_string())?;
    let found = ty.byte_size().map_err(|error| error.to_string())?;
    if expected == found {
        return Ok(ty);
    }
    Err(format!("expected a type of {expected} bytes as {operand}, found {ty} of {found}"))
}

pub(super) fn eval(
    operands: &[&Tensor],
    ty: TensorType,
    _: &DType,
    _: &[i64],
) -> Result<Tensor, EvalError> {
    Ok(Tensor::from_bytes(ty, operands[0].bytes())?)
}

pub(super) fn compute(_: &[Type], _: &DType, _: &[i64]) -> Result<Compute, String> {
    no_loops()
}

pub(super) fn flops(_: &[TensorType], _: &TensorType, _: &DType, _: &[i64]) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use crate::{DType, Op, Tensor};

    #[test]
    fn a_float_is_four_bytes() {
        let operand = Tensor::from_values([1], &[1.0f32]).expect("a tensor");
        let op = Op::Bitcast { to: DType::U8, shape: vec![4] };
        let bytes = op.eval(&[&operand]).expect("4 bytes");
        assert_eq!(bytes.bytes(), 1.0f32.to_ne_bytes());
        let back = Op::Bitcast { to: DType::F32, shape: vec![1] };
        assert_eq!(back.eval(&[&bytes]).expect("4 bytes"), operand);
        let wrong = Op::Bitcast { to: DType::F16, shape: vec![1] }.eval(&[&operand]);
        assert_eq!(
            wrong.expect_err("2 bytes").to_string(),
            "bitcast: expected a type of 4 bytes as f32[1], found f16[1] of 2"
        );
    }
}
