//! Reordering of dimensions.

use super::{Attribute, AttributeKind, Family, Op, Operands, Row};
use crate::index::{pick, positions, strides};
use crate::{Compute, DType, EvalError, Scalar, Type};
use irc_tensor::{Tensor, TensorType};

pub(super) static ROW: Row = Row {
    operands: Operands::Named(&["operand"]),
    attributes: &[Attribute::new("permutation", AttributeKind::Indices)],
    family: Family::Transpose,
    read: |attributes| Ok(Op::Transpose { permutation: attributes.indices("permutation")? }),
    write: |op| match op {
        Op::Transpose { permutation } => vec![("permutation", permutation[..].into())],
        _ => vec![],
    },
    example: || {
        (Op::Transpose { permutation: vec![1, 0] }, vec![TensorType::new(DType::F32, [2, 8])])
    },
    ..Row::new("transpose", "dimension i of the result is permutation[i] of the operand")
};

impl Op {
    /// The dimensions of its operand in the order of its result, if it only reorders them.
    pub fn permutation(&self) -> Option<&[usize]> {
        match self {
            Self::Transpose { permutation } => Some(permutation),
            _ => None,
        }
    }
}

pub(super) fn infer(operands: &[TensorType], permutation: &[usize]) -> Result<TensorType, String> {
    let operand = &operands[0];
    let mut sorted = permutation.to_vec();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..operand.rank()) {
        return Err(format!(
            "expected a permutation of the {} axes of {operand}, found {permutation:?}",
            operand.rank()
        ));
    }
    let shape: Vec<_> = permutation.iter().map(|&axis| operand.shape[axis]).collect();
    Ok(TensorType::new(operand.dtype, shape))
}

pub(super) fn eval(
    operands: &[&Tensor],
    ty: TensorType,
    permutation: &[usize],
) -> Result<Tensor, EvalError> {
    let operand = operands[0];
    let own = strides(operand.shape());
    let strides: Vec<_> = permutation.iter().map(|&axis| own[axis]).collect();
    let positions = positions(&ty.shape, &strides, 0);
    Ok(pick(operand, ty, positions)?)
}

pub(super) fn compute(operands: &[Type], permutation: &[usize]) -> Result<Compute, String> {
    let operand = &operands[0];
    let dims: Option<Vec<_>> =
        permutation.iter().map(|axis| operand.dims.get(*axis).cloned()).collect();
    let at: Option<Vec<_>> = (0..operand.rank())
        .map(|axis| permutation.iter().position(|from| *from == axis).map(Scalar::Loop))
        .collect();
    let (dims, at) = dims.zip(at).ok_or("expected a permutation of the axes")?;
    Ok(Compute::map(dims, Scalar::load(0, at)))
}

pub(super) fn flops(_: &[TensorType], _: &TensorType, _: &[usize]) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use crate::{Op, Tensor};

    #[test]
    fn a_cycle_of_three_axes_turns_as_in_numpy() {
        let values: Vec<u8> = (0..24).collect();
        let operand = Tensor::from_values([2, 3, 4], &values).expect("a tensor");
        let op = Op::Transpose { permutation: vec![1, 2, 0] };
        let turned = op.eval(&[&operand]).expect("rank 3");
        assert_eq!(turned.shape(), [3, 4, 2]);
        // numpy.arange(24).reshape(2, 3, 4).transpose(1, 2, 0)[1, 2] is [6, 18].
        assert_eq!(turned.bytes()[(4 + 2) * 2..][..2], [6, 18]);
        let error = Op::Transpose { permutation: vec![0, 0, 1] }.eval(&[&operand]);
        assert_eq!(
            error.expect_err("not a permutation").to_string(),
            "transpose: expected a permutation of the 3 axes of u8[2,3,4], found [0, 0, 1]"
        );
    }
}
