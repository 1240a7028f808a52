//! Matrices in panels of columns.
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
    /// How each element is made of bytes of the constant, if it is.
    pub quads: Option<Quad>,
}

/// Elements of four bytes of a constant each: byte `j` of row `k` is in row
/// `k / rows * bytes * rows + j * rows + k % rows` of the constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quad {
    /// The number of consecutive rows of the constant that have the same byte of elements.
    pub rows: i64,
    /// The number of bytes of an element in the constant, at most 4; the others are 0.
    pub bytes: i64,
    /// How bytes become integers of 16 bits, if they do: each vector of elements is then two, of the even bytes of each and
    /// of the odd ones.
    pub extension: Option<Extension>,
}

/// How an integer becomes one of more bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extension {
    /// By zeros: it is unsigned.
    Zero,
    /// By copies of its sign.
    Sign,
}

impl Quad {
    /// The number of bytes of an element when it is packed.
    pub fn width(&self) -> i64 {
        if self.extension.is_some() { 8 } else { 4 }
    }
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

    /// The row of the constant that a row of the matrix starts in, and the distance between its bytes in elements, of which
    /// there are so many.
    fn row(&self, k: i64) -> (i64, i64, i64) {
        match self.quads {
            None => (k, 0, 1),
            Some(Quad { rows, bytes, .. }) => {
                (k / rows * bytes * rows + k % rows, rows * self.along, bytes)
            }
        }
    }

    /// The packed elements of a constant whose elements have `width` bytes; padding is zero. `None` if
    /// the constant is too small, or elements of four bytes are to be made of larger ones.
    pub fn pack(&self, bytes: &[u8], width: usize) -> Option<Vec<u8>> {
        if self.quads.is_some() && width != 1 {
            return None;
        }
        let own = self.quads.map_or(width, |quads| quads.width() as usize);
        let count = usize::try_from(self.elements()).ok()?;
        let mut packed = vec![0; count.checked_mul(own)?];
        let across = usize::try_from(self.across).ok()?;
        for first in (0..self.columns).step_by(self.panel as usize) {
            let columns = self.panel.min(self.columns - first);
            let row = if columns < self.panel { up(columns, self.lanes) } else { self.panel };
            for k in 0..self.rows {
                let block = k / self.depth * self.depth;
                let to = block * up(self.columns, self.panel)
                    + first * self.panel_depth()
                    + (k - block) * row;
                let to = usize::try_from(to).ok()? * own;
                let to = packed.get_mut(to..to + row as usize * own)?;
                let (row_of, step, parts) = self.row(k);
                for part in 0..parts {
                    let from =
                        self.offset + row_of * self.along + first * self.across + part * step;
                    let from = bytes.get(usize::try_from(from).ok()? * width..)?;
                    let at = part as usize * width;
                    if let Some(extension) = self.quads.and_then(|quads| quads.extension) {
                        let lanes = usize::try_from(self.lanes).ok()?;
                        let count = columns as usize;
                        extend_row((from, across, count), to, (part as usize, lanes), extension)?;
                        continue;
                    }
                    let to = &mut to[..columns as usize * own];
                    match (width, own) {
                        (4, 4) => copy_row::<4>(from, across, to, (at, own))?,
                        (2, 2) => copy_row::<2>(from, across, to, (at, own))?,
                        (1, _) => copy_row::<1>(from, across, to, (at, own))?,
                        (8, 8) => copy_row::<8>(from, across, to, (at, own))?,
                        (16, 16) => copy_row::<16>(from, across, to, (at, own))?,
                        _ => return None,
                    }
                }
            }
        }
        Some(packed)
    }
}

/// Copies elements of `WIDTH` bytes that are `across` elements apart into elements of `own` bytes each, from their byte `at`
/// on. `None` if there are too few.
fn copy_row<const WIDTH: usize>(
    from: &[u8],
    across: usize,
    to: &mut [u8],
    (at, own): (usize, usize),
) -> Option<()> {
    if across == 1 && own == WIDTH {
        to.copy_from_slice(from.get(..to.len())?);
        return Some(());
    }
    for (column, element) in to.chunks_exact_mut(own).enumerate() {
        let start = column * across * WIDTH;
        element[at..at + WIDTH].copy_from_slice(from.get(start..start + WIDTH)?);
    }
    Some(())
}

/// Copies a number of bytes that are `across` apart, which are byte `part` of elements, as 16-bit integers into vectors of
/// `lanes` elements each. `None` if there are too few.
fn extend_row(
    (from, across, count): (&[u8], usize, usize),
    to: &mut [u8],
    (part, lanes): (usize, usize),
    extension: Extension,
) -> Option<()> {
    for column in 0..count {
        let byte = *from.get(column * across)?;
        let high = match extension {
            Extension::Sign if byte >= 128 => 255,
            _ => 0,
        };
        let lane = (column / lanes * 2 + part % 2) * lanes + column % lanes;
        let at = 4 * lane + part / 2 * 2;
        to.get_mut(at..at + 2)?.copy_from_slice(&[byte, high]);
    }
    Some(())
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
            quads: None,
        };
        assert_eq!(packing.elements(), 2 * 2 * 8);
        let packed = packing.pack(&matrix, 1).expect("it is there");
        let first = [1, 4, 7, 10, 2, 5, 8, 11, 13, 0, 14, 0, 0, 0, 0, 0];
        let second = [3, 6, 9, 12, 0, 0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(packed, [first, second].concat());
        assert_eq!(packing.pack(&matrix[1..], 1), None);
    }

    #[test]
    fn four_bytes_of_an_element_are_in_as_many_rows() {
        // Filters of 8 channels of two taps each; a column is a filter.
        let matrix: Vec<u8> = (0..32).collect();
        let packing = Panels {
            argument: 0,
            offset: 0,
            along: 1,
            across: 16,
            rows: 4,
            columns: 2,
            depth: 4,
            panel: 1,
            lanes: 1,
            quads: Some(Quad { rows: 2, bytes: 4, extension: None }),
        };
        assert_eq!(packing.elements() * 4, 32);
        let packed = packing.pack(&matrix, 1).expect("it is there");
        let filter = [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15];
        assert_eq!(packed, [filter, filter.map(|byte| byte + 16)].concat());
        assert_eq!(packing.pack(&matrix, 2), None);
        let three = Quad { rows: 2, bytes: 3, extension: None };
        let of_three = Panels { rows: 2, quads: Some(three), ..packing };
        let packed = Panels { columns: 1, depth: 2, ..of_three }.pack(&matrix, 1);
        assert_eq!(packed.expect("it is there"), [0, 2, 4, 0, 1, 3, 5, 0]);
    }

    #[test]
    fn extended_bytes_are_vectors_of_even_and_of_odd_ones() {
        // Three columns of one element each, in vectors of two: the second vector has one column.
        let matrix = [1, 254, 3, 4, 5, 6, 7, 248, 9, 10, 11, 12];
        let quads = Quad { rows: 1, bytes: 4, extension: Some(Extension::Sign) };
        let packing = Panels {
            argument: 0,
            offset: 0,
            along: 1,
            across: 4,
            rows: 1,
            columns: 3,
            depth: 1,
            panel: 4,
            lanes: 2,
            quads: Some(quads),
        };
        let packed = |extension| {
            let quads = Some(Quad { extension: Some(extension), ..quads });
            let bytes = Panels { quads, ..packing }.pack(&matrix, 1).expect("it is there");
            let numbers: Vec<i16> =
                bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
            numbers
        };
        let signed = packed(Extension::Sign);
        let (first, second) = signed.split_at(8);
        assert_eq!(first, [1, 3, 5, 7, -2, 4, 6, -8]);
        assert_eq!(second[..8], [9, 11, 0, 0, 10, 12, 0, 0]);
        assert_eq!(packed(Extension::Zero)[4..8], [254, 4, 6, 248]);
    }
}
