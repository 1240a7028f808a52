//! Choices of a kernel's schedule.

/// How a convolution is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// With prepacked filters, from the operand as it lies in memory.
    Direct,
    /// As a product of filters and windows.
    Product,
    /// By Winograd's algorithm.
    Winograd,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Direct, Self::Product, Self::Winograd];

    /// Its name in attributes and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Product => "product",
            Self::Winograd => "winograd",
        }
    }

    /// The algorithm of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

/// Choices that replace those of the cost model, where they apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// How a convolution is computed.
    pub algorithm: Option<Algorithm>,
    /// Rows of a tile of a product, up to [`MAX_ROWS`](Self::MAX_ROWS); at most as many as there are registers for.
    pub rows: Option<i64>,
    /// Depth of a block of a product.
    pub depth: Option<i64>,
}

impl Schedule {
    /// Maximum number of rows of a tile, on the processors with the most registers.
    pub const MAX_ROWS: i64 = 14;
}
