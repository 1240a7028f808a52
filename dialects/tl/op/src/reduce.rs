//! Reductions over axes.

use crate::binary::maximum;
use crate::index::{positions, strides};
use crate::values::Values;
use crate::{DType, EvalError};
use irc_tensor::{Tensor, TensorType};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reduction {
    Sum,
    Max,
    Mean,
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
    if op != Reduction::Sum && axes.iter().any(|&axis| operand.shape[axis] == 0) {
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
    if op == Reduction::Max {
        return values.fold(f64::NEG_INFINITY, maximum);
    }
    let (count, sum) = values.fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    if op == Reduction::Mean { sum / count as f64 } else { sum }
}

fn integer(op: Reduction, values: impl Iterator<Item = i128>) -> i128 {
    if op == Reduction::Max {
        return values.max().expect("inference refuses a maximum of nothing");
    }
    let (count, sum) = values.fold((0, 0), |(count, sum), value| (count + 1, sum + value));
    if op == Reduction::Mean { sum / count } else { sum }
}

#[cfg(test)]
mod tests {
    use crate::{Op, Tensor};

    fn matrix() -> Tensor {
        Tensor::from_values([2, 3], &[1.0f32, 2.0, 6.0, 4.0, 9.0, -1.0]).expect("a tensor")
    }

    #[test]
    fn known_values() {
        let sum = Op::ReduceSum { axes: vec![1], keep_dims: true };
        let result = sum.eval(&[&matrix()]).expect("a matrix");
        assert_eq!((result.shape(), result.to_f64()), (&[2, 1][..], vec![9.0, 12.0]));
        let max = Op::ReduceMax { axes: vec![0], keep_dims: false };
        let result = max.eval(&[&matrix()]).expect("a matrix");
        assert_eq!((result.shape(), result.to_f64()), (&[3][..], vec![4.0, 9.0, 6.0]));
        let mean = Op::ReduceMean { axes: vec![0, 1], keep_dims: false };
        assert_eq!(mean.eval(&[&matrix()]).expect("a matrix").to_f64(), [3.5]);
    }

    #[test]
    fn integers_wrap_and_their_mean_truncates() {
        let bytes = Tensor::from_values([3], &[100i8, 27, 1]).expect("a tensor");
        let sum = Op::ReduceSum { axes: vec![0], keep_dims: false };
        assert_eq!(sum.eval(&[&bytes]).expect("integers").to_f64(), [-128.0]);
        let mean = Op::ReduceMean { axes: vec![0], keep_dims: false };
        assert_eq!(mean.eval(&[&bytes]).expect("integers").to_f64(), [42.0]);
    }

    #[test]
    fn nothing_has_a_sum_but_no_maximum() {
        let empty = Tensor::from_values::<f32>([0], &[]).expect("a tensor");
        let sum = Op::ReduceSum { axes: vec![0], keep_dims: false };
        assert_eq!(sum.eval(&[&empty]).expect("a sum").to_f64(), [0.0]);
        let max = Op::ReduceMax { axes: vec![0], keep_dims: false };
        assert_eq!(
            max.eval(&[&empty]).expect_err("no maximum").to_string(),
            "reduce_max: expected elements along the axes [0], found f32[0]"
        );
        let bad = Op::ReduceSum { axes: vec![1, 0], keep_dims: false };
        assert_eq!(
            bad.eval(&[&matrix()]).expect_err("not increasing").to_string(),
            "reduce_sum: expected increasing axes below 2, found [1, 0] of f32[2,3]"
        );
    }
}
