//! The bytes of a tensor in row-major order, and the tiles of it that belong to tasks.
//!
//! All data that moves between ranks is given as ranges of a tensor's elements in row-major order:
//! source and target may have different layouts, and packets take twice the space.

use irc_ark_format::model::Tensor;
use irc_ark_format::plan::tiling::{Cover, Grid, four, window};

use crate::memory::Run;

/// The location of the elements of a tensor in its buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Offset of the first element, in bytes.
    pub base: u64,
    /// The extents.
    pub shape: [u64; 4],
    /// Strides of the dimensions, in bytes.
    pub strides: [u64; 4],
    /// Bytes of an element.
    pub element: u64,
}

impl View {
    /// The elements of a tensor whose extents are positive.
    pub(crate) fn of(tensor: &Tensor) -> Self {
        let element = tensor.dtype.bytes();
        let (view, mut offsets) = (four(&tensor.strides), [0; 4]);
        offsets[4 - tensor.offsets.len()..].copy_from_slice(&tensor.offsets);
        let mut strides = [element; 4];
        for dim in (0..3).rev() {
            strides[dim] = strides[dim + 1] * view[dim + 1].cast_unsigned();
        }
        let base = (0..4).map(|dim| offsets[dim].cast_unsigned() * strides[dim]).sum();
        let shape = four(&tensor.shape).map(i64::cast_unsigned);
        Self { base, shape, strides, element }
    }

    /// Number of bytes of all elements.
    pub fn bytes(&self) -> u64 {
        self.shape.iter().product::<u64>() * self.element
    }

    /// The offset in the buffer of the end of the last element.
    pub(crate) fn end(&self) -> u64 {
        let last = (0..4).map(|dim| (self.shape[dim] - 1) * self.strides[dim]);
        self.base + last.sum::<u64>() + self.element
    }

    /// Whether every row starts and ends at a multiple of eight bytes.
    pub(crate) fn is_words(&self) -> bool {
        let row = self.shape[3] * self.element;
        let places = [self.base, row, self.strides[0], self.strides[1], self.strides[2]];
        places.iter().all(|place| place.is_multiple_of(8))
    }

    /// The locations in the buffer of ranges of the elements' bytes in row-major order.
    pub(crate) fn runs(&self, stretches: &[Run]) -> Vec<Run> {
        let mut runs = vec![];
        let row = self.shape[3] * self.element;
        for &(begin, len) in stretches {
            let (mut at, end) = (begin, begin + len);
            while at < end {
                let (line, within) = (at / row, at % row);
                let part = (row - within).min(end - at);
                push(&mut runs, (self.line(line) + within, part));
                at += part;
            }
        }
        runs
    }

    /// The location of a box of elements in the buffer; no ranges if the box is empty.
    pub(crate) fn window(&self, begin: [i64; 4], extent: [i64; 4]) -> Vec<Run> {
        let mut runs = vec![];
        let step = |dim: usize, index: i64| index.cast_unsigned() * self.strides[dim];
        let along = |dim: usize| begin[dim]..begin[dim] + extent[dim];
        let len = extent[3].max(0).cast_unsigned() * self.element;
        for n in along(0).filter(|_| len > 0) {
            for c in along(1) {
                for h in along(2) {
                    let at = self.base + step(0, n) + step(1, c) + step(2, h) + step(3, begin[3]);
                    push(&mut runs, (at, len));
                }
            }
        }
        runs
    }

    /// The offset at which a row starts.
    fn line(&self, mut line: u64) -> u64 {
        let mut byte = self.base;
        for dim in (0..3).rev() {
            byte += line % self.shape[dim] * self.strides[dim];
            line /= self.shape[dim];
        }
        byte
    }
}

/// Adds a range, merged with the previous one if they are adjacent.
fn push(runs: &mut Vec<Run>, (begin, len): Run) {
    match runs.last_mut() {
        Some(last) if last.0 + last.1 == begin => last.1 += len,
        _ => runs.push((begin, len)),
    }
}

/// How tasks tile the last two dimensions of a tensor; a single tile if `tile` is `None`.
///
/// # Errors
/// If the tile is invalid.
pub(crate) fn grid(tensor: &Tensor, tile: Option<&[i64]>) -> Result<Grid, String> {
    let shape = four(&tensor.shape);
    let tile = match tile {
        None => shape,
        Some(&[height, width]) if height > 0 && width > 0 => [1, 1, height, width],
        Some(other) => return Err(format!("expected a `Tile` of two extents, found {other:?}")),
    };
    let count = |dim: usize| (shape[dim] - 1) / tile[dim] + 1;
    Ok(Grid { counts: [count(0), count(1), count(2), count(3)], tile })
}

/// The bytes in row-major order that belong to a task in a grid.
pub(crate) fn stretches(tensor: &Tensor, grid: &Grid, task: i64) -> Vec<Run> {
    let shape = four(&tensor.shape);
    let tile = |digit: usize| Cover::Tile { digit, extent: grid.tile[digit] };
    let taken = window(shape, [tile(0), tile(1), tile(2), tile(3)], grid.digits(task));
    let element = tensor.dtype.bytes();
    let mut found = vec![];
    let along = |dim: usize| taken.begin[dim]..taken.begin[dim] + taken.extent[dim];
    for n in along(0) {
        for c in along(1) {
            for h in along(2) {
                let row = ((n * shape[1] + c) * shape[2] + h) * shape[3] + taken.begin[3];
                let (begin, len) = (row.cast_unsigned(), taken.extent[3].cast_unsigned());
                push(&mut found, (begin * element, len * element));
            }
        }
    }
    found
}

/// Ranges shifted by `offset` and scaled: packets take twice the space of their payload.
pub(crate) fn scaled(stretches: &[Run], factor: u64, offset: u64) -> Vec<Run> {
    stretches.iter().map(|&(begin, len)| (begin * factor + offset, len * factor)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use irc_ark_format::model::{Buffer, DataType, element_offsets};

    fn shard() -> Tensor {
        let mut tensor = Tensor::dense(0, DataType::Fp16, &[2, 3, 4], Buffer::local(0));
        (tensor.strides, tensor.offsets) = (vec![3, 5, 8], vec![1, 2, 4]);
        tensor
    }

    #[test]
    fn all_bytes_lie_where_the_elements_are() {
        let (tensor, view) = (shard(), View::of(&shard()));
        let expected: Vec<u64> = element_offsets(&tensor).map(|element| element * 2).collect();
        let runs = view.runs(&[(0, view.bytes())]);
        let found: Vec<u64> =
            runs.iter().flat_map(|&(begin, len)| (begin..begin + len).step_by(2)).collect();
        assert_eq!(found, expected);
        assert_eq!(view.end(), expected[expected.len() - 1] + 2);
        assert_eq!(view.runs(&[(4, 6)]), [(expected[2], 4), (expected[4], 2)]);
    }

    #[test]
    fn tiles_are_stretches_of_rows() {
        let tensor = shard();
        let grid = grid(&tensor, Some(&[2, 3])).expect("a tile");
        assert_eq!(grid.counts, [1, 2, 2, 2]);
        assert_eq!(stretches(&tensor, &grid, 0), [(0, 6), (8, 6)]);
        assert_eq!(stretches(&tensor, &grid, 7), [(46, 2)]);
        let whole = super::grid(&tensor, None).expect("no tile");
        assert_eq!(stretches(&tensor, &whole, 0), [(0, 48)]);
        assert!(super::grid(&tensor, Some(&[0, 1])).is_err());
    }
}
