//! Sets of bytes occupied by tensors.

/// Bytes `start + i0 s0 + i1 s1 + i2 s2 + [0, run)`, for each `ik` below its count.
///
/// A stride is at least the size of the inner dimensions, and dimensions go from the inner to the
/// outer; contiguous ones are merged, so a whole tensor has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// First byte.
    pub start: i64,
    /// Bytes of a run; zero if the area is empty.
    pub run: i64,
    /// Stride and count of each dimension; count 1 if it is absent.
    dims: [(i64, i64); 3],
}

impl Area {
    /// A contiguous range.
    pub fn range(start: i64, len: i64) -> Self {
        Self { start, run: len.max(0), dims: [(0, 1); 3] }
    }

    /// Runs of `run` bytes at strides from the inner to the outer dimension.
    pub fn new(start: i64, run: i64, strides: [(i64, i64); 3]) -> Self {
        let mut area = Self::range(start, run);
        if run <= 0 || strides.iter().any(|(_, count)| *count <= 0) {
            return Self::range(start, 0);
        }
        let mut used = 0;
        for (stride, count) in strides {
            if count == 1 {
                continue;
            }
            let inner =
                if used == 0 { area.run } else { area.dims[used - 1].0 * area.dims[used - 1].1 };
            if stride == inner {
                match used {
                    0 => area.run *= count,
                    _ => area.dims[used - 1].1 *= count,
                }
            } else {
                area.dims[used] = (stride, count);
                used += 1;
            }
        }
        area
    }

    /// The exclusive end.
    pub fn end(&self) -> i64 {
        let steps: i64 = self.dims.iter().map(|(stride, count)| stride * (count - 1)).sum();
        self.start + steps + self.run
    }

    /// Number of bytes.
    pub fn bytes(&self) -> i64 {
        self.dims.iter().map(|(_, count)| count).product::<i64>() * self.run
    }

    /// Whether the area is empty.
    pub fn is_empty(&self) -> bool {
        self.run == 0
    }

    /// The area moved by some bytes.
    #[must_use]
    pub fn shifted(self, by: i64) -> Self {
        Self { start: self.start + by, ..self }
    }

    /// The first bytes in the intersection, if there is one.
    pub fn common(&self, other: &Self) -> Option<(i64, i64)> {
        if self.is_empty() || other.is_empty() || !self.hull_meets(other) {
            return None;
        }
        match self.outermost() {
            None => other.common_range(self.start, self.start + self.run),
            Some(dim) => {
                self.rows_in(dim, other.start, other.end()).find_map(|row| row.common(other))
            }
        }
    }

    /// Whether the areas overlap.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.common(other).is_some()
    }

    /// The contiguous runs, ascending.
    pub fn runs(&self) -> impl Iterator<Item = (i64, i64)> + use<> {
        let Self { start, run, dims: [(s0, n0), (s1, n1), (s2, n2)] } = *self;
        let rows = (0..n2).flat_map(move |k| (0..n1).map(move |j| start + k * s2 + j * s1));
        let starts = rows.flat_map(move |row| (0..n0).map(move |i| row + i * s0));
        starts.map(move |start| (start, start + run)).filter(|(start, end)| start < end)
    }

    /// Splits the area at a byte.
    pub fn split(&self, at: i64) -> (Vec<Self>, Vec<Self>) {
        let (mut before, mut after) = (vec![], vec![]);
        self.split_into(at, &mut before, &mut after);
        (before, after)
    }

    fn split_into(&self, at: i64, before: &mut Vec<Self>, after: &mut Vec<Self>) {
        if self.is_empty() {
            return;
        }
        if self.end() <= at {
            return before.push(*self);
        }
        if self.start >= at {
            return after.push(*self);
        }
        let Some(dim) = self.outermost() else {
            before.push(Self::range(self.start, at - self.start));
            return after.push(Self::range(at, self.end() - at));
        };
        let (stride, count) = self.dims[dim];
        let cut = ((at - self.start) / stride).clamp(0, count - 1);
        self.part(dim, 0, cut).split_into(at, before, after);
        self.part(dim, cut, cut + 1).split_into(at, before, after);
        self.part(dim, cut + 1, count).split_into(at, before, after);
    }

    fn outermost(&self) -> Option<usize> {
        (0..3).rev().find(|dim| self.dims[*dim].1 > 1)
    }

    fn hull_meets(&self, other: &Self) -> bool {
        self.start < other.end() && other.start < self.end()
    }

    /// Indices `from` to `to` of a dimension.
    fn part(&self, dim: usize, from: i64, to: i64) -> Self {
        let mut part = *self;
        if from >= to {
            return Self::range(self.start, 0);
        }
        part.start += from * self.dims[dim].0;
        part.dims[dim].1 = to - from;
        part
    }

    /// The indices of the outermost dimension that could overlap a range.
    fn rows_in(&self, dim: usize, start: i64, end: i64) -> impl Iterator<Item = Self> + use<'_> {
        let (stride, count) = self.dims[dim];
        let row = self.part(dim, 0, 1);
        let reach = row.end() - row.start;
        // Row i spans [start + i stride, + reach).
        let first = (start - self.start - reach).div_euclid(stride) + 1;
        let last = (end - 1 - self.start).div_euclid(stride);
        (first.max(0)..=last.min(count - 1)).map(move |i| row.shifted(i * stride))
    }

    /// The first bytes in the intersection with a range.
    fn common_range(&self, start: i64, end: i64) -> Option<(i64, i64)> {
        match self.outermost() {
            None => {
                let (start, end) = (start.max(self.start), end.min(self.start + self.run));
                (start < end).then_some((start, end))
            }
            Some(dim) => self.rows_in(dim, start, end).find_map(|row| row.common_range(start, end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_tensors_are_one_run() {
        let area = Area::new(100, 8, [(8, 4), (32, 3), (96, 2)]);
        assert_eq!(area, Area::range(100, 192));
        let slice = Area::new(0, 8, [(16, 4), (64, 3), (192, 2)]);
        assert_eq!((slice.bytes(), slice.end(), slice.runs().count()), (192, 376, 24));
    }

    #[test]
    fn slices_of_the_same_pixels_are_apart() {
        let slice = |start| Area::new(start, 8, [(16, 5), (160, 3), (1000, 2)]);
        assert!(!slice(0).overlaps(&slice(8)));
        assert!(slice(0).overlaps(&slice(7)));
        assert!(slice(0).overlaps(&slice(1000)));
        assert!(!slice(0).overlaps(&slice(2000)));
        assert!(!slice(0).overlaps(&Area::range(8, 8)));
        assert!(slice(0).overlaps(&Area::range(8, 9)));
    }

    #[test]
    fn overlap_and_split_agree_with_the_bytes() {
        let bytes = |area: &Area| area.runs().flat_map(|(a, b)| a..b).collect::<Vec<_>>();
        let mut areas = vec![];
        for start in [0, 3, 10] {
            areas.push(Area::new(start, 2, [(5, 3), (20, 2), (50, 2)]));
            areas.push(Area::new(start, 3, [(4, 2), (11, 3), (33, 1)]));
            areas.push(Area::range(start, 4));
        }
        for a in &areas {
            for b in &areas {
                let common = bytes(a).iter().any(|byte| bytes(b).contains(byte));
                assert_eq!(a.overlaps(b), common, "{a:?} {b:?}");
            }
            for at in 0..60 {
                let (before, after) = a.split(at);
                let (low, high): (Vec<_>, Vec<_>) = bytes(a).into_iter().partition(|x| *x < at);
                assert_eq!(before.iter().flat_map(bytes).collect::<Vec<_>>(), low);
                assert_eq!(after.iter().flat_map(bytes).collect::<Vec<_>>(), high);
            }
        }
    }
}
