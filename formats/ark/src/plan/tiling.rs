//! How the tasks of an op tile its result, and the part of its operands that each task accesses.
//!
//! There are four dimensions, with leading ones. Task `i` of an op has the digits of `i` in the radices
//! [`Grid::counts`], the last fastest; digit `d` selects a tile along dimension `d` of the result.

use crate::model::{Family, Op, Tensor};
use crate::plan::PlanOp;

/// A shape with four dimensions, padded with leading ones.
pub fn four(shape: &[i64]) -> [i64; 4] {
    let mut dims = [1; 4];
    dims[4 - shape.len()..].copy_from_slice(shape);
    dims
}

/// The tiles of a result: task `i` has the digits of `i` in the radices `counts`, last fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Number of tiles along each of the four dimensions.
    pub counts: [i64; 4],
    /// Extents of a tile.
    pub tile: [i64; 4],
}

impl Grid {
    /// The grid of tiles with these extents; `None` if one is not positive.
    fn new(shape: [i64; 4], tile: [i64; 4]) -> Option<Self> {
        if tile.iter().any(|&extent| extent < 1) {
            return None;
        }
        let count = |dim: usize| match shape[dim] {
            extent if extent > 0 => (extent - 1) / tile[dim] + 1,
            _ => 0,
        };
        Some(Self { counts: [count(0), count(1), count(2), count(3)], tile })
    }

    /// Number of tasks, saturating.
    pub fn tasks(&self) -> i64 {
        self.counts.iter().fold(1, |tasks, &count| tasks.saturating_mul(count))
    }

    /// The digits of a task index.
    pub fn digits(&self, task: i64) -> [i64; 4] {
        let mut rest = task;
        let mut digits = [0; 4];
        for dim in (0..4).rev() {
            digits[dim] = rest % self.counts[dim];
            rest /= self.counts[dim];
        }
        digits
    }
}

/// The grid of an op whose tasks are tiles of its result; `None` for ops that move data between
/// ranks, whose number of tasks is only in the config, for tiles of more than two dimensions, and for
/// empty tiles.
pub fn grid(plan_op: &PlanOp) -> Option<Grid> {
    let PlanOp { op, config } = plan_op;
    let result = op.results.first()?;
    let shape = four(&result.shape);
    match op.kind.family() {
        Family::Communication(_) | Family::View | Family::Idle => None,
        Family::Product => {
            // The newest generation of the format has only M and N.
            let (&[m, n, _] | &[m, n]) = config.ints("TileShapeMNK").or(config.ints("Tile"))?
            else {
                return None;
            };
            Grid::new(extents(op, result), [1, 1, m, n])
        }
        Family::Reduction => Grid::new(shape, [1; 4]),
        Family::Lookup => Grid::new(shape, [1, 1, 1, shape[3]]),
        Family::Elementwise | Family::Transposition => {
            let &[height, width] = config.ints("Tile")? else { return None };
            let extent = |tile: i64, stride: i64| if tile < 0 { stride } else { tile };
            let strides = four(&result.strides);
            let tile = [1, 1, extent(height, strides[2]), extent(width, strides[3])];
            Grid::new(shape, tile)
        }
    }
}

/// Number of tasks of an op, from its config or its tiles.
pub fn num_tasks(plan_op: &PlanOp) -> Option<i64> {
    plan_op.config.int("NumTasks").or_else(|| derived_tasks(plan_op))
}

/// Number of tasks according to the tiles.
pub fn derived_tasks(plan_op: &PlanOp) -> Option<i64> {
    match plan_op.op.kind.family() {
        Family::Idle => Some(0),
        _ => grid(plan_op).map(|grid| grid.tasks()),
    }
}

/// The part of one dimension of an operand that a task accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// The whole dimension.
    All,
    /// The tile that this digit of the task index selects.
    Tile {
        /// Dimension of the grid.
        digit: usize,
        /// Extent of a tile.
        extent: i64,
    },
}

/// The part of the operand at `index` that each task of an op reads, as four dimensions.
pub fn reads(op: &Op, grid: &Grid, index: usize) -> Option<[Cover; 4]> {
    let shape = four(&op.reads.get(index)?.shape);
    let tile = |digit: usize| Cover::Tile { digit, extent: grid.tile[digit] };
    // Along a broadcast dimension, every task reads the one element.
    let elementwise = |dim: usize| if shape[dim] == 1 { Cover::All } else { tile(dim) };
    let all = [Cover::All; 4];
    match op.kind.family() {
        // A 1-D operand is one row or one column with the inner extent of the product.
        Family::Product if op.reads[index].rank() == 1 => Some(all),
        Family::Product => {
            let transposed = ["TransposeInput", "TransposeOther"][index];
            let transposed = op.bool_arg(transposed).unwrap_or(false);
            let digit = 2 + index;
            let dim = 2 + (index ^ usize::from(transposed));
            let mut cover = [elementwise(0), elementwise(1), Cover::All, Cover::All];
            cover[dim] = tile(digit);
            Some(cover)
        }
        Family::Transposition => {
            let rank = op.reads[index].rank();
            let permutation = op.dims_arg("Permutation")?;
            let mut cover = all;
            for (result_dim, &dim) in permutation.iter().enumerate() {
                cover[4 - rank + usize::try_from(dim).ok()?] = tile(4 - rank + result_dim);
            }
            Some(cover)
        }
        Family::Lookup if index == 1 => Some(all),
        // Indices are the dimensions of the result before its last one.
        Family::Lookup => Some([Cover::All, tile(0), tile(1), tile(2)]),
        Family::Reduction => {
            let rank = op.reads[index].rank();
            let axis = 4 - rank + usize::try_from(op.int_arg("Axis")?).ok()?;
            // Without the reduced dimension, those before it move one position to the right.
            let shift = usize::from(!op.bool_arg("KeepDim")? && rank > 1);
            let cover = |dim: usize| match dim {
                dim if dim == axis => Cover::All,
                dim if dim < axis => tile((dim + shift).min(3)),
                dim => tile(dim),
            };
            Some([cover(0), cover(1), cover(2), cover(3)])
        }
        Family::Elementwise | Family::Communication(_) | Family::View | Family::Idle => {
            Some([elementwise(0), elementwise(1), elementwise(2), elementwise(3)])
        }
    }
}

/// The part of its result that each task of an op writes, as four dimensions.
pub fn writes(grid: &Grid) -> [Cover; 4] {
    let tile = |digit: usize| Cover::Tile { digit, extent: grid.tile[digit] };
    [tile(0), tile(1), tile(2), tile(3)]
}

/// The extents of a tensor that tasks may access: for products, whose kernels compute on padding,
/// including the padding of matrices, but not of their number.
pub fn extents(op: &Op, tensor: &Tensor) -> [i64; 4] {
    let (shape, padded) = (four(&tensor.shape), four(&tensor.padded_shape));
    match op.kind.family() {
        Family::Product => [shape[0], shape[1], padded[2], padded[3]],
        _ => shape,
    }
}

/// A box of elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// First index along each dimension.
    pub begin: [i64; 4],
    /// Number of indices along each dimension; none is zero.
    pub extent: [i64; 4],
}

/// The part of a tensor with these [`extents`] that the task with these digits accesses; the last tile
/// is truncated at the end of the tensor.
pub fn window(extents: [i64; 4], cover: [Cover; 4], digits: [i64; 4]) -> Window {
    let mut window = Window { begin: [0; 4], extent: extents };
    for dim in 0..4 {
        if let Cover::Tile { digit, extent } = cover[dim] {
            window.begin[dim] = digits[digit] * extent;
            window.extent[dim] = extent.min(extents[dim] - window.begin[dim]);
        }
    }
    window
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_count_with_the_last_fastest() {
        let grid = Grid { counts: [1, 2, 3, 4], tile: [1, 1, 8, 64] };
        assert_eq!(grid.digits(0), [0, 0, 0, 0]);
        assert_eq!(grid.digits(4), [0, 0, 1, 0]);
        assert_eq!(grid.digits(23), [0, 1, 2, 3]);
    }

    #[test]
    fn any_tile_has_an_answer() {
        let tiles = |shape: [i64; 4], tile: i64| {
            Grid::new(shape, [1, 1, tile, tile]).map(|grid| grid.tasks())
        };
        assert_eq!(tiles([1, 1, 8, 8], i64::MAX), Some(1));
        assert_eq!(tiles([1, 1, 8, 8], 0), None);
        assert_eq!(tiles([1, 1, 8, 8], -1), None);
        assert_eq!(tiles([1, 1, 0, 8], 4), Some(0));
        assert_eq!(tiles([i64::MAX; 4], 1), Some(i64::MAX));
    }

    #[test]
    fn the_last_tile_ends_with_the_tensor() {
        let tile = |digit| Cover::Tile { digit, extent: [1, 1, 8, 64][digit] };
        let cover = [Cover::All, tile(1), tile(2), tile(3)];
        let found = window([1, 2, 20, 200], cover, [0, 1, 2, 3]);
        assert_eq!(found, Window { begin: [0, 1, 16, 192], extent: [1, 1, 4, 8] });
    }
}
