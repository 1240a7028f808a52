//! Elementwise functions of two operands.

use crate::broadcast::broadcast_shapes;
use crate::index::{broadcast_strides, positions};
use crate::values::Values;
use crate::{Binary, Comparison, DType, EvalError};
use irc_tensor::{Tensor, TensorType};

pub(crate) fn infer(op: Binary, lhs: &TensorType, rhs: &TensorType) -> Result<TensorType, String> {
    let dtype = common(lhs, rhs)?;
    if !op.takes(dtype) {
        return Err(format!("expected {}, found {lhs} and {rhs}", op.expected()));
    }
    Ok(TensorType::new(dtype, joined(lhs, rhs)?))
}

pub(crate) fn infer_comparison(lhs: &TensorType, rhs: &TensorType) -> Result<TensorType, String> {
    common(lhs, rhs)?;
    Ok(TensorType::new(DType::Bool, joined(lhs, rhs)?))
}

fn common(lhs: &TensorType, rhs: &TensorType) -> Result<DType, String> {
    if lhs.dtype == rhs.dtype {
        return Ok(lhs.dtype);
    }
    Err(format!("expected operands of one element type, found {lhs} and {rhs}"))
}

fn joined(lhs: &TensorType, rhs: &TensorType) -> Result<Vec<i64>, String> {
    broadcast_shapes(&lhs.shape, &rhs.shape)
        .ok_or_else(|| format!("expected shapes that broadcast together, found {lhs} and {rhs}"))
}

pub(crate) fn eval(
    op: Binary,
    lhs: &Tensor,
    rhs: &Tensor,
    ty: TensorType,
) -> Result<Tensor, EvalError> {
    let dtype = ty.dtype;
    let pairs = pairs(lhs, rhs, &ty);
    let result = match (Values::of(lhs), Values::of(rhs)) {
        (Values::Float(left), Values::Float(right)) => {
            Values::Float(pairs.map(|(l, r)| op.float(left[l], right[r])).collect())
        }
        (Values::Integer(left), Values::Integer(right)) => {
            Values::Integer(pairs.map(|(l, r)| op.integer(left[l], right[r], dtype)).collect())
        }
        _ => unreachable!("inference found one element type"),
    };
    Ok(result.into_tensor(ty)?)
}

pub(crate) fn compare(
    op: Comparison,
    lhs: &Tensor,
    rhs: &Tensor,
    ty: TensorType,
) -> Result<Tensor, EvalError> {
    let pairs = pairs(lhs, rhs, &ty);
    let result: Vec<i128> = match (Values::of(lhs), Values::of(rhs)) {
        (Values::Float(left), Values::Float(right)) => {
            pairs.map(|(l, r)| i128::from(op.holds(left[l], right[r]))).collect()
        }
        (Values::Integer(left), Values::Integer(right)) => {
            pairs.map(|(l, r)| i128::from(op.holds(left[l], right[r]))).collect()
        }
        _ => unreachable!("inference found one element type"),
    };
    Ok(Values::Integer(result).into_tensor(ty)?)
}

/// Places of the operands' elements, for every element of the result.
fn pairs(
    lhs: &Tensor,
    rhs: &Tensor,
    ty: &TensorType,
) -> impl Iterator<Item = (usize, usize)> + use<> {
    let places =
        |operand: &Tensor| positions(&ty.shape, &broadcast_strides(operand.shape(), &ty.shape), 0);
    places(lhs).zip(places(rhs))
}

#[cfg(test)]
mod tests {
    use crate::{Binary, Op, Tensor};

    fn apply(op: &Op, lhs: &Tensor, rhs: &Tensor) -> Vec<f64> {
        op.eval(&[lhs, rhs]).expect("good operands").to_f64()
    }

    #[test]
    fn known_values_and_broadcasting() {
        let column = Tensor::from_values([2, 1], &[6.0f32, -8.0]).expect("a tensor");
        let row = Tensor::from_values([2], &[2.0f32, 4.0]).expect("a tensor");
        assert_eq!(apply(&Op::Binary(Binary::Add), &column, &row), [8.0, 10.0, -6.0, -4.0]);
        assert_eq!(apply(&Op::Binary(Binary::Sub), &column, &row), [4.0, 2.0, -10.0, -12.0]);
        assert_eq!(apply(&Op::Binary(Binary::Mul), &column, &row), [12.0, 24.0, -16.0, -32.0]);
        assert_eq!(apply(&Op::Binary(Binary::Div), &column, &row), [3.0, 1.5, -4.0, -2.0]);
        assert_eq!(apply(&Op::Binary(Binary::Max), &column, &row), [6.0, 6.0, 2.0, 4.0]);
    }

    #[test]
    fn integers_wrap_and_truncate() {
        let left = Tensor::from_values([2], &[127i8, -7]).expect("a tensor");
        let right = Tensor::from_values([2], &[2i8, 2]).expect("a tensor");
        assert_eq!(apply(&Op::Binary(Binary::Add), &left, &right), [-127.0, -5.0]);
        assert_eq!(apply(&Op::Binary(Binary::Mul), &left, &right), [-2.0, -14.0]);
        assert_eq!(apply(&Op::Binary(Binary::Div), &left, &right), [63.0, -3.0]);
        let wide = Tensor::from_values([1], &[u64::MAX]).expect("a tensor");
        assert_eq!(apply(&Op::Binary(Binary::Mul), &wide, &wide), [1.0]);
    }

    #[test]
    fn dividing_integers_by_zero_gives_zero() {
        let left = Tensor::from_values([3], &[7i32, 7, i32::MIN]).expect("a tensor");
        let right = Tensor::from_values([3], &[2i32, 0, -1]).expect("a tensor");
        assert_eq!(apply(&Op::Binary(Binary::Div), &left, &right), [3.0, 0.0, f64::from(i32::MIN)]);
    }

    #[test]
    fn maximum_keeps_nan_on_either_side() {
        let nan = Tensor::from_values([1], &[f32::NAN]).expect("a tensor");
        let one = Tensor::from_values([1], &[1.0f32]).expect("a tensor");
        assert!(apply(&Op::Binary(Binary::Max), &nan, &one)[0].is_nan());
        assert!(apply(&Op::Binary(Binary::Max), &one, &nan)[0].is_nan());
    }

    #[test]
    fn mismatched_operands_are_refused() {
        let floats = Tensor::from_values([2], &[1.0f32, 2.0]).expect("a tensor");
        let three = Tensor::from_values([3], &[1.0f32, 2.0, 3.0]).expect("a tensor");
        let ints = Tensor::from_values([2], &[1i32, 2]).expect("a tensor");
        let message = |rhs: &Tensor| {
            Op::Binary(Binary::Add).eval(&[&floats, rhs]).expect_err("bad").to_string()
        };
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
