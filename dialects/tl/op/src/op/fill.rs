//! A tensor filled with a constant.
//!
//! For integers the value is truncated and saturates, and NaN becomes 0: the factor of an ARK op is a
//! float, which the device converts in this way.

use super::{Attribute, AttributeKind, Op, Row, Value};
use crate::general::known;
use crate::{Compute, EvalError, Rounding, Scalar, Type};
use irc_tensor::{DType, Tensor, TensorType};
use std::sync::Arc;

pub(super) static ROW: Row = Row {
    attributes: &[Attribute::new("value", AttributeKind::F64)],
    work: 0,
    read: |attributes| {
        let TensorType { dtype, shape } = attributes.known_result()?;
        Ok(Op::fill(attributes.f64("value")?, shape, dtype))
    },
    write: |op| match op {
        Op::Fill { value, .. } => vec![("value", Value::F64(f64::from_bits(*value)))],
        _ => vec![],
    },
    example: || (Op::fill(0.5, [2, 8], DType::F32), vec![]),
    ..Row::new("fill", "a constant tensor of one value")
};

pub(super) fn infer(
    _: &[TensorType],
    _: &u64,
    shape: &[i64],
    dtype: &DType,
) -> Result<TensorType, String> {
    let ty = TensorType::new(*dtype, shape);
    ty.dims().map_err(|error| error.to_string())?;
    Ok(ty)
}

pub(super) fn eval(
    _: &[&Tensor],
    ty: TensorType,
    value: &u64,
    _: &[i64],
    _: &DType,
) -> Result<Tensor, EvalError> {
    let value = f64::from_bits(*value);
    let mut result = Tensor::zeros(ty)?;
    for index in 0..result.elements() {
        result.set_f64(index, value);
    }
    Ok(result)
}

pub(super) fn compute(
    _: &[Type],
    value: &u64,
    shape: &[i64],
    dtype: &DType,
) -> Result<Compute, String> {
    let value = Scalar::Float(*value, DType::F64);
    let body = Scalar::Cast(*dtype, Rounding::TowardZero, Arc::new(value));
    Ok(Compute::map(known(shape), body))
}

pub(super) fn flops(_: &[TensorType], _: &TensorType, _: &u64, _: &[i64], _: &DType) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use crate::{DType, Op};

    #[test]
    fn one_value_everywhere() {
        let tensor = Op::fill(0.1, [2], DType::F16).eval(&[]).expect("no operand");
        assert_eq!(tensor.to_f64(), [0.0999755859375; 2]);
        assert_eq!(Op::fill(f64::NAN, [], DType::F32), Op::fill(-f64::NAN, [], DType::F32));
        let error = Op::fill(0.0, [-1], DType::F32).infer(&[]).expect_err("negative");
        assert_eq!(error.to_string(), "fill: dimension 0 of f32[-1] is negative");
        for (value, expected) in
            [(-3.0, 0.0), (-0.5, 0.0), (1e10, 255.0), (2.7, 2.0), (f64::NAN, 0.0)]
        {
            let tensor = Op::fill(value, [1], DType::U8).eval(&[]).expect("no operand");
            assert_eq!(tensor.to_f64(), [expected], "{value}");
        }
        let huge = Op::fill(0.0, [1 << 62], DType::F32).eval(&[]).expect_err("too large");
        assert!(huge.to_string().contains("overflows"));
    }
}
