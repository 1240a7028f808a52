//! Conditions of a reduction that hold in a range of a loop: the loop runs over the range, without the condition, so that it
//! is vectorised.
use super::expression::depends_on;
use irc_tl::{Binary, Combine, Comparison, DType, Scalar};

/// A reduced value that counts only where conditions hold; elsewhere it is the neutral element.
pub(super) struct Guarded {
    pub(super) value: Scalar,
    /// Conditions that do not depend on the loop.
    pub(super) fixed: Vec<Scalar>,
    /// Differences that are at least 0 where the value counts.
    pub(super) ranges: Vec<Range>,
}

/// A difference: its value in iteration 0, and what each iteration adds to it, which is not 0.
pub(super) struct Range {
    pub(super) first: Scalar,
    pub(super) step: i64,
}

impl Guarded {
    /// What a reduction of `body` guards, if each condition that depends on the loop holds in a range of it.
    pub(super) fn of(body: &Scalar, combine: Combine, dtype: DType, loop_: usize) -> Option<Self> {
        if let Scalar::Cast(to, rounding, inner) = body {
            // A zero of another type is a zero, and so is the neutral element of sums.
            let inner = Self::of(inner, combine, inner_type(inner)?, loop_)?;
            let value = Scalar::Cast(*to, *rounding, inner.value.into());
            return (combine == Combine::Sum).then_some(Self { value, ..inner });
        }
        let Scalar::Select(parts) = body else { return None };
        let [condition, value, otherwise] = &**parts;
        if *otherwise != combine.neutral(dtype).scalar(dtype) {
            return None;
        }
        let mut guarded = Self { value: value.clone(), fixed: vec![], ranges: vec![] };
        guarded.add(condition, loop_)?;
        (!guarded.ranges.is_empty()).then_some(guarded)
    }

    fn add(&mut self, condition: &Scalar, loop_: usize) -> Option<()> {
        if !depends_on(condition, loop_) {
            self.fixed.push(condition.clone());
            return Some(());
        }
        match condition {
            Scalar::Binary(Binary::And, x, y) => {
                self.add(x, loop_)?;
                self.add(y, loop_)
            }
            Scalar::Compare(comparison, x, y) => {
                let difference = |x: &Scalar, y: &Scalar| x.clone() - y.clone();
                let one = || Scalar::index(1);
                let difference = match comparison {
                    Comparison::Ge => difference(x, y),
                    Comparison::Gt => difference(x, y) - one(),
                    Comparison::Le => difference(y, x),
                    Comparison::Lt => difference(y, x) - one(),
                    Comparison::Eq | Comparison::Ne => return None,
                };
                let step = step_of(&difference, loop_)?;
                let first = difference
                    .replace(&mut |part| (*part == Scalar::Loop(loop_)).then(|| Scalar::index(0)));
                self.ranges.push(Range { first, step });
                (step != 0).then_some(())
            }
            _ => None,
        }
    }
}

/// What each iteration of a loop adds to an index. `None` if that is not always the same.
fn step_of(index: &Scalar, loop_: usize) -> Option<i64> {
    if *index == Scalar::Loop(loop_) {
        return Some(1);
    }
    if !depends_on(index, loop_) {
        return Some(0);
    }
    let Scalar::Binary(function, x, y) = index else { return None };
    let steps = (step_of(x, loop_)?, step_of(y, loop_)?);
    match (function, &**x, &**y) {
        (Binary::Add, ..) => steps.0.checked_add(steps.1),
        (Binary::Sub, ..) => steps.0.checked_sub(steps.1),
        (Binary::Mul, Scalar::Int(by, _), _) => steps.1.checked_mul(*by),
        (Binary::Mul, _, Scalar::Int(by, _)) => steps.0.checked_mul(*by),
        _ => None,
    }
}

/// The type of an expression that states it itself.
fn inner_type(scalar: &Scalar) -> Option<DType> {
    match scalar {
        Scalar::Select(parts) => match &parts[2] {
            Scalar::Int(_, dtype) | Scalar::Float(_, dtype) => Some(*dtype),
            _ => None,
        },
        Scalar::Cast(dtype, ..) => Some(*dtype),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a window of 3 with pads of 1 is in a row of `size`, read backwards if `step` is negative.
    fn guarded(step: i64, otherwise: Scalar) -> Option<Guarded> {
        let at = Scalar::Loop(0) * Scalar::index(step) + Scalar::Loop(1) - Scalar::index(1);
        let inside = at.clone().ge(Scalar::index(0)).and(at.clone().lt(Scalar::index(9)));
        let body = inside.select(Scalar::load(0, [at]), otherwise);
        Guarded::of(&body, Combine::Max, DType::U8, 0)
    }

    #[test]
    fn conditions_of_pads_are_ranges() {
        for step in [2, -1] {
            let found = guarded(step, Scalar::Int(0, DType::U8)).expect("a range");
            let steps: Vec<i64> = found.ranges.iter().map(|range| range.step).collect();
            assert_eq!((steps, found.fixed.len()), (vec![step, -step], 0));
        }
    }

    #[test]
    fn what_counts_outside_stays_guarded() {
        assert!(guarded(2, Scalar::Int(1, DType::U8)).is_none());
        assert!(guarded(0, Scalar::Int(0, DType::U8)).is_none());
    }
}
