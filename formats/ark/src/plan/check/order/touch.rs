//! The accesses of the tasks of a task group, down to the bytes of single tasks.
//!
//! The indices `[b, e)` of a task range are at most seven boxes of digits, and the elements of an
//! operand that a box of digits accesses form a box. So a task group is represented by a few byte
//! regions, independently of its number of tasks.

use std::fmt;

use crate::model::{OpKind, Region, Tensor};
use crate::plan::tiling::{self, Cover, Grid};
use crate::plan::{PlanOp, Range, TaskGroup};

/// The location of a task group: the indices of its processor group, its resource group, and its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::plan::check) struct Spot {
    /// Index of the processor group.
    pub group: usize,
    /// Index of the resource group in it.
    pub resource: usize,
    /// Index of the task group in the resource group.
    pub index: usize,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spot { group, resource, index } = self;
        write!(f, "$.ProcessorGroups[{group}].ResourceGroups[{resource}].TaskGroups[{index}]")
    }
}

/// A memory access by the tasks of a task group.
#[derive(Clone, Debug)]
pub(in crate::plan::check) struct Access<'a> {
    /// The location of the task group.
    pub spot: Spot,
    /// Index of the task info.
    pub task: usize,
    /// Index of the op in the task info.
    pub index: usize,
    /// The op.
    pub plan_op: &'a PlanOp,
    /// The operand.
    pub tensor: &'a Tensor,
    /// Whether the operand is written.
    pub is_write: bool,
    /// Processors that run at least one of the tasks.
    pub processors: Range,
    /// The task indices.
    tasks: Range,
    /// How task indices select tiles of the operand; `None` if unknown.
    tiles: Option<(Grid, [Cover; 4])>,
    /// The parts of the access.
    parts: Vec<Part>,
    /// Start and end of all parts.
    span: (u64, u64),
}

/// The access of a box of task digits.
#[derive(Clone, Debug)]
struct Part {
    digits: Digits,
    region: Region,
}

/// A box of digits: the start and end of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digits {
    low: [i64; 4],
    high: [i64; 4],
}

/// Bytes that two tasks share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::plan::check) struct Witness {
    /// Index of one task.
    pub first: i64,
    /// Index of the other task.
    pub second: i64,
    /// Start and end of the bytes.
    pub bytes: (u64, u64),
}

/// All memory accesses by the tasks of a group.
pub(in crate::plan::check) fn accesses<'a>(
    ops: &'a [PlanOp],
    tasks: &TaskGroup,
    spot: Spot,
    processors: Range,
) -> Vec<Access<'a>> {
    let mut found = vec![];
    for (index, plan_op) in ops.iter().enumerate() {
        let grid = tiling::grid(plan_op);
        let op = &plan_op.op;
        let reads = op.reads.iter().enumerate().map(|(position, tensor)| {
            (tensor, false, grid.and_then(|grid| Some((grid, tiling::reads(op, &grid, position)?))))
        });
        let writes = op
            .writes
            .iter()
            .map(|tensor| (tensor, true, grid.map(|grid| (grid, tiling::writes(&grid)))));
        found.extend(reads.chain(writes).filter_map(|(tensor, is_write, tiles)| {
            let task = usize::try_from(tasks.task_id).ok()?;
            let parts = parts(plan_op, tensor, tiles, tasks.task_range);
            let spans = parts.iter().map(|part| part.region.span());
            let span = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
            let tasks = tasks.task_range;
            let what = (spot, task, index, plan_op, tensor, is_write);
            let (spot, task, index, plan_op, tensor, is_write) = what;
            Some(Access {
                spot,
                task,
                index,
                plan_op,
                tensor,
                is_write,
                processors,
                tasks,
                tiles,
                parts,
                span,
            })
        }));
    }
    found
}

impl Access<'_> {
    /// A fast check whether both are on one buffer and their bytes may overlap.
    pub fn may_meet(&self, other: &Access<'_>) -> bool {
        self.span.0 < other.span.1 && other.span.0 < self.span.1
    }

    /// Two tasks that access the same bytes, assuming that both buffers are one memory.
    pub fn meets(&self, other: &Access<'_>) -> Option<Witness> {
        if !self.may_meet(other) {
            return None;
        }
        let (a, b, all) = shared(&self.parts, &other.parts)?;
        let (first, second) = (self.task_at(a, all.0), other.task_at(b, all.0));
        let (own, others) = (self.parts_of(first), other.parts_of(second));
        let bytes = shared(&own, &others).map_or(all, |(_, _, bytes)| bytes);
        Some(Witness { first, second, bytes })
    }

    /// The access of one task.
    fn parts_of(&self, task: i64) -> Vec<Part> {
        parts(self.plan_op, self.tensor, self.tiles, Range::new(task, task + 1))
    }

    /// Two different tasks that access the same bytes, if testing a few bytes finds any.
    pub fn strays(&self, other: &Access<'_>) -> Option<Witness> {
        let is_known = |access: &Access<'_>| access.tiles.is_some() || access.tasks.len() == 1;
        if !is_known(self) || !is_known(other) {
            return None;
        }
        self.parts.iter().find_map(|a| {
            other.parts.iter().find_map(|b| {
                let (start, end) = a.region.common(&b.region)?;
                let at = |byte| {
                    let (first, second) = (self.task_at(a, byte), other.task_at(b, byte));
                    Witness { first, second, bytes: (byte, byte + 1) }
                };
                let mut tried = [at(start), at(end - 1)].into_iter();
                tried.find(|witness| witness.first != witness.second)
            })
        })
    }

    /// A task of the part that accesses the byte.
    fn task_at(&self, part: &Part, byte: u64) -> i64 {
        let Some((grid, cover)) = self.tiles else { return self.tasks.begin };
        let coordinates = coordinates(self.tensor, byte);
        let mut digits = part.digits.low;
        for (cover, at) in cover.into_iter().zip(coordinates) {
            if let Cover::Tile { digit, extent } = cover {
                digits[digit] =
                    (at / extent).clamp(part.digits.low[digit], part.digits.high[digit] - 1);
            }
        }
        let index = |index: i64, dim: usize| index * grid.counts[dim] + digits[dim];
        (0..4).fold(0, index)
    }

    /// The kind of the op.
    pub fn kind(&self) -> OpKind {
        self.plan_op.op.kind
    }
}

/// A part of each list that share bytes, assuming that both buffers are one memory, and the bytes.
fn shared<'p>(a: &'p [Part], b: &'p [Part]) -> Option<(&'p Part, &'p Part, (u64, u64))> {
    a.iter().find_map(|a| {
        b.iter().find_map(|b| {
            let mut region = b.region.clone();
            region.buffer = a.region.buffer;
            Some((a, b, a.region.common(&region)?))
        })
    })
}

/// The bytes of an operand that the tasks of a range access.
fn parts(
    plan_op: &PlanOp,
    tensor: &Tensor,
    tiles: Option<(Grid, [Cover; 4])>,
    tasks: Range,
) -> Vec<Part> {
    let whole = Digits { low: [0; 4], high: [1; 4] };
    let Some((grid, cover)) = tiles else {
        return vec![Part { digits: whole, region: Region::of(tensor) }];
    };
    let extents = tiling::extents(&plan_op.op, tensor);
    let mut found = vec![];
    for digits in boxes(grid.counts, tasks) {
        let (mut begin, mut extent) = ([0; 4], extents);
        for dim in 0..4 {
            if let Cover::Tile { digit, extent: tile } = cover[dim] {
                begin[dim] = digits.low[digit] * tile;
                extent[dim] = (digits.high[digit] * tile).min(extents[dim]) - begin[dim];
            }
        }
        let rank = tensor.rank();
        if extent.iter().all(|&extent| extent > 0) {
            let region = Region::of_part(tensor, &begin[4 - rank..], &extent[4 - rank..]);
            found.push(Part { digits, region });
        }
    }
    found
}

/// The indices `[begin, end)` as boxes of their digits in the radices `counts`, last fastest.
fn boxes(counts: [i64; 4], range: Range) -> Vec<Digits> {
    let mut found = vec![];
    let end = range.end.min(counts.iter().product());
    let empty = Digits { low: [0; 4], high: [0; 4] };
    cut(counts, 0, (range.begin, end), empty, &mut found);
    found
}

/// Boxes of the digits from `dim` on, with fixed earlier digits.
fn cut(
    counts: [i64; 4],
    dim: usize,
    (begin, end): (i64, i64),
    fixed: Digits,
    found: &mut Vec<Digits>,
) {
    if begin >= end {
        return;
    }
    let inner: i64 = counts[(dim + 1).min(4)..].iter().product();
    let with = |low: i64, high: i64| {
        let mut digits = fixed;
        (digits.low[dim], digits.high[dim]) = (low, high);
        digits
    };
    let (first, last) = (begin / inner, (end - 1) / inner);
    if first == last && (begin, end) != (first * inner, (first + 1) * inner) {
        let rest = (begin - first * inner, end - first * inner);
        return cut(counts, dim + 1, rest, with(first, first + 1), found);
    }
    let (low, high) = ((begin + inner - 1) / inner, end / inner);
    cut_rest(counts, dim, (begin, low * inner), with(first, first + 1), found);
    if low < high {
        let mut digits = with(low, high);
        digits.low[dim + 1..].fill(0);
        digits.high[dim + 1..].copy_from_slice(&counts[dim + 1..]);
        found.push(digits);
    }
    cut_rest(counts, dim, (high * inner, end), with(last, last + 1), found);
}

/// The incomplete index of `dim` at each end of a range.
fn cut_rest(
    counts: [i64; 4],
    dim: usize,
    (begin, end): (i64, i64),
    fixed: Digits,
    found: &mut Vec<Digits>,
) {
    if begin < end {
        let base = fixed.low[dim] * counts[dim + 1..].iter().product::<i64>();
        cut(counts, dim + 1, (begin - base, end - base), fixed, found);
    }
}

/// The four-dimensional coordinates in a tensor of a byte of its buffer.
fn coordinates(tensor: &Tensor, byte: u64) -> [i64; 4] {
    let mut rest = (byte / tensor.dtype.bytes()) as i64;
    let mut found = [0; 4];
    let rank = tensor.rank();
    for dim in (0..rank).rev() {
        let view = tensor.strides[dim];
        let at = if dim == 0 { rest } else { rest % view };
        found[4 - rank + dim] = (at - tensor.offsets[dim]).max(0);
        rest /= view;
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn boxes_of_digits_are_the_range(
            counts in prop::array::uniform4(1i64..5), begin in 0i64..200, len in 0i64..200,
        ) {
            let total: i64 = counts.iter().product();
            let (begin, end) = (begin.min(total), (begin + len).min(total));
            let grid = Grid { counts, tile: [1; 4] };
            let expected: BTreeSet<[i64; 4]> = (begin..end).map(|i| grid.digits(i)).collect();
            let boxes = boxes(counts, Range::new(begin, end));
            prop_assert!(boxes.len() <= 7);
            let inside = |digits: &[i64; 4], b: &Digits| {
                (0..4).all(|dim| (b.low[dim]..b.high[dim]).contains(&digits[dim]))
            };
            for index in 0..total {
                let digits = grid.digits(index);
                let count = boxes.iter().filter(|b| inside(&digits, b)).count();
                prop_assert_eq!(count, usize::from(expected.contains(&digits)));
            }
        }
    }
}
