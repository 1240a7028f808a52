//! Emits the ops that compute sizes.
//!
//! Sizes wrap around; [`Emit::exact`] also computes whether they did. Numbers of bytes do not wrap around:
//! they saturate at [`MAX_BYTES`], which no host can allocate.
use super::emit::{Emit, Predicate};
use irc_mlir::Value;
use irc_mlir::ops::arith;
use irc_tl::{Dim, Factor, SizeFunction};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The values of symbols.
pub type Environment<'c, 'a> = BTreeMap<Arc<str>, Value<'c, 'a>>;

/// The largest number of bytes, to which larger ones saturate: more than an address space has, and so small
/// that the sum of two fits an `i64`.
pub const MAX_BYTES: i64 = 1 << 62;

/// Whether the computation of a size can overflow `i64`.
pub fn may_overflow(dim: &Dim) -> bool {
    let terms = dim.terms();
    let within = |factor: &Factor| match factor {
        Factor::Symbol(_) => false,
        Factor::Call(_, parts) => parts.iter().any(may_overflow),
        Factor::IfEqual(parts) => parts.iter().any(may_overflow),
        Factor::Broadcast(parts) => parts.iter().any(may_overflow),
    };
    let is_computed = |(by, factors): &(i64, &[Factor])| match factors {
        [] => false,
        [factor] => *by != 1 || within(factor),
        _ => true,
    };
    terms.len() > 1 || terms.iter().any(is_computed)
}

/// The conditions under which a size does not overflow; `None` if they are not needed.
type Exact<'x, 'c, 'a> = Option<&'x mut Vec<Value<'c, 'a>>>;

impl<'c: 'a, 'a> Emit<'c, 'a> {
    /// The value of a size.
    pub fn size(&self, dim: &Dim, symbols: &Environment<'c, 'a>) -> Value<'c, 'a> {
        self.sum(dim, symbols, None)
    }

    /// The value of a size, and whether it did not overflow; `None` if it cannot.
    pub fn exact(
        &self,
        dim: &Dim,
        symbols: &Environment<'c, 'a>,
    ) -> (Value<'c, 'a>, Option<Value<'c, 'a>>) {
        let mut exact = vec![];
        let size = self.sum(dim, symbols, Some(&mut exact));
        (size, self.all(exact))
    }

    /// A size, at least zero.
    pub fn extent(&self, dim: &Dim, symbols: &Environment<'c, 'a>) -> Value<'c, 'a> {
        let size = self.size(dim, symbols);
        match dim.known() {
            Some(_) => size,
            None => self.binary(arith::MAXSI, size, self.index(0)),
        }
    }

    /// The size in bytes of elements of `each` bytes, at most [`MAX_BYTES`].
    pub fn bytes_of(&self, extents: &[Value<'c, 'a>], each: i64) -> Value<'c, 'a> {
        let most = self.index(MAX_BYTES);
        extents.iter().fold(self.index(each), |bytes, extent| {
            let fits = self.compare(Predicate::Ule, bytes, self.quotient(most, *extent));
            let product = self.binary(arith::MULI, bytes, *extent);
            self.select(fits, product, most)
        })
    }

    /// The sum of numbers of bytes, at most [`MAX_BYTES`].
    pub fn sum_of_bytes(&self, left: Value<'c, 'a>, right: Value<'c, 'a>) -> Value<'c, 'a> {
        let sum = self.binary(arith::ADDI, left, right);
        self.binary(arith::MINUI, sum, self.index(MAX_BYTES))
    }

    fn sum(
        &self,
        dim: &Dim,
        symbols: &Environment<'c, 'a>,
        mut exact: Exact<'_, 'c, 'a>,
    ) -> Value<'c, 'a> {
        let mut sum = None;
        for (by, factors) in dim.terms() {
            let mut product = None;
            for factor in factors {
                let factor = self.factor(factor, symbols, exact.as_deref_mut());
                product = Some(self.multiply(product, factor, exact.as_deref_mut()));
            }
            let by = (by != 1 || product.is_none()).then(|| self.index(by));
            let term = match (by, product) {
                (Some(by), _) => self.multiply(product, by, exact.as_deref_mut()),
                (None, Some(product)) => product,
                (None, None) => unreachable!("a term without factors is a number"),
            };
            sum = Some(self.add(sum, term, exact.as_deref_mut()));
        }
        sum.unwrap_or_else(|| self.index(0))
    }

    fn factor(
        &self,
        factor: &Factor,
        symbols: &Environment<'c, 'a>,
        mut exact: Exact<'_, 'c, 'a>,
    ) -> Value<'c, 'a> {
        match factor {
            Factor::Symbol(name) => match symbols.get(name) {
                Some(value) => *value,
                None => unreachable!("steps stand behind what gives '{name}' a value"),
            },
            Factor::Call(function, parts) => {
                let [left, right] = [&parts[0], &parts[1]]
                    .map(|part| self.sum(part, symbols, exact.as_deref_mut()));
                match function {
                    SizeFunction::Min => self.binary(arith::MINSI, left, right),
                    SizeFunction::Max => self.binary(arith::MAXSI, left, right),
                    SizeFunction::FloorDiv => {
                        self.binary(arith::FLOORDIVSI, left, self.divisor(right))
                    }
                    SizeFunction::Mod => {
                        let divisor = self.divisor(right);
                        let quotient = self.binary(arith::FLOORDIVSI, left, divisor);
                        let whole = self.binary(arith::MULI, quotient, divisor);
                        self.binary(arith::SUBI, left, whole)
                    }
                }
            }
            Factor::IfEqual(parts) => {
                let [a, b] = [&parts[0], &parts[1]]
                    .map(|part| self.sum(part, symbols, exact.as_deref_mut()));
                let equal = self.compare(Predicate::Eq, a, b);
                let [(x, x_exact), (y, y_exact)] = [&parts[2], &parts[3]].map(|part| match exact {
                    Some(_) => self.exact(part, symbols),
                    None => (self.size(part, symbols), None),
                });
                if let (Some(exact), true) = (exact, x_exact.or(y_exact).is_some()) {
                    let [x, y] =
                        [x_exact, y_exact].map(|exact| exact.unwrap_or_else(|| self.flag(true)));
                    exact.push(self.select(equal, x, y));
                }
                self.select(equal, x, y)
            }
            Factor::Broadcast(parts) => {
                let mut joined = self.index(1);
                for part in parts {
                    let extent = self.sum(part, symbols, exact.as_deref_mut());
                    let is_one = self.compare(Predicate::Eq, joined, self.index(1));
                    joined = self.select(is_one, extent, joined);
                }
                joined
            }
        }
    }

    fn add(
        &self,
        left: Option<Value<'c, 'a>>,
        right: Value<'c, 'a>,
        exact: Exact<'_, 'c, 'a>,
    ) -> Value<'c, 'a> {
        let Some(left) = left else { return right };
        let sum = self.binary(arith::ADDI, left, right);
        if let Some(exact) = exact {
            // On overflow, the sign of the sum differs from the signs of both operands.
            let [left, right] = [left, right].map(|part| self.binary(arith::XORI, part, sum));
            let both = self.binary(arith::ANDI, left, right);
            exact.push(self.compare(Predicate::Ge, both, self.index(0)));
        }
        sum
    }

    fn multiply(
        &self,
        left: Option<Value<'c, 'a>>,
        right: Value<'c, 'a>,
        exact: Exact<'_, 'c, 'a>,
    ) -> Value<'c, 'a> {
        let Some(left) = left else { return right };
        if let Some(exact) = exact {
            let [left, right] = [left, right].map(|part| self.magnitude(part));
            let most = self.quotient(self.index(i64::MAX), right);
            exact.push(self.compare(Predicate::Ule, left, most));
        }
        self.binary(arith::MULI, left, right)
    }

    /// The magnitude, as an unsigned number.
    fn magnitude(&self, value: Value<'c, 'a>) -> Value<'c, 'a> {
        let negated = self.binary(arith::SUBI, self.index(0), value);
        self.binary(arith::MAXSI, value, negated)
    }

    /// The quotient of unsigned numbers; division by zero returns the dividend.
    fn quotient(&self, left: Value<'c, 'a>, right: Value<'c, 'a>) -> Value<'c, 'a> {
        let right = self.binary(arith::MAXUI, right, self.index(1));
        self.binary(arith::DIVUI, left, right)
    }

    /// Division by zero traps: a size that divides by zero divides by one instead.
    fn divisor(&self, value: Value<'c, 'a>) -> Value<'c, 'a> {
        let zero = self.compare(Predicate::Eq, value, self.index(0));
        self.select(zero, self.index(1), value)
    }

    /// Whether all conditions hold; `None` if there are none.
    fn all(&self, conditions: Vec<Value<'c, 'a>>) -> Option<Value<'c, 'a>> {
        conditions.into_iter().reduce(|left, right| self.binary(arith::ANDI, left, right))
    }
}
