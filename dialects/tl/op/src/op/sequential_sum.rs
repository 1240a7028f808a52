//! Sum along an axis, rounded at every addition.

use super::{Attribute, AttributeKind, Family, Op, Operands, Row, count, no_loops};
use crate::index::{positions, strides};
use crate::{Compute, DType, EvalError, Type};
use irc_tensor::{Tensor, TensorType};

pub(super) static ROW: Row = Row {
    description: "Starts from zero and goes along `axis`, which the result lacks. Each addition is rounded to the
element type.",
    operands: Operands::Named(&["operand"]),
    attributes: &[Attribute::new("axis", AttributeKind::Index)],
    family: Family::Accumulation,
    read: |attributes| Ok(Op::SequentialSum { axis: attributes.index("axis")? }),
    write: |op| match op {
        Op::SequentialSum { axis } => vec![("axis", (*axis).into())],
        _ => vec![],
    },
    example: || (Op::SequentialSum { axis: 1 }, vec![TensorType::new(DType::F16, [2, 8])]),
    ..Row::new("sequential_sum", "sum along an axis, in order, each addition rounded")
};

pub(super) fn infer(operands: &[TensorType], axis: &usize) -> Result<TensorType, String> {
    let (operand, axis) = (&operands[0], *axis);
    if !operand.dtype.is_float() {
        return Err(format!("expected a float operand, found {operand}"));
    }
    if axis >= operand.rank() {
        return Err(format!("expected an axis below {}, found {axis}", operand.rank()));
    }
    let mut shape = operand.shape.clone();
    shape.remove(axis);
    Ok(TensorType::new(operand.dtype, shape))
}

pub(super) fn eval(
    operands: &[&Tensor],
    ty: TensorType,
    axis: &usize,
) -> Result<Tensor, EvalError> {
    let (operand, axis) = (operands[0], *axis);
    let values = operand.to_f64();
    let (mut outer, mut steps) = (operand.shape().to_vec(), strides(operand.shape()));
    let (count, step) = (outer.remove(axis) as usize, steps.remove(axis));
    let round = |value| ty.dtype.round_float(value);
    let sum =
        |start: usize| (0..count).fold(0.0, |sum, index| round(sum + values[start + index * step]));
    let sums: Vec<f64> = positions(&outer, &steps, 0).map(sum).collect();
    Ok(Tensor::from_f64(ty, &sums)?)
}

pub(super) fn compute(_: &[Type], _: &usize) -> Result<Compute, String> {
    no_loops()
}

pub(super) fn flops(operands: &[TensorType], _: &TensorType, _: &usize) -> u64 {
    count(&operands[0])
}

#[cfg(test)]
mod tests {
    use crate::{Op, Tensor, TensorType};
    use irc_tensor::{DType, f16};

    #[test]
    fn small_terms_are_lost_beside_a_large_sum() {
        // Above 2048, consecutive f16 differ by 2: adding 1 to 2048 rounds back to 2048, to even.
        let values: Vec<f16> = std::iter::repeat_n(f16::ONE, 3000).collect();
        let ones = Tensor::from_values([3000], &values).expect("a tensor");
        let sum = Op::SequentialSum { axis: 0 }.eval(&[&ones]).expect("floats");
        assert_eq!(sum.to_f64(), [2048.0]);
        let wide = Op::Reduce { kind: crate::Reduction::Sum, axes: vec![0], keep_dims: false };
        assert_eq!(wide.eval(&[&ones]).expect("floats").to_f64(), [3000.0]);
    }

    #[test]
    fn any_axis_is_summed_and_dropped() {
        let matrix = Tensor::from_values([2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let matrix = matrix.expect("a tensor");
        let sum = |axis| Op::SequentialSum { axis }.eval(&[&matrix]).expect("floats").to_f64();
        assert_eq!(sum(0), [5.0, 7.0, 9.0]);
        assert_eq!(sum(1), [6.0, 15.0]);
        let error = Op::SequentialSum { axis: 1 }.infer(&[TensorType::new(DType::F32, [2])]);
        let message = "sequential_sum: expected an axis below 1, found 1";
        assert_eq!(error.expect_err("one axis").to_string(), message);
    }
}
