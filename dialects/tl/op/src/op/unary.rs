//! Functions of one number, as ops on every element and in the body of a [`Compute`].
//!
//! Adding one takes a row in the table. It is lowered to the op of `math` with the same name, or by
//! a row of `compiler/lowering/arithmetic/float.rs`.

use super::family::{self, Takes, family};
use super::{Attributes, Family, Law, Op, Operands, Row, count};
use crate::general::loops;
use crate::values::Values;
use crate::{Compute, DType, EvalError, Scalar, Type};
use irc_tensor::{Tensor, TensorType};

type Function = family::Function<fn(f64) -> f64, fn(i128, DType) -> i128>;

family! {
    /// A function of one number, which returns the number's type.
    Unary of Function, read, example {
        Neg "neg" "-x": numbers(|x| -x, |x, _| -x).law(Law::Involution),
        Abs "abs" "|x|": numbers(f64::abs, |x, _| x.abs()).law(Law::Idempotent),
        Sign "sign" "-1, 0 or 1; NaN of NaN": numbers(sign, |x, _| x.signum()).law(Law::Idempotent),
        Exp "exp" "e to the power of each element": floats(f64::exp),
        Log "log" "natural logarithm": floats(f64::ln),
        Log1p "log1p" "natural logarithm of 1 + x": floats(f64::ln_1p).about(LOG1P),
        Sqrt "sqrt" "square root": floats(f64::sqrt).work(4),
        Rsqrt "rsqrt" "1 / sqrt(x)": floats(|x| 1.0 / x.sqrt()).work(4),
        Sin "sin" "sine, of radians": floats(f64::sin),
        Cos "cos" "cosine, of radians": floats(f64::cos),
        Tan "tan" "tangent, of radians": floats(f64::tan),
        Asin "asin" "inverse sine": floats(f64::asin),
        Acos "acos" "inverse cosine": floats(f64::acos),
        Atan "atan" "inverse tangent": floats(f64::atan),
        Sinh "sinh" "hyperbolic sine": floats(f64::sinh),
        Cosh "cosh" "hyperbolic cosine": floats(f64::cosh),
        Tanh "tanh" "hyperbolic tangent": floats(f64::tanh),
        Asinh "asinh" "inverse hyperbolic sine": floats(libm::asinh),
        Acosh "acosh" "inverse hyperbolic cosine": floats(acosh),
        Atanh "atanh" "inverse hyperbolic tangent": floats(libm::atanh),
        Erf "erf" "error function": floats(libm::erf),
        Floor "floor" "largest integer that is not larger": whole(f64::floor),
        Ceil "ceil" "smallest integer that is not smaller": whole(f64::ceil),
        Round "round" "nearest integer, ties to the even one": whole(f64::round_ties_even),
        Not "not" "every bit inverted; the opposite of a bool":
            numbers(no_float, invert).of(Takes::IntegersAndBool).law(Law::Involution),
        Relu "relu" "max(x, 0)": numbers(relu, |x, _| x.max(0)).law(Law::Idempotent),
        Gelu "gelu" "GELU by its tanh approximation": floats(gelu).about(GELU),
        Sigmoid "sigmoid" "1 / (1 + exp(-x))": floats(|x| 1.0 / (1.0 + (-x).exp())),
        RoundTf32 "round_tf32" "the nearest number of 10 bits of mantissa, ties away from zero":
            whole(round_tf32).of(Takes::F32).about("As `cvt.rna.tf32.f32` of PTX."),
    }
}

const LOG1P: &str =
    "Keeps its digits where `x` is near 0: `log(1 + exp(x))` (softplus) is `log1p(exp(x))`.";

const GELU: &str = "`0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`: Hendrycks and Gimpel, \"Gaussian error linear
units\" (2016).";

/// That of libm returns numbers for some below 1.
fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// A function of floats that takes several instructions.
const fn floats(float: fn(f64) -> f64) -> Function {
    let row = Row {
        operands: Operands::Named(&["operand"]),
        keeps_type: true,
        family: Family::Elementwise,
        work: 10,
        ..Row::new("", "")
    };
    Function { row, takes: Takes::Floats, float, integer: no_integer }
}

/// A function of floats and integers that takes about one instruction.
const fn numbers(float: fn(f64) -> f64, integer: fn(i128, DType) -> i128) -> Function {
    let function = floats(float).of(Takes::Numbers).work(1);
    Function { integer, ..function }
}

/// A function that rounds floats to integers, in about one instruction.
const fn whole(float: fn(f64) -> f64) -> Function {
    floats(float).work(1).law(Law::Idempotent)
}

fn read(function: Unary, _: &Attributes<'_>) -> Result<Op, String> {
    Ok(Op::Unary(function))
}

fn example(function: Unary) -> (Op, Vec<TensorType>) {
    let dtype = if function.takes(DType::F32) { DType::F32 } else { DType::I32 };
    (Op::Unary(function), vec![TensorType::new(dtype, [2, 8])])
}

impl Unary {
    /// The accepted element types, as a phrase.
    pub fn expected(self) -> String {
        format!("{} operand", self.function().takes.expected())
    }

    /// Whether it accepts an element type.
    pub const fn takes(self, dtype: DType) -> bool {
        self.function().takes.takes(dtype)
    }

    /// The value for a float, before rounding to its type.
    pub fn float(self, x: f64) -> f64 {
        (self.function().float)(x)
    }

    /// The value for an integer, before wrapping around; for a `bool`, 0 or 1.
    pub fn integer(self, x: i128, dtype: DType) -> i128 {
        (self.function().integer)(x, dtype)
    }
}

fn no_float(_: f64) -> f64 {
    unreachable!("`takes` excludes floats")
}

fn no_integer(_: i128, _: DType) -> i128 {
    unreachable!("`takes` excludes integers")
}

fn sign(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() { x } else { x.signum() }
}

/// Not `max`, which ignores NaN.
fn relu(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

fn invert(x: i128, dtype: DType) -> i128 {
    if dtype == DType::Bool { i128::from(x == 0) } else { !x }
}

/// Adds half a unit of the last remaining bit to the magnitude, then truncates.
fn round_tf32(x: f64) -> f64 {
    const DROPPED: u32 = 13;
    let single = x as f32;
    if !single.is_finite() {
        return x;
    }
    let rounded = single.to_bits() + (1 << (DROPPED - 1));
    f64::from(f32::from_bits(rounded >> DROPPED << DROPPED))
}

/// Uses `0.5 (1 + tanh(u)) = 1 / (1 + e^-2u)`, which avoids cancellation where the tanh is near -1.
fn gelu(x: f64) -> f64 {
    let scale = (2.0 / std::f64::consts::PI).sqrt();
    let u = scale * (x + 0.044_715 * x * x * x);
    x / (1.0 + (-2.0 * u).exp())
}

pub(super) fn infer(operands: &[TensorType], function: &Unary) -> Result<TensorType, String> {
    let operand = &operands[0];
    if function.takes(operand.dtype) {
        return Ok(operand.clone());
    }
    Err(format!("expected {}, found {operand}", function.expected()))
}

pub(super) fn eval(
    operands: &[&Tensor],
    ty: TensorType,
    function: &Unary,
) -> Result<Tensor, EvalError> {
    let dtype = ty.dtype;
    let result = match Values::of(operands[0]) {
        Values::Float(values) => {
            Values::Float(values.into_iter().map(|value| function.float(value)).collect())
        }
        Values::Integer(values) => {
            let values = values.into_iter().map(|value| function.integer(value, dtype));
            Values::Integer(values.collect())
        }
    };
    Ok(result.into_tensor(ty)?)
}

pub(super) fn compute(operands: &[Type], function: &Unary) -> Result<Compute, String> {
    let operand = &operands[0];
    let body = Scalar::load(0, loops(0..operand.rank())).unary(*function);
    Ok(Compute::map(operand.dims.clone(), body))
}

pub(super) fn flops(_: &[TensorType], result: &TensorType, _: &Unary) -> u64 {
    count(result)
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
