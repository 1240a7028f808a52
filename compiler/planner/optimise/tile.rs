//! Tiles of elementwise ops.
//!
//! A thread moves as many elements at once as the bytes of a tile's row allow, 16 bytes at most. So
//! a tile must be such that rows hold a whole number of those vectors and every operand is aligned
//! to them: else ARK's kernels fault, or write past the end of a row.
use irc_ark_format::{
    model::{Op, OpKind, Tensor},
    plan::tiling::four,
};
use std::collections::BTreeMap;

/// Bytes of the longest vector access.
const VECTOR: i64 = 16;

/// The tile `[height, width]` of about so many elements for ops that share a grid; all have results
/// of one shape.
pub fn tile(ops: &[&Op], elements: i64, arena: &BTreeMap<u64, i64>) -> [i64; 2] {
    let [_, _, height, width] = four(&ops[0].results[0].shape);
    if width == 1 {
        return [along(height, elements, ops, arena), 1];
    }
    let tile_width = along(width, elements, ops, arena);
    [(elements / tile_width).clamp(1, height), tile_width]
}

/// The longest extent of a tile along a dimension of `extent` that every op can take.
fn along(extent: i64, elements: i64, ops: &[&Op], arena: &BTreeMap<u64, i64>) -> i64 {
    let fits = |length: i64| ops.iter().all(|op| suits(op, length, extent, arena));
    (1..=extent.min(elements)).rev().find(|length| fits(*length)).unwrap_or(1)
}

/// Whether whole rows of a width suit an op's kernel.
pub fn along_rows(op: &Op, width: i64, longest: i64, arena: &BTreeMap<u64, i64>) -> bool {
    width <= longest && suits(op, width, width, arena)
}

/// Whether rows of `length` of a dimension of `extent` elements suit an op's kernel.
pub fn suits(op: &Op, length: i64, extent: i64, arena: &BTreeMap<u64, i64>) -> bool {
    if matches!(op.kind, OpKind::Cast | OpKind::Rope) && extent % 2 == 0 && length % 2 != 0 {
        return false;
    }
    op.results.iter().chain(&op.reads).all(|tensor| {
        let size = tensor.dtype.bytes().cast_signed();
        let vector = power_of_two(length * size);
        // One element for all is read alone.
        let is_stretched = four(&tensor.shape)[3] == 1 && extent != 1;
        is_stretched || (extent * size % vector == 0 && alignment(tensor, arena) % vector == 0)
    })
}

/// The largest power of two that divides a number of bytes, at most a vector.
fn power_of_two(bytes: i64) -> i64 {
    if bytes == 0 { VECTOR } else { (bytes & -bytes).min(VECTOR) }
}

/// The alignment of every row of a tensor, in bytes.
fn alignment(tensor: &Tensor, arena: &BTreeMap<u64, i64>) -> i64 {
    let size = tensor.dtype.bytes().cast_signed();
    let mut stride = size;
    let mut start = arena.get(&tensor.buffer.id).copied().unwrap_or_default();
    let mut rows = VECTOR;
    let dims = tensor.strides.iter().zip(&tensor.offsets).zip(&tensor.shape).rev();
    for (index, ((view, offset), extent)) in dims.enumerate() {
        start += offset * stride;
        if index > 0 && *extent > 1 {
            rows = rows.min(power_of_two(stride));
        }
        stride *= view;
    }
    rows.min(power_of_two(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use irc_ark_format::model::{Buffer, DataType};

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
        let of = |shape: &[i64]| {
            tile(&[&relu(dense(shape, 0), dense(shape, 1))], 1024, &BTreeMap::new())
        };
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
        assert_eq!(tile(&[&op], 1024, &BTreeMap::new()), [8, 63]);
        let shifted = BTreeMap::from([(0, 2), (1, 0)]);
        assert!(!suits(&relu(dense(&[8], 0), dense(&[8], 1)), 8, 8, &shifted));
    }
}
