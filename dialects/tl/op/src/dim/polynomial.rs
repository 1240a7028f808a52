//! The terms of a size, with what follows from them, computed once.
//!
//! Terms share their parts, so that a size that mentions another one several times is small in memory however
//! long it is written out. A digest of the content stands for a term wherever two are compared: unlike a table
//! of all terms, it needs no owner, and holds across graphs and threads.
use super::{Dim, Factor};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// Terms of at most this many parts are computed again rather than looked up.
const FEW_PARTS: usize = 8;

/// A sum of products of factors, each with a nonzero coefficient. The empty product is the
/// constant term.
///
/// Two are equal if their digests are: comparing, hashing and cloning take constant time, and ordering two
/// visits only the first parts in which they differ.
#[derive(Debug, Clone)]
pub struct Polynomial {
    terms: BTreeMap<Vec<Factor>, i64>,
    digest: blake3::Hash,
    parts: usize,
    is_never_negative: bool,
}

impl Polynomial {
    /// A polynomial of terms with nonzero coefficients.
    pub(super) fn new(terms: BTreeMap<Vec<Factor>, i64>) -> Self {
        let mut content = vec![];
        let mut parts: usize = 0;
        for (factors, by) in &terms {
            content.extend(by.to_le_bytes());
            content.extend(factors.len().to_le_bytes());
            parts = parts.saturating_add(1);
            for factor in factors {
                factor.write_content(&mut content);
                parts = parts.saturating_add(factor.parts());
            }
        }
        let is_never_negative = terms
            .iter()
            .all(|(factors, by)| *by >= 0 && factors.iter().all(Factor::is_never_negative));
        Self { terms, digest: blake3::hash(&content), parts, is_never_negative }
    }

    /// The terms: the coefficient of each product.
    pub(super) fn terms(&self) -> &BTreeMap<Vec<Factor>, i64> {
        &self.terms
    }

    /// The terms, without what follows from them.
    pub(super) fn into_terms(self) -> BTreeMap<Vec<Factor>, i64> {
        self.terms
    }

    /// The number of integers, symbols and functions, each as often as it is written; at most [`usize::MAX`].
    pub(super) fn parts(&self) -> usize {
        self.parts
    }

    /// Whether it is nonnegative for all values of its symbols, which may be negative.
    pub(super) fn is_never_negative(&self) -> bool {
        self.is_never_negative
    }
}

impl PartialEq for Polynomial {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Polynomial {}

impl Hash for Polynomial {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl Ord for Polynomial {
    fn cmp(&self, other: &Self) -> Ordering {
        if self == other { Ordering::Equal } else { self.terms.cmp(&other.terms) }
    }
}

impl PartialOrd for Polynomial {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Factor {
    /// The number of parts as written.
    fn parts(&self) -> usize {
        let sum = |dims: &[Dim]| dims.iter().map(Dim::parts).fold(0, usize::saturating_add);
        match self {
            Self::Symbol(_) => 1,
            Self::Call(_, dims) => sum(&**dims),
            Self::IfEqual(dims) => sum(&**dims),
            Self::Broadcast(dims) => sum(dims),
        }
    }

    /// Appends bytes from which the factor could be read again, with the digests of its parts.
    fn write_content(&self, content: &mut Vec<u8>) {
        let (kind, dims): (u8, &[Dim]) = match self {
            Self::Symbol(name) => {
                content.push(0);
                content.extend(name.len().to_le_bytes());
                content.extend(name.as_bytes());
                return;
            }
            Self::IfEqual(dims) => (1, &**dims),
            Self::Broadcast(dims) => (2, dims),
            Self::Call(function, dims) => (3 + *function as u8, &**dims),
        };
        content.push(kind);
        content.extend(dims.len().to_le_bytes());
        for dim in dims {
            match dim {
                Dim::Known(value) => {
                    content.push(0);
                    content.extend(value.to_le_bytes());
                }
                Dim::Symbolic(polynomial) => {
                    content.push(1);
                    content.extend(polynomial.digest.as_bytes());
                }
            }
        }
    }
}

/// What has been computed for each distinct term during one operation on a size.
pub(super) struct Memo<T>(BTreeMap<[u8; 32], T>);

impl<T: Clone> Memo<T> {
    /// An empty one.
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// What `compute` returns for a term, computed once.
    pub(super) fn of(&mut self, term: &Polynomial, compute: impl FnOnce(&mut Self) -> T) -> T {
        if term.parts <= FEW_PARTS {
            return compute(self);
        }
        let key = *term.digest.as_bytes();
        if let Some(known) = self.0.get(&key) {
            return known.clone();
        }
        let computed = compute(self);
        self.0.insert(key, computed.clone());
        computed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SizeFunction;

    const LENGTH: usize = 10_000;

    /// Runs on a stack that a deep size fits in.
    fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(1 << 28);
            thread.spawn_scoped(scope, work).unwrap().join().unwrap()
        })
    }

    /// Sizes each of which mentions the one before three times.
    fn chain(length: usize) -> Dim {
        (0..length).fold(Dim::symbol("N"), |last, step| {
            let more = last.clone() + (1 + step as i64).into();
            Dim::if_equal(&last, &7.into(), &last, &more)
        })
    }

    #[test]
    fn a_chain_of_sizes_is_compared_and_replaced_in_the_time_of_its_distinct_terms() {
        on_large_stack(|| {
            let [left, right] = [chain(LENGTH), chain(LENGTH)];
            assert_eq!(left, right);
            assert_eq!(left.cmp(&right), Ordering::Equal);
            assert_ne!(left, chain(LENGTH - 1));
            assert!(left.is_longer_than(usize::MAX - 1));
            let other = left.substitute(&|_| Some(Dim::symbol("M")));
            assert_eq!(other.symbols().into_iter().collect::<Vec<_>>(), ["M".into()]);
            assert_eq!(other.substitute(&|_| Some(Dim::symbol("N"))), left);
            assert_eq!(left.substitute(&|_| Some(7.into())).known(), Some(7));
            let short = left.simplified(&|_| true);
            assert_eq!(short.simplified(&|_| true), short);
            assert!(left.is_extent(&|_| true) && !left.is_extent(&|_| false));
            let more = |rows, step| if rows == 7 { rows } else { rows + 1 + step };
            let rows = (0..LENGTH as i64).fold(0, more);
            assert_eq!([&left, &short].map(|dim| dim.eval(&|_| Some(0))), [Some(rows); 2]);
        });
    }

    #[test]
    fn the_sign_of_a_chain_of_sizes_is_known_at_once() {
        on_large_stack(|| {
            let positive = (0..LENGTH).fold(Dim::symbol("N").maximum(&0.into()), |last, _| {
                (last.clone() + 1.into()).minimum(&(last * 3.into()))
            });
            assert_eq!(positive.maximum(&0.into()), positive);
            assert_eq!(positive.eval(&|_| Some(-1)), Some(0));
        });
    }

    #[test]
    fn different_terms_have_different_digests() {
        let [n, m] = ["N", "M"].map(Dim::symbol);
        let pair = |function, left: &Dim, right: &Dim| {
            Dim::of_factor(Factor::Call(function, Box::new([left.clone(), right.clone()])))
        };
        let mut dims = vec![n.clone(), m.clone(), Dim::symbol("NM"), n.clone() * m.clone()];
        dims.extend([n.clone() + m.clone(), n.clone() + 1.into(), n.clone() * 2.into()]);
        dims.extend(SizeFunction::ALL.map(|function| pair(function, &n, &m)));
        dims.extend(SizeFunction::ALL.map(|function| pair(function, &m, &n)));
        dims.extend([Dim::broadcast([n.clone(), m.clone()]), -n.clone(), n.clone() * n.clone()]);
        dims.push(Dim::if_equal(&n, &m, &1.into(), &2.into()));
        dims.push(Dim::if_equal(&n, &m, &2.into(), &1.into()));
        for (index, left) in dims.iter().enumerate() {
            for (other, right) in dims.iter().enumerate() {
                assert_eq!(left == right, index == other, "{left} and {right}");
                assert_eq!(left.cmp(right) == Ordering::Equal, index == other);
            }
        }
    }
}
