//! Comparison of tensors.

use crate::{DType, Tensor};
use std::fmt;

/// The permitted difference of an element:
/// `|actual - expected| <= abs + rel * |expected| + rms * R`, where `R` is the root mean square of
/// the finite expected elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Absolute part.
    pub abs: f64,
    /// Part relative to the expected element.
    pub rel: f64,
    /// Part relative to the size of the whole expected tensor.
    pub rms: f64,
}

impl Tolerance {
    /// Exact equality (`-0.0` equals `0.0`).
    pub const EXACT: Self = Self { abs: 0.0, rel: 0.0, rms: 0.0 };

    /// The documented tolerance of an element type, for a whole program against an independent
    /// evaluation of it. Kernels may reorder sums and keep intermediates wider than the reference
    /// does. The error of a sum follows the size of its terms, not of the sum: where terms cancel,
    /// an element is far smaller than its error, so the magnitude of the whole tensor counts too.
    ///
    /// | type | rel = rms | abs |
    /// |---|---|---|
    /// | `f64` | 1e-11 | 1e-15 |
    /// | `f32` | 1e-4 | 1e-8 |
    /// | `f16` | 1e-2 | 1e-6 |
    /// | `bf16` | 4e-2 | 1e-6 |
    /// | integers, bool, strings, floats of 8 bits and fewer | 0 | 0 |
    ///
    /// An infinity on one side only counts as the largest finite number of its type.
    pub const fn of(dtype: DType) -> Self {
        let (rel, abs) = match dtype {
            DType::F64 => (1e-11, 1e-15),
            DType::F32 => (1e-4, 1e-8),
            DType::F16 => (1e-2, 1e-6),
            DType::BF16 => (4e-2, 1e-6),
            _ => return Self::EXACT,
        };
        Self { abs, rel, rms: rel }
    }

    /// The same with `rms` converted to an absolute part, for a tensor of these elements.
    fn scaled_to(self, expected: &[f64]) -> Self {
        let squares = expected.iter().filter(|value| value.is_finite()).map(|value| value * value);
        let (count, sum) =
            squares.fold((0u64, 0.0), |(count, sum), square| (count + 1, sum + square));
        let size = if count == 0 { 0.0 } else { (sum / count as f64).sqrt() };
        Self { abs: self.abs + self.rms * size, rms: 0.0, ..self }
    }

    fn admits(self, expected: f64, actual: f64) -> bool {
        let same = expected == actual || expected.is_nan() && actual.is_nan();
        // An infinite expected value matches only itself, not everything within `rel * inf`.
        same || expected.is_finite()
            && (actual - expected).abs() <= self.abs + self.rel * expected.abs()
    }
}

/// The result of [`compare`].
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Largest absolute difference; infinite if one side is not finite and the other differs.
    pub max_abs: f64,
    /// Largest difference relative to the expected value, over expected values other than zero; infinite if only
    /// elements differ that were expected to be zero.
    pub max_rel: f64,
    /// Number of elements outside the tolerance.
    pub mismatches: usize,
    /// Number of elements compared.
    pub elements: usize,
    /// The first element outside the tolerance.
    pub first: Option<Mismatch>,
}

/// One element outside the tolerance.
#[derive(Debug, Clone, PartialEq)]
pub struct Mismatch {
    /// Its index along each dimension.
    pub index: Vec<i64>,
    /// The expected value: a number, or a string in quotes.
    pub expected: String,
    /// The actual value.
    pub actual: String,
}

impl Comparison {
    /// Whether every element is within the tolerance.
    pub fn is_match(&self) -> bool {
        self.mismatches == 0
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { max_abs, max_rel, mismatches, elements, first } = self;
        write!(f, "{mismatches} of {elements} elements differ, ")?;
        write!(f, "largest difference {max_abs:.3e} ({max_rel:.3e} relative)")?;
        let Some(Mismatch { index, expected, actual }) = first else { return Ok(()) };
        write!(f, ", first at {index:?}: expected {expected}, found {actual}")
    }
}

/// Compares element by element; NaN equals NaN.
///
/// # Errors
/// A message if the types differ: then no elements are compared.
pub fn compare(
    expected: &Tensor,
    actual: &Tensor,
    tolerance: Tolerance,
) -> Result<Comparison, String> {
    if expected.ty() != actual.ty() {
        return Err(format!("types differ: expected {}, found {}", expected.ty(), actual.ty()));
    }
    if let (Some(left), Some(right)) = (expected.to_strings(), actual.to_strings()) {
        return Ok(tally(expected, left.iter().zip(&right), |(a, b)| Pair {
            expected: quoted(a),
            actual: quoted(b),
            size: 1.0,
            distance: f64::from(u8::from(a != b)),
            admitted: a == b,
        }));
    }
    if let (Some(left), Some(right)) = (expected.to_i128(), actual.to_i128())
        && tolerance == Tolerance::EXACT
    {
        return Ok(tally(expected, left.iter().zip(&right), |(a, b)| {
            let distance = a.abs_diff(*b) as f64;
            Pair { expected: *a, actual: *b, size: *a as f64, distance, admitted: a == b }
        }));
    }
    let (left, right) = (expected.to_f64(), actual.to_f64());
    let tolerance = tolerance.scaled_to(&left);
    let largest = expected.dtype().largest_float();
    Ok(tally(expected, left.iter().zip(&right), |(&a, &b)| {
        let (near, found) = at_limit(a, b, largest);
        let admitted = tolerance.admits(near, found);
        Pair { expected: a, actual: b, size: a, distance: distance(near, found), admitted }
    }))
}

/// Replaces an infinity on one side only by the largest finite number: which side of the limit an
/// element rounds to is a matter of tolerance like any other rounding.
fn at_limit(expected: f64, actual: f64, largest: Option<f64>) -> (f64, f64) {
    let finite = |value: f64| match largest {
        Some(largest) if value.is_infinite() => largest.copysign(value),
        _ => value,
    };
    if expected.is_infinite() == actual.is_infinite() {
        return (expected, actual);
    }
    (finite(expected), finite(actual))
}

struct Pair<T> {
    expected: T,
    actual: T,
    /// The expected number, to which a difference is relative; 1 for a string.
    size: f64,
    distance: f64,
    admitted: bool,
}

/// A string as text, of bounded length.
fn quoted(text: &[u8]) -> String {
    const MAX_SHOWN: usize = 80;
    let shown = String::from_utf8_lossy(&text[..text.len().min(MAX_SHOWN)]);
    let more = if text.len() > MAX_SHOWN { "..." } else { "" };
    format!("{shown:?}{more}")
}

fn tally<I: Iterator, T: ToString>(
    tensor: &Tensor,
    items: I,
    judge: impl Fn(I::Item) -> Pair<T>,
) -> Comparison {
    let elements = tensor.elements();
    let mut found = Comparison { max_abs: 0.0, max_rel: 0.0, mismatches: 0, elements, first: None };
    for (linear, item) in items.enumerate() {
        let Pair { expected, actual, size, distance, admitted } = judge(item);
        found.max_abs = found.max_abs.max(distance);
        if size != 0.0 && distance > 0.0 {
            found.max_rel = found.max_rel.max(relative(distance, size));
        }
        if !admitted {
            found.mismatches += 1;
            found.first.get_or_insert_with(|| Mismatch {
                index: unravel(linear, tensor.shape()),
                expected: expected.to_string(),
                actual: actual.to_string(),
            });
        }
    }
    if found.max_abs > 0.0 && found.max_rel == 0.0 {
        found.max_rel = f64::INFINITY;
    }
    found
}

/// `|a - b|`; 0 for equal values and two NaNs, infinite if only one is NaN.
fn distance(a: f64, b: f64) -> f64 {
    if a == b || a.is_nan() && b.is_nan() {
        return 0.0;
    }
    let distance = (a - b).abs();
    if distance.is_nan() { f64::INFINITY } else { distance }
}

fn relative(distance: f64, expected: f64) -> f64 {
    if distance.is_infinite() { f64::INFINITY } else { distance / expected.abs() }
}

fn unravel(mut linear: usize, shape: &[i64]) -> Vec<i64> {
    let mut index = vec![0; shape.len()];
    for (slot, &dim) in index.iter_mut().zip(shape).rev() {
        *slot = (linear % dim as usize) as i64;
        linear /= dim as usize;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Tensor {
        Tensor::from_values([values.len() as i64 / 2, 2], values).expect("a tensor")
    }

    #[test]
    fn a_difference_from_zeros_alone_is_infinite_relative_to_them() {
        let (zeros, other) = (f32s(&[0.0, 0.0]), f32s(&[0.0, 0.5]));
        let found = compare(&zeros, &other, Tolerance::EXACT).expect("equal types");
        assert_eq!((found.max_abs, found.max_rel), (0.5, f64::INFINITY));
        let same = compare(&zeros, &zeros, Tolerance::EXACT).expect("equal types");
        assert_eq!((same.max_abs, same.max_rel), (0.0, 0.0));
        let (expected, other) = (f32s(&[0.0, 2.0]), f32s(&[0.5, 2.5]));
        let found = compare(&expected, &other, Tolerance::EXACT).expect("equal types");
        assert_eq!(found.max_rel, 0.25);
    }

    #[test]
    fn the_first_mismatch_is_located() {
        let expected = f32s(&[1.0, 2.0, f32::NAN, f32::INFINITY]);
        let actual = f32s(&[1.00001, 2.5, f32::NAN, f32::INFINITY]);
        let found = compare(&expected, &actual, Tolerance::of(DType::F32)).expect("same type");
        assert_eq!((found.mismatches, found.max_abs, found.max_rel), (1, 0.5, 0.25));
        assert_eq!(found.first.expect("a mismatch").index, [0, 1]);
        assert!(compare(&expected, &expected, Tolerance::EXACT).expect("same type").is_match());
    }

    #[test]
    fn nan_and_infinity_match_only_themselves() {
        let tolerance = Tolerance { abs: 1.0, rel: 0.5, rms: 1.0 };
        let expected = f32s(&[f32::NAN, f32::INFINITY, 1.0, f32::INFINITY]);
        let actual = f32s(&[1.0, f32::NEG_INFINITY, f32::NAN, 5.0]);
        let found = compare(&expected, &actual, tolerance).expect("same type");
        assert_eq!((found.mismatches, found.max_abs), (4, f64::INFINITY));
    }

    #[test]
    fn an_infinity_is_next_to_the_largest_number() {
        let ty = crate::TensorType::new(DType::F16, [2]);
        let expected = Tensor::from_f64(ty.clone(), &[f64::INFINITY, 65504.0]).expect("a tensor");
        let actual = Tensor::from_f64(ty, &[65504.0, f64::INFINITY]).expect("a tensor");
        let tolerance = Tolerance::of(DType::F16);
        assert!(compare(&expected, &actual, tolerance).expect("same type").is_match());
    }

    #[test]
    fn cancelled_sums_are_held_to_the_size_of_the_tensor() {
        let expected = f32s(&[1000.0, -1000.0, 0.001, 1000.0]);
        let actual = f32s(&[1000.0, -1000.0, 0.002, 1000.0]);
        let tolerance = Tolerance::of(DType::F32);
        assert!(compare(&expected, &actual, tolerance).expect("same type").is_match());
        let strict = Tolerance { rms: 0.0, ..tolerance };
        assert!(!compare(&expected, &actual, strict).expect("same type").is_match());
        let (small, off) = (f32s(&[0.001, 0.001]), f32s(&[0.001, 0.0011]));
        assert!(!compare(&small, &off, tolerance).expect("same type").is_match());
    }

    #[test]
    fn wide_integers_compare_exactly() {
        let one = Tensor::from_values([1], &[i64::MAX]).expect("a tensor");
        let other = Tensor::from_values([1], &[i64::MAX - 1]).expect("a tensor");
        let found = compare(&one, &other, Tolerance::of(DType::I64)).expect("same type");
        assert_eq!((found.mismatches, found.max_abs), (1, 1.0));
        assert!(compare(&one, &f32s(&[1.0, 2.0]), Tolerance::EXACT).is_err());
    }
}
