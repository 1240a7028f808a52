//! Elementwise functions of one operand.

use crate::values::Values;
use crate::{EvalError, Unary};
use irc_tensor::{Tensor, TensorType};

pub(crate) fn infer(op: Unary, operand: &TensorType) -> Result<TensorType, String> {
    if op.takes(operand.dtype) {
        return Ok(operand.clone());
    }
    Err(format!("expected {}, found {operand}", op.expected()))
}

pub(crate) fn eval(op: Unary, operand: &Tensor, ty: TensorType) -> Result<Tensor, EvalError> {
    let dtype = ty.dtype;
    let result = match Values::of(operand) {
        Values::Float(values) => {
            Values::Float(values.into_iter().map(|value| op.float(value)).collect())
        }
        Values::Integer(values) => {
            Values::Integer(values.into_iter().map(|value| op.integer(value, dtype)).collect())
        }
    };
    Ok(result.into_tensor(ty)?)
}

#[cfg(test)]
mod tests {
    use crate::{DType, Op, Tensor, Unary};

    fn apply(op: &Op, values: &[f32]) -> Vec<f32> {
        let operand = Tensor::from_values([values.len() as i64], values).expect("a tensor");
        op.eval(&[&operand]).expect("a float operand").to_f32()
    }

    #[test]
    fn known_values() {
        assert_eq!(apply(&Op::Unary(Unary::Exp), &[0.0, 1.0]), [1.0, std::f32::consts::E]);
        assert_eq!(apply(&Op::Unary(Unary::Relu), &[-1.0, 2.0]), [0.0, 2.0]);
        assert_eq!(apply(&Op::Unary(Unary::Sigmoid), &[0.0, -1000.0]), [0.5, 0.0]);
        assert_eq!(apply(&Op::Unary(Unary::Sqrt), &[9.0]), [3.0]);
        assert_eq!(apply(&Op::Unary(Unary::Rsqrt), &[4.0]), [0.5]);
        // PyTorch: gelu(1, approximate="tanh") = 0.841191990607477 in f64.
        assert_eq!(
            apply(&Op::Unary(Unary::Gelu), &[0.0, 1.0, -1.0]),
            [0.0, 0.841_192, -0.158_808_01]
        );
        assert!(apply(&Op::Unary(Unary::Relu), &[f32::NAN])[0].is_nan());
    }

    #[test]
    fn tf32_keeps_ten_bits_and_ties_go_away_from_zero() {
        let (unit, tie) = (1.0 + 2f32.powi(-10), 1.0 + 2f32.powi(-11));
        let below = tie - f32::EPSILON;
        let rounded =
            apply(&Op::Unary(Unary::RoundTf32), &[unit, tie, -tie, below, f32::MAX, 1e-40]);
        assert_eq!(rounded[..5], [unit, unit, -unit, 1.0, f32::INFINITY]);
        assert_eq!(rounded[5].to_bits(), ((1e-40f32.to_bits() + (1 << 12)) >> 13) << 13);
        assert!(apply(&Op::Unary(Unary::RoundTf32), &[f32::from_bits(0x7fff_ffff)])[0].is_nan());
        let halves = Tensor::zeros(crate::TensorType::new(crate::DType::F16, [1]));
        let error =
            Op::Unary(Unary::RoundTf32).eval(&[&halves.expect("a tensor")]).expect_err("not f32");
        assert_eq!(error.to_string(), "round_tf32: expected an f32 operand, found f16[1]");
    }

    #[test]
    fn half_results_round_once() {
        let operand = Tensor::random(crate::TensorType::new(DType::F16, [500]), 3);
        let operand = operand.expect("a tensor");
        let result = Op::Unary(Unary::Exp).eval(&[&operand]).expect("a float operand");
        for (x, y) in operand.to_f64().into_iter().zip(result.to_f64()) {
            assert!((y - x.exp()).abs() <= x.exp() * 2f64.powi(-11), "{x} {y}");
        }
    }

    #[test]
    fn integers_have_no_exponential() {
        let operand = Tensor::from_values([2], &[-3i8, 4]).expect("a tensor");
        assert_eq!(
            Op::Unary(Unary::Relu).eval(&[&operand]).expect("integers").to_f64(),
            [0.0, 4.0]
        );
        let error = Op::Unary(Unary::Exp).eval(&[&operand]).expect_err("not a float");
        assert_eq!(error.to_string(), "exp: expected a float operand, found i8[2]");
    }
}
