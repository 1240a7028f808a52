//! Tiles of elementwise ops.
//!
//! A thread moves as many elements at once as the bytes of a tile's row allow, at most 16 bytes. So
//! the rows of a tile must hold a whole number of those vectors, and every operand must be aligned
//! to them: otherwise ARK's kernels fault, or write past the end of a row. Buffers themselves are aligned
//! ([`super::padding`]); rows need not be.
//!
//! Kernels of pairs ([`Lane`]) process the elements of a tile in pairs instead, and every pair must be in
//! one row: their tiles have even width. Only where a row is one element does a kernel of pairs that are
//! not coupled process elements singly.
use irc_ark_format::{
    model::{Lane, Op, Tensor},
    plan::tiling::four,
};

/// Bytes of the widest vector access.
const VECTOR: i64 = 16;

/// Indices of the last two of four dimensions.
const ROWS: usize = 2;
const COLUMNS: usize = 3;

/// The tile `[height, width]` of about so many elements for ops that share a grid; all have results
/// of one shape. `None` if no tile is exact for every op.
pub fn tile(ops: &[&Op], elements: i64) -> Option<[i64; 2]> {
    let [_, _, height, width] = four(&ops[0].results[0].shape);
    if width == 1 && ops.iter().any(|op| in_pairs(op)) {
        // The second element of each pair is outside of the row and unused.
        return Some([elements.min(height), 2]);
    }
    if width == 1 {
        return Some([along(height, elements, ops, ROWS)?, 1]);
    }
    let tile_width = along(width, elements, ops, COLUMNS)?;
    Some([(elements / tile_width).clamp(1, height), tile_width])
}

/// The tile of an op that has no exact one: of even width, it covers all elements. The checks of the
/// plan format report what it accesses beyond them.
pub fn least_wrong(op: &Op, elements: i64) -> [i64; 2] {
    let [_, _, height, width] = four(&op.results[0].shape);
    let tile_width = (width + width % 2).min(elements);
    [(elements / tile_width).clamp(1, height), tile_width]
}

/// The longest extent of a tile along a dimension of `extent` that is valid for every op.
fn along(extent: i64, elements: i64, ops: &[&Op], dim: usize) -> Option<i64> {
    let fits = |length: &i64| ops.iter().all(|op| suits_along(op, *length, extent, dim));
    (1..=extent.min(elements)).rev().find(fits)
}

/// Whether whole rows of a width are valid for an op's kernel.
pub fn along_rows(op: &Op, width: i64, longest: i64) -> bool {
    width <= longest && suits(op, width, width)
}

/// Whether tiles with rows of `length` of the `extent` elements of a row are valid for an op's kernel.
pub fn suits(op: &Op, length: i64, extent: i64) -> bool {
    suits_along(op, length, extent, COLUMNS)
}

fn suits_along(op: &Op, length: i64, extent: i64, dim: usize) -> bool {
    if in_pairs(op) {
        return takes_pairs(op) && (length % 2 == 0 || extent == 1);
    }
    // Columns are moved by vectors only where every operand's view is a single column.
    let is_column = |tensor: &Tensor| four(&tensor.strides)[COLUMNS] == 1;
    if dim == ROWS && !op.results.iter().chain(&op.reads).all(is_column) {
        return true;
    }
    op.results.iter().chain(&op.reads).all(|tensor| {
        let size = tensor.dtype.bytes().cast_signed();
        let vector = power_of_two(length * size);
        // A single broadcast element is read by itself.
        let is_stretched = four(&tensor.shape)[dim] == 1 && extent != 1;
        is_stretched || (extent * size % vector == 0 && alignment(tensor, dim) % vector == 0)
    })
}

/// Whether an op's kernel processes elements in pairs, whatever the tile.
pub fn in_pairs(op: &Op) -> bool {
    op.kind.row().lane != Lane::Vectors
}

/// Whether tiles of even width are exact for an op whose kernel processes elements in pairs.
pub fn takes_pairs(op: &Op) -> bool {
    let [_, _, _, width] = four(&op.results[0].shape);
    if width == 1 {
        return true;
    }
    let mut tensors = op.results.iter().chain(&op.reads);
    // Pairs of bytes are moved byte by byte, and rotated pairs element by element.
    let is_moved =
        op.kind.row().lane == Lane::Pairs && tensors.clone().all(|t| t.dtype.bytes() > 1);
    width % 2 == 0
        && tensors.all(|tensor| {
            let pair = 2 * tensor.dtype.bytes().cast_signed();
            let is_aligned = !is_moved || alignment(tensor, COLUMNS) % pair == 0;
            four(&tensor.shape)[COLUMNS] == width && is_aligned
        })
}

/// The largest power of two that divides a number of bytes, at most the size of a vector.
fn power_of_two(bytes: i64) -> i64 {
    if bytes == 0 { VECTOR } else { (bytes & -bytes).min(VECTOR) }
}

/// The alignment in bytes of all positions at which a tensor's elements along a dimension start.
fn alignment(tensor: &Tensor, dim: usize) -> i64 {
    let size = tensor.dtype.bytes().cast_signed();
    let mut stride = size;
    let mut start = 0;
    let mut rows = VECTOR;
    let dims = tensor.strides.iter().zip(&tensor.offsets).zip(&tensor.shape).rev();
    for (index, ((view, offset), extent)) in dims.enumerate() {
        start += offset * stride;
        if index > COLUMNS - dim && *extent > 1 {
            rows = rows.min(power_of_two(stride));
        }
        stride *= view;
    }
    rows.min(power_of_two(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use irc_ark_format::model::{Buffer, DataType, OpKind};
    use std::collections::BTreeMap;

    fn relu(input: Tensor, output: Tensor) -> Op {
        Op {
            kind: OpKind::Relu,
            name: String::new(),
            is_virtual: false,
            reads: vec![input],
            writes: vec![output.clone()],
            results: vec![output],
            args: BTreeMap::new(),
        }
    }

    fn dense(shape: &[i64], buffer: u64) -> Tensor {
        Tensor::dense(buffer, DataType::Fp16, shape, Buffer::local(buffer))
    }

    #[test]
    fn wide_rows_are_cut_and_narrow_ones_gathered() {
        let of =
            |shape: &[i64]| tile(&[&relu(dense(shape, 0), dense(shape, 1))], 1024).expect("a tile");
        assert_eq!(of(&[512, 11008]), [1, 1024]);
        assert_eq!(of(&[512, 64]), [16, 64]);
        assert_eq!(of(&[4096, 1]), [1024, 1]);
        // An odd row admits no vector, so the tile must be odd too.
        assert_eq!(of(&[4, 4097]), [1, 1023]);
    }

    #[test]
    fn misaligned_rows_take_narrow_vectors() {
        let strided = Tensor { strides: vec![8, 65], ..dense(&[8, 64], 0) };
        let op = relu(strided, dense(&[8, 64], 1));
        assert_eq!(tile(&[&op], 1024), Some([8, 63]));
        let shifted = Tensor { strides: vec![9], offsets: vec![1], ..dense(&[8], 0) };
        assert!(!suits(&relu(shifted, dense(&[8], 1)), 8, 8));
    }

    #[test]
    fn pairs_take_even_tiles() {
        let cast = |input: Tensor, output: Tensor| Op { kind: OpKind::Cast, ..relu(input, output) };
        let of = |shape: &[i64]| tile(&[&cast(dense(shape, 0), dense(shape, 1))], 1024);
        assert_eq!(of(&[512, 64]), Some([16, 64]));
        assert_eq!(of(&[512, 1]), Some([512, 2]));
        assert_eq!(of(&[4, 4098]), Some([1, 1024]));
        assert_eq!(of(&[4, 33]), None);
        let strided = Tensor { strides: vec![8, 65], ..dense(&[8, 64], 0) };
        assert!(!takes_pairs(&cast(strided.clone(), dense(&[8, 64], 1))));
        let bytes = Tensor { dtype: DataType::Uint8, ..dense(&[8, 64], 1) };
        assert!(takes_pairs(&cast(strided, bytes)));
    }
}
