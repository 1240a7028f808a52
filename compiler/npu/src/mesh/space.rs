//! Allocation of the L2 buffer of a core.

use std::collections::BTreeMap;

/// The allocated ranges.
///
/// The search starts after the last allocation, so that freed bytes are reused as late as
/// possible: users of the new allocation then seldom have to wait. If the ranges are packed, each is in the smallest gap
/// that holds it instead.
#[derive(Clone, Debug)]
pub struct Space {
    size: i64,
    next: i64,
    is_packed: bool,
    used: i64,
    /// Start and end of each allocated range.
    taken: BTreeMap<i64, i64>,
}

impl Space {
    /// Nothing taken.
    pub fn new(size: i64) -> Self {
        Self { size, next: 0, is_packed: false, used: 0, taken: BTreeMap::new() }
    }

    /// Nothing taken; ranges are packed.
    pub fn packed(size: i64) -> Self {
        Self { is_packed: true, ..Self::new(size) }
    }

    /// Allocates some bytes; `None` if they fit nowhere.
    pub fn take(&mut self, bytes: i64) -> Option<i64> {
        let gaps = self.gaps();
        let room = |from: i64| {
            gaps.iter().find_map(|(start, end)| {
                let start = (*start).max(from);
                (start + bytes <= *end).then_some(start)
            })
        };
        let fitting = gaps.iter().filter(|(start, end)| end - start >= bytes);
        let found = match self.is_packed {
            true => fitting.min_by_key(|(start, end)| end - start).map(|(start, _)| *start)?,
            false => room(self.next).or_else(|| room(0))?,
        };
        self.taken.insert(found, found + bytes);
        self.next = found + bytes;
        self.used += bytes;
        Some(found)
    }

    /// Frees the range that starts at a byte.
    pub fn free(&mut self, start: i64) {
        self.used -= self.taken.remove(&start).map_or(0, |end| end - start);
    }

    /// Number of allocated bytes.
    pub fn used(&self) -> i64 {
        self.used
    }

    /// Number of bytes that are not allocated.
    pub fn left(&self) -> i64 {
        self.size - self.used
    }

    /// The largest number of bytes in a row that are not allocated.
    pub fn largest_gap(&self) -> i64 {
        self.gaps().into_iter().map(|(start, end)| end - start).max().unwrap_or(0)
    }

    fn gaps(&self) -> Vec<(i64, i64)> {
        let mut from = 0;
        let mut all = vec![];
        for (start, end) in &self.taken {
            if from < *start {
                all.push((from, *start));
            }
            from = *end;
        }
        if from < self.size {
            all.push((from, self.size));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::Space;

    #[test]
    fn packed_ranges_are_in_the_smallest_gaps() {
        let mut space = Space::packed(100);
        assert_eq!([space.take(20), space.take(10), space.take(40)], [Some(0), Some(20), Some(30)]);
        space.free(20);
        assert_eq!([space.take(10), space.take(30), space.take(1)], [Some(20), Some(70), None]);
    }

    #[test]
    fn room_goes_round() {
        let mut space = Space::new(100);
        assert_eq!([space.take(40), space.take(40), space.take(40)], [Some(0), Some(40), None]);
        space.free(0);
        assert_eq!([space.take(20), space.take(20), space.take(20)], [Some(80), Some(0), Some(20)]);
        assert_eq!(space.used(), 100);
    }
}
