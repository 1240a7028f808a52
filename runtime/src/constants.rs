//! Constants in aligned memory.
use bytes::Bytes;
use irc_tensor::{ALIGNMENT, DType, Tensor, TensorError, TensorType};

/// The bytes of a constant: borrowed if they are aligned, otherwise copied.
pub(crate) enum HostConstant {
    Borrowed(Bytes),
    Copied(Tensor),
}

impl HostConstant {
    /// A constant with the given bytes.
    ///
    /// # Errors
    /// If there is no memory for a copy.
    pub fn new(bytes: &Bytes) -> Result<Self, TensorError> {
        if (bytes.as_ptr() as usize).is_multiple_of(ALIGNMENT) {
            return Ok(Self::Borrowed(bytes.clone()));
        }
        let raw = TensorType::new(DType::U8, [bytes.len() as i64]);
        Ok(Self::Copied(Tensor::from_bytes(raw, bytes)?))
    }

    /// The address of the bytes. Models do not write to their constants.
    pub fn pointer<T>(&self) -> *mut T {
        match self {
            Self::Borrowed(bytes) => bytes.as_ptr().cast_mut().cast(),
            Self::Copied(tensor) => tensor.bytes().as_ptr().cast_mut().cast(),
        }
    }
}
