//! Reductions over axes.

use crate::function::{maximum, minimum};
use crate::index::{positions, strides};
use crate::values::Values;
use crate::{DType, EvalError};
use irc_tensor::{Tensor, TensorType};

/// What axes are reduced to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reduction {
    /// The sum; 0 of nothing.
    Sum,
    /// The largest; NaN if any is; none of the axes is empty.
    Max,
    /// The smallest; NaN if any is; none of the axes is empty.
    Min,
    /// The mean; none of the axes is empty.
    Mean,
    /// The product; 1 of nothing.
    Product,
}

impl Reduction {
    /// Every reduction.
    pub const ALL: [Self; 5] = [Self::Sum, Self::Max, Self::Min, Self::Mean, Self::Product];

    /// The name of the op in the IR.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "reduce_sum",
            Self::Max => "reduce_max",
            Self::Min => "reduce_min",
            Self::Mean => "reduce_mean",
            Self::Product => "reduce_product",
        }
    }

    const fn needs_elements(self) -> bool {
        matches!(self, Self::Max | Self::Min | Self::Mean)
    }
}

pub(crate) fn infer(
    op: Reduction,
    axes: &[usize],
    keep_dims: bool,
    operand: &TensorType,
) -> Result<TensorType, String> {
    let rank = operand.rank();
    if !axes.is_sorted_by(|a, b| a < b) || axes.iter().any(|&axis| axis >= rank) {
        return Err(format!("expected increasing axes below {rank}, found {axes:?} of {operand}"));
    }
    if operand.dtype == DType::Bool {
        return Err(format!("expected a float or integer operand, found {operand}"));
    }
    if op.needs_elements() && axes.iter().any(|&axis| operand.shape[axis] == 0) {
        return Err(format!("expected elements along the axes {axes:?}, found {operand}"));
    }
    let dim = |(axis, &dim): (usize, &i64)| match (axes.contains(&axis), keep_dims) {
        (false, _) => Some(dim),
        (true, true) => Some(1),
        (true, false) => None,
    };
    let shape: Vec<_> = operand.shape.iter().enumerate().filter_map(dim).collect();
    Ok(TensorType::new(operand.dtype, shape))
}

pub(crate) fn eval(
    op: Reduction,
    axes: &[usize],
    operand: &Tensor,
    ty: TensorType,
) -> Result<Tensor, EvalError> {
    let strides = strides(operand.shape());
    let select = |reduced: bool| -> (Vec<i64>, Vec<usize>) {
        let wanted = (0..strides.len()).filter(|axis| axes.contains(axis) == reduced);
        wanted.map(|axis| (operand.shape()[axis], strides[axis])).unzip()
    };
    let (outer, inner) = (select(false), select(true));
    let starts = positions(&outer.0, &outer.1, 0);
    let group = |start| positions(&inner.0, &inner.1, start);
    let result = match Values::of(operand) {
        Values::Float(values) => Values::Float(
            starts.map(|start| float(op, group(start).map(|place| values[place]))).collect(),
        ),
        Values::Integer(values) => Values::Integer(
            starts.map(|start| integer(op, group(start).map(|place| values[place]))).collect(),
        ),
    };
    Ok(result.into_tensor(ty)?)
}

fn float(op: Reduction, values: impl Iterator<Item = f64>) -> f64 {
    match op {
        Reduction::Max => values.fold(f64::NEG_INFINITY, maximum),
        Reduction::Min => values.fold(f64::INFINITY, minimum),
        Reduction::Product => values.product(),
        Reduction::Sum => values.fold(0.0, |sum, value| sum + value),
        Reduction::Mean => {
            let add = |(count, sum): (u64, f64), value| (count + 1, sum + value);
            let (count, sum) = values.fold((0, 0.0), add);
            sum / count as f64
        }
    }
}

fn integer(op: Reduction, values: impl Iterator<Item = i128>) -> i128 {
    match op {
        Reduction::Max => values.max().expect("inference refuses a maximum of nothing"),
        Reduction::Min => values.min().expect("inference refuses a minimum of nothing"),
        Reduction::Product => values.fold(1, i128::wrapping_mul),
        Reduction::Sum => values.sum(),
        Reduction::Mean => {
            let (count, sum) = values.fold((0, 0), |(count, sum), value| (count + 1, sum + value));
            sum / count
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Op, Tensor};

    fn matrix() -> Tensor {
        Tensor::from_values([2, 3], &[1.0f32, 2.0, 6.0, 4.0, 9.0, -1.0]).expect("a tensor")
    }

    #[test]
    fn known_values() {
        let sum = Op::Reduce { kind: crate::Reduction::Sum, axes: vec![1], keep_dims: true };
        let result = sum.eval(&[&matrix()]).expect("a matrix");
        assert_eq!((result.shape(), result.to_f64()), (&[2, 1][..], vec![9.0, 12.0]));
        let max = Op::Reduce { kind: crate::Reduction::Max, axes: vec![0], keep_dims: false };
        let result = max.eval(&[&matrix()]).expect("a matrix");
        assert_eq!((result.shape(), result.to_f64()), (&[3][..], vec![4.0, 9.0, 6.0]));
        let mean = Op::Reduce { kind: crate::Reduction::Mean, axes: vec![0, 1], keep_dims: false };
        assert_eq!(mean.eval(&[&matrix()]).expect("a matrix").to_f64(), [3.5]);
    }

    #[test]
    fn integers_wrap_and_their_mean_truncates() {
        let bytes = Tensor::from_values([3], &[100i8, 27, 1]).expect("a tensor");
        let sum = Op::Reduce { kind: crate::Reduction::Sum, axes: vec![0], keep_dims: false };
        assert_eq!(sum.eval(&[&bytes]).expect("integers").to_f64(), [-128.0]);
        let mean = Op::Reduce { kind: crate::Reduction::Mean, axes: vec![0], keep_dims: false };
        assert_eq!(mean.eval(&[&bytes]).expect("integers").to_f64(), [42.0]);
    }

    #[test]
    fn nothing_has_a_sum_but_no_maximum() {
        let empty = Tensor::from_values::<f32>([0], &[]).expect("a tensor");
        let sum = Op::Reduce { kind: crate::Reduction::Sum, axes: vec![0], keep_dims: false };
        assert_eq!(sum.eval(&[&empty]).expect("a sum").to_f64(), [0.0]);
        let max = Op::Reduce { kind: crate::Reduction::Max, axes: vec![0], keep_dims: false };
        assert_eq!(
            max.eval(&[&empty]).expect_err("no maximum").to_string(),
            "reduce_max: expected elements along the axes [0], found f32[0]"
        );
        let bad = Op::Reduce { kind: crate::Reduction::Sum, axes: vec![1, 0], keep_dims: false };
        assert_eq!(
            bad.eval(&[&matrix()]).expect_err("not increasing").to_string(),
            "reduce_sum: expected increasing axes below 2, found [1, 0] of f32[2,3]"
        );
    }
}
