//! Simplification of sizes, given which symbols are extents and therefore nonnegative.
use super::{Dim, Factor, Memo, SizeFunction};
use std::cell::RefCell;

/// Returns whether a symbol is nonnegative.
type IsSize<'s> = &'s dyn Fn(&str) -> bool;

/// Lower bounds of sizes, each distinct one derived once.
struct Bounds<'s> {
    is_size: IsSize<'s>,
    least: RefCell<Memo<Option<i64>>>,
}

impl<'s> Bounds<'s> {
    fn new(is_size: IsSize<'s>) -> Self {
        Self { is_size, least: RefCell::new(Memo::new()) }
    }

    /// Whether a size is nonnegative.
    fn is_extent(&self, dim: &Dim) -> bool {
        let least = dim.least(self.is_size, &mut self.least.borrow_mut());
        least.is_some_and(|least| least >= 0)
    }

    /// Whether one size is at most the other for all values of their symbols.
    fn is_at_most(&self, low: &Dim, high: &Dim) -> bool {
        self.is_extent(&(high.clone() - low.clone()))
    }
}

impl Dim {
    /// A simpler size that is equal for all values of its symbols that are nonnegative where `is_size`
    /// requires it.
    pub fn simplified(&self, is_size: IsSize<'_>) -> Self {
        self.simplified_with(&Bounds::new(is_size), &mut Memo::new())
    }

    fn simplified_with(&self, bounds: &Bounds<'_>, memo: &mut Memo<Self>) -> Self {
        self.map_factors(memo, |factor, memo| factor.simplified(bounds, memo))
    }

    /// Whether it is nonnegative, given which symbols are.
    pub fn is_extent(&self, is_size: IsSize<'_>) -> bool {
        Bounds::new(is_size).is_extent(self)
    }

    /// A lower bound for all values of its symbols, if one can be derived.
    fn least(&self, is_size: IsSize<'_>, memo: &mut Memo<Option<i64>>) -> Option<i64> {
        let Self::Symbolic(polynomial) = self else { return self.known() };
        memo.of(polynomial, |memo| {
            self.terms().into_iter().try_fold(0i64, |sum, (by, factors)| {
                let product = factors.iter().try_fold(by, |product, factor| {
                    // If it is negative, the other factors reverse the bound.
                    let least = factor.least(is_size, memo);
                    let least = least.filter(|least| *least >= 0 || factors.len() == 1);
                    least.filter(|_| by > 0)?.checked_mul(product)
                });
                sum.checked_add(product?)
            })
        })
    }

    /// The single factor of this size, if it is one.
    pub(super) fn as_factor(&self) -> Option<&Factor> {
        match self.terms()[..] {
            [(1, [factor])] => Some(factor),
            _ => None,
        }
    }
}

impl Factor {
    fn least(&self, is_size: IsSize<'_>, memo: &mut Memo<Option<i64>>) -> Option<i64> {
        let mut part = |part: &Dim| part.least(is_size, memo);
        match self {
            Self::Symbol(name) => is_size(name).then_some(0),
            Self::Call(SizeFunction::Max, parts) => part(&parts[0]).max(part(&parts[1])),
            Self::Call(SizeFunction::Min, parts) => Some(part(&parts[0])?.min(part(&parts[1])?)),
            Self::Call(SizeFunction::FloorDiv, parts) => {
                let by = parts[1].known().filter(|by| *by > 0)?;
                SizeFunction::FloorDiv.eval(part(&parts[0])?, by)
            }
            Self::Call(SizeFunction::Mod, parts) => {
                parts[1].known().is_some_and(|by| by > 0).then_some(0)
            }
            Self::IfEqual(parts) => Some(part(&parts[2])?.min(part(&parts[3])?)),
            Self::Broadcast(parts) => {
                parts.iter().try_fold(1, |least: i64, extent| Some(least.min(part(extent)?)))
            }
        }
    }

    fn simplified(&self, bounds: &Bounds<'_>, memo: &mut Memo<Dim>) -> Dim {
        let mut short = |part: &Dim| part.simplified_with(bounds, memo);
        match self {
            Self::Symbol(_) => Dim::of_factor(self.clone()),
            Self::Call(function, parts) => {
                let [left, right] = [&parts[0], &parts[1]].map(short);
                match function {
                    SizeFunction::FloorDiv => quotient(&left, &right),
                    SizeFunction::Mod => left.modulo(&right),
                    SizeFunction::Min if bounds.is_at_most(&left, &right) => left,
                    SizeFunction::Min if bounds.is_at_most(&right, &left) => right,
                    SizeFunction::Min => left.minimum(&right),
                    SizeFunction::Max if bounds.is_at_most(&left, &right) => right,
                    SizeFunction::Max if bounds.is_at_most(&right, &left) => left,
                    SizeFunction::Max => left.maximum(&right),
                }
            }
            Self::IfEqual(parts) => {
                let parts = [0, 1, 2, 3].map(|part| short(&parts[part]));
                if_equal(parts, bounds)
            }
            Self::Broadcast(parts) => Dim::broadcast(parts.iter().map(short)),
        }
    }
}

/// The quotient of a sum that contains a quotient is a single quotient: the inner rounding is less than
/// one step of the outer rounding.
fn quotient(left: &Dim, right: &Dim) -> Dim {
    let inner = left.terms().into_iter().find_map(|(by, factors)| match (by, factors) {
        (1, [Factor::Call(SizeFunction::FloorDiv, parts)]) => {
            let inside = Dim::of_factor(factors[0].clone());
            Some((inside, parts[0].clone(), parts[1].known().filter(|by| *by > 0)?))
        }
        _ => None,
    });
    let Some((inside, dividend, by)) = inner else { return left.floor_div(right) };
    let all = right.known().filter(|right| *right > 0).and_then(|right| right.checked_mul(by));
    match all {
        Some(all) => {
            let rest = left.clone() - inside;
            quotient(&(rest * by.into() + dividend), &all.into())
        }
        None => left.floor_div(right),
    }
}

fn if_equal([left, right, then, otherwise]: [Dim; 4], bounds: &Bounds<'_>) -> Dim {
    let above = |low: &Dim, high: &Dim| bounds.is_at_most(&(low.clone() + 1.into()), high);
    if above(&left, &right) || above(&right, &left) {
        return otherwise;
    }
    let (left, right) = match (left.known(), right.known()) {
        (Some(_), None) => (right, left),
        _ => (left, right),
    };
    let left = bare(&left, &right);
    let (Some(Factor::Symbol(name)), Some(_)) = (left.as_factor(), right.known()) else {
        return Dim::if_equal(&left, &right, &then, &otherwise);
    };
    // If they are equal, one can be substituted for the other.
    let within = |dim: &Dim| dim.substitute(&|other| (*other == **name).then(|| right.clone()));
    let then = within(&then);
    if then == within(&otherwise) {
        return otherwise;
    }
    Dim::if_equal(&left, &right, &then, &otherwise)
}

/// A size that equals an integer whenever `size` does: a bound beyond the integer can be dropped.
fn bare(size: &Dim, to: &Dim) -> Dim {
    let (Some(Factor::Call(function, parts)), Some(to)) = (size.as_factor(), to.known()) else {
        return size.clone();
    };
    for (bound, rest) in [(&parts[0], &parts[1]), (&parts[1], &parts[0])] {
        let beyond = match (function, bound.known()) {
            (SizeFunction::Min, Some(bound)) => bound > to,
            (SizeFunction::Max, Some(bound)) => bound < to,
            _ => false,
        };
        if beyond {
            return bare(rest, &Dim::Known(to));
        }
    }
    size.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simplified(text: &str) -> String {
        let dim: Dim = text.parse().expect("a size");
        dim.simplified(&|name| name.starts_with('N')).to_string()
    }

    #[test]
    fn extents_are_not_below_zero() {
        assert_eq!(simplified("max(0, N)"), "N");
        assert_eq!(simplified("max(0, e)"), "max(0, e)");
        assert_eq!(simplified("max(0, min(1000, N*N + 2))"), "min(1000, 2 + N*N)");
        assert_eq!(simplified("min(0, max(-1, N))"), "0");
        assert_eq!(simplified("max(N, N + M)"), "max(M + N, N)");
        assert_eq!(simplified("max(N, 2*N)"), "2*N");
        assert_eq!(simplified("max(0, 1 + floordiv(-1 + N, 2))"), "1 + floordiv(-1 + N, 2)");
        assert_eq!(simplified("max(0, floordiv(-1 + N, 2))"), "max(0, floordiv(-1 + N, 2))");
    }

    #[test]
    fn quotients_of_quotients_are_one() {
        let twice = "max(0, 1 + floordiv(-2 + max(0, 1 + floordiv(-1 + N, 2)), 2))";
        assert_eq!(simplified(twice), "1 + floordiv(-3 + N, 4)");
        assert_eq!(simplified("floordiv(M + floordiv(e, 3), 5)"), "floordiv(3*M + e, 15)");
    }

    #[test]
    fn choices_that_cannot_be_otherwise_are_made() {
        assert_eq!(simplified("ifeq(N, -1, 3, N)"), "N");
        assert_eq!(simplified("ifeq(e, -1, 3, e)"), "ifeq(e, -1, 3, e)");
        assert_eq!(simplified("ifeq(N, 0, min(1000, N), N)"), "N");
        assert_eq!(simplified("ifeq(min(1000, N), 1, N, min(1000, N))"), "min(1000, N)");
        assert_eq!(simplified("ifeq(N, 1, N + M, 2)"), "ifeq(N, 1, 1 + M, 2)");
        assert_eq!(simplified("ifeq(1, N, M, M + N - 1)"), "-1 + M + N");
        assert_eq!(simplified("ifeq(max(3, N), 3, 1, 2)"), "ifeq(max(3, N), 3, 1, 2)");
    }

    #[test]
    fn values_stay() {
        for text in [
            "ifeq(min(4, N), 1, N, min(4, N))",
            "ifeq(max(0, e), 2, e*N, max(0, min(3, e)))",
            "max(0, min(5, N) - min(3, e))",
            "ifeq(ifeq(N, 0, e, N), -1, 7, ifeq(N, 0, e, N))",
            "max(0, 1 + floordiv(-2 + max(0, 1 + floordiv(-1 + N, 2)), 2))",
            "floordiv(2*e - 3 + floordiv(e - N, 3), 2)",
            "max(-2, e*N - 2)",
            "max(-3, N*floordiv(-2 + N, 2) - 1)",
        ] {
            let dim: Dim = text.parse().expect("a size");
            let short = dim.simplified(&|name| name == "N");
            for (n, e) in (0..6).flat_map(|n| (-4..6).map(move |e| (n, e))) {
                let bind = |name: &str| Some(if name == "N" { n } else { e });
                assert_eq!(short.eval(&bind), dim.eval(&bind), "{text} for {n} and {e}");
            }
        }
    }
}
