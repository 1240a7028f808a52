//! The combinations of partial tiles of a segment, and the addresses of its windows.
use super::{Segment, View};
use irc_executor::code::Operand;

/// For each variant of a segment, which digits must be the last of their dimension; the most specific
/// variant first, the one for whole tiles last.
pub fn variants(segment: &Segment) -> Vec<[bool; 4]> {
    let counts = segment.grids[0].counts;
    let cut: Vec<usize> =
        (0..4).filter(|dim| counts[*dim] > 1 && is_cut(segment, *dim, counts[*dim] - 1)).collect();
    let mut variants = vec![];
    for choice in (0..1_usize << cut.len()).rev() {
        let mut last = [false; 4];
        for (bit, dim) in cut.iter().enumerate() {
            last[*dim] = choice >> bit & 1 == 1;
        }
        variants.push(last);
    }
    variants.sort_by_key(|last| std::cmp::Reverse(last.iter().filter(|last| **last).count()));
    variants
}

/// Whether the last tile along a dimension of the grid is a partial tile.
fn is_cut(segment: &Segment, dim: usize, last: i64) -> bool {
    let mut digits = [0; 4];
    digits[dim] = last;
    let views = segment.loads.iter().chain(segment.stores.iter().map(|store| &store.view));
    views.into_iter().any(|view| view.window([0; 4]).extent != view.window(digits).extent)
}

/// The digits of a task of a variant.
pub(super) fn digits(segment: &Segment, last: [bool; 4]) -> [i64; 4] {
    let counts = segment.grids[0].counts;
    std::array::from_fn(|dim| if last[dim] { counts[dim] - 1 } else { 0 })
}

/// The address of a window, for the executor.
pub fn operand(view: &View) -> Operand {
    let (first, steps) = view.address();
    let bytes = |elements: i64| elements.cast_unsigned() * view.dtype.bytes();
    Operand { buffer: view.buffer, offset: bytes(first), steps: steps.map(bytes) }
}
