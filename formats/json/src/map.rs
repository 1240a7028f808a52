//! Maps in order of keys.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Index;

/// A map in order of its keys, as a sorted list: made of all its entries at once, then looked up.
///
/// What depends on the types of keys and values is a few lines, so that readers of many types stay small
/// as machine code, which with `BTreeMap` they are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Map { entries: vec![] }
    }
}

impl<K: Ord, V> Map<K, V> {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|at| &self.entries[at].1)
    }

    /// Whether there is such a key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// Keys and values from a key on, whether it is there or not.
    pub fn starting_at<Q: Ord + ?Sized>(&self, key: &Q) -> impl Iterator<Item = (&K, &V)>
    where
        K: Borrow<Q>,
    {
        let begin = self.find(key).unwrap_or_else(|at| at);
        self.entries[begin..].iter().map(|(key, value)| (key, value))
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// The values, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }

    /// The values, to change.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    /// Where a key is, or would be.
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        search(self.entries.len(), &|at| self.entries[at].0.borrow().cmp(key))
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Map<K, V> {
    /// Of entries with one key the last counts.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self::from(entries.into_iter().collect::<Vec<_>>())
    }
}

impl<K: Ord, V> From<Vec<(K, V)>> for Map<K, V> {
    /// Of entries with one key the last counts.
    fn from(mut entries: Vec<(K, V)>) -> Self {
        let (order, distinct) = distinct(entries.len(), &|a, b| entries[a].0.cmp(&entries[b].0));
        arrange(order, &mut |a, b| entries.swap(a, b));
        entries.truncate(distinct);
        Map { entries }
    }
}

impl<K, V> IntoIterator for Map<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<K: Ord + Borrow<Q>, V, Q: Ord + ?Sized> Index<&Q> for Map<K, V> {
    type Output = V;

    /// The value of a key.
    ///
    /// # Panics
    /// There is none.
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("a key of the map")
    }
}

/// The numbers below `count`, in the order that `compare` says of them; equal ones by number.
///
/// A heap sort: those of the standard library are ten times its code.
pub fn order(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let is_before = |a: usize, b: usize| compare(a, b).then(a.cmp(&b)).is_lt();
    let mut order: Vec<usize> = (0..count).collect();
    // Most lists are in order already.
    if order.windows(2).all(|pair| is_before(pair[0], pair[1])) {
        return order;
    }
    for at in (0..count / 2).rev() {
        sink(&mut order, at, &is_before);
    }
    for end in (1..count).rev() {
        order.swap(0, end);
        sink(&mut order[..end], 0, &is_before);
    }
    order
}

/// Moves an element down a heap until none below it is after it.
fn sink(heap: &mut [usize], mut at: usize, is_before: &dyn Fn(usize, usize) -> bool) {
    while 2 * at + 1 < heap.len() {
        let mut child = 2 * at + 1;
        if child + 1 < heap.len() && is_before(heap[child], heap[child + 1]) {
            child += 1;
        }
        if !is_before(heap[at], heap[child]) {
            return;
        }
        heap.swap(at, child);
        at = child;
    }
}

/// The numbers below `count` in order, those first that no later one is equal to; and how many these are.
fn distinct(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> (Vec<usize>, usize) {
    let order = order(count, compare);
    let (mut last, mut others) = (vec![], vec![]);
    for (at, number) in order.iter().enumerate() {
        let next = order.get(at + 1);
        match next.is_some_and(|next| compare(*number, *next).is_eq()) {
            true => others.push(*number),
            false => last.push(*number),
        }
    }
    let distinct = last.len();
    last.extend(others);
    (last, distinct)
}

/// Sorts a list; equal elements stay in order. As [`Map`], it is small for each type.
pub fn sort_by<T>(list: &mut [T], compare: &dyn Fn(&T, &T) -> Ordering) {
    let order = order(list.len(), &|a, b| compare(&list[a], &list[b]));
    arrange(order, &mut |a, b| list.swap(a, b));
}

/// Where in a list in order that is which `compare` looks for, or where it would be.
fn search(count: usize, compare: &dyn Fn(usize) -> Ordering) -> Result<usize, usize> {
    let (mut begin, mut end) = (0, count);
    while begin < end {
        let middle = begin + (end - begin) / 2;
        match compare(middle) {
            Ordering::Less => begin = middle + 1,
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => end = middle,
        }
    }
    Err(begin)
}

/// Puts at each place what is at the place that `order` says, by swaps.
fn arrange(mut order: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..order.len() {
        let mut at = start;
        while order[at] != start {
            let from = std::mem::replace(&mut order[at], at);
            swap(at, from);
            at = from;
        }
        order[at] = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every list of five keys below four.
    #[test]
    fn entries_are_in_order_and_the_last_of_a_key_counts() {
        for number in 0..4usize.pow(5) {
            let keys = (0..5).map(|digit| number / 4usize.pow(digit) % 4);
            let entries: Vec<(usize, usize)> = keys.zip(0..).collect();
            let expected: std::collections::BTreeMap<usize, usize> =
                entries.iter().copied().collect();
            let map = Map::from(entries);
            assert!(map.iter().eq(&expected), "{map:?}");
            for key in 0..4 {
                assert_eq!(map.get(&key), expected.get(&key));
                assert!(map.starting_at(&key).eq(expected.range(key..)));
            }
        }
    }
}
