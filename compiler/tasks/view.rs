//! The memory accesses of an op's tasks to one tensor.
use irc_ark_format::{
    model::{DataType, Family, Op, Region, Tensor},
    plan::tiling::{self, Cover, Grid, Window, four},
};

/// The window of a tensor that each task accesses, which depends on the task index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Id of the buffer.
    pub buffer: u64,
    /// Element type.
    pub dtype: DataType,
    /// Rank of the tensor; windows have leading dimensions of extent 1.
    pub rank: usize,
    strides: [i64; 4],
    offsets: [i64; 4],
    extents: [i64; 4],
    cover: [Cover; 4],
}

impl View {
    /// The window that each task reads of the operand at `index`.
    pub fn read(op: &Op, grid: &Grid, index: usize) -> Option<Self> {
        let tensor = op.reads.get(index)?;
        Some(Self::new(op, tensor, grid, tiling::reads(op, grid, index)?))
    }

    /// The window that each task writes.
    pub fn write(op: &Op, grid: &Grid) -> Option<Self> {
        Some(Self::new(op, op.writes.first()?, grid, tiling::writes(grid)))
    }

    fn new(op: &Op, tensor: &Tensor, grid: &Grid, cover: [Cover; 4]) -> Self {
        let extents = tiling::extents(op, tensor);
        let mut offsets = [0; 4];
        offsets[4 - tensor.rank()..].copy_from_slice(&tensor.offsets);
        let mut view = Self {
            buffer: tensor.buffer.id,
            dtype: tensor.dtype,
            rank: tensor.rank(),
            strides: four(&tensor.strides),
            offsets,
            extents,
            cover,
        };
        for (dim, cover) in view.cover.iter_mut().enumerate() {
            // If there is only one tile, it does not move.
            if let Cover::Tile { digit, extent } = *cover
                && grid.counts[digit] == 1
                && extent >= extents[dim]
            {
                *cover = Cover::All;
            }
        }
        view
    }

    /// Whether both are the same window for every task, up to leading dimensions of extent 1.
    pub fn is_same(&self, other: &Self) -> bool {
        let other = Self { rank: self.rank, ..other.clone() };
        *self == other
    }

    /// The window of the task with these digits.
    pub fn window(&self, digits: [i64; 4]) -> Window {
        tiling::window(self.extents, self.cover, digits)
    }

    /// The shape of that window, with the tensor's rank.
    pub fn shape(&self, digits: [i64; 4]) -> Vec<i64> {
        self.window(digits).extent[4 - self.rank..].to_vec()
    }

    /// Strides of the window in elements of the buffer, with the tensor's rank; 1 along dimensions of
    /// extent 1, so that equal kernels have equal text.
    pub fn element_strides(&self, digits: [i64; 4]) -> Vec<i64> {
        let extent = self.window(digits).extent;
        let stride = |dim: usize| if extent[dim] == 1 { 1 } else { self.steps()[dim] };
        (4 - self.rank..4).map(stride).collect()
    }

    fn steps(&self) -> [i64; 4] {
        let mut steps = [1; 4];
        for dim in (0..3).rev() {
            steps[dim] = steps[dim + 1] * self.strides[dim + 1];
        }
        steps
    }

    /// The first element of the buffer that the task with digits 0 accesses, and the stride of each digit
    /// in elements.
    pub fn address(&self) -> (i64, [i64; 4]) {
        let steps = self.steps();
        let first = steps.iter().zip(self.offsets).map(|(step, offset)| step * offset).sum();
        let mut moves = [0; 4];
        for (dim, cover) in self.cover.iter().enumerate() {
            if let Cover::Tile { digit, extent } = *cover {
                moves[digit] += extent * steps[dim];
            }
        }
        (first, moves)
    }
}

/// The bytes of a tensor that all tasks together access.
pub fn region(op: &Op, tensor: &Tensor) -> Region {
    match op.kind.family() {
        Family::Product => Region::padded(tensor),
        _ => Region::of(tensor),
    }
}
