//! Byte regions of buffers: strided boxes that are compared exactly.

use std::collections::BTreeMap;

use super::{Model, Tensor};

/// Maximum number of blocks that a comparison visits before it returns the conservative answer.
const MAX_STEPS: usize = 100_000;

/// Equal blocks at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Level {
    count: u64,
    stride: u64,
}

/// The bytes of a buffer that a tensor occupies: runs of bytes repeated at strides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region {
    /// The buffer.
    pub buffer: u64,
    /// First byte.
    start: u64,
    /// Repetitions, outermost first, none with count one, and none contiguous with the next.
    levels: Vec<Level>,
    /// Bytes of the innermost run.
    run: u64,
}

impl Region {
    /// Bytes of the elements of a valid tensor.
    pub fn of(tensor: &Tensor) -> Self {
        Self::of_box(tensor, &tensor.shape)
    }

    /// Bytes that computation on a valid tensor may access, including its padding.
    pub fn padded(tensor: &Tensor) -> Self {
        Self::of_box(tensor, &tensor.padded_shape)
    }

    /// Bytes of a part of a valid tensor: the box of `extents` elements at `begin`.
    pub(crate) fn of_part(tensor: &Tensor, begin: &[i64], extents: &[i64]) -> Self {
        let mut region = Self::of_box(tensor, extents);
        let mut stride = tensor.dtype.bytes();
        for (&view, &first) in tensor.strides.iter().zip(begin).rev() {
            region.start += first as u64 * stride;
            stride *= view as u64;
        }
        region
    }

    /// Bytes of the box of `extents` at the tensor's offsets.
    pub(crate) fn of_box(tensor: &Tensor, extents: &[i64]) -> Self {
        let mut region = Region {
            buffer: tensor.buffer.id,
            start: 0,
            levels: vec![],
            run: tensor.dtype.bytes(),
        };
        let mut stride = tensor.dtype.bytes();
        let dims = tensor.strides.iter().zip(&tensor.offsets).zip(extents);
        for ((&view, &offset), &extent) in dims.rev() {
            region.start += offset as u64 * stride;
            region.wrap(Level { count: extent as u64, stride });
            stride *= view as u64;
        }
        region
    }

    /// Repeats the region, merging contiguous repetitions.
    fn wrap(&mut self, level: Level) {
        if level.count == 1 {
            return;
        }
        match self.levels.first_mut() {
            None if level.stride == self.run => self.run *= level.count,
            Some(inner) if level.stride == inner.count * inner.stride => {
                inner.count *= level.count;
            }
            _ => self.levels.insert(0, level),
        }
    }

    /// The region shifted by a number of bytes.
    pub(crate) fn moved(&self, bytes: u64) -> Self {
        Region { start: self.start + bytes, ..self.clone() }
    }

    /// The region moved to the start of buffer 0.
    pub(crate) fn at_origin(&self) -> Self {
        Region { buffer: 0, start: 0, ..self.clone() }
    }

    /// Start and end.
    pub fn span(&self) -> (u64, u64) {
        let reach: u64 = self.levels.iter().map(|level| (level.count - 1) * level.stride).sum();
        (self.start, self.start + reach + self.run)
    }

    /// Number of bytes.
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.count).product::<u64>() * self.run
    }

    /// Whether the two share a byte. Exact, except for a few shapes of more than a hundred thousand
    /// interleaved runs, for which it is true.
    pub fn overlaps(&self, other: &Region) -> bool {
        self.common(other).is_some()
    }

    /// Start and end of a run of bytes that both share; as exact as
    /// [`Region::overlaps`].
    pub fn common(&self, other: &Region) -> Option<(u64, u64)> {
        if self.buffer != other.buffer {
            return None;
        }
        let ((start, end), (other_start, other_end)) = (self.span(), other.span());
        if end <= other_start || other_end <= start {
            return None;
        }
        let Some((grid, a, b)) = self.boxes(other) else {
            let mut steps = MAX_STEPS;
            return overlap(self, other, &mut steps);
        };
        // The bytes within the innermost stride follow the dimensions of the grid.
        let strides = grid.iter().copied().chain([1]);
        let mut first = 0;
        let mut len = 0;
        for ((a, b), stride) in a.iter().zip(&b).zip(strides) {
            let (low, high) = (a.0.max(b.0), a.1.min(b.1));
            if low >= high {
                return None;
            }
            first += low * stride;
            len = (high - low) * stride;
        }
        Some((first, first + len))
    }

    /// Whether every byte of `other` is in this region. Exact, except for shapes of very many
    /// interleaved runs, for which it is false.
    pub fn covers(&self, other: &Region) -> bool {
        if self.buffer != other.buffer {
            return false;
        }
        if let Some((_, a, b)) = self.boxes(other) {
            return a.iter().zip(&b).all(|(a, b)| a.0 <= b.0 && b.1 <= a.1);
        }
        let mut steps = MAX_STEPS;
        cover(self, other, &mut steps)
    }

    /// The strides of a grid that both regions share, if there is one, and both as boxes of
    /// intervals of it.
    fn boxes(&self, other: &Region) -> Option<(Vec<u64>, Intervals, Intervals)> {
        let strides = |region: &Region| -> Vec<u64> {
            region.levels.iter().map(|level| level.stride).collect()
        };
        let mut grid = strides(self);
        grid.extend(strides(other));
        grid.sort_unstable_by(|a, b| b.cmp(a));
        grid.dedup();
        let nests = grid.windows(2).all(|pair| pair[0] % pair[1] == 0);
        if !nests {
            return None;
        }
        let (a, b) = (self.intervals(&grid)?, other.intervals(&grid)?);
        Some((grid, a, b))
    }

    /// The interval of each dimension of a grid of nested strides, outermost first, and that of
    /// the bytes within; `None` if the region is not a box of that grid.
    fn intervals(&self, grid: &[u64]) -> Option<Intervals> {
        let mut rest = self.start;
        let mut run = self.run;
        let mut intervals = vec![];
        for (index, &stride) in grid.iter().enumerate() {
            let first = rest / stride;
            rest %= stride;
            let mut count = self.levels.iter().find(|l| l.stride == stride).map_or(1, |l| l.count);
            if run > stride {
                // A run of several rows forms a box only if the rows are complete.
                if count != 1 || rest != 0 || !run.is_multiple_of(stride) {
                    return None;
                }
                (count, run) = (run / stride, stride);
            }
            let end = first + count;
            if index > 0 && end > grid[index - 1] / stride {
                return None;
            }
            intervals.push((first, end));
        }
        if grid.last().is_some_and(|&stride| rest + run > stride) {
            return None;
        }
        intervals.push((rest, rest + run));
        Some(intervals)
    }

    /// The block at `index` of the outermost level.
    fn block(&self, index: u64) -> Region {
        let Level { stride, .. } = self.levels[0];
        let start = self.start + index * stride;
        Region { start, levels: self.levels[1..].to_vec(), ..*self }
    }

    /// Indices of the outermost blocks that may intersect a span.
    fn blocks_in(&self, (start, end): (u64, u64)) -> std::ops::Range<u64> {
        let Level { count, stride } = self.levels[0];
        let (first, last) = self.block(0).span();
        let len = last - first;
        let low = (start + 1).saturating_sub(self.start + len).div_ceil(stride);
        let high = end.saturating_sub(self.start).div_ceil(stride);
        low.min(count)..high.min(count)
    }
}

/// Half-open intervals, one per dimension.
type Intervals = Vec<(u64, u64)>;

fn overlap(a: &Region, b: &Region, steps: &mut usize) -> Option<(u64, u64)> {
    let ((a_start, a_end), (b_start, b_end)) = (a.span(), b.span());
    let shared = (a_start.max(b_start), a_end.min(b_end));
    if shared.0 >= shared.1 {
        return None;
    }
    if *steps == 0 {
        return Some(shared);
    }
    *steps -= 1;
    // The longer one is split, so that blocks shrink on both sides.
    let a_is_longer = a_end - a_start >= b_end - b_start;
    let (cut, whole) = match (a.levels.is_empty(), b.levels.is_empty()) {
        (true, true) => return Some(shared),
        (false, true) => (a, b),
        (true, false) => (b, a),
        (false, false) if a_is_longer => (a, b),
        (false, false) => (b, a),
    };
    cut.blocks_in(whole.span()).find_map(|index| overlap(&cut.block(index), whole, steps))
}

fn cover(a: &Region, b: &Region, steps: &mut usize) -> bool {
    let ((a_start, a_end), (b_start, b_end)) = (a.span(), b.span());
    if b_start < a_start || b_end > a_end || *steps == 0 {
        return false;
    }
    *steps -= 1;
    if a.levels.is_empty() {
        return true;
    }
    let mut blocks = a.blocks_in((b_start, b_end));
    if blocks.clone().count() <= 1 {
        return blocks.next().is_some_and(|index| cover(&a.block(index), b, steps));
    }
    match b.levels.is_empty() {
        // Blocks of a tensor's region are neither interleaved nor adjacent: one run cannot be in two.
        true => false,
        false => (0..b.levels[0].count).all(|index| cover(a, &b.block(index), steps)),
    }
}

/// Bytes of each buffer of a valid model: the largest view of it by any tensor.
pub fn buffer_bytes<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> BTreeMap<u64, u64> {
    let mut sizes = BTreeMap::new();
    for tensor in tensors {
        let elements: u64 = tensor.strides.iter().map(|&n| n as u64).product();
        let size: &mut u64 = sizes.entry(tensor.buffer.id).or_default();
        *size = (*size).max(elements * tensor.dtype.bytes());
    }
    sizes
}

impl Model {
    /// All tensors of all ops, in the order of the file.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.nodes.iter().flat_map(|node| node.op.tensors())
    }
}

/// Linear index in its buffer, in elements, of every element of a valid tensor in row-major order.
pub fn element_offsets(tensor: &Tensor) -> impl Iterator<Item = u64> {
    let mut steps = vec![1u64; tensor.rank()];
    for dim in (1..tensor.rank()).rev() {
        steps[dim - 1] = steps[dim] * tensor.strides[dim] as u64;
    }
    let base: u64 = tensor.offsets.iter().zip(&steps).map(|(&f, &step)| f as u64 * step).sum();
    let shape: Vec<u64> = tensor.shape.iter().map(|&extent| extent as u64).collect();
    (0..shape.iter().product()).map(move |element: u64| {
        let mut rest = element;
        let mut offset = base;
        for dim in (0..shape.len()).rev() {
            offset += rest % shape[dim] * steps[dim];
            rest /= shape[dim];
        }
        offset
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::model::{Buffer, DataType};

    fn tensor(dtype: DataType, view: &[i64], offsets: &[i64], shape: &[i64]) -> Tensor {
        let mut tensor = Tensor::dense(0, dtype, shape, Buffer::local(0));
        (tensor.strides, tensor.offsets) = (view.to_vec(), offsets.to_vec());
        tensor
    }

    fn bytes(tensor: &Tensor) -> BTreeSet<u64> {
        let size = tensor.dtype.bytes();
        element_offsets(tensor).flat_map(|e| e * size..(e + 1) * size).collect()
    }

    #[test]
    fn halves_of_a_matrix_do_not_overlap() {
        let left = Region::of(&tensor(DataType::Fp16, &[512, 1024], &[0, 0], &[512, 512]));
        let right = Region::of(&tensor(DataType::Fp16, &[512, 1024], &[0, 512], &[512, 512]));
        let all = Region::of(&tensor(DataType::Fp16, &[524_288], &[0], &[524_288]));
        assert!(!left.overlaps(&right) && left.overlaps(&all) && all.covers(&right));
        assert!(!left.covers(&all));
        assert_eq!((left.bytes(), all.bytes()), (524_288, 1_048_576));
    }

    fn boxes() -> impl Strategy<Value = Tensor> {
        let dim = (1i64..6).prop_flat_map(|view| {
            (0..view).prop_flat_map(move |offset| (Just(view), Just(offset), 1..=view - offset))
        });
        let dtype = prop::sample::select(vec![DataType::Fp32, DataType::Fp16, DataType::Int8]);
        (prop::collection::vec(dim, 1..4), dtype).prop_map(|(dims, dtype)| {
            let pick = |f: fn(&(i64, i64, i64)) -> i64| dims.iter().map(f).collect::<Vec<_>>();
            tensor(dtype, &pick(|d| d.0), &pick(|d| d.1), &pick(|d| d.2))
        })
    }

    proptest! {
        #[test]
        fn regions_agree_with_sets_of_bytes(a in boxes(), b in boxes()) {
            let (set_a, set_b) = (bytes(&a), bytes(&b));
            let (a, b) = (Region::of(&a), Region::of(&b));
            prop_assert_eq!(a.bytes(), set_a.len() as u64);
            prop_assert_eq!(a.overlaps(&b), !set_a.is_disjoint(&set_b));
            prop_assert_eq!(a.covers(&b), set_b.is_subset(&set_a));
            if let Some((first, end)) = a.common(&b) {
                let shares = |byte| set_a.contains(&byte) && set_b.contains(&byte);
                prop_assert!(first < end && (first..end).all(shares));
            }
        }
    }
}
