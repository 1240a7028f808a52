//! The mesh of cores, and its division among layers.

use std::ops::Range;

/// The position of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Column, from the left.
    pub x: u64,
    /// Row.
    pub y: u64,
}

impl Place {
    /// Number of links between two positions.
    pub fn hops(self, other: Self) -> u64 {
        self.x.abs_diff(other.x) + self.y.abs_diff(other.y)
    }
}

/// Cores in rows and columns, with a DRAM port at either end of each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// Cores in a row.
    pub width: u64,
    /// Rows.
    pub height: u64,
    /// Columns per stripe, a divisor of the width: cores are numbered stripe by stripe, downwards and
    /// upwards in turn, so that cores with consecutive numbers are neighbours.
    pub stride: u64,
}

impl Mesh {
    /// Number of cores.
    pub fn cores(self) -> u64 {
        self.width * self.height
    }

    /// The position of a core.
    pub fn place(self, core: u64) -> Place {
        let stripe = core / (self.stride * self.height);
        let row = (core / self.stride) % self.height;
        Place {
            x: stripe * self.stride + core % self.stride,
            y: if stripe % 2 == 1 { self.height - 1 - row } else { row },
        }
    }

    /// The index of a position, in the order of columns.
    pub fn index(self, place: Place) -> usize {
        (place.x * self.height + place.y) as usize
    }

    /// The position with an index.
    pub fn at(self, index: usize) -> Place {
        Place { x: index as u64 / self.height, y: index as u64 % self.height }
    }

    /// The positions of the DRAM ports, next to the cores at the left and right edge.
    pub fn ports(self) -> impl ExactSizeIterator<Item = Place> {
        let edge = self.width - 1;
        let of = self.height as usize;
        (0..2 * of)
            .map(move |port| Place { x: if port < of { 0 } else { edge }, y: (port % of) as u64 })
    }
}

/// Divides `cores` among children with these unit times, at least one core each.
///
/// The times of the children become as equal as whole cores allow: every child gets the
/// integer part of its ideal share; of the remaining cores, the children that rounding slowed most get
/// one each and are done; the rest is divided again. (SET, "optimal HW-tile allocation".)
///
/// `None` if there are more children than cores, or the utilisation of the cores would be below
/// `least`.
pub fn share_out(cores: Range<u64>, times: &[f64], least: f64) -> Option<Vec<Range<u64>>> {
    let total = cores.end - cores.start;
    let sum: f64 = times.iter().sum();
    if times.len() as u64 > total || sum <= 0.0 {
        return None;
    }
    let counts = counts(total, sum, times)?;
    let each = times.iter().zip(&counts).map(|(time, count)| time / *count as f64);
    let longest = each.fold(0.0, f64::max);
    if sum / (total as f64 * longest) < least {
        return None;
    }
    let mut first = cores.start;
    let mut take = |count| {
        first += count;
        first - count..first
    };
    Some(counts.into_iter().map(&mut take).collect())
}

fn counts(total: u64, sum: f64, times: &[f64]) -> Option<Vec<u64>> {
    let mut counts = vec![0; times.len()];
    let mut open: Vec<usize> = (0..times.len()).collect();
    let (mut cores, mut sum) = (total, sum);
    while !open.is_empty() {
        let mut lost = vec![];
        for &child in &open {
            let ideal = times[child] / sum * cores as f64;
            counts[child] = ideal as u64;
            lost.push((counts[child] as f64 / ideal, child));
        }
        let given: u64 = open.iter().map(|child| counts[*child]).sum();
        let over = cores.checked_sub(given)?;
        if over == 0 {
            return Some(counts);
        }
        lost.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for &(_, child) in lost.get(..over as usize)? {
            counts[child] += 1;
            cores -= counts[child];
            sum -= times[child];
        }
        open.retain(|child| !lost[..over as usize].iter().any(|(_, done)| done == child));
    }
    (cores == 0).then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_with_following_numbers_are_neighbours() {
        let mesh = Mesh { width: 4, height: 3, stride: 1 };
        let places: Vec<Place> = (0..mesh.cores()).map(|core| mesh.place(core)).collect();
        assert!(places.windows(2).all(|pair| pair[0].hops(pair[1]) == 1));
    }

    #[test]
    fn every_row_has_two_ports() {
        let ports: Vec<Place> = Mesh { width: 3, height: 2, stride: 3 }.ports().collect();
        let at = |x, y| Place { x, y };
        assert_eq!(ports, [at(0, 0), at(0, 1), at(2, 0), at(2, 1)]);
    }

    #[test]
    fn cores_are_shared_by_time() {
        let shared = share_out(4..12, &[3.0, 1.0, 4.0], 0.75);
        assert_eq!(shared, Some(vec![4..7, 7..8, 8..12]));
    }

    #[test]
    fn a_child_that_would_get_no_core_gets_one() {
        assert_eq!(share_out(0..4, &[0.5, 8.0], 0.5), Some(vec![0..1, 1..4]));
        assert_eq!(share_out(0..4, &[0.5, 8.0], 0.8), None);
        assert_eq!(share_out(0..1, &[1.0, 1.0], 0.0), None);
    }
}
