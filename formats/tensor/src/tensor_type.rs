//! Element type and shape together.

use crate::{DType, TensorError};
use std::fmt;

/// The type of a tensor value: its element type and extents.
///
/// Dimensions are signed as in MLIR; a negative one makes every size query an error. The rank may
/// be zero (one element) and a dimension may be zero (no elements).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Elements along each dimension, outermost first.
    pub shape: Vec<i64>,
}

impl TensorType {
    /// A type of the given element type and shape.
    pub fn new(dtype: DType, shape: impl Into<Vec<i64>>) -> Self {
        Self { dtype, shape: shape.into() }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The shape as unsigned dimensions.
    ///
    /// # Errors
    /// [`TensorError::NegativeDimension`].
    pub fn dims(&self) -> Result<Vec<usize>, TensorError> {
        let dim = |(axis, &dim): (usize, &i64)| {
            usize::try_from(dim)
                .map_err(|_| TensorError::NegativeDimension { ty: self.clone(), axis })
        };
        self.shape.iter().enumerate().map(dim).collect()
    }

    /// Number of elements.
    ///
    /// # Errors
    /// [`TensorError::NegativeDimension`] or [`TensorError::TooLarge`].
    pub fn elements(&self) -> Result<usize, TensorError> {
        self.byte_size().map(|bytes| bytes / self.dtype.size())
    }

    /// Size in bytes of a dense tensor of this type.
    ///
    /// # Errors
    /// [`TensorError::NegativeDimension`] or [`TensorError::TooLarge`] (over `isize::MAX`).
    pub fn byte_size(&self) -> Result<usize, TensorError> {
        let dims = self.dims()?;
        if dims.contains(&0) {
            return Ok(0);
        }
        let total = dims.iter().try_fold(self.dtype.size(), |size, &dim| size.checked_mul(dim));
        total
            .filter(|&bytes| isize::try_from(bytes).is_ok())
            .ok_or_else(|| TensorError::TooLarge { ty: self.clone() })
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<_> = self.shape.iter().map(i64::to_string).collect();
        write!(f, "{}[{}]", self.dtype, dims.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_checked() {
        assert_eq!(TensorType::new(DType::F16, [2, 3]).byte_size(), Ok(12));
        assert_eq!(TensorType::new(DType::F64, []).elements(), Ok(1));
        assert_eq!(TensorType::new(DType::F64, [0, 1 << 62]).elements(), Ok(0));
        let huge = TensorType::new(DType::U8, [1 << 62, 4]);
        assert_eq!(huge.byte_size(), Err(TensorError::TooLarge { ty: huge.clone() }));
        let negative = TensorType::new(DType::U8, [2, -1]);
        assert_eq!(
            negative.elements().map_err(|e| e.to_string()),
            Err("dimension 1 of u8[2,-1] is negative".into())
        );
    }
}
