//! A box of a tensor.

use super::{Attribute, AttributeKind, Family, Op, Operands, Row};
use crate::general::known;
use crate::index::{pick, positions, strides};
use crate::{Compute, DType, EvalError, Scalar, Type};
use irc_tensor::{Tensor, TensorType};

pub(super) static ROW: Row = Row {
    operands: Operands::Named(&["operand"]),
    attributes: &[Attribute::new("offsets", AttributeKind::I64s)],
    family: Family::Pick,
    samples: Some(0),
    read: |attributes| {
        let sizes = attributes.known_result()?.shape;
        Ok(Op::Slice { offsets: attributes.i64s("offsets")?, sizes })
    },
    write: |op| match op {
        Op::Slice { offsets, .. } => vec![("offsets", offsets[..].into())],
        _ => vec![],
    },
    example: || {
        let op = Op::Slice { offsets: vec![1, 2], sizes: vec![2, 4] };
        (op, vec![TensorType::new(DType::F32, [3, 8])])
    },
    ..Row::new("slice", "the box at `offsets` of the result's shape")
};

pub(super) fn infer(
    operands: &[TensorType],
    offsets: &[i64],
    sizes: &[i64],
) -> Result<TensorType, String> {
    check_box(offsets, sizes, &operands[0])?;
    Ok(TensorType::new(operands[0].dtype, sizes))
}

/// Checks that the box is within a tensor of type `whole`.
pub(super) fn check_box(offsets: &[i64], sizes: &[i64], whole: &TensorType) -> Result<(), String> {
    let rank = whole.rank();
    let [found, sized] = [offsets.len(), sizes.len()];
    if found != rank || sized != rank {
        return Err(format!("expected {rank} offsets and sizes, found {found} and {sized}"));
    }
    for (axis, &dim) in whole.shape.iter().enumerate() {
        let (offset, size) = (offsets[axis], sizes[axis]);
        let end = offset.checked_add(size);
        if offset < 0 || size < 0 || end.is_none_or(|end| end > dim) {
            return Err(format!(
                "expected a box within {whole}, found offset {offset}, size {size} in dimension {axis}"
            ));
        }
    }
    Ok(())
}

pub(super) fn eval(
    operands: &[&Tensor],
    ty: TensorType,
    offsets: &[i64],
    _: &[i64],
) -> Result<Tensor, EvalError> {
    let operand = operands[0];
    let positions = box_positions(offsets, &ty.shape, operand.shape());
    Ok(pick(operand, ty, positions)?)
}

/// Linear positions of a box within a tensor of shape `whole`.
pub(super) fn box_positions(
    offsets: &[i64],
    sizes: &[i64],
    whole: &[i64],
) -> impl Iterator<Item = usize> + use<> {
    let strides = strides(whole);
    let start = offsets.iter().zip(&strides).map(|(&offset, stride)| offset as usize * stride);
    positions(sizes, &strides, start.sum())
}

pub(super) fn compute(_: &[Type], offsets: &[i64], sizes: &[i64]) -> Result<Compute, String> {
    let at = |(axis, offset): (usize, &i64)| Scalar::Loop(axis) + Scalar::index(*offset);
    let at: Vec<_> = offsets.iter().enumerate().map(at).collect();
    Ok(Compute::map(known(sizes), Scalar::load(0, at)))
}

pub(super) fn flops(_: &[TensorType], _: &TensorType, _: &[i64], _: &[i64]) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use crate::{Op, Tensor};

    #[test]
    fn a_box_in_the_middle() {
        let values: Vec<u8> = (0..12).collect();
        let operand = Tensor::from_values([3, 4], &values).expect("a tensor");
        let op = Op::Slice { offsets: vec![1, 2], sizes: vec![2, 2] };
        assert_eq!(op.eval(&[&operand]).expect("inside").bytes(), [6, 7, 10, 11]);
        let outside = Op::Slice { offsets: vec![0, 3], sizes: vec![3, 2] };
        assert_eq!(
            outside.eval(&[&operand]).expect_err("outside").to_string(),
            "slice: expected a box within u8[3,4], found offset 3, size 2 in dimension 1"
        );
        let far = Op::Slice { offsets: vec![0, i64::MAX], sizes: vec![3, 2] };
        assert!(far.eval(&[&operand]).is_err());
    }
}
