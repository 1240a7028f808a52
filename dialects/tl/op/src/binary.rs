//! Elementwise functions of two operands.

use crate::broadcast::broadcast_shapes;
use crate::index::{broadcast_strides, positions};
use crate::values::Values;
use crate::{DType, EvalError};
use irc_tensor::{Tensor, TensorType};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Max,
}

pub(crate) fn infer(lhs: &TensorType, rhs: &TensorType) -> Result<TensorType, String> {
    if lhs.dtype != rhs.dtype {
        return Err(format!("expected operands of one element type, found {lhs} and {rhs}"));
    }
    if lhs.dtype == DType::Bool {
        return Err(format!("expected float or integer operands, found {lhs} and {rhs}"));
    }
    let shape = broadcast_shapes(&lhs.shape, &rhs.shape)
        .ok_or_else(|| format!("expected shapes that broadcast together, found {lhs} and {rhs}"))?;
    Ok(TensorType::new(lhs.dtype, shape))
}

pub(crate) fn eval(
    op: Binary,
    lhs: &Tensor,
    rhs: &Tensor,
    ty: TensorType,
) -> Result<Tensor, EvalError> {
    let places =
        |operand: &Tensor| positions(&ty.shape, &broadcast_strides(operand.shape(), &ty.shape), 0);
    let pairs = places(lhs).zip(places(rhs));
    let result = match (Values::of(lhs), Values::of(rhs)) {
        (Values::Float(left), Values::Float(right)) => {
            Values::Float(pairs.map(|(l, r)| float(op, left[l], right[r])).collect())
        }
        (Values::Integer(left), Values::Integer(right)) => {
            Values::Integer(pairs.map(|(l, r)| integer(op, left[l], right[r])).collect())
        }
        _ => unreachable!("inference found one element type"),
    };
    Ok(result.into_tensor(ty)?)
}

fn float(op: Binary, left: f64, right: f64) -> f64 {
    match op {
        Binary::Add => left + right,
        Binary::Sub => left - right,
        Binary::Mul => left * right,
        Binary::Div => left / right,
        Binary::Max => maximum(left, right),
    }
}

/// The larger; NaN if either is (`f64::max` would drop it).
pub(crate) fn maximum(left: f64, right: f64) -> f64 {
    if left.is_nan() || left > right { left } else { right }
}

fn integer(op: Binary, left: i128, right: i128) -> i128 {
    match op {
        Binary::Add => left + right,
        Binary::Sub => left - right,
        // Two u64 may need 128 unsigned bits; the low 64 are right all the same.
        Binary::Mul => left.wrapping_mul(right),
        // As NumPy: no processor trap, no poison.
        Binary::Div => left.checked_div(right).unwrap_or(0),
        Binary::Max => left.max(right),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Op, Tensor};

    fn apply(op: &Op, lhs: &Tensor, rhs: &Tensor) -> Vec<f64> {
        op.eval(&[lhs, rhs]).expect("good operands").to_f64()
    }

    #[test]
    fn known_values_and_broadcasting() {
        let column = Tensor::from_values([2, 1], &[6.0f32, -8.0]).expect("a tensor");
        let row = Tensor::from_values([2], &[2.0f32, 4.0]).expect("a tensor");
        assert_eq!(apply(&Op::Add, &column, &row), [8.0, 10.0, -6.0, -4.0]);
        assert_eq!(apply(&Op::Sub, &column, &row), [4.0, 2.0, -10.0, -12.0]);
        assert_eq!(apply(&Op::Mul, &column, &row), [12.0, 24.0, -16.0, -32.0]);
        assert_eq!(apply(&Op::Div, &column, &row), [3.0, 1.5, -4.0, -2.0]);
        assert_eq!(apply(&Op::Max, &column, &row), [6.0, 6.0, 2.0, 4.0]);
    }

    #[test]
    fn integers_wrap_and_truncate() {
        let left = Tensor::from_values([2], &[127i8, -7]).expect("a tensor");
        let right = Tensor::from_values([2], &[2i8, 2]).expect("a tensor");
        assert_eq!(apply(&Op::Add, &left, &right), [-127.0, -5.0]);
        assert_eq!(apply(&Op::Mul, &left, &right), [-2.0, -14.0]);
        assert_eq!(apply(&Op::Div, &left, &right), [63.0, -3.0]);
        let wide = Tensor::from_values([1], &[u64::MAX]).expect("a tensor");
        assert_eq!(apply(&Op::Mul, &wide, &wide), [1.0]);
    }

    #[test]
    fn dividing_integers_by_zero_gives_zero() {
        let left = Tensor::from_values([3], &[7i32, 7, i32::MIN]).expect("a tensor");
        let right = Tensor::from_values([3], &[2i32, 0, -1]).expect("a tensor");
        assert_eq!(apply(&Op::Div, &left, &right), [3.0, 0.0, f64::from(i32::MIN)]);
    }

    #[test]
    fn maximum_keeps_nan_on_either_side() {
        let nan = Tensor::from_values([1], &[f32::NAN]).expect("a tensor");
        let one = Tensor::from_values([1], &[1.0f32]).expect("a tensor");
        assert!(apply(&Op::Max, &nan, &one)[0].is_nan());
        assert!(apply(&Op::Max, &one, &nan)[0].is_nan());
    }

    #[test]
    fn mismatched_operands_are_refused() {
        let floats = Tensor::from_values([2], &[1.0f32, 2.0]).expect("a tensor");
        let three = Tensor::from_values([3], &[1.0f32, 2.0, 3.0]).expect("a tensor");
        let ints = Tensor::from_values([2], &[1i32, 2]).expect("a tensor");
        let message = |rhs: &Tensor| Op::Add.eval(&[&floats, rhs]).expect_err("bad").to_string();
        assert_eq!(
            message(&three),
            "add: expected shapes that broadcast together, found f32[2] and f32[3]"
        );
        assert_eq!(
            message(&ints),
            "add: expected operands of one element type, found f32[2] and i32[2]"
        );
    }
}
