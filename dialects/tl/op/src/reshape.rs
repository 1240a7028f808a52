//! The same elements under another shape.

use irc_tensor::TensorType;

pub(crate) fn infer(shape: &[i64], operand: &TensorType) -> Result<TensorType, String> {
    let ty = TensorType::new(operand.dtype, shape);
    let expected = operand.elements().map_err(|error| error.to_string())?;
    let found = ty.elements().map_err(|error| error.to_string())?;
    if expected == found {
        return Ok(ty);
    }
    Err(format!("expected a shape of {expected} elements as in {operand}, found {ty} of {found}"))
}

#[cfg(test)]
mod tests {
    use crate::{Op, Tensor};

    #[test]
    fn elements_keep_their_order() {
        let operand = Tensor::from_values([2, 3], &[1u8, 2, 3, 4, 5, 6]).expect("a tensor");
        let result = Op::Reshape { shape: vec![3, 1, 2] }.eval(&[&operand]).expect("6 elements");
        assert_eq!((result.shape(), result.bytes()), (&[3, 1, 2][..], operand.bytes()));
        assert_eq!(
            Op::Reshape { shape: vec![4] }.eval(&[&operand]).expect_err("4").to_string(),
            "reshape: expected a shape of 6 elements as in u8[2,3], found u8[4] of 4"
        );
    }
}
