//! Constants in the order in which kernels read them.
//!
//! A kernel that may choose the order of a constant describes it as a [`Packing`]; its caller packs the constant once, when
//! it is compiled.
mod panels;
mod winograd;

use irc_tensor::DType;
pub use panels::{Extension, Panels, Quad};
pub use winograd::{TILES, Winograd, whole_tiles};

/// How a kernel takes a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// A matrix in panels.
    Panels(Panels),
    /// Transformed filters.
    Winograd(Winograd),
}

impl Packing {
    /// The number of the argument.
    pub fn argument(&self) -> usize {
        match self {
            Self::Panels(panels) => panels.argument,
            Self::Winograd(winograd) => winograd.argument,
        }
    }

    /// The same packing of another argument.
    pub fn of(self, argument: usize) -> Self {
        match self {
            Self::Panels(panels) => Self::Panels(Panels { argument, ..panels }),
            Self::Winograd(winograd) => Self::Winograd(Winograd { argument, ..winograd }),
        }
    }

    /// The number of elements of the packed constant.
    pub fn elements(&self) -> i64 {
        match self {
            Self::Panels(panels) => {
                panels.elements() * panels.quads.map_or(1, |quads| quads.width())
            }
            Self::Winograd(winograd) => winograd.elements(),
        }
    }

    /// The type of the packed elements, if it is not always that of the constant's elements.
    pub fn dtype(&self) -> Option<DType> {
        matches!(self, Self::Winograd(_)).then_some(DType::F32)
    }

    /// The packed elements of a constant with elements of `dtype`. `None` if the constant is too small, or its elements cannot
    /// be packed so.
    pub fn pack(&self, bytes: &[u8], dtype: DType) -> Option<Vec<u8>> {
        match self {
            Self::Panels(panels) => panels.pack(bytes, dtype.size()),
            Self::Winograd(winograd) => winograd.pack(bytes, dtype),
        }
    }
}
