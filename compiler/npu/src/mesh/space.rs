//! Room in the L2 buffer of a core.

use std::collections::BTreeMap;

/// Which bytes are taken.
///
/// Room is searched from where the last was found, so that what is freed is taken again as late as
/// possible: who waits for it then seldom has to.
#[derive(Debug)]
pub struct Space {
    size: i64,
    next: i64,
    /// First byte and end of what is taken.
    taken: BTreeMap<i64, i64>,
}

impl Space {
    /// Nothing taken.
    pub fn new(size: i64) -> Self {
        Self { size, next: 0, taken: BTreeMap::new() }
    }

    /// Takes some bytes; `None` when they fit nowhere.
    pub fn take(&mut self, bytes: i64) -> Option<i64> {
        let gaps = self.gaps();
        let room = |from: i64| {
            gaps.iter().find_map(|(start, end)| {
                let start = (*start).max(from);
                (start + bytes <= *end).then_some(start)
            })
        };
        let found = room(self.next).or_else(|| room(0))?;
        self.taken.insert(found, found + bytes);
        self.next = found + bytes;
        Some(found)
    }

    /// Gives back what was taken at a byte.
    pub fn free(&mut self, start: i64) {
        self.taken.remove(&start);
    }

    /// Bytes taken.
    pub fn used(&self) -> i64 {
        self.taken.iter().map(|(start, end)| end - start).sum()
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
    fn room_goes_round() {
        let mut space = Space::new(100);
        assert_eq!([space.take(40), space.take(40), space.take(40)], [Some(0), Some(40), None]);
        space.free(0);
        assert_eq!([space.take(20), space.take(20), space.take(20)], [Some(80), Some(0), Some(20)]);
        assert_eq!(space.used(), 100);
    }
}
