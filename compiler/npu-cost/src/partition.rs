//! Partitions of a layer's result into one part per core.

use crate::diagnostic::{Result, error};
use crate::shape::{Shape, Span};

/// Letters of the axes: output channels, images, rows, columns.
pub const LETTERS: [char; 4] = ['K', 'B', 'H', 'W'];

/// Number of parts of each axis: output channels, images, rows, columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(pub [u64; 4]);

impl Partition {
    /// All partitions into so many parts, those with nearly equal factors first.
    pub fn all(parts: u64) -> Vec<Self> {
        partitions(parts)
    }

    /// The largest number of parts up to `parts` into which a result can be divided with none of them empty.
    pub fn most(parts: u64, output: Shape, batch: u64) -> u64 {
        let is_long = |extent: u64| extent >= parts;
        if extents(output, batch).into_iter().any(is_long) {
            return parts;
        }
        let fills = |parts: &u64| partitions(*parts).iter().any(|one| one.fills(output, batch));
        (1..=parts).rev().find(fills).unwrap_or(1)
    }

    /// Total number of parts.
    pub fn parts(self) -> u64 {
        self.0.iter().product()
    }

    /// Extents of the largest part: channels, images, rows, columns.
    pub fn largest(self, output: Shape, batch: u64) -> [u64; 4] {
        let extents = extents(output, batch);
        std::array::from_fn(|axis| extents[axis].div_ceil(self.0[axis]))
    }

    /// The spans of each axis; the first is never empty, later ones may be.
    pub fn spans(self, output: Shape, batch: u64) -> [Vec<Span>; 4] {
        let extents = extents(output, batch);
        std::array::from_fn(|axis| spans(extents[axis], self.0[axis]))
    }

    /// Whether no axis has more parts than elements.
    pub fn fills(self, output: Shape, batch: u64) -> bool {
        self.0.into_iter().zip(extents(output, batch)).all(|(parts, extent)| parts <= extent)
    }

    /// The share of the cores' work that is not padding.
    fn evenness(self, extents: [u64; 4]) -> f64 {
        let along = |axis: usize| {
            let (extent, parts) = (extents[axis], self.0[axis]);
            extent as f64 / (extent.div_ceil(parts) * parts) as f64
        };
        along(0) * along(1) * along(2) * along(3)
    }
}

/// The constraints of a search for partitions.
#[derive(Clone, Copy, Debug)]
pub struct PartitionRequest {
    /// Number of cores, each of which gets a part.
    pub cores: u64,
    /// Shape of the result of one image.
    pub output: Shape,
    /// Images.
    pub batch: u64,
    /// Minimum number of parts along axes other than channels, to limit the input that a core reads.
    pub least_cuts: u64,
    /// Minimum share of the work that is not padding.
    pub least_even: f64,
}

impl PartitionRequest {
    /// The partitions that are even enough; if none is, the most even one.
    pub fn partitions(&self) -> Vec<Partition> {
        let extents = extents(self.output, self.batch);
        let cuts = |of: &Partition| of.0[1..].iter().product::<u64>();
        let mut all = partitions(self.cores);
        all.retain(|partition| cuts(partition) >= self.least_cuts);
        let even = |of: &&Partition| of.evenness(extents) >= self.least_even;
        let enough: Vec<Partition> = all.iter().filter(even).copied().collect();
        if !enough.is_empty() {
            return enough;
        }
        let mut best = None;
        for partition in all {
            let evenness = partition.evenness(extents);
            if best.is_none_or(|(most, _)| evenness > most) {
                best = Some((evenness, partition));
            }
        }
        best.map(|(_, partition)| partition).into_iter().collect()
    }
}

fn extents(output: Shape, batch: u64) -> [u64; 4] {
    [output.channels, batch, output.rows, output.columns]
}

/// `parts` spans that cover `0..extent`, the longer ones first.
fn spans(extent: u64, parts: u64) -> Vec<Span> {
    let edge = |part| extent - extent * (parts - part) / parts;
    (0..parts).map(|part| Span { from: edge(part), to: edge(part + 1) }).collect()
}

/// All partitions into `cores` parts, those with nearly equal factors first.
///
/// The order decides between partitions of equal cost.
fn partitions(cores: u64) -> Vec<Partition> {
    let mut all = vec![];
    for [channels_images, rows_columns] in pairs(cores) {
        for [channels, images] in pairs(channels_images) {
            let cut = |[rows, columns]: [u64; 2]| Partition([channels, images, rows, columns]);
            all.extend(pairs(rows_columns).into_iter().map(cut));
        }
    }
    all
}

/// The pairs of factors of a number: those closest to each other first, the smaller factor first.
fn pairs(number: u64) -> Vec<[u64; 2]> {
    let smaller = (1..=number.isqrt()).rev().filter(|factor| number.is_multiple_of(*factor));
    let both = smaller.map(|factor| [factor, number / factor]);
    both.flat_map(|[a, b]| if a == b { vec![[a, b]] } else { vec![[a, b], [b, a]] }).collect()
}

/// The placement of a layer on its cores: its partition, and the order of axes along cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scheme {
    /// Parts of each axis.
    pub partition: Partition,
    /// Axes of the partition, from the slowest to the fastest along core numbers.
    pub order: [usize; 4],
}

impl Scheme {
    /// Schemes of a partition: each order of the axes with several parts.
    pub fn all(partition: Partition) -> Vec<Self> {
        let (mut cut, mut whole): (Vec<usize>, Vec<usize>) =
            (0..4).partition(|axis| partition.0[*axis] != 1);
        whole.reverse();
        let mut all = vec![];
        let mut more = true;
        while more {
            let mut order = [0; 4];
            let axes = cut.iter().chain(&whole);
            order.iter_mut().zip(axes).for_each(|(to, axis)| *to = *axis);
            all.push(Self { partition, order });
            more = next_permutation(&mut cut);
        }
        all
    }

    /// The number of the core of each part, relative to the layer's first; parts in the order of
    /// their axes, columns fastest.
    pub fn cores(&self) -> Vec<usize> {
        let parts = self.partition.0.map(|count| count as usize);
        let mut step = [1; 4];
        for at in (0..3).rev() {
            step[self.order[at]] = step[self.order[at + 1]] * parts[self.order[at + 1]];
        }
        let mut cores = vec![];
        for k in 0..parts[0] {
            for b in 0..parts[1] {
                for h in 0..parts[2] {
                    let first = k * step[0] + b * step[1] + h * step[2];
                    cores.extend((0..parts[3]).map(|w| first + w * step[3]));
                }
            }
        }
        cores
    }

    /// Parses `(H:2,W:2,B:1,K:1)`: each axis once, the slowest along cores first.
    ///
    /// # Errors
    /// `cost-tree-scheme`, without a span.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || error("cost-tree-scheme", "expected a scheme such as (K:4,H:2,W:1,B:1)");
        let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
        let (mut parts, mut order) = ([0; 4], vec![]);
        for item in inner.ok_or_else(wrong)?.split(',') {
            let (letter, count) = item.split_once(':').ok_or_else(wrong)?;
            let axis = LETTERS.iter().position(|known| letter == known.to_string());
            let axis = axis.filter(|axis| !order.contains(axis)).ok_or_else(wrong)?;
            let count = count.parse().ok().filter(|count| (1..=1 << 8).contains(count));
            parts[axis] = count.ok_or_else(wrong)?;
            order.push(axis);
        }
        let order = order.try_into().map_err(|_| wrong())?;
        Ok(Self { partition: Partition(parts), order })
    }
}

impl std::fmt::Display for Scheme {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let items = self.order.map(|axis| format!("{}:{}", LETTERS[axis], self.partition.0[axis]));
        write!(out, "({})", items.join(","))
    }
}

/// The next permutation in lexicographic order; `false` after the last.
fn next_permutation(items: &mut [usize]) -> bool {
    let Some(pivot) = items.windows(2).rposition(|pair| pair[0] < pair[1]) else { return false };
    let larger = items.iter().rposition(|item| *item > items[pivot]).unwrap_or(pivot);
    items.swap(pivot, larger);
    items[pivot + 1..].reverse();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_have_a_part_for_each_core() {
        let all = partitions(16);
        assert_eq!(all.len(), 35);
        assert!(all.iter().all(|partition| partition.parts() == 16));
        assert_eq!(all[0], Partition([2, 2, 2, 2]));
    }

    #[test]
    fn without_an_even_partition_the_most_even_is_taken() {
        let output = Shape::new(3, 1, 1);
        let wanted = |least_even| {
            PartitionRequest { cores: 4, output, batch: 1, least_cuts: 0, least_even }.partitions()
        };
        assert_eq!(wanted(0.75), [Partition([4, 1, 1, 1])]);
        assert!(wanted(0.3).len() > 1);
        let uneven =
            PartitionRequest { cores: 2, output, batch: 1, least_cuts: 3, least_even: 0.0 };
        assert_eq!(uneven.partitions(), []);
    }

    #[test]
    fn a_result_of_few_elements_has_fewer_parts() {
        assert_eq!(Partition::most(16, Shape::new(10, 1, 1), 1), 10);
        assert_eq!(Partition::most(16, Shape::new(10, 1, 1), 2), 16);
        assert_eq!(Partition::most(16, Shape::new(5, 3, 1), 1), 15);
        assert_eq!(Partition::most(16, Shape::new(1, 1, 1), 1), 1);
        assert_eq!(Partition::most(7, Shape::new(6, 6, 1), 1), 6);
    }

    #[test]
    fn schemes_are_the_orders_of_the_axes_that_are_cut() {
        let texts: Vec<String> =
            Scheme::all(Partition([2, 1, 4, 1])).iter().map(Scheme::to_string).collect();
        assert_eq!(texts, ["(K:2,H:4,W:1,B:1)", "(H:4,K:2,W:1,B:1)"]);
        assert_eq!(Scheme::all(Partition([2, 2, 2, 2])).len(), 24);
    }

    #[test]
    fn the_last_axis_of_a_scheme_moves_fastest() {
        let scheme = Scheme::parse("(H:2,K:3,W:1,B:1)").expect("a scheme");
        assert_eq!(scheme.cores(), [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn a_scheme_names_each_axis_once() {
        let wrong = ["K:1", "()", "(K:1,B:1,H:1)", "(K:1,B:1,H:1,K:1)", "(K:0,B:1,H:1,W:1)"];
        for text in wrong {
            assert_eq!(Scheme::parse(text).expect_err(text).code, "cost-tree-scheme");
        }
    }

    #[test]
    fn parts_cover_an_axis() {
        let spans = spans(5, 3);
        assert_eq!(spans, [(0, 2), (2, 4), (4, 5)].map(|(from, to)| Span { from, to }));
    }
}
