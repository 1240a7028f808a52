//! Disjointness and coverage of boxes.

use super::super::Extent;

/// The first two boxes that overlap, by index.
pub(super) fn overlapping(boxes: &[Extent]) -> Option<(usize, usize)> {
    let axis = (0..4).max_by_key(|&axis| distinct(boxes, axis))?;
    let mut order: Vec<usize> = (0..boxes.len()).collect();
    order.sort_by_key(|&index| boxes[index].axis(axis).0);
    // Boxes active in the sweep along the axis on which most of them differ.
    let mut active: Vec<usize> = vec![];
    for index in order {
        let start = boxes[index].axis(axis).0;
        active.retain(|&other| boxes[other].axis(axis).1 >= start);
        let hit = active.iter().find(|&&other| boxes[other].overlaps(&boxes[index]));
        if let Some(&other) = hit {
            return Some((other.min(index), other.max(index)));
        }
        active.push(index);
    }
    None
}

fn distinct(boxes: &[Extent], axis: usize) -> usize {
    let mut starts: Vec<i64> = boxes.iter().map(|each| each.axis(axis).0).collect();
    starts.sort_unstable();
    starts.dedup();
    starts.len()
}

/// Total number of points.
pub(super) fn volume<'e>(boxes: impl IntoIterator<Item = &'e Extent>) -> i64 {
    boxes.into_iter().fold(0, |sum: i64, each| sum.saturating_add(each.volume()))
}

/// The smallest box that contains all.
pub(super) fn hull(boxes: &[Extent]) -> Option<Extent> {
    let mut hull = *boxes.first()?;
    for each in boxes {
        if each.lower.values().len() != hull.lower.values().len() {
            return None;
        }
        hull = hull.joined(each);
    }
    Some(hull)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_that_touch_do_not_overlap() {
        let tile = |h: i64, w: i64| Extent::new([0, 0, h, w], [0, 3, h + 1, w + 1]);
        let mut grid: Vec<Extent> =
            (0..4).flat_map(|h| (0..4).map(move |w| tile(2 * h, 2 * w))).collect();
        assert_eq!(overlapping(&grid), None);
        assert_eq!(volume(&grid), 4 * 8 * 8);
        assert_eq!(hull(&grid), Some(Extent::new([0; 4], [0, 3, 7, 7])));
        grid.push(tile(3, 3));
        assert!(overlapping(&grid).is_some_and(|(_, last)| last == 16));
    }
}
