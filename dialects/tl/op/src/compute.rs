//! The general op: loops around an expression.

mod eval;
mod rows;
mod summary;

use crate::scalar::Scalar;
use crate::{Binary, DType, Dim, EvalError, Rounding, Type};
use eval::Evaluator;
use irc_tensor::Tensor;
pub use rows::{RowForm, RowPattern, RowSpace};

/// Computes each element of the result with an expression, or with a reduction of an expression over
/// further loops.
///
/// `result[i0, i1, ...] = combine over r0, r1, ... of body(i0, i1, ..., r0, r1, ...)`
///
/// Sums of floats accumulate in `f64` and round once, in any order; a backend accumulates in `f32`
/// or wider. Every op without a prescribed order can be written this way: see
/// [`Op::as_compute`](crate::Op::as_compute).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Compute {
    /// Extents of the result, and of the loops over it.
    pub dims: Vec<Dim>,
    /// How the body is reduced, if at all.
    pub reduction: Option<Reduce>,
    /// The expression.
    pub body: Scalar,
}

impl Compute {
    /// Whether an index of a value with some extents is that of the result's own element.
    pub fn is_own(&self, at: &[Scalar], dims: &[Dim]) -> bool {
        let is_own = |(axis, index): (usize, &Scalar)| {
            *index == Scalar::Loop(axis) || dims[axis].is(1) && *index == Scalar::index(0)
        };
        dims == self.dims && at.iter().enumerate().all(is_own)
    }
}

/// The reduction loops of a [`Compute`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reduce {
    /// How two values are combined.
    pub combine: Combine,
    /// Extents of the loops.
    pub dims: Vec<Dim>,
}

/// How values are combined in a reduction. An empty reduction returns the neutral value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Combine {
    /// The sum; 0 if empty.
    Sum,
    /// The product; 1 if empty.
    Product,
    /// The largest; if empty, the minimum of the type (-inf for floats). NaN if any value is NaN.
    Max,
    /// The smallest; if empty, the maximum of the type (inf for floats). NaN if any value is NaN.
    Min,
}

impl Combine {
    /// All combining functions.
    pub const ALL: [Self; 4] = [Self::Sum, Self::Product, Self::Max, Self::Min];

    /// The name in the IR.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Product => "product",
            Self::Max => "max",
            Self::Min => "min",
        }
    }

    /// The combining function with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|combine| combine.name() == name)
    }

    /// The binary function.
    pub const fn function(self) -> Binary {
        match self {
            Self::Sum => Binary::Add,
            Self::Product => Binary::Mul,
            Self::Max => Binary::Max,
            Self::Min => Binary::Min,
        }
    }

    /// The neutral element; for integers modulo 2^bits of the type.
    pub fn neutral(self, dtype: DType) -> Number {
        let bits = dtype.bits();
        let signed = is_signed(dtype);
        let (lowest, highest) = match (signed, dtype) {
            (_, DType::Bool) => (0, 1),
            (true, _) => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            (false, _) => (0, (1i128 << bits) - 1),
        };
        match (self, dtype.is_float()) {
            (Self::Sum, true) => Number::Float(0.0),
            (Self::Product, true) => Number::Float(1.0),
            (Self::Max, true) => Number::Float(f64::NEG_INFINITY),
            (Self::Min, true) => Number::Float(f64::INFINITY),
            (Self::Sum, false) => Number::Int(0),
            (Self::Product, false) => Number::Int(1),
            (Self::Max, false) => Number::Int(lowest),
            (Self::Min, false) => Number::Int(highest),
        }
    }
}

/// A number in the width used for evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A value of a float type.
    Float(f64),
    /// A value of an integer type or `bool`, or the handle of a string.
    Int(i128),
}

/// Whether the bits of a value that is not a float have a sign; a handle of a string is an `i64`.
const fn is_signed(dtype: DType) -> bool {
    dtype.is_signed_integer() || matches!(dtype, DType::String)
}

impl Number {
    /// The number as a constant of a type.
    pub fn scalar(self, dtype: DType) -> Scalar {
        match self {
            Self::Float(value) => Scalar::float(value, dtype),
            Self::Int(value) => Scalar::Int(value as i64, dtype),
        }
    }

    /// The value rounded to, or wrapped around in, an element type of its kind.
    pub fn rounded(self, dtype: DType) -> Self {
        match (self, dtype) {
            (Self::Float(value), _) => Self::Float(dtype.round_float(value)),
            (Self::Int(value), DType::Bool) => Self::Int(i128::from(value != 0)),
            (Self::Int(value), _) => {
                let unused = i128::BITS - dtype.bits();
                let high = value << unused;
                Self::Int(match is_signed(dtype) {
                    true => high >> unused,
                    false => (high.cast_unsigned() >> unused).cast_signed(),
                })
            }
        }
    }

    /// The value converted between element types; see [`Op::Cast`](crate::Op::Cast).
    pub fn cast(self, to: DType, rounding: Rounding) -> Self {
        match (self, to) {
            (Self::Float(value), DType::Bool) => Self::Int(i128::from(value != 0.0)),
            (Self::Float(value), _) if !to.is_float() => {
                let whole = match rounding {
                    Rounding::TowardZero => value.trunc(),
                    Rounding::NearestEven => value.round_ties_even(),
                };
                // `as` saturates, and converts NaN to 0.
                let (Self::Int(low), Self::Int(high)) =
                    (Combine::Max.neutral(to), Combine::Min.neutral(to))
                else {
                    unreachable!("integer types have integer bounds")
                };
                Self::Int((whole as i128).clamp(low, high))
            }
            (Self::Int(value), _) if to.is_float() => Self::Float(value as f64).rounded(to),
            _ => self.rounded(to),
        }
    }
}

impl Compute {
    /// An op without a reduction.
    pub fn map(dims: impl Into<Vec<Dim>>, body: Scalar) -> Self {
        Self { dims: dims.into(), reduction: None, body }
    }

    /// An op with a reduction.
    pub fn reduce(
        dims: impl Into<Vec<Dim>>,
        combine: Combine,
        over: impl Into<Vec<Dim>>,
        body: Scalar,
    ) -> Self {
        let reduction = Some(Reduce { combine, dims: over.into() });
        Self { dims: dims.into(), reduction, body }
    }

    /// Number of loops: over the result, then of the reduction.
    pub fn loops(&self) -> usize {
        self.dims.len() + self.reduction.as_ref().map_or(0, |reduction| reduction.dims.len())
    }

    /// The type of the result.
    ///
    /// # Errors
    /// If a part of the body does not have the expected type.
    pub fn infer(&self, operands: &[Type]) -> Result<Type, String> {
        let dtype = self.body.dtype(operands, self.loops())?;
        if self.reduction.is_some() && dtype == DType::Bool {
            return Err("expected a float or integer body of a reduction, found bool".into());
        }
        Ok(Type::new(dtype, self.dims.clone()))
    }

    /// The value; every size must be known.
    ///
    /// # Errors
    /// If a size is unknown, a load is outside an operand, or a result cannot be allocated.
    pub fn eval(&self, operands: &[&Tensor]) -> Result<Tensor, EvalError> {
        let unknown = |message: String| crate::InferError { op: "compute", message };
        let types: Vec<_> = operands.iter().map(|operand| operand.ty().clone().into()).collect();
        let ty = self.infer(&types).map_err(unknown)?;
        let known =
            ty.known().ok_or_else(|| unknown(format!("expected known sizes, found {ty}")))?;
        let over: Option<Vec<i64>> = match &self.reduction {
            None => Some(vec![]),
            Some(reduction) => reduction.dims.iter().map(Dim::known).collect(),
        };
        let over = over.ok_or_else(|| unknown("expected known sizes of a reduction".into()))?;
        let mut result = Tensor::zeros(known)?;
        let evaluator = Evaluator { operands, dtype: ty.dtype };
        match &self.reduction {
            None => evaluator.map(&self.body, &mut result)?,
            Some(reduction) => {
                evaluator.reduce(reduction.combine, &self.body, &over, &mut result)?;
            }
        }
        Ok(result)
    }

    /// The op with symbols replaced in all its sizes.
    pub fn substitute(&self, symbol: &dyn Fn(&str) -> Option<Dim>) -> Self {
        self.clone().map_sizes(&|dim| dim.substitute(symbol))
    }

    /// The op with every size replaced.
    pub fn map_sizes(self, size: &dyn Fn(&Dim) -> Dim) -> Self {
        let all = |dims: &[Dim]| dims.iter().map(size).collect();
        Self {
            dims: all(&self.dims),
            reduction: self
                .reduction
                .as_ref()
                .map(|reduction| Reduce { combine: reduction.combine, dims: all(&reduction.dims) }),
            body: self.body.map_sizes(size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Op, TensorType, Unary};

    fn dims(values: &[i64]) -> Vec<Dim> {
        values.iter().map(|value| Dim::Known(*value)).collect()
    }

    #[test]
    fn a_condition_guards_a_load() {
        let x = Tensor::from_values([3], &[1.5f32, 2.0, 3.0]).expect("a tensor");
        let inside = Scalar::Loop(0) - Scalar::index(1);
        let guard = Scalar::Loop(0).ge(Scalar::index(1)).and(Scalar::Loop(0).lt(Scalar::index(4)));
        let body = guard.select(Scalar::load(0, [inside]), Scalar::float(-1.0, DType::F32));
        let padded = Op::compute(Compute::map(dims(&[5]), body)).eval(&[&x]).expect("guarded");
        assert_eq!(padded.to_f64(), [-1.0, 1.5, 2.0, 3.0, -1.0]);
        let outside = Scalar::load(0, [Scalar::Loop(0)]);
        let error =
            Op::compute(Compute::map(dims(&[4]), outside)).eval(&[&x]).expect_err("outside");
        assert_eq!(
            error.to_string(),
            "compute: index 3 of operand 0 in dimension 0: expected 0 to 3 (exclusive)"
        );
    }

    #[test]
    fn reductions_start_from_the_neutral_value() {
        let x = Tensor::from_values([2, 3], &[1i8, 100, 100, -5, -6, -7]).expect("a tensor");
        let body = || Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1)]);
        let run = |combine, size| {
            let op = Op::compute(Compute::reduce(dims(&[2]), combine, dims(&[size]), body()));
            op.eval(&[&x]).expect("inside").to_f64()
        };
        assert_eq!(run(Combine::Sum, 3), [-55.0, -18.0]);
        assert_eq!(run(Combine::Max, 3), [100.0, -5.0]);
        assert_eq!(run(Combine::Min, 0), [127.0, 127.0]);
        assert_eq!(run(Combine::Max, 0), [-128.0, -128.0]);
        assert_eq!(run(Combine::Product, 2), [100.0, 30.0]);
    }

    #[test]
    fn every_step_rounds_to_its_type() {
        let x = Tensor::from_f64(TensorType::new(DType::F16, [1]), &[2048.0]).expect("a tensor");
        let one = || Scalar::float(1.0, DType::F16);
        let load = || Scalar::load(0, [Scalar::Loop(0)]);
        let twice = load() + one() + one();
        let result = Op::compute(Compute::map(dims(&[1]), twice)).eval(&[&x]).expect("inside");
        assert_eq!(result.to_f64(), [2048.0]);
        let wide = load().cast(DType::F32) + Scalar::float(2.0, DType::F32);
        let result = Op::compute(Compute::map(dims(&[1]), wide.cast(DType::F16)));
        assert_eq!(result.eval(&[&x]).expect("inside").to_f64(), [2050.0]);
    }

    #[test]
    fn parts_must_fit() {
        let types = [Type::from(TensorType::new(DType::F32, [2, 2]))];
        let error =
            |body: Scalar| Compute::map(dims(&[2]), body).infer(&types).expect_err("does not fit");
        assert!(error(Scalar::load(0, [Scalar::Loop(0)])).contains("expected 2 indices"));
        assert!(error(Scalar::load(1, [])).contains("an operand below 1"));
        assert!(error(Scalar::Loop(1)).contains("a loop below 1"));
        assert!(
            error(Scalar::index(1) + Scalar::float(1.0, DType::F32)).contains("one element type")
        );
        assert!(error(Scalar::index(1).unary(Unary::Exp)).contains("exp: expected a float"));
    }
}
