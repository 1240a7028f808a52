//! NumPy broadcasting.

use super::{Op, Operands, Row};
use crate::general::known;
use crate::index::{broadcast_strides, pick, positions};
use crate::{Compute, DType, EvalError, Type};
use irc_tensor::{Tensor, TensorType};

pub(super) static ROW: Row = Row {
    operands: Operands::Named(&["operand"]),
    work: 0,
    read: |attributes| Ok(Op::Broadcast { shape: attributes.known_result()?.shape }),
    example: || (Op::Broadcast { shape: vec![2, 8] }, vec![TensorType::new(DType::F32, [2, 1])]),
    ..Row::new("broadcast", "explicit NumPy broadcast")
};

/// The shape that two shapes broadcast to: aligned at the last dimension, an extent that is 1 or
/// missing takes the other one. `None` if they are incompatible.
pub fn broadcast_shapes(lhs: &[i64], rhs: &[i64]) -> Option<Vec<i64>> {
    let rank = lhs.len().max(rhs.len());
    let dim = |shape: &[i64], axis: usize| match (axis + shape.len()).checked_sub(rank) {
        Some(own) => shape[own],
        None => 1,
    };
    let joined = |axis| match (dim(lhs, axis), dim(rhs, axis)) {
        (left, right) if left == right => Some(left),
        (1, other) | (other, 1) => Some(other),
        _ => None,
    };
    (0..rank).map(joined).collect()
}

pub(super) fn infer(operands: &[TensorType], shape: &[i64]) -> Result<TensorType, String> {
    let operand = &operands[0];
    if broadcast_shapes(&operand.shape, shape).as_deref() != Some(shape) {
        return Err(format!("expected an operand that broadcasts to {shape:?}, found {operand}"));
    }
    Ok(TensorType::new(operand.dtype, shape))
}

pub(super) fn eval(operands: &[&Tensor], ty: TensorType, _: &[i64]) -> Result<Tensor, EvalError> {
    let strides = broadcast_strides(operands[0].shape(), &ty.shape);
    let positions = positions(&ty.shape, &strides, 0);
    Ok(pick(operands[0], ty, positions)?)
}

pub(super) fn compute(operands: &[Type], shape: &[i64]) -> Result<Compute, String> {
    Ok(Compute::broadcast(&operands[0], known(shape)))
}

pub(super) fn flops(_: &[TensorType], _: &TensorType, _: &[i64]) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;

    #[test]
    fn shapes_join_from_the_right() {
        assert_eq!(broadcast_shapes(&[3, 1], &[4]), Some(vec![3, 4]));
        assert_eq!(broadcast_shapes(&[], &[2, 2]), Some(vec![2, 2]));
        assert_eq!(broadcast_shapes(&[2], &[3]), None);
    }

    #[test]
    fn a_column_repeats() {
        let column = Tensor::from_values([2, 1], &[1i32, 2]).expect("a tensor");
        let op = Op::Broadcast { shape: vec![2, 2, 3] };
        let wide = op.eval(&[&column]).expect("a column");
        assert_eq!(wide.to_f64(), [1., 1., 1., 2., 2., 2., 1., 1., 1., 2., 2., 2.]);
        let error = Op::Broadcast { shape: vec![1, 3] }.eval(&[&column]).expect_err("shrinks");
        assert_eq!(
            error.to_string(),
            "broadcast: expected an operand that broadcasts to [1, 3], found i32[2,1]"
        );
    }
}
