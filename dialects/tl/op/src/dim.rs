//! Sizes that may depend on symbols.
//!
//! A [`Dim`] is an integer or an integer expression over symbols: the extent of a dimension that is
//! known only at run time. Expressions are stored as polynomials with integer coefficients
//! over *factors* (symbols, and functions that are not polynomials), so that equal polynomials are
//! equal values: `N + N` is `2*N`, `(N*4) / 4` is `N`. Symbols are extents and therefore not negative.
//! Terms are shared and compared by a digest, so that an operation takes time in the number of distinct ones.

mod polynomial;
mod simplify;

pub use polynomial::Polynomial;

use polynomial::Memo;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};
use std::sync::Arc;

/// The extent of a dimension, or an integer from which sizes are computed.
///
/// Arithmetic on known integers saturates; a saturated extent is rejected as too large when memory
/// is allocated.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dim {
    /// An integer.
    Known(i64),
    /// An expression that is not a constant.
    Symbolic(Arc<Polynomial>),
}

/// A factor of a product.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Factor {
    /// A named integer that is known at run time.
    Symbol(Arc<str>),
    /// A function of two sizes that is not a polynomial of them.
    Call(SizeFunction, Box<[Dim; 2]>),
    /// `[a, b, x, y]`: `x` if `a == b`, otherwise `y`.
    IfEqual(Box<[Dim; 4]>),
    /// The extent that at least two extents broadcast to: the first that is not 1, or 1. In ascending order,
    /// each once, so that broadcasting in any order and repeatedly gives one size.
    Broadcast(Box<[Dim]>),
}

/// The values of symbols.
type Symbols<'s, T> = &'s dyn Fn(&str) -> Option<T>;

/// Functions of two sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SizeFunction {
    /// The quotient, rounded toward negative infinity.
    FloorDiv,
    /// The remainder of [`SizeFunction::FloorDiv`], with the sign of the divisor.
    Mod,
    /// The smaller.
    Min,
    /// The larger.
    Max,
}

impl SizeFunction {
    /// All functions.
    pub const ALL: [Self; 4] = [Self::FloorDiv, Self::Mod, Self::Min, Self::Max];

    /// The name in the text form of an expression.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FloorDiv => "floordiv",
            Self::Mod => "mod",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// The value; `None` for a division by zero.
    pub fn eval(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Self::Min => Some(left.min(right)),
            Self::Max => Some(left.max(right)),
            Self::FloorDiv => {
                let quotient = left.checked_div(right)?;
                let inexact = left.wrapping_rem(right) != 0 && (left < 0) != (right < 0);
                Some(quotient - i64::from(inexact))
            }
            Self::Mod => {
                let rest = left.checked_rem(right)?;
                Some(if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest })
            }
        }
    }
}

impl Dim {
    /// A symbol.
    pub fn symbol(name: &str) -> Self {
        Self::of_factor(Factor::Symbol(name.into()))
    }

    /// The integer, if it does not depend on a symbol.
    pub const fn known(&self) -> Option<i64> {
        match self {
            Self::Known(value) => Some(*value),
            Self::Symbolic(_) => None,
        }
    }

    /// Whether this is the given integer.
    pub fn is(&self, value: i64) -> bool {
        self.known() == Some(value)
    }

    /// The quotient, rounded toward negative infinity.
    pub fn floor_div(&self, divisor: &Self) -> Self {
        if let Some(exact) = self.exact_quotient(divisor) {
            return exact;
        }
        self.call(SizeFunction::FloorDiv, divisor)
    }

    /// The quotient, rounded toward positive infinity.
    pub fn ceil_div(&self, divisor: &Self) -> Self {
        -(-self.clone()).floor_div(divisor)
    }

    /// The remainder of [`Dim::floor_div`].
    pub fn modulo(&self, divisor: &Self) -> Self {
        if self.exact_quotient(divisor).is_some() {
            return Self::Known(0);
        }
        self.call(SizeFunction::Mod, divisor)
    }

    /// The smaller of two.
    pub fn minimum(&self, other: &Self) -> Self {
        self.ordered(SizeFunction::Min, other)
    }

    /// The larger of two.
    pub fn maximum(&self, other: &Self) -> Self {
        self.ordered(SizeFunction::Max, other)
    }

    /// `then` if `left == right`, otherwise `otherwise`.
    pub fn if_equal(left: &Self, right: &Self, then: &Self, otherwise: &Self) -> Self {
        if left == right || then == otherwise {
            return then.clone();
        }
        match (left.clone() - right.clone()).known() {
            Some(_) => otherwise.clone(),
            None => {
                let parts = [left, right, then, otherwise].map(Clone::clone);
                Self::of_factor(Factor::IfEqual(Box::new(parts)))
            }
        }
    }

    /// The extent that extents broadcast to: the one that is not 1, if any. Whether all others are 1 or
    /// equal to it must be required separately.
    pub fn broadcast(extents: impl IntoIterator<Item = Self>) -> Self {
        let mut parts = BTreeSet::new();
        for extent in extents {
            match extent.as_factor() {
                Some(Factor::Broadcast(inner)) => parts.extend(inner.iter().cloned()),
                _ => _ = parts.insert(extent),
            }
        }
        parts.remove(&Self::Known(1));
        if let Some(known) = parts.iter().find(|part| part.known().is_some()) {
            return known.clone();
        }
        // Equal to `x`, or 1, if valid: `min(c, x)` for a positive `c`.
        let is_bounded = |part: &Self| match part.as_factor() {
            Some(Factor::Call(SizeFunction::Min, sides)) => {
                let [c, x] = &**sides;
                let limits =
                    |c: &Self, x: &Self| c.known().is_some_and(|c| c > 0) && parts.contains(x);
                limits(c, x) || limits(x, c)
            }
            _ => false,
        };
        let parts: Vec<Self> = parts.iter().filter(|part| !is_bounded(part)).cloned().collect();
        match &parts[..] {
            [] => Self::Known(1),
            [part] => part.clone(),
            _ => Self::of_factor(Factor::Broadcast(parts.into())),
        }
    }

    /// The product of all dimensions.
    pub fn product<'d>(dims: impl IntoIterator<Item = &'d Self>) -> Self {
        dims.into_iter().fold(Self::Known(1), |product, dim| product * dim.clone())
    }

    /// The terms of the expression: each a coefficient and its factors.
    pub fn terms(&self) -> Vec<(i64, &[Factor])> {
        match self {
            Self::Known(0) => vec![],
            Self::Known(value) => vec![(*value, &[])],
            Self::Symbolic(polynomial) => {
                polynomial.terms().iter().map(|(factors, by)| (*by, factors.as_slice())).collect()
            }
        }
    }

    /// Whether the expression has more than a number of parts: integers, symbols and functions, each as often
    /// as it is written.
    pub fn is_longer_than(&self, parts: usize) -> bool {
        self.parts() > parts
    }

    /// The number of parts as written; at most [`usize::MAX`].
    fn parts(&self) -> usize {
        match self {
            Self::Known(_) => 1,
            Self::Symbolic(polynomial) => polynomial.parts(),
        }
    }

    /// The names of all symbols in the expression.
    pub fn symbols(&self) -> BTreeSet<Arc<str>> {
        let mut found = BTreeSet::new();
        self.visit(&mut Memo::new(), &mut |name| {
            found.insert(name.clone());
        });
        found
    }

    /// The value under an assignment of the symbols; `None` if a symbol has no value, on overflow,
    /// and on division by zero.
    pub fn eval(&self, symbol: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        self.eval_with(symbol, &mut Memo::new())
    }

    fn eval_with(&self, symbol: Symbols<'_, i64>, memo: &mut Memo<Option<i64>>) -> Option<i64> {
        let Self::Symbolic(polynomial) = self else { return self.known() };
        memo.of(polynomial, |memo| {
            let mut sum: i64 = 0;
            for (by, factors) in self.terms() {
                let mut product = by;
                for factor in factors {
                    product = product.checked_mul(factor.eval(symbol, memo)?)?;
                }
                sum = sum.checked_add(product)?;
            }
            Some(sum)
        })
    }

    /// The expression with symbols replaced.
    pub fn substitute(&self, symbol: &dyn Fn(&str) -> Option<Self>) -> Self {
        self.substitute_with(symbol, &mut Memo::new())
    }

    fn substitute_with(&self, symbol: Symbols<'_, Self>, memo: &mut Memo<Self>) -> Self {
        self.map_factors(memo, |factor, memo| factor.substitute(symbol, memo))
    }

    /// The expression with factors replaced by sizes, those of each distinct term once.
    fn map_factors(
        &self,
        memo: &mut Memo<Self>,
        mut replaced: impl FnMut(&Factor, &mut Memo<Self>) -> Self,
    ) -> Self {
        let Self::Symbolic(polynomial) = self else { return self.clone() };
        memo.of(polynomial, |memo| {
            let mut sum = Self::Known(0);
            for (by, factors) in self.terms() {
                let factors = factors.iter().map(|factor| replaced(factor, memo));
                sum = sum + factors.fold(Self::Known(by), |product, factor| product * factor);
            }
            sum
        })
    }

    fn visit(&self, memo: &mut Memo<()>, found: &mut dyn FnMut(&Arc<str>)) {
        let Self::Symbolic(polynomial) = self else { return };
        memo.of(polynomial, |memo| {
            for factor in polynomial.terms().keys().flatten() {
                match factor {
                    Factor::Symbol(name) => found(name),
                    Factor::Call(_, parts) => parts.iter().for_each(|part| part.visit(memo, found)),
                    Factor::IfEqual(parts) => parts.iter().for_each(|part| part.visit(memo, found)),
                    Factor::Broadcast(parts) => {
                        parts.iter().for_each(|part| part.visit(memo, found));
                    }
                }
            }
        });
    }

    fn of_factor(factor: Factor) -> Self {
        Self::of_terms(BTreeMap::from([(vec![factor], 1)]))
    }

    fn of_terms(mut terms: BTreeMap<Vec<Factor>, i64>) -> Self {
        terms.retain(|_, by| *by != 0);
        match terms.len() {
            0 => Self::Known(0),
            1 if terms.contains_key(&vec![]) => Self::Known(terms[&vec![]]),
            _ => Self::Symbolic(Arc::new(Polynomial::new(terms))),
        }
    }

    fn into_terms(self) -> BTreeMap<Vec<Factor>, i64> {
        match self {
            Self::Known(0) => BTreeMap::new(),
            Self::Known(value) => BTreeMap::from([(vec![], value)]),
            Self::Symbolic(polynomial) => Arc::unwrap_or_clone(polynomial).into_terms(),
        }
    }

    /// The quotient, if the divisor is a single product that divides every term.
    fn exact_quotient(&self, divisor: &Self) -> Option<Self> {
        let divisor = divisor.terms();
        let [(by, common)] = divisor[..] else { return None };
        let mut terms = BTreeMap::new();
        for (coefficient, factors) in self.terms() {
            if coefficient.checked_rem(by)? != 0 {
                return None;
            }
            let mut rest = factors.to_vec();
            for factor in common {
                rest.remove(rest.iter().position(|own| own == factor)?);
            }
            terms.insert(rest, coefficient.checked_div(by)?);
        }
        Some(Self::of_terms(terms))
    }

    fn call(&self, function: SizeFunction, other: &Self) -> Self {
        if let (Some(left), Some(right)) = (self.known(), other.known())
            && let Some(value) = function.eval(left, right)
        {
            return Self::Known(value);
        }
        let parts = [self.clone(), other.clone()];
        Self::of_factor(Factor::Call(function, Box::new(parts)))
    }

    /// Minimum and maximum: the difference may be known even if neither operand is, and operands
    /// commute.
    fn ordered(&self, function: SizeFunction, other: &Self) -> Self {
        if let Some(difference) = (self.clone() - other.clone()).known() {
            let first = (difference <= 0) == (function == SizeFunction::Min);
            return if first { self.clone() } else { other.clone() };
        }
        for (low, high) in [(self, other), (other, self)] {
            if low.known().is_some_and(|low| low <= 0) && high.is_never_negative() {
                return if function == SizeFunction::Min { low.clone() } else { high.clone() };
            }
        }
        if self <= other { self.call(function, other) } else { other.call(function, self) }
    }
}

impl Dim {
    /// Whether it is nonnegative for all values of its symbols. Symbols that are elements of values may
    /// be negative.
    fn is_never_negative(&self) -> bool {
        match self {
            Self::Known(value) => *value >= 0,
            Self::Symbolic(polynomial) => polynomial.is_never_negative(),
        }
    }
}

impl Factor {
    fn is_never_negative(&self) -> bool {
        match self {
            Self::Symbol(_) => false,
            Self::Call(SizeFunction::Max, parts) => parts.iter().any(Dim::is_never_negative),
            Self::Call(SizeFunction::Min, parts) => parts.iter().all(Dim::is_never_negative),
            Self::Call(SizeFunction::FloorDiv, parts) => {
                parts[0].is_never_negative() && parts[1].known().is_some_and(|by| by > 0)
            }
            Self::Call(SizeFunction::Mod, parts) => parts[1].known().is_some_and(|by| by > 0),
            Self::IfEqual(parts) => parts[2..].iter().all(Dim::is_never_negative),
            Self::Broadcast(parts) => parts.iter().all(Dim::is_never_negative),
        }
    }

    fn eval(&self, symbol: Symbols<'_, i64>, memo: &mut Memo<Option<i64>>) -> Option<i64> {
        let mut value = |part: &Dim| part.eval_with(symbol, memo);
        match self {
            Self::Symbol(name) => symbol(name),
            Self::Call(function, parts) => function.eval(value(&parts[0])?, value(&parts[1])?),
            Self::IfEqual(parts) => {
                let equal = value(&parts[0])? == value(&parts[1])?;
                value(&parts[if equal { 2 } else { 3 }])
            }
            Self::Broadcast(parts) => {
                let mut joined = 1;
                for part in parts {
                    let extent = value(part)?;
                    joined = if joined == 1 { extent } else { joined };
                }
                Some(joined)
            }
        }
    }

    fn substitute(&self, symbol: Symbols<'_, Dim>, memo: &mut Memo<Dim>) -> Dim {
        let mut replaced = |part: &Dim| part.substitute_with(symbol, memo);
        match self {
            Self::Symbol(name) => symbol(name).unwrap_or_else(|| Dim::symbol(name)),
            Self::Call(function, parts) => {
                let [left, right] = [&parts[0], &parts[1]].map(replaced);
                match function {
                    SizeFunction::FloorDiv => left.floor_div(&right),
                    SizeFunction::Mod => left.modulo(&right),
                    SizeFunction::Min => left.minimum(&right),
                    SizeFunction::Max => left.maximum(&right),
                }
            }
            Self::IfEqual(parts) => {
                let [a, b, x, y] = [0, 1, 2, 3].map(|part| replaced(&parts[part]));
                Dim::if_equal(&a, &b, &x, &y)
            }
            Self::Broadcast(parts) => Dim::broadcast(parts.iter().map(replaced)),
        }
    }
}

impl From<i64> for Dim {
    fn from(value: i64) -> Self {
        Self::Known(value)
    }
}

impl Add for Dim {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let mut terms = self.into_terms();
        for (factors, by) in other.into_terms() {
            let sum = terms.entry(factors).or_insert(0);
            *sum = sum.saturating_add(by);
        }
        Self::of_terms(terms)
    }
}

impl Neg for Dim {
    type Output = Self;
    fn neg(self) -> Self {
        self * Self::Known(-1)
    }
}

impl Sub for Dim {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Dim {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let mut terms = BTreeMap::new();
        let right = other.into_terms();
        for (factors, by) in self.into_terms() {
            for (more, again) in &right {
                let mut product = factors.clone();
                product.extend_from_slice(more);
                product.sort();
                let sum: &mut i64 = terms.entry(product).or_insert(0);
                *sum = sum.saturating_add(by.saturating_mul(*again));
            }
        }
        Self::of_terms(terms)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = self.terms();
        if terms.is_empty() {
            return f.write_str("0");
        }
        for (position, (by, factors)) in terms.into_iter().enumerate() {
            let sign = match (position, by < 0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            };
            f.write_str(sign)?;
            let size = by.unsigned_abs();
            if size != 1 || factors.is_empty() {
                write!(f, "{size}{}", if factors.is_empty() { "" } else { "*" })?;
            }
            for (position, factor) in factors.iter().enumerate() {
                write!(f, "{}{factor}", if position == 0 { "" } else { "*" })?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Symbol(name) => crate::text::symbol(name, f),
            Self::Call(function, parts) => {
                write!(f, "{}({}, {})", function.name(), parts[0], parts[1])
            }
            Self::IfEqual(parts) => {
                let [a, b, x, y] = &**parts;
                write!(f, "ifeq({a}, {b}, {x}, {y})")
            }
            Self::Broadcast(parts) => {
                f.write_str("broadcast(")?;
                for (position, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if position == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n() -> Dim {
        Dim::symbol("N")
    }

    #[test]
    fn equal_polynomials_are_equal() {
        assert_eq!(n() + n(), n() * Dim::Known(2));
        assert_eq!((n() - n()).known(), Some(0));
        let square = (n() + 1.into()) * (n() - 1.into());
        assert_eq!(square, n() * n() - 1.into());
        assert_eq!(square.to_string(), "-1 + N*N");
    }

    #[test]
    fn quotients_that_are_exact_stay_polynomials() {
        assert_eq!((n() * 4.into()).floor_div(&4.into()), n());
        assert_eq!((n() * 4.into()).floor_div(&n()).known(), Some(4));
        assert_eq!((n() * 4.into() + 2.into()).modulo(&2.into()).known(), Some(0));
        assert_eq!((n() + 1.into()).floor_div(&2.into()).to_string(), "floordiv(1 + N, 2)");
        assert_eq!(Dim::Known(-7).floor_div(&2.into()).known(), Some(-4));
        assert_eq!(Dim::Known(7).ceil_div(&2.into()).known(), Some(4));
        assert_eq!(Dim::Known(-7).modulo(&2.into()).known(), Some(1));
    }

    #[test]
    fn order_is_decided_where_the_difference_is_known() {
        assert_eq!(n().maximum(&(n() + 1.into())), n() + 1.into());
        assert_eq!(n().minimum(&(n() + 1.into())), n());
        assert_eq!(n().minimum(&3.into()), Dim::Known(3).minimum(&n()));
        assert_eq!(Dim::if_equal(&n(), &(n() + 1.into()), &1.into(), &2.into()).known(), Some(2));
    }

    #[test]
    fn what_is_never_negative_is_clamped_once() {
        let clamped = (n() - 3.into()).maximum(&0.into());
        assert_eq!(clamped.maximum(&0.into()), clamped);
        assert_eq!((clamped.clone() * 2.into()).maximum(&(-1).into()), clamped.clone() * 2.into());
        assert_eq!(clamped.minimum(&0.into()).known(), Some(0));
        assert_eq!(clamped.maximum(&1.into()).to_string(), "max(1, max(0, -3 + N))");
        // A symbol may be an element of a value, which may be negative.
        assert_eq!(n().maximum(&0.into()).to_string(), "max(0, N)");
    }

    #[test]
    fn parts_are_counted_as_written() {
        assert!(n().is_longer_than(1));
        assert!(!n().is_longer_than(2));
        let mut deep = n();
        for _ in 0..100 {
            deep = Dim::if_equal(&deep, &7.into(), &deep.clone(), &(deep.clone() + 1.into()));
        }
        assert!(deep.is_longer_than(1000));
    }

    #[test]
    fn broadcasting_is_idempotent_in_any_order() {
        let m = || Dim::symbol("M");
        let both = Dim::broadcast([n(), m()]);
        assert_eq!(both.to_string(), "broadcast(M, N)");
        assert_eq!(Dim::broadcast([m(), both.clone(), n(), 1.into()]), both);
        assert_eq!(Dim::broadcast([both.clone(), 7.into()]).known(), Some(7));
        assert_eq!(Dim::broadcast([n(), n().minimum(&512.into())]), n());
        assert_eq!(Dim::broadcast([n(), 1.into()]), n());
        let bind = |m: i64, n: i64| both.eval(&|name| Some(if name == "M" { m } else { n }));
        assert_eq!([bind(1, 5), bind(5, 1), bind(1, 1), bind(0, 1)], [5, 5, 1, 0].map(Some));
        let one = both.substitute(&|name| (name == "M").then(|| n() + 0.into()));
        assert_eq!(one, n());
    }

    #[test]
    fn values_follow_the_symbols() {
        let dim = (n() * n() + 3.into()).floor_div(&Dim::symbol("M"));
        let bind = |name: &str| match name {
            "N" => Some(5),
            "M" => Some(3),
            _ => None,
        };
        assert_eq!(dim.eval(&bind), Some(9));
        assert_eq!(dim.eval(&|_| None), None);
        assert_eq!(dim.eval(&|name| (name == "N").then_some(1).or(Some(0))), None);
        let half = dim.substitute(&|name| (name == "M").then_some(1.into()));
        assert_eq!(half, n() * n() + 3.into());
        assert_eq!(
            dim.symbols().into_iter().map(|s| s.to_string()).collect::<Vec<_>>(),
            ["M", "N"]
        );
    }
}
