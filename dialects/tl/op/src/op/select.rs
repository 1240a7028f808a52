//! Selection of one of two elements by a condition.

use super::{Op, Operands, Row, count};
use crate::general::{join, spread};
use crate::index::{broadcast_strides, positions};
use crate::{Compute, DType, EvalError, Type, broadcast_shapes};
use irc_tensor::{Tensor, TensorType};

pub(super) static ROW: Row = Row {
    description: "The condition is `i1`. Operands broadcast to the result's shape as in NumPy.",
    operands: Operands::Named(&["condition", "yes", "no"]),
    read: |_| Ok(Op::Select),
    example: || {
        let types = [DType::Bool, DType::F32, DType::F32];
        (Op::Select, types.map(|dtype| TensorType::new(dtype, [2, 8])).to_vec())
    },
    ..Row::new("select", "`yes` where the condition holds, else `no`")
};

pub(super) fn infer(operands: &[TensorType]) -> Result<TensorType, String> {
    let [condition, yes, no] = [&operands[0], &operands[1], &operands[2]];
    if condition.dtype != DType::Bool || yes.dtype != no.dtype {
        return Err(format!(
            "expected a bool condition and two operands of one element type, found {condition}, {yes} and {no}"
        ));
    }
    let shape = broadcast_shapes(&yes.shape, &no.shape)
        .and_then(|shape| broadcast_shapes(&condition.shape, &shape));
    let shape = shape.ok_or_else(|| {
        format!("expected shapes that broadcast together, found {condition}, {yes} and {no}")
    })?;
    Ok(TensorType::new(yes.dtype, shape))
}

pub(super) fn eval(operands: &[&Tensor], ty: TensorType) -> Result<Tensor, EvalError> {
    let [condition, yes, no] = [operands[0], operands[1], operands[2]];
    let places =
        |operand: &Tensor| positions(&ty.shape, &broadcast_strides(operand.shape(), &ty.shape), 0);
    let (conditions, yeses, noes) = (places(condition), places(yes), places(no));
    let size = ty.dtype.size();
    let mut result = Tensor::zeros(ty)?;
    let targets = result.bytes_mut().chunks_exact_mut(size);
    for (((target, at), yes_at), no_at) in targets.zip(conditions).zip(yeses).zip(noes) {
        let (source, place) = if condition.bytes()[at] != 0 { (yes, yes_at) } else { (no, no_at) };
        target.copy_from_slice(&source.bytes()[place * size..][..size]);
    }
    Ok(result)
}

pub(super) fn compute(operands: &[Type]) -> Result<Compute, String> {
    let dims = join(operands).ok_or("expected sizes that broadcast together")?;
    let [condition, yes, no] = [0, 1, 2].map(|index| spread(index, operands, &dims));
    Ok(Compute::map(dims, condition.select(yes, no)))
}

pub(super) fn flops(_: &[TensorType], result: &TensorType) -> u64 {
    count(result)
}

#[cfg(test)]
mod tests {
    use crate::{DType, Op, Tensor, TensorType};

    #[test]
    fn a_condition_chooses_and_broadcasts() {
        let condition = Tensor::from_bytes(TensorType::new(DType::Bool, [2, 1]), &[1, 0]);
        let yes = Tensor::from_values([2], &[1i16, 2]).expect("a tensor");
        let no = Tensor::from_values([], &[9i16]).expect("a tensor");
        let condition = condition.expect("a tensor");
        let chosen = Op::Select.eval(&[&condition, &yes, &no]).expect("they broadcast");
        assert_eq!((chosen.shape(), chosen.to_f64()), (&[2, 2][..], vec![1., 2., 9., 9.]));
        let error = Op::Select.eval(&[&yes, &yes, &no]).expect_err("no condition");
        assert!(error.to_string().starts_with("select: expected a bool condition"));
    }
}
