//! Barriers between the processors of a plan.

use super::Range;

/// The barriers that ARK's code generator inserts before each processor group.
///
/// It stores a list of processor ranges that have run since their last barrier. Before a new group on
/// range P, for each such range U that overlaps P: if U is not inside P there is a barrier over U;
/// if U is inside P, or neither is inside the other, there is one over P. A group that overlaps no
/// earlier range starts at once.
#[derive(Clone, Debug, Default)]
pub struct Barriers {
    /// Ranges that have run since their last barrier; they are disjoint.
    unsynced: Vec<Range>,
}

impl Barriers {
    /// Ranges of the barriers before a group on `range`, in order.
    pub fn before(&mut self, range: Range) -> Vec<Range> {
        let mut found = vec![];
        if range.is_empty() {
            return found;
        }
        let mut whole = false;
        self.unsynced.retain(|&earlier| {
            if !earlier.overlaps(range) {
                return true;
            }
            let inside = range.contains(earlier);
            if !inside {
                found.push(earlier);
            }
            whole |= inside || !earlier.contains(range);
            false
        });
        if whole {
            found.push(range);
        }
        self.unsynced.push(range);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_barriers(ranges: &[(i64, i64)]) -> Vec<Vec<(i64, i64)>> {
        let mut barriers = Barriers::default();
        let of = |&(begin, end): &(i64, i64)| {
            let found = barriers.before(Range::new(begin, end));
            found.iter().map(|range| (range.begin, range.end)).collect()
        };
        ranges.iter().map(of).collect()
    }

    #[test]
    fn barriers_are_over_the_ranges_that_meet() {
        assert_eq!(all_barriers(&[(0, 4), (0, 4)]), [vec![], vec![(0, 4)]]);
        assert_eq!(all_barriers(&[(0, 4), (0, 2)]), [vec![], vec![(0, 4)]]);
        assert_eq!(all_barriers(&[(0, 2), (0, 4)]), [vec![], vec![(0, 4)]]);
        assert_eq!(all_barriers(&[(0, 4), (2, 6)]), [vec![], vec![(0, 4), (2, 6)]]);
        assert_eq!(all_barriers(&[(0, 2), (2, 4)]), [vec![], vec![]]);
        assert_eq!(all_barriers(&[(0, 2), (2, 4), (0, 4)])[2], [(0, 4)]);
        assert_eq!(all_barriers(&[(0, 4), (1, 1), (0, 4)])[2], [(0, 4)]);
    }
}
