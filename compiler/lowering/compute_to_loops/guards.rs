//! Conditions that hold in a range of a loop: the loop runs over the range, without the condition, so that it is vectorised.
use super::expression::depends_on;
use irc_tl::{Binary, Combine, Comparison, Compute, DType, Dim, Scalar};

/// A reduced value that counts only where conditions hold; elsewhere it is the neutral element.
pub(super) struct Guarded {
    pub(super) value: Scalar,
    /// Conditions that do not depend on the loop.
    pub(super) fixed: Vec<Scalar>,
    /// Differences that are at least 0 where the value counts.
    pub(super) ranges: Vec<Range>,
}

/// An operand whose elements are replaced where conditions hold, all in a range of a loop that follows from the loops around
/// it. Where the result is in the memory of the operand, nothing else is written.
///
/// The elements after the range may be zero instead of the operand's: where the result is in its memory, they are not
/// written either. The operand may have another extent along the loop, but not where both are in one memory.
pub(super) struct Update {
    pub(super) operand: usize,
    /// The loop.
    pub(super) axis: usize,
    /// The new elements.
    pub(super) new: Guarded,
}

impl Update {
    /// The update that a map is, of operands with these dimensions.
    pub(super) fn of(compute: &Compute, dims: &[&[Dim]]) -> Option<Self> {
        let Scalar::Select(parts) = &compute.body else { return None };
        let [condition, new, kept] = &**parts;
        let (old, end) = match kept {
            Scalar::Select(parts) => match &**parts {
                [
                    Scalar::Compare(Comparison::Lt, token, end),
                    old,
                    Scalar::Float(0, _) | Scalar::Int(0, _),
                ] => (old, Some((&**token, &**end))),
                _ => return None,
            },
            old => (old, None),
        };
        let Scalar::Load(operand, at) = old else { return None };
        let (rank, own) = (compute.dims.len(), *dims.get(*operand)?);
        let is_whole = compute.reduction.is_none()
            && own.len() == rank
            && *at == (0..rank).map(Scalar::Loop).collect::<Vec<_>>();
        let mut is_read = false;
        for part in [condition, new] {
            part.walk(&mut |part| {
                is_read |= matches!(part, Scalar::Load(read, _) if read == operand)
            });
        }
        if !is_whole || is_read {
            return None;
        }
        let around =
            |axis: usize, part: &Scalar| !(axis..rank).any(|inner| depends_on(part, inner));
        (0..rank).find_map(|axis| {
            let mut guarded = Guarded { value: new.clone(), fixed: vec![], ranges: vec![] };
            guarded.add(condition, axis)?;
            let parts = guarded.fixed.iter().chain(guarded.ranges.iter().map(|range| &range.first));
            let follows =
                !guarded.ranges.is_empty() && parts.into_iter().all(|it| around(axis, it));
            let others = own.iter().zip(&compute.dims).enumerate();
            let is_same = others
                .into_iter()
                .all(|(dim, (own, found))| own == found || dim == axis && end.is_some());
            // Zeros are after the range, and all before it is the operand's.
            let ends = end.is_none_or(|(token, end)| {
                let size = own[axis].known().map_or(Scalar::Size(own[axis].clone()), Scalar::index);
                let start = match end {
                    Scalar::Binary(Binary::Min, start, limit) if **limit == size => &**start,
                    start => start,
                };
                let first = Scalar::index(0) - start.clone();
                let begins = |range: &Range| range.step == 1 && range.first == first;
                *token == Scalar::Loop(axis) && guarded.ranges.iter().any(begins)
            });
            (follows && is_same && ends).then_some(Self { operand: *operand, axis, new: guarded })
        })
    }
}

/// The operand of a map whose elements it replaces, of operands with these dimensions: the result may be in its memory.
pub fn updated_operand(compute: &Compute, dims: &[&[Dim]]) -> Option<usize> {
    Update::of(compute, dims).map(|update| update.operand)
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
        Self::within(condition, value, loop_)
    }

    /// A value that counts where a condition holds, if it holds in a range of a loop.
    pub(super) fn within(condition: &Scalar, value: &Scalar, loop_: usize) -> Option<Self> {
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

    /// New rows from one on in a cache of 9, of which the result is as large as stated.
    fn updated(rows: i64, from: Scalar, old: usize) -> Option<usize> {
        let row = Scalar::Loop(1) - from;
        let is_new = row.clone().ge(Scalar::index(0)).and(row.clone().lt(Scalar::index(2)));
        let new = Scalar::load(1, [Scalar::Loop(0), row]);
        let kept = Scalar::load(old, [Scalar::Loop(0), Scalar::Loop(1)]);
        let compute = Compute::map([Dim::from(4), Dim::from(rows)], is_new.select(new, kept));
        let dims = [[4, 9], [4, 2], [4, 1]].map(|dims| dims.map(Dim::from));
        let dims: Vec<&[Dim]> = dims.iter().map(|dims| &dims[..]).collect();
        Update::of(&compute, &dims).map(|update| update.axis)
    }

    #[test]
    fn new_rows_of_a_cache_are_an_update() {
        let first = Scalar::load(2, [Scalar::Loop(0), Scalar::index(0)]);
        assert_eq!(updated(9, Scalar::index(3), 0), Some(1));
        assert_eq!(updated(9, first, 0), Some(1));
    }

    #[test]
    fn other_maps_are_no_update() {
        let inner = Scalar::load(2, [Scalar::Loop(1), Scalar::index(0)]);
        assert_eq!(updated(8, Scalar::index(3), 0), None, "the result is smaller");
        assert_eq!(updated(9, Scalar::index(3), 1), None, "the new rows are read too");
        assert_eq!(updated(9, inner, 0), None, "the first row depends on the row");
        let old = Scalar::load(0, [Scalar::index(0), Scalar::index(3)]);
        assert_eq!(updated(9, old, 0), None, "the first row is in the cache");
    }

    #[test]
    fn what_counts_outside_stays_guarded() {
        assert!(guarded(2, Scalar::Int(1, DType::U8)).is_none());
        assert!(guarded(0, Scalar::Int(0, DType::U8)).is_none());
    }
}
