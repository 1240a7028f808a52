//! The bytes of a buffer that are occupied, by step.
use super::Block;
use std::collections::{BTreeMap, BTreeSet};

/// A set of integers, as disjoint runs that are not adjacent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// The exclusive end of each run, by its start.
    ends: BTreeMap<u64, u64>,
}

impl Runs {
    /// Inserts the range `start..end`.
    pub fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        // Runs that overlap or touch the new one are merged with it.
        while let Some((begin, other)) = self.up_to(end)
            && other >= start
        {
            self.ends.remove(&begin);
            (start, end) = (start.min(begin), end.max(other));
        }
        self.ends.insert(start, end);
    }

    /// Whether the set intersects `start..end`.
    pub fn meets(&self, start: u64, end: u64) -> bool {
        end > start && self.up_to(end - 1).is_some_and(|(_, other)| other > start)
    }

    /// The last run that starts at or before a number.
    fn up_to(&self, number: u64) -> Option<(u64, u64)> {
        self.ends.range(..=number).next_back().map(|(start, end)| (*start, *end))
    }

    /// The end of the run that contains a number.
    fn end_of(&self, number: u64) -> Option<u64> {
        self.up_to(number).map(|(_, end)| end).filter(|end| *end > number)
    }

    /// The first number of the set that is not below a bound.
    fn next(&self, number: u64) -> Option<u64> {
        self.ends.range(number..).next().map(|(start, _)| *start)
    }
}

/// The bytes occupied in the steps below a node of the tree.
#[derive(Default)]
struct Node {
    /// In all of those steps.
    whole: Runs,
    /// In at least one of them: the union of its children.
    parts: Runs,
}

/// Occupied bytes by step: a segment tree over the steps.
///
/// A range of steps is a logarithmic number of nodes, and so are their ancestors; adjacent
/// bytes are one run. Both keep searches short.
pub struct Occupancy {
    /// Number of leaves; the parent of nodes `2 n` and `2 n + 1` is `n`.
    leaves: usize,
    /// Nodes with bytes.
    nodes: BTreeMap<usize, Node>,
}

impl Occupancy {
    /// The occupancy of an empty buffer for some of these blocks.
    pub fn new(blocks: &[Block]) -> Self {
        let steps = blocks.iter().map(|block| block.last + 1).max().unwrap_or(0);
        Self { leaves: steps.next_power_of_two(), nodes: BTreeMap::new() }
    }

    /// Occupies bytes while a block is live.
    pub fn take(&mut self, block: &Block, start: u64, end: u64) {
        let nodes = self.nodes_of(block);
        for node in above(&nodes) {
            self.nodes.entry(node).or_default().parts.insert(start, end);
        }
        for node in nodes {
            self.nodes.entry(node).or_default().whole.insert(start, end);
        }
    }

    /// The gaps that are free while a block is live, as starts and ends in ascending order; the
    /// last one is unbounded.
    pub fn gaps(&self, block: &Block) -> impl Iterator<Item = (u64, u64)> + use<'_> {
        let nodes = self.nodes_of(block);
        let known = |node: &usize| self.nodes.get(node);
        let mut taken: Vec<&Runs> =
            above(&nodes).iter().filter_map(known).map(|node| &node.whole).collect();
        taken.extend(nodes.iter().filter_map(known).flat_map(|node| [&node.whole, &node.parts]));
        taken.retain(|runs| !runs.ends.is_empty());
        let mut free = Some(0);
        std::iter::from_fn(move || {
            let mut begin = free?;
            while let Some(end) = taken.iter().filter_map(|runs| runs.end_of(begin)).max() {
                begin = end;
            }
            free = taken.iter().filter_map(|runs| runs.next(begin)).min();
            Some((begin, free.unwrap_or(u64::MAX)))
        })
    }

    /// The nodes that together cover the steps of a block.
    fn nodes_of(&self, block: &Block) -> Vec<usize> {
        let (mut first, mut end) = (block.first + self.leaves, block.last + 1 + self.leaves);
        let mut nodes = vec![];
        while first < end {
            if first % 2 == 1 {
                nodes.push(first);
                first += 1;
            }
            if end % 2 == 1 {
                end -= 1;
                nodes.push(end);
            }
            (first, end) = (first / 2, end / 2);
        }
        nodes
    }
}

/// The ancestors of these nodes; none of the nodes is an ancestor of another.
fn above(nodes: &[usize]) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for node in nodes {
        let mut above = node / 2;
        while above > 0 && found.insert(above) {
            above /= 2;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_touch_are_one() {
        let mut runs = Runs::default();
        for (start, end) in [(8, 12), (0, 4), (20, 24), (4, 8), (11, 16)] {
            runs.insert(start, end);
        }
        assert_eq!(runs.ends, BTreeMap::from([(0, 16), (20, 24)]));
        assert!(runs.meets(15, 18) && runs.meets(0, 30) && !runs.meets(16, 20));
    }

    #[test]
    fn gaps_are_those_of_the_requested_steps() {
        let used = |first, last| Block { bytes: 0, first, last };
        let mut occupancy = Occupancy::new(&[used(0, 9)]);
        occupancy.take(&used(0, 2), 0, 4);
        occupancy.take(&used(2, 7), 8, 12);
        occupancy.take(&used(5, 9), 0, 8);
        let gaps = |first, last| occupancy.gaps(&used(first, last)).collect::<Vec<_>>();
        assert_eq!(gaps(0, 1), [(4, u64::MAX)]);
        assert_eq!(gaps(1, 3), [(4, 8), (12, u64::MAX)]);
        assert_eq!(gaps(4, 6), [(12, u64::MAX)]);
        assert_eq!(gaps(8, 9), [(8, u64::MAX)]);
    }
}
