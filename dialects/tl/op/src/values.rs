//! Elements in the width used for computation.

use crate::compute::Number;
use irc_tensor::{Tensor, TensorError, TensorType, memory};

/// The elements of a tensor, widened: arithmetic is done on these, rounding and wrapping in
/// [`Values::into_tensor`].
pub(crate) enum Values {
    /// Elements of a float type.
    Float(Vec<f64>),
    /// Elements of an integer type or bool.
    Integer(Vec<i128>),
}

impl Values {
    pub(crate) fn of(tensor: &Tensor) -> Self {
        tensor.to_i128().map_or_else(|| Self::Float(tensor.to_f64()), Self::Integer)
    }

    /// Rounds floats to nearest even, and wraps integers.
    pub(crate) fn into_tensor(self, ty: TensorType) -> Result<Tensor, TensorError> {
        match self {
            Self::Float(values) => Tensor::from_f64(ty, &values),
            Self::Integer(values) => wrap(ty, &values),
        }
    }
}

/// Fails if the widened operands and results of an op do not fit in memory, because evaluation
/// allocates them without a check.
pub(crate) fn expect_memory(
    operands: &[&Tensor],
    results: &[TensorType],
) -> Result<(), TensorError> {
    let wide = |ty: &TensorType| if ty.dtype.is_float() { 8 } else { 16 };
    let elements = |ty: &TensorType| ty.byte_size().map(|bytes| bytes / ty.dtype.size());
    let mut bytes = 0_usize;
    for operand in operands {
        bytes = bytes.saturating_add(elements(operand.ty())?.saturating_mul(wide(operand.ty())));
    }
    for ty in results {
        let each = wide(ty) + 2 * ty.dtype.size();
        bytes = bytes.saturating_add(elements(ty)?.saturating_mul(each));
    }
    let is_available =
        memory::is_available(bytes) && Vec::<u8>::new().try_reserve_exact(bytes).is_ok();
    match (is_available, results.first().or(operands.first().map(|operand| operand.ty()))) {
        (false, Some(ty)) => Err(TensorError::OutOfMemory { ty: ty.clone(), bytes }),
        _ => Ok(()),
    }
}

/// Integers modulo 2^bits of the type of the result.
fn wrap(ty: TensorType, values: &[i128]) -> Result<Tensor, TensorError> {
    assert!(!ty.dtype.is_float(), "integer values stay integers unless cast");
    let width = ty.dtype.size();
    let mut bytes = Vec::with_capacity(values.len() * width);
    for value in values {
        let Number::Int(value) = Number::Int(*value).rounded(ty.dtype) else {
            unreachable!("an integer stays one")
        };
        // The low bytes hold the value modulo 2^bits, whatever the machine's byte order.
        let low = value as u64;
        match width {
            1 => bytes.extend_from_slice(&(low as u8).to_ne_bytes()),
            2 => bytes.extend_from_slice(&(low as u16).to_ne_bytes()),
            4 => bytes.extend_from_slice(&(low as u32).to_ne_bytes()),
            _ => bytes.extend_from_slice(&low.to_ne_bytes()),
        }
    }
    Tensor::from_bytes(ty, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use irc_tensor::DType;

    #[test]
    fn what_no_machine_has_memory_for_is_an_error() {
        let huge = TensorType::new(DType::F16, [1 << 45]);
        let error = expect_memory(&[], std::slice::from_ref(&huge)).expect_err("too much");
        assert!(matches!(error, TensorError::OutOfMemory { ty, .. } if ty == huge));
        assert_eq!(expect_memory(&[], &[TensorType::new(DType::F16, [1 << 10])]), Ok(()));
    }
}
