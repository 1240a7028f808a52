//! Constants in the order in which a kernel reads them.

use super::Winograd;

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

    /// The number of elements of the packed constant.
    pub fn elements(&self) -> i64 {
        match self {
            Self::Panels(panels) => panels.elements(),
            Self::Winograd(winograd) => winograd.elements(),
        }
    }

    /// The packed elements of a constant whose elements have `width` bytes. `None` if the constant is too
    /// small, or its elements cannot be packed so.
    pub fn pack(&self, bytes: &[u8], width: usize) -> Option<Vec<u8>> {
        match self {
            Self::Panels(panels) => panels.pack(bytes, width),
            Self::Winograd(winograd) => winograd.pack(bytes, width),
        }
    }
}

/// The packing of a matrix: blocks of depth, each of panels of columns, each of rows without gaps.
///
/// The element in row `k` and column `n` of the matrix has the index `offset + k * along + n * across`
/// in the constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panels {
    /// The number of the argument.
    pub argument: usize,
    /// The number of elements before the matrix.
    pub offset: i64,
    /// The stride between rows, in elements.
    pub along: i64,
    /// The stride between columns, in elements.
    pub across: i64,
    /// The number of rows.
    pub rows: i64,
    /// The number of columns.
    pub columns: i64,
    /// The number of rows of a block.
    pub depth: i64,
    /// The number of columns of a panel.
    pub panel: i64,
    /// The number of elements of a vector: the rows of the last panel are padded to whole vectors, and
    /// the depth of panels is rounded up to whole vectors.
    pub lanes: i64,
}

fn up(size: i64, unit: i64) -> i64 {
    (size + unit - 1) / unit * unit
}

impl Panels {
    /// The number of elements of the packed matrix.
    pub fn elements(&self) -> i64 {
        let blocks = (self.rows + self.depth - 1) / self.depth;
        blocks * self.panel_depth() * up(self.columns, self.panel)
    }

    /// The number of rows reserved in a panel.
    fn panel_depth(&self) -> i64 {
        up(self.depth, self.lanes)
    }

    /// The packed elements of a constant whose elements have `width` bytes; padding is zero. `None` if
    /// the constant is too small.
    pub fn pack(&self, bytes: &[u8], width: usize) -> Option<Vec<u8>> {
        let count = usize::try_from(self.elements()).ok()?;
        let mut packed = vec![0; count.checked_mul(width)?];
        for first in (0..self.columns).step_by(self.panel as usize) {
            let columns = self.panel.min(self.columns - first);
            let row = if columns < self.panel { up(columns, self.lanes) } else { self.panel };
            for k in 0..self.rows {
                let block = k / self.depth * self.depth;
                let to = block * up(self.columns, self.panel)
                    + first * self.panel_depth()
                    + (k - block) * row;
                let from = self.offset + k * self.along + first * self.across;
                for column in 0..columns {
                    let (to, from) = (to + column, from + column * self.across);
                    let (to, from) = (to as usize * width, usize::try_from(from).ok()? * width);
                    packed.get_mut(to..to + width)?.copy_from_slice(bytes.get(from..from + width)?);
                }
            }
        }
        Some(packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_are_rows_without_gaps_and_the_last_is_as_narrow_as_vectors_allow() {
        // Three rows of five columns, transposed: column n starts 3 n elements from the first.
        let matrix: Vec<u8> = (1..=15).collect();
        let packing = Panels {
            argument: 0,
            offset: 0,
            along: 1,
            across: 3,
            rows: 3,
            columns: 5,
            depth: 2,
            panel: 4,
            lanes: 2,
        };
        assert_eq!(packing.elements(), 2 * 2 * 8);
        let packed = packing.pack(&matrix, 1).expect("it is there");
        let first = [1, 4, 7, 10, 2, 5, 8, 11, 13, 0, 14, 0, 0, 0, 0, 0];
        let second = [3, 6, 9, 12, 0, 0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(packed, [first, second].concat());
        assert_eq!(packing.pack(&matrix[1..], 1), None);
    }
}
