//! Ring regions: a tensor that reaches the end of its region wraps to the start.

/// Bytes `[start, end)`.
pub(super) type Span = (i64, i64);

/// The location of a tensor.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// In these bytes: two spans when it wraps.
    At(Vec<Span>),
    /// In no region.
    Nowhere,
    /// It is larger than its region, whose size is given.
    TooLarge(i64),
}

/// The location of a tensor with an address and a size.
pub(super) fn locate(regions: &[[i64; 2]], address: i64, size: i64) -> Location {
    let region = regions.iter().find(|[start, end]| (*start..*end).contains(&address));
    let Some(&[start, end]) = region else { return Location::Nowhere };
    let room = end.saturating_sub(start);
    if size > room {
        return Location::TooLarge(room);
    }
    let past = address.saturating_add(size).saturating_sub(end);
    Location::At(if past > 0 {
        vec![(address, end), (start, start + past)]
    } else {
        vec![(address, address + size)]
    })
}

/// The bytes `[start, end)` of L2 that a tensor occupies, in the order of its elements: two spans if it
/// wraps at the end of its ring region. `None` if it starts in no region or
/// does not fit.
pub fn ring_spans(regions: &[[i64; 2]], address: i64, size: i64) -> Option<Vec<(i64, i64)>> {
    match locate(regions, address, size) {
        Location::At(spans) => Some(spans),
        Location::Nowhere | Location::TooLarge(_) => None,
    }
}

/// The first byte that two of some spans share, and the owners of these spans.
pub(super) fn shared(spans: &[(Span, usize)]) -> Option<(i64, usize, usize)> {
    let mut order: Vec<&(Span, usize)> = spans.iter().filter(|(span, _)| span.0 < span.1).collect();
    order.sort();
    let mut last: Option<(i64, usize)> = None;
    for &&((start, end), owner) in &order {
        if let Some((reached, other)) = last
            && start < reached
        {
            return Some((start, other, owner));
        }
        if last.is_none_or(|(reached, _)| end > reached) {
            last = Some((end, owner));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGIONS: [[i64; 2]; 2] = [[0, 1024], [1024, 4096]];

    #[test]
    fn a_tensor_wraps_in_its_region() {
        assert_eq!(locate(&REGIONS, 8, 16), Location::At(vec![(8, 24)]));
        assert_eq!(locate(&REGIONS, 1000, 100), Location::At(vec![(1000, 1024), (0, 76)]));
        assert_eq!(locate(&REGIONS, 4000, 196), Location::At(vec![(4000, 4096), (1024, 1124)]));
        assert_eq!(locate(&REGIONS, 1000, 2000), Location::TooLarge(1024));
        assert_eq!(locate(&REGIONS, 4096, 8), Location::Nowhere);
    }

    #[test]
    fn the_first_shared_byte_is_found() {
        let spans = [((0, 10), 0), ((20, 30), 1), ((9, 12), 2)];
        assert_eq!(shared(&spans), Some((9, 0, 2)));
        assert_eq!(shared(&spans[..2]), None);
        assert_eq!(shared(&[((0, 100), 0), ((5, 6), 1), ((50, 60), 2)]), Some((5, 0, 1)));
    }
}
