//! Shapes of feature maps, and regions of them.
//!
//! An element is a byte: the model has no other type.

/// Shape of a feature map of one image, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Channels.
    pub channels: u64,
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
}

impl Shape {
    /// A map of `channels` by `rows` by `columns`.
    pub const fn new(channels: u64, rows: u64, columns: u64) -> Self {
        Self { channels, rows, columns }
    }

    /// Number of elements of one image.
    pub fn volume(self) -> u64 {
        self.channels * self.rows * self.columns
    }
}

/// The indices `from..to` of one axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first index.
    pub from: u64,
    /// The exclusive end.
    pub to: u64,
}

impl Span {
    /// The indices `0..to`.
    pub const fn upto(to: u64) -> Self {
        Self { from: 0, to }
    }

    /// Number of indices.
    pub fn len(self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Whether the span is empty.
    pub fn is_empty(self) -> bool {
        self.to <= self.from
    }

    /// The intersection.
    #[must_use]
    pub fn overlap(self, other: Self) -> Self {
        let from = self.from.max(other.from);
        Self { from, to: self.to.min(other.to).max(from) }
    }
}

/// A box of a tensor: the product of four spans.
///
/// For weights, `channels` are output channels, `rows` input channels and `columns` the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Channels.
    pub channels: Span,
    /// Images of the batch.
    pub images: Span,
    /// Rows.
    pub rows: Span,
    /// Columns.
    pub columns: Span,
}

impl Region {
    /// Number of elements.
    pub fn volume(self) -> u64 {
        self.channels.len() * self.images.len() * self.rows.len() * self.columns.len()
    }

    /// The intersection.
    #[must_use]
    pub fn overlap(self, other: Self) -> Self {
        Self {
            channels: self.channels.overlap(other.channels),
            images: self.images.overlap(other.images),
            rows: self.rows.overlap(other.rows),
            columns: self.columns.overlap(other.columns),
        }
    }
}
