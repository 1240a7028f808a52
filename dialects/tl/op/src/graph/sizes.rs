//! The known elements of small integer values, as sizes.
//!
//! Source formats compute shapes on tensors (`Shape`, `Gather`, `Concat`, ...). Evaluated
//! on sizes instead of numbers, this yields the sizes of dependent values.

use crate::compute::{Combine, Compute};
use crate::scalar::Scalar;
use crate::{Binary, Comparison, Unary};
use crate::{DType, Dim};

/// Values with at most this many elements are tracked.
pub(super) const FOLLOWED: i64 = 256;

/// Maximum number of evaluations of the expression of one op.
const MAX_STEPS: i64 = 4096;

/// What is known about the elements of a value.
pub(super) struct Known<'k> {
    /// The elements, row-major; `None` if unknown.
    pub elements: Option<&'k [Dim]>,
    /// The extents.
    pub shape: &'k [Dim],
}

/// The elements of an integer result of known shape; `None` if one cannot be determined.
pub(super) fn evaluate(compute: &Compute, operands: &[Known<'_>]) -> Option<Vec<Dim>> {
    let shape: Option<Vec<i64>> = compute.dims.iter().map(Dim::known).collect();
    let shape = shape?;
    let count = shape.iter().try_fold(1i64, |count, dim| count.checked_mul(*dim))?;
    let over: &[Dim] = compute.reduction.as_ref().map_or(&[], |reduction| &reduction.dims);
    let over: Option<Vec<i64>> = over.iter().map(Dim::known).collect();
    let over = over?;
    let iterations = over.iter().try_fold(1i64, |count, dim| count.checked_mul(*dim))?;
    let is_followed = |count: i64| (0..=FOLLOWED).contains(&count);
    if !is_followed(count) || !is_followed(iterations) || count * iterations > MAX_STEPS {
        return None;
    }
    let element = |index: i64| {
        let mut at = indices(index, &shape);
        let Some(reduction) = &compute.reduction else {
            return value(&compute.body, &at, operands);
        };
        let parallel = at.len();
        let mut joined: Option<Dim> = None;
        for iteration in 0..iterations {
            at.truncate(parallel);
            at.extend(indices(iteration, &over));
            let next = value(&compute.body, &at, operands)?;
            joined = Some(match joined {
                None => next,
                Some(joined) => combine(reduction.combine, joined, next),
            });
        }
        joined
    };
    (0..count).map(element).collect()
}

fn indices(mut linear: i64, shape: &[i64]) -> Vec<i64> {
    let mut at = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        at[axis] = linear % shape[axis];
        linear /= shape[axis];
    }
    at
}

fn combine(how: Combine, left: Dim, right: Dim) -> Dim {
    match how {
        Combine::Sum => left + right,
        Combine::Product => left * right,
        Combine::Max => left.maximum(&right),
        Combine::Min => left.minimum(&right),
    }
}

fn value(scalar: &Scalar, at: &[i64], operands: &[Known<'_>]) -> Option<Dim> {
    let part = |scalar: &Scalar| value(scalar, at, operands);
    match scalar {
        Scalar::Int(number, _) => Some(Dim::Known(*number)),
        Scalar::Loop(index) => Some(Dim::Known(at[*index])),
        Scalar::Size(dim) => Some(dim.clone()),
        Scalar::Load(operand, index) => load(&operands[*operand], index, at, operands),
        Scalar::Cast(to, _, x) if to.is_integer() && to.size() >= 4 => part(x),
        Scalar::Cast(DType::Bool, _, x) => truth(Comparison::Ne, &part(x)?, &Dim::Known(0)),
        Scalar::Unary(function, x) => unary(*function, part(x)?),
        Scalar::Binary(function, x, y) => binary(*function, part(x)?, part(y)?),
        Scalar::Compare(comparison, x, y) => truth(*comparison, &part(x)?, &part(y)?),
        Scalar::Select(parts) => select(parts, at, operands),
        Scalar::Float(..) | Scalar::Cast(..) => None,
    }
}

fn load(from: &Known<'_>, index: &[Scalar], at: &[i64], operands: &[Known<'_>]) -> Option<Dim> {
    let mut linear = 0;
    for (index, extent) in index.iter().zip(from.shape) {
        let (index, extent) = (value(index, at, operands)?.known()?, extent.known()?);
        if !(0..extent).contains(&index) {
            return None;
        }
        linear = linear * extent + index;
    }
    from.elements?.get(usize::try_from(linear).ok()?).cloned()
}

fn unary(function: Unary, x: Dim) -> Option<Dim> {
    match function {
        Unary::Neg => Some(-x),
        Unary::Abs => Some(x.maximum(&-x.clone())),
        Unary::Relu => Some(x.maximum(&0.into())),
        _ => None,
    }
}

fn binary(function: Binary, x: Dim, y: Dim) -> Option<Dim> {
    if let (Some(x), Some(y)) = (x.known(), y.known()) {
        let value = function.integer(i128::from(x), i128::from(y), DType::I64);
        return i64::try_from(value).ok().map(Dim::Known);
    }
    match function {
        Binary::Add => Some(x + y),
        Binary::Sub => Some(x - y),
        Binary::Mul => Some(x * y),
        Binary::Max => Some(x.maximum(&y)),
        Binary::Min => Some(x.minimum(&y)),
        // For sizes, which are nonnegative, and positive divisors, truncating and flooring agree.
        Binary::Div if positive(&y) => Some(x.floor_div(&y)),
        Binary::Rem | Binary::Mod if positive(&y) => Some(x.modulo(&y)),
        _ => None,
    }
}

fn positive(dim: &Dim) -> bool {
    dim.known().is_none_or(|value| value > 0)
}

/// Whether a comparison holds, if the difference determines it.
fn truth(comparison: Comparison, x: &Dim, y: &Dim) -> Option<Dim> {
    let difference = (x.clone() - y.clone()).known();
    if let Some(difference) = difference {
        return Some(Dim::Known(i64::from(comparison.holds(difference, 0))));
    }
    match comparison {
        Comparison::Eq => Some(Dim::if_equal(x, y, &1.into(), &0.into())),
        Comparison::Ne => Some(Dim::if_equal(x, y, &0.into(), &1.into())),
        // A size is never negative.
        Comparison::Lt if y.is(0) && is_size(x) => Some(Dim::Known(0)),
        Comparison::Ge if y.is(0) && is_size(x) => Some(Dim::Known(1)),
        _ => None,
    }
}

/// Whether an expression is a sum of products of symbols with positive coefficients.
fn is_size(dim: &Dim) -> bool {
    let symbol = |factor: &crate::Factor| matches!(factor, crate::Factor::Symbol(_));
    dim.terms().into_iter().all(|(by, factors)| by >= 0 && factors.iter().all(symbol))
}

fn select(parts: &[Scalar; 3], at: &[i64], operands: &[Known<'_>]) -> Option<Dim> {
    let [condition, yes, no] = parts;
    let condition = value(condition, at, operands)?;
    match condition.known() {
        Some(0) => value(no, at, operands),
        Some(_) => value(yes, at, operands),
        None => {
            let (yes, no) = (value(yes, at, operands)?, value(no, at, operands)?);
            Some(Dim::if_equal(&condition, &0.into(), &no, &yes))
        }
    }
}
