//! The same elements with another shape.

use super::{Family, Op, Operands, Row};
use crate::general::known;
use crate::{Compute, DType, EvalError, Type};
use irc_tensor::{Tensor, TensorType};

pub(super) static ROW: Row = Row {
    operands: Operands::Named(&["operand"]),
    family: Family::View,
    read: |attributes| Ok(Op::Reshape { shape: attributes.known_result()?.shape }),
    example: || (Op::Reshape { shape: vec![16] }, vec![TensorType::new(DType::F32, [2, 8])]),
    ..Row::new("reshape", "the same elements in row-major order, another shape")
};

pub(super) fn infer(operands: &[TensorType], shape: &[i64]) -> Result<TensorType, String> {
    let operand = &operands[0];
    let ty = TensorType::new(operand.dtype, shape);
    let expected = operand.elements().map_err(|error| error.to_string())?;
    let found = ty.elements().map_err(|error| error.to_string())?;
    if expected == found {
        return Ok(ty);
    }
    Err(format!("expected a shape of {expected} elements as in {operand}, found {ty} of {found}"))
}

pub(super) fn eval(operands: &[&Tensor], ty: TensorType, _: &[i64]) -> Result<Tensor, EvalError> {
    Ok(Tensor::from_bytes(ty, operands[0].bytes())?)
}

pub(super) fn compute(operands: &[Type], shape: &[i64]) -> Result<Compute, String> {
    Ok(Compute::reshape(&operands[0], known(shape)))
}

pub(super) fn flops(_: &[TensorType], _: &TensorType, _: &[i64]) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use crate::{Op, Tensor};

    #[test]
    fn elements_keep_their_order() {
        let operand = Tensor::from_values([2, 3], &[1u8, 2, 3, 4, 5, 6]).expect("a tensor");
        let result = Op::Reshape { shape: vec![3, 1, 2] }.eval(&[&operand]).expect("6 elements");
        assert_eq!((result.shape(), result.bytes()), (&[3, 1, 2][..], operand.bytes()));
        assert_eq!(
            Op::Reshape { shape: vec![4] }.eval(&[&operand]).expect_err("4").to_string(),
            "reshape: expected a shape of 6 elements as in u8[2,3], found u8[4] of 4"
        );
    }
}
