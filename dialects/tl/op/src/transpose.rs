//! Reordered dimensions.

use crate::EvalError;
use crate::index::{pick, positions, strides};
use irc_tensor::{Tensor, TensorType};

pub(crate) fn infer(permutation: &[usize], operand: &TensorType) -> Result<TensorType, String> {
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

pub(crate) fn eval(
    permutation: &[usize],
    operand: &Tensor,
    ty: TensorType,
) -> Result<Tensor, EvalError> {
    let own = strides(operand.shape());
    let strides: Vec<_> = permutation.iter().map(|&axis| own[axis]).collect();
    let positions = positions(&ty.shape, &strides, 0);
    Ok(pick(operand, ty, positions)?)
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
