//! Sorting with one instance of its code, which takes 5 kB for each type in libraries that must stay small.
use std::cmp::Ordering;

/// Items in the order of a comparison; equal ones keep theirs.
pub fn sorted<T>(items: Vec<T>, compare: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let order = order(items.len(), &|a, b| compare(&items[a], &items[b]));
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| items[at].take()).collect()
}

/// The numbers of so many items in the order of a comparison of two numbers.
#[inline(never)]
fn order(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

#[cfg(test)]
mod tests {
    use super::sorted;

    #[test]
    fn equal_items_keep_their_order() {
        let items = vec![(2, 'a'), (1, 'b'), (2, 'c'), (0, 'd'), (1, 'e')];
        let found = sorted(items, |a, b| a.0.cmp(&b.0));
        assert_eq!(found, [(0, 'd'), (1, 'b'), (1, 'e'), (2, 'a'), (2, 'c')]);
        assert!(sorted(Vec::<u8>::new(), Ord::cmp).is_empty());
    }
}
