//! The classifiers of pairs of classes that make up a support vector classifier.

use super::super::linear::list;
use super::coupling;
use crate::context::{Context, LowerError};
use irc_tl::{Binary, Combine, Comparison, Compute, DType, Dim, Scalar, Unary, ValueId};

/// One classifier per pair of classes, in lexicographic order.
pub(super) struct Pairs<'a> {
    classes: usize,
    /// The number of support vectors of each class, and the position of its first.
    counts: Vec<i64>,
    starts: Vec<i64>,
    /// By row, which is another class, and support vector: the row of class `j` in the coefficients of the
    /// vectors of class `i` is `j` if it is before `i`, otherwise `j - 1`.
    coefficients: &'a [f32],
    rho: &'a [f32],
}

impl<'a> Pairs<'a> {
    pub(super) fn of(
        classes: usize,
        counts: &[i64],
        coefficients: &'a [f32],
        rho: &'a [f32],
    ) -> Result<Self, LowerError> {
        let expected = |name: &str, expected: usize, found: usize| {
            let message = format!("expected {expected} elements in `{name}`, found {found}");
            Err(LowerError::invalid(message))
        };
        if counts.len() != classes {
            return expected("vectors_per_class", classes, counts.len());
        }
        let mut starts = vec![];
        let mut total = 0i64;
        for count in counts {
            starts.push(total);
            let next = total.checked_add(*count).filter(|_| *count >= 0);
            let wrong =
                || LowerError::invalid(format!("expected counts of vectors, found {count}"));
            total = next.ok_or_else(wrong)?;
        }
        let all = (classes - 1).saturating_mul(total as usize);
        if coefficients.len() < all {
            return expected("coefficients", all, coefficients.len());
        }
        let pairs = classes * (classes - 1) / 2;
        if rho.len() < pairs {
            return expected("rho", pairs, rho.len());
        }
        let (coefficients, rho) = (&coefficients[..all], &rho[..pairs]);
        Ok(Self { classes, counts: counts.to_vec(), starts, coefficients, rho })
    }

    pub(super) fn vectors(&self) -> usize {
        self.coefficients.len() / (self.classes - 1)
    }

    fn count(&self) -> usize {
        self.rho.len()
    }

    /// The score of each row and pair, which is positive for the first class: `f64[rows, pairs]`.
    pub(super) fn scores(
        &self,
        cx: &mut Context<'_>,
        kernels: ValueId,
    ) -> Result<ValueId, LowerError> {
        let rows = cx.b.dims(kernels)[0].clone();
        let (classes, vectors) = (self.classes as i64, self.vectors() as i64);
        let coefficients = list(cx, self.coefficients)?;
        let (starts, counts) = (cx.b.integers(&self.starts)?, cx.b.integers(&self.counts)?);
        // By row of features, class of the vectors and row of coefficients.
        let [class, row, place] = [Scalar::Loop(1), Scalar::Loop(2), Scalar::Loop(3)];
        let vector = Scalar::load(2, [class.clone()]) + place.clone();
        let kernel = Scalar::load(0, [Scalar::Loop(0), vector.clone()]);
        let at = row * Scalar::index(vectors) + vector;
        let summand = (kernel * Scalar::load(1, [at])).cast(DType::F64);
        let is_own = place.lt(Scalar::load(3, [class]));
        let body = is_own.select(summand, Scalar::float(0.0, DType::F64));
        let most = self.counts.iter().copied().max().unwrap_or(0);
        let dims = [rows.clone(), Dim::Known(classes), Dim::Known(classes - 1)];
        let sums = Compute::reduce(dims, Combine::Sum, [Dim::Known(most)], body);
        let sums = cx.b.compute(sums, &[kernels, coefficients, starts, counts])?;

        let (mut firsts, mut seconds) = (vec![], vec![]);
        for first in 0..classes {
            for second in first + 1..classes {
                firsts.push(first);
                seconds.push(second);
            }
        }
        let (firsts, seconds) = (cx.b.integers(&firsts)?, cx.b.integers(&seconds)?);
        let rho = list(cx, self.rho)?;
        let pair = Scalar::Loop(1);
        let of_pair = |operand: usize| Scalar::load(operand, [pair.clone()]);
        let of = |class: Scalar, row: Scalar| Scalar::load(0, [Scalar::Loop(0), class, row]);
        let own = of(of_pair(1), of_pair(2) - Scalar::index(1));
        let other = of(of_pair(2), of_pair(1));
        let body = own + other + of_pair(3).cast(DType::F64);
        let dims = [rows, Dim::Known(self.count() as i64)];
        Ok(cx.b.compute(Compute::map(dims, body), &[sums, firsts, seconds, rho])?)
    }

    /// The number of pairs that each class wins.
    pub(super) fn votes(
        &self,
        cx: &mut Context<'_>,
        scores: ValueId,
    ) -> Result<ValueId, LowerError> {
        let rows = cx.b.dims(scores)[0].clone();
        let classes = self.classes as i64;
        let [class, other] = [Scalar::Loop(1), Scalar::Loop(2)];
        let zero = Scalar::float(0.0, DType::F64);
        let score = Scalar::load(0, [Scalar::Loop(0), pair_of(&class, &other, classes)]);
        let first_wins = score.compare(Comparison::Gt, zero).cast(DType::I64);
        let is_first = class.clone().lt(other.clone());
        let wins = is_first.select(first_wins.clone(), Scalar::index(1) - first_wins);
        let body = class.equals(other).select(Scalar::index(0), wins);
        let dims = [rows, Dim::Known(classes)];
        let votes = Compute::reduce(dims, Combine::Sum, [Dim::Known(classes)], body);
        Ok(cx.b.compute(votes, &[scores])?)
    }

    /// The probability of each class, from sigmoids of the scores with parameters `a` and `b`.
    pub(super) fn probabilities(
        &self,
        cx: &mut Context<'_>,
        scores: ValueId,
        a: &[f32],
        b: &[f32],
    ) -> Result<ValueId, LowerError> {
        let pairs = self.count();
        for (name, found) in [("prob_a", a.len()), ("prob_b", b.len())] {
            if found < pairs {
                let message = format!("expected {pairs} elements in `{name}`, found {found}");
                return Err(LowerError::invalid(message));
            }
        }
        let (a, b) = (list(cx, &a[..pairs])?, list(cx, &b[..pairs])?);
        let rows = cx.b.dims(scores)[0].clone();
        let classes = self.classes as i64;
        let number = |value: f32| Scalar::float(f64::from(value), DType::F32);
        let [class, other] = [Scalar::Loop(1), Scalar::Loop(2)];
        let pair = pair_of(&class, &other, classes);
        let score = Scalar::load(0, [Scalar::Loop(0), pair.clone()]);
        let scaled = score * Scalar::load(1, [pair.clone()]) + Scalar::load(2, [pair]);
        let probability = number(1.0) - scaled.unary(Unary::Sigmoid);
        let least = 1.0e-7_f32;
        let probability = probability.max(number(least)).min(number(1.0 - least));
        let is_first = class.clone().lt(other.clone());
        let body = is_first.select(probability.clone(), number(1.0) - probability);
        let body = class.equals(other).select(number(0.0), body);
        let dims = [rows, Dim::Known(classes), Dim::Known(classes)];
        let pairwise = cx.b.compute(Compute::map(dims, body), &[scores, a, b])?;
        coupling::couple(cx, pairwise, classes)
    }
}

/// The position of the pair of two different classes.
fn pair_of(class: &Scalar, other: &Scalar, classes: i64) -> Scalar {
    let first = class.clone().min(other.clone());
    let second = class.clone().max(other.clone());
    // The pairs of the classes before the first one, then those of the first.
    let before = first.clone() * (Scalar::index(2 * classes - 1) - first.clone());
    let before = before.binary(Binary::Div, Scalar::index(2));
    before + second - first - Scalar::index(1)
}
