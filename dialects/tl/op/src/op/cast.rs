//! Conversion by value.
//!
//! | from | to | meaning |
//! |---|---|---|
//! | float, integer | float | nearest, ties to even; out of range becomes infinite, or the equivalent
//! of the type |
//! | float | integer | [`Rounding`], then saturating; NaN becomes 0 |
//! | integer | integer | modulo 2^bits (two's complement) |
//! | any | bool | not equal to zero |
//! | bool | any | 0 or 1 |
//!
//! ARK casts `f32` toward zero and `f16`, `bf16` to nearest. Its behaviour out of range depends on
//! the GPU; conversion instructions saturate.

use super::{Attribute, AttributeKind, Op, Operands, Row, count};
use crate::general::loops;
use crate::values::Values;
use crate::{Compute, DType, EvalError, Scalar, Type};
use irc_tensor::{Tensor, TensorType};
use std::sync::Arc;

pub(super) static ROW: Row = Row {
    description:
        "`rounding` says what a float becomes as an integer: `toward_zero` or `nearest_even`; out of
range saturates and NaN is 0. To a float it is always nearest-even.",
    operands: Operands::Named(&["operand"]),
    attributes: &[Attribute::new("rounding", AttributeKind::Word(&Rounding::NAMES))],
    read: |attributes| {
        let rounding = Rounding::named(&attributes.text("rounding")?)?;
        Ok(Op::Cast { to: attributes.result()?.dtype, rounding })
    },
    write: |op| match op {
        Op::Cast { rounding, .. } => vec![("rounding", rounding.name().into())],
        _ => vec![],
    },
    example: || {
        let op = Op::Cast { to: DType::I32, rounding: Rounding::NearestEven };
        (op, vec![TensorType::new(DType::F32, [2, 8])])
    },
    ..Row::new("cast", "conversion to another element type")
};

/// How a float is converted to an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rounding {
    /// The fraction is truncated.
    TowardZero,
    /// To the nearest integer, ties to the even one.
    NearestEven,
}

impl Rounding {
    const NAMES: [&str; 2] = ["toward_zero", "nearest_even"];

    /// The name in the IR.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    fn named(name: &str) -> Result<Self, String> {
        let all = [Self::TowardZero, Self::NearestEven];
        let found = all.into_iter().find(|rounding| rounding.name() == name);
        found.ok_or_else(|| format!("rounding: expected a way of rounding, found \"{name}\""))
    }
}

pub(super) fn infer(
    operands: &[TensorType],
    to: &DType,
    _: &Rounding,
) -> Result<TensorType, String> {
    let from = operands[0].dtype;
    // The handle of a string is a number; a number is not a string.
    let is_valid = match from {
        DType::String => matches!(to, DType::String | DType::I64),
        _ => *to != DType::String,
    };
    if !is_valid {
        return Err(format!("expected a cast between numbers, found {from} to {to}"));
    }
    Ok(TensorType::new(*to, operands[0].shape.clone()))
}

pub(super) fn eval(
    operands: &[&Tensor],
    ty: TensorType,
    _: &DType,
    rounding: &Rounding,
) -> Result<Tensor, EvalError> {
    let result = match Values::of(operands[0]) {
        Values::Float(mut values) => {
            if ty.dtype.is_integer() && *rounding == Rounding::NearestEven {
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

pub(super) fn compute(
    operands: &[Type],
    to: &DType,
    rounding: &Rounding,
) -> Result<Compute, String> {
    let load = Scalar::load(0, loops(0..operands[0].rank()));
    let body = Scalar::Cast(*to, *rounding, Arc::new(load));
    Ok(Compute::map(operands[0].dims.clone(), body))
}

pub(super) fn flops(_: &[TensorType], result: &TensorType, _: &DType, _: &Rounding) -> u64 {
    count(result)
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
