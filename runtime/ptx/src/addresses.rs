//! The addresses that the threads of a warp access together.

use crate::row::{Row, WARP, each_lane};

/// How the bytes of threads lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// All 32 threads access bytes, and those of each follow those of the one before it.
    Consecutive,
    /// All threads access the same bytes.
    Same,
    /// Any other.
    Other,
}

/// The addresses that the threads of a mask access, of which there is one, of some bytes each.
#[derive(Debug, Clone, Copy)]
pub struct Addresses<'r> {
    /// The address of each thread.
    pub of: &'r Row,
    /// The threads.
    pub mask: u32,
    /// Bytes of each thread.
    pub size: u64,
    /// The least address.
    pub first: u64,
    /// The greatest.
    pub last: u64,
    /// How the bytes lie.
    pub layout: Layout,
    /// Whether each is a multiple of the size.
    pub aligned: bool,
}

impl<'r> Addresses<'r> {
    /// The addresses of a row.
    #[inline(always)]
    pub fn new(of: &'r Row, mask: u32, size: u64) -> Self {
        let is_aligned = |bits: u64| bits & (size.next_power_of_two() - 1) == 0;
        if let Some(layout) = regular(of, mask, size) {
            let first = of[0];
            let (last, bits) = match layout {
                Layout::Consecutive => (of[WARP - 1], first | size),
                _ => (first, first),
            };
            return Self { of, mask, size, first, last, layout, aligned: is_aligned(bits) };
        }
        let (mut first, mut last, mut bits) = (u64::MAX, 0, 0);
        each_lane(mask, |lane| {
            first = first.min(of[lane]);
            last = last.max(of[lane]);
            bits |= of[lane];
        });
        let layout = if first == last { Layout::Same } else { Layout::Other };
        Self { of, mask, size, first, last, layout, aligned: is_aligned(bits) }
    }

    /// Bytes from the first that a thread accesses to the last; `None` if they go beyond the end of memory.
    #[inline(always)]
    pub fn bytes(&self) -> Option<u64> {
        let bytes = self.last.wrapping_sub(self.first).checked_add(self.size)?;
        self.first.checked_add(bytes).map(|_| bytes)
    }
}

/// The layout, if all 32 threads access the same or consecutive bytes.
#[inline(always)]
fn regular(of: &Row, mask: u32, size: u64) -> Option<Layout> {
    let step = of[1].wrapping_sub(of[0]);
    if mask != u32::MAX || step != 0 && step != size {
        return None;
    }
    let (mut different, mut expected) = (0, of[0]);
    for address in of {
        different |= address ^ expected;
        expected = expected.wrapping_add(step);
    }
    let layout = if step == 0 { Layout::Same } else { Layout::Consecutive };
    (different == 0).then_some(layout)
}
