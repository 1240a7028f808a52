//! Elementwise functions of one operand.

use crate::values::Values;
use crate::{DType, EvalError};
use irc_tensor::{Tensor, TensorType};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unary {
    Exp,
    Relu,
    Gelu,
    Sigmoid,
    Sqrt,
    Rsqrt,
    RoundTf32,
}

pub(crate) fn infer(op: Unary, operand: &TensorType) -> Result<TensorType, String> {
    if op == Unary::RoundTf32 && operand.dtype != DType::F32 {
        return Err(format!("expected an f32 operand, found {operand}"));
    }
    let accepted = operand.dtype.is_float() || op == Unary::Relu && operand.dtype.is_integer();
    if accepted {
        return Ok(operand.clone());
    }
    let expected = if op == Unary::Relu { "float or integer" } else { "float" };
    Err(format!("expected a {expected} operand, found {operand}"))
}

pub(crate) fn eval(op: Unary, operand: &Tensor, ty: TensorType) -> Result<Tensor, EvalError> {
    let result = match Values::of(operand) {
        Values::Float(values) => {
            let function = function(op);
            Values::Float(values.into_iter().map(function).collect())
        }
        Values::Integer(values) => {
            Values::Integer(values.into_iter().map(|value| value.max(0)).collect())
        }
    };
    Ok(result.into_tensor(ty)?)
}

fn function(op: Unary) -> fn(f64) -> f64 {
    match op {
        Unary::Exp => f64::exp,
        // Not `max`, which drops NaN.
        Unary::Relu => |x| if x < 0.0 { 0.0 } else { x },
        Unary::Gelu => gelu,
        Unary::Sigmoid => |x| 1.0 / (1.0 + (-x).exp()),
        Unary::Sqrt => f64::sqrt,
        Unary::Rsqrt => |x| 1.0 / x.sqrt(),
        Unary::RoundTf32 => |x| f64::from(round_tf32(x as f32)),
    }
}

/// Half of the last kept bit is added to the magnitude, which then loses what is below.
fn round_tf32(x: f32) -> f32 {
    const DROPPED: u32 = 13;
    if !x.is_finite() {
        return x;
    }
    let rounded = x.to_bits() + (1 << (DROPPED - 1));
    f32::from_bits(rounded >> DROPPED << DROPPED)
}

fn gelu(x: f64) -> f64 {
    let scale = (2.0 / std::f64::consts::PI).sqrt();
    0.5 * x * (1.0 + (scale * (x + 0.044_715 * x * x * x)).tanh())
}

#[cfg(test)]
mod tests {
    use crate::{DType, Op, Tensor};

    fn apply(op: &Op, values: &[f32]) -> Vec<f32> {
        let operand = Tensor::from_values([values.len() as i64], values).expect("a tensor");
        op.eval(&[&operand]).expect("a float operand").to_f32()
    }

    #[test]
    fn known_values() {
        assert_eq!(apply(&Op::Exp, &[0.0, 1.0]), [1.0, std::f32::consts::E]);
        assert_eq!(apply(&Op::Relu, &[-1.0, 2.0]), [0.0, 2.0]);
        assert_eq!(apply(&Op::Sigmoid, &[0.0, -1000.0]), [0.5, 0.0]);
        assert_eq!(apply(&Op::Sqrt, &[9.0]), [3.0]);
        assert_eq!(apply(&Op::Rsqrt, &[4.0]), [0.5]);
        // PyTorch: gelu(1, approximate="tanh") = 0.841191990607477 in f64.
        assert_eq!(apply(&Op::Gelu, &[0.0, 1.0, -1.0]), [0.0, 0.841_192, -0.158_808_01]);
        assert!(apply(&Op::Relu, &[f32::NAN])[0].is_nan());
    }

    #[test]
    fn tf32_keeps_ten_bits_and_ties_go_away_from_zero() {
        let (unit, tie) = (1.0 + 2f32.powi(-10), 1.0 + 2f32.powi(-11));
        let below = tie - f32::EPSILON;
        let rounded = apply(&Op::RoundTf32, &[unit, tie, -tie, below, f32::MAX, 1e-40]);
        assert_eq!(rounded[..5], [unit, unit, -unit, 1.0, f32::INFINITY]);
        assert_eq!(rounded[5].to_bits(), ((1e-40f32.to_bits() + (1 << 12)) >> 13) << 13);
        assert!(apply(&Op::RoundTf32, &[f32::from_bits(0x7fff_ffff)])[0].is_nan());
        let halves = Tensor::zeros(crate::TensorType::new(crate::DType::F16, [1]));
        let error = Op::RoundTf32.eval(&[&halves.expect("a tensor")]).expect_err("not f32");
        assert_eq!(error.to_string(), "round_tf32: expected an f32 operand, found f16[1]");
    }

    #[test]
    fn half_results_round_once() {
        let operand = Tensor::random(crate::TensorType::new(DType::F16, [500]), 3);
        let operand = operand.expect("a tensor");
        let result = Op::Exp.eval(&[&operand]).expect("a float operand");
        for (x, y) in operand.to_f64().into_iter().zip(result.to_f64()) {
            assert!((y - x.exp()).abs() <= x.exp() * 2f64.powi(-11), "{x} {y}");
        }
    }

    #[test]
    fn integers_have_no_exponential() {
        let operand = Tensor::from_values([2], &[-3i8, 4]).expect("a tensor");
        assert_eq!(Op::Relu.eval(&[&operand]).expect("integers").to_f64(), [0.0, 4.0]);
        let error = Op::Exp.eval(&[&operand]).expect_err("not a float");
        assert_eq!(error.to_string(), "exp: expected a float operand, found i8[2]");
    }
}
