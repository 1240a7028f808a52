//! Reductions over axes.

use super::binary::{maximum, minimum};
use super::family::{self, Takes, family};
use super::{Attribute, AttributeKind, Attributes, Family, Op, Operands, Row, count};
use crate::index::{positions, strides};
use crate::values::Values;
use crate::{Combine, Compute, DType, EvalError, Scalar, Type};
use irc_tensor::{Tensor, TensorType};

/// The values of a reduction.
type Items<'a, T> = &'a mut dyn Iterator<Item = T>;

type Function = family::Function<fn(Items<'_, f64>) -> f64, fn(Items<'_, i128>) -> i128>;

family! {
    /// The kind of a reduction. NaN if any element is NaN; integers wrap around.
    Reduction of Function, read, example {
        Sum "reduce_sum" "sum over axes":
            reduction(|values| values.fold(0.0, |sum, value| sum + value), |values| values.sum()),
        Max "reduce_max" "maximum over axes": reduction(
            |values| values.fold(f64::NEG_INFINITY, maximum),
            |values| values.max().expect("inference rejects a maximum of nothing"),
        ),
        Min "reduce_min" "minimum over axes": reduction(
            |values| values.fold(f64::INFINITY, minimum),
            |values| values.min().expect("inference rejects a minimum of nothing"),
        ),
        Mean "reduce_mean" "mean over axes": reduction(mean, integer_mean),
        Product "reduce_product" "product over axes":
            reduction(|values| values.product(), |values| values.fold(1, i128::wrapping_mul)),
    }
}

const ATTRIBUTES: [Attribute; 2] = [
    Attribute::new("axes", AttributeKind::Indices),
    Attribute::new("keep_dims", AttributeKind::Bool),
];

const fn reduction(
    float: fn(Items<'_, f64>) -> f64,
    integer: fn(Items<'_, i128>) -> i128,
) -> Function {
    let row = Row {
        description: "`axes` are reduced; they stay as extent 1 when `keep_dims` is true.",
        operands: Operands::Named(&["operand"]),
        attributes: &ATTRIBUTES,
        family: Family::Reduction,
        write: |op| match op {
            Op::Reduce { axes, keep_dims, .. } => {
                vec![("axes", axes[..].into()), ("keep_dims", (*keep_dims).into())]
            }
            _ => vec![],
        },
        ..Row::new("", "")
    };
    Function { row, takes: Takes::Numbers, float, integer }
}

fn read(kind: Reduction, attributes: &Attributes<'_>) -> Result<Op, String> {
    let keep_dims = attributes.bool("keep_dims")?;
    Ok(Op::Reduce { kind, axes: attributes.indices("axes")?, keep_dims })
}

fn example(kind: Reduction) -> (Op, Vec<TensorType>) {
    let op = Op::Reduce { kind, axes: vec![1], keep_dims: true };
    (op, vec![TensorType::new(DType::F32, [2, 8])])
}

fn mean(values: Items<'_, f64>) -> f64 {
    let (count, sum) = values.fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    sum / count as f64
}

fn integer_mean(values: Items<'_, i128>) -> i128 {
    let (count, sum) = values.fold((0, 0), |(count, sum), value| (count + 1, sum + value));
    sum / count
}

impl Reduction {
    /// How two values are combined; `None` for a mean, which rounds once, after the division.
    pub const fn combine(self) -> Option<Combine> {
        match self {
            Self::Sum => Some(Combine::Sum),
            Self::Product => Some(Combine::Product),
            Self::Max => Some(Combine::Max),
            Self::Min => Some(Combine::Min),
            Self::Mean => None,
        }
    }

    const fn needs_elements(self) -> bool {
        matches!(self, Self::Max | Self::Min | Self::Mean)
    }
}

impl Op {
    /// The axes of a reduction.
    pub fn reduced_axes(&self) -> Option<&[usize]> {
        match self {
            Self::Reduce { axes, .. } => Some(axes),
            _ => None,
        }
    }

    /// For a mean: the sum that is divided.
    pub fn dividend(&self) -> Option<Self> {
        match self {
            Self::Reduce { kind: Reduction::Mean, axes, keep_dims } => Some(Self::Reduce {
                kind: Reduction::Sum,
                axes: axes.clone(),
                keep_dims: *keep_dims,
            }),
            _ => None,
        }
    }
}

pub(super) fn infer(
    operands: &[TensorType],
    kind: &Reduction,
    axes: &[usize],
    keep_dims: &bool,
) -> Result<TensorType, String> {
    let operand = &operands[0];
    let rank = operand.rank();
    if !axes.is_sorted_by(|a, b| a < b) || axes.iter().any(|&axis| axis >= rank) {
        return Err(format!("expected increasing axes below {rank}, found {axes:?} of {operand}"));
    }
    if !kind.function().takes.takes(operand.dtype) {
        return Err(format!("expected a float or integer operand, found {operand}"));
    }
    if kind.needs_elements() && axes.iter().any(|&axis| operand.shape[axis] == 0) {
        return Err(format!("expected elements along the axes {axes:?}, found {operand}"));
    }
    let dim = |(axis, &dim): (usize, &i64)| match (axes.contains(&axis), *keep_dims) {
        (false, _) => Some(dim),
        (true, true) => Some(1),
        (true, false) => None,
    };
    let shape: Vec<_> = operand.shape.iter().enumerate().filter_map(dim).collect();
    Ok(TensorType::new(operand.dtype, shape))
}

pub(super) fn eval(
    operands: &[&Tensor],
    ty: TensorType,
    kind: &Reduction,
    axes: &[usize],
    _: &bool,
) -> Result<Tensor, EvalError> {
    let (operand, function) = (operands[0], kind.function());
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
            starts
                .map(|start| (function.float)(&mut group(start).map(|place| values[place])))
                .collect(),
        ),
        Values::Integer(values) => Values::Integer(
            starts
                .map(|start| (function.integer)(&mut group(start).map(|place| values[place])))
                .collect(),
        ),
    };
    Ok(result.into_tensor(ty)?)
}

pub(super) fn compute(
    operands: &[Type],
    kind: &Reduction,
    axes: &[usize],
    keep_dims: &bool,
) -> Result<Compute, String> {
    let operand = &operands[0];
    let combine = kind.combine().ok_or("expected operands of known sizes")?;
    if axes.iter().any(|axis| *axis >= operand.rank()) {
        return Err(format!("expected axes of {operand}, found {axes:?}"));
    }
    let mut dims = vec![];
    let mut at = vec![Scalar::index(0); operand.rank()];
    for (axis, dim) in operand.dims.iter().enumerate() {
        if !axes.contains(&axis) {
            at[axis] = Scalar::Loop(dims.len());
            dims.push(dim.clone());
        } else if *keep_dims {
            dims.push(1.into());
        }
    }
    for (position, axis) in axes.iter().enumerate() {
        at[*axis] = Scalar::Loop(dims.len() + position);
    }
    let over: Vec<_> = axes.iter().map(|axis| operand.dims[*axis].clone()).collect();
    Ok(Compute::reduce(dims, combine, over, Scalar::load(0, at)))
}

pub(super) fn flops(
    operands: &[TensorType],
    _: &TensorType,
    _: &Reduction,
    _: &[usize],
    _: &bool,
) -> u64 {
    count(&operands[0])
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
