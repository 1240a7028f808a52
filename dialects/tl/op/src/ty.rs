//! Types of values whose sizes may depend on symbols.

use crate::{DType, Dim, TensorError, TensorType};
use std::fmt;

/// Element type and shape, whose dimensions may be symbolic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Type {
    /// Element type.
    pub dtype: DType,
    /// Extent of each dimension.
    pub dims: Vec<Dim>,
}

impl Type {
    /// A type.
    pub fn new(dtype: DType, dims: impl Into<Vec<Dim>>) -> Self {
        Self { dtype, dims: dims.into() }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Number of elements.
    pub fn elements(&self) -> Dim {
        Dim::product(&self.dims)
    }

    /// The type with static sizes, if all are known.
    pub fn known(&self) -> Option<TensorType> {
        let shape: Option<Vec<i64>> = self.dims.iter().map(Dim::known).collect();
        shape.map(|shape| TensorType::new(self.dtype, shape))
    }

    /// Checks that a value of the type can exist, as far as its sizes are known.
    ///
    /// # Errors
    /// If a dimension is negative, or the size exceeds the address space.
    pub fn expect_size(&self) -> Result<(), TensorError> {
        self.known().map_or(Ok(()), |ty| ty.byte_size().map(drop))
    }

    /// The type under an assignment of the symbols; see [`Dim::eval`].
    pub fn eval(&self, symbol: &dyn Fn(&str) -> Option<i64>) -> Option<TensorType> {
        let shape: Option<Vec<i64>> = self.dims.iter().map(|dim| dim.eval(symbol)).collect();
        shape.map(|shape| TensorType::new(self.dtype, shape))
    }
}

impl From<TensorType> for Type {
    fn from(ty: TensorType) -> Self {
        Self { dtype: ty.dtype, dims: ty.shape.into_iter().map(Dim::Known).collect() }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<_> = self.dims.iter().map(Dim::to_string).collect();
        write!(f, "{}[{}]", self.dtype, dims.join(","))
    }
}
