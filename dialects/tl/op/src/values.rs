//! Elements in the width ops compute in.

use crate::compute::Number;
use irc_tensor::{Tensor, TensorError, TensorType};

/// The elements of a tensor, widened: arithmetic happens here, rounding and wrapping in
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

    /// Floats round to nearest even, integers keep their low bits.
    pub(crate) fn into_tensor(self, ty: TensorType) -> Result<Tensor, TensorError> {
        match self {
            Self::Float(values) => Tensor::from_f64(ty, &values),
            Self::Integer(values) => wrap(ty, &values),
        }
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
