//! A tensor with a box replaced.

use super::slice::{box_positions, check_box};
use super::{Attribute, AttributeKind, Family, Op, Operands, Row};
use crate::general::loops;
use crate::{Compute, DType, EvalError, Scalar, Type};
use irc_tensor::{Tensor, TensorType};

pub(super) static ROW: Row = Row {
    operands: Operands::Named(&["dest", "source"]),
    attributes: &[Attribute::new("offsets", AttributeKind::I64s)],
    syntax: Some("$source `into` $dest"),
    family: Family::Update,
    read: |attributes| Ok(Op::Update { offsets: attributes.i64s("offsets")? }),
    write: |op| match op {
        Op::Update { offsets } => vec![("offsets", offsets[..].into())],
        _ => vec![],
    },
    example: || {
        let shapes: [&[i64]; 2] = [&[3, 8], &[2, 4]];
        let types = shapes.map(|shape| TensorType::new(DType::F32, shape));
        (Op::Update { offsets: vec![1, 2] }, types.to_vec())
    },
    ..Row::new("update", "`dest` with the box at `offsets` replaced by `source`")
};

pub(super) fn infer(operands: &[TensorType], offsets: &[i64]) -> Result<TensorType, String> {
    let [dest, source] = [&operands[0], &operands[1]];
    if dest.dtype != source.dtype {
        return Err(format!("expected operands of one element type, found {dest} and {source}"));
    }
    check_box(offsets, &source.shape, dest)?;
    Ok(dest.clone())
}

pub(super) fn eval(
    operands: &[&Tensor],
    _: TensorType,
    offsets: &[i64],
) -> Result<Tensor, EvalError> {
    let [dest, source] = [operands[0], operands[1]];
    let mut result = dest.clone();
    let size = dest.dtype().size();
    let places = box_positions(offsets, source.shape(), dest.shape());
    for (element, place) in source.bytes().chunks_exact(size).zip(places) {
        result.bytes_mut()[place * size..][..size].copy_from_slice(element);
    }
    Ok(result)
}

pub(super) fn compute(operands: &[Type], offsets: &[i64]) -> Result<Compute, String> {
    let [dest, source] = [&operands[0], &operands[1]];
    if offsets.len() != dest.rank() || source.rank() != dest.rank() {
        return Err(format!("expected a box within {dest}, found {source}"));
    }
    let shifted = |axis: usize| Scalar::Loop(axis) - Scalar::index(offsets[axis]);
    let old = Scalar::load(0, loops(0..dest.rank()));
    let new = Scalar::load(1, (0..dest.rank()).map(shifted).collect::<Vec<_>>());
    let inside = (0..dest.rank()).map(|axis| {
        let size = Scalar::Size(source.dims[axis].clone());
        shifted(axis).ge(Scalar::index(0)).and(shifted(axis).lt(size))
    });
    let body = match inside.reduce(Scalar::and) {
        Some(inside) => inside.select(new, old),
        None => new,
    };
    Ok(Compute::map(dest.dims.clone(), body))
}

pub(super) fn flops(_: &[TensorType], _: &TensorType, _: &[i64]) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use crate::{Op, Tensor};

    #[test]
    fn only_the_box_changes() {
        let dest = Tensor::from_values([3, 3], &[0i16; 9]).expect("a tensor");
        let source = Tensor::from_values([2, 1], &[5i16, 6]).expect("a tensor");
        let op = Op::Update { offsets: vec![1, 2] };
        let result = op.eval(&[&dest, &source]).expect("inside");
        assert_eq!(result.to_f64(), [0., 0., 0., 0., 0., 5., 0., 0., 6.]);
        let outside = Op::Update { offsets: vec![2, 2] }.eval(&[&dest, &source]);
        assert!(outside.expect_err("outside").to_string().starts_with("update: expected a box"));
    }
}
