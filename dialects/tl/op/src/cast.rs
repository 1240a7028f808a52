//! Conversion by value.
//!
//! | from | to | meaning |
//! |---|---|---|
//! | float, integer | float | nearest, ties to even; out of range becomes infinite, or what the type has for it |
//! | float | integer | [`Rounding`], then saturating; NaN becomes 0 |
//! | integer | integer | modulo 2^bits (two's complement) |
//! | any | bool | not equal to zero |
//! | bool | any | 0 or 1 |
//!
//! ARK casts `f32` toward zero and `f16`, `bf16` to nearest. What it does out of range is up to
//! the GPU; saturation is what its conversion instructions do.

use crate::EvalError;
use crate::values::Values;
use irc_tensor::{Tensor, TensorType};

/// How a float becomes an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rounding {
    /// The fraction is dropped.
    TowardZero,
    /// To the nearest integer, ties to the even one.
    NearestEven,
}

pub(crate) fn eval(
    rounding: Rounding,
    operand: &Tensor,
    ty: TensorType,
) -> Result<Tensor, EvalError> {
    let result = match Values::of(operand) {
        Values::Float(mut values) => {
            if ty.dtype.is_integer() && rounding == Rounding::NearestEven {
                values.iter_mut().for_each(|value| *value = value.round_ties_even());
            }
            Values::Float(values)
        }
        Values::Integer(values) if ty.dtype.is_float() => {
            Values::Float(values.into_iter().map(|value| value as f64).collect())
        }
        integers => integers,
    };
    Ok(result.into_tensor(ty)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Op};

    fn cast(operand: &Tensor, to: DType, rounding: Rounding) -> Tensor {
        Op::Cast { to, rounding }.eval(&[operand]).expect("any type casts")
    }

    #[test]
    fn floats_become_integers_both_ways() {
        let floats = Tensor::from_values([5], &[2.5f32, -1.7, 300.0, f32::NAN, 3.5]);
        let floats = floats.expect("a tensor");
        let zero = cast(&floats, DType::I8, Rounding::TowardZero);
        assert_eq!(zero.to_f64(), [2.0, -1.0, 127.0, 0.0, 3.0]);
        let even = cast(&floats, DType::I8, Rounding::NearestEven);
        assert_eq!(even.to_f64(), [2.0, -2.0, 127.0, 0.0, 4.0]);
        let bools = cast(&floats, DType::Bool, Rounding::TowardZero);
        assert_eq!(bools.to_f64(), [1.0; 5]);
    }

    #[test]
    fn integers_wrap_and_become_floats() {
        let ints = Tensor::from_values([3], &[300i32, -1, 0]).expect("a tensor");
        let bytes = cast(&ints, DType::U8, Rounding::TowardZero);
        assert_eq!(bytes.to_f64(), [44.0, 255.0, 0.0]);
        let brain = cast(&ints, DType::BF16, Rounding::TowardZero);
        assert_eq!(brain.to_f64(), [300.0, -1.0, 0.0]);
        let bools = cast(&ints, DType::Bool, Rounding::TowardZero);
        assert_eq!(cast(&bools, DType::I64, Rounding::TowardZero).to_f64(), [1.0, 1.0, 0.0]);
    }
}
