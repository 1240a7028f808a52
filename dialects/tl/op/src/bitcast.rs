//! The same bytes as another type.

use irc_tensor::{DType, TensorType};

pub(crate) fn infer(to: DType, shape: &[i64], operand: &TensorType) -> Result<TensorType, String> {
    let ty = TensorType::new(to, shape);
    let expected = operand.byte_size().map_err(|error| error.to_string())?;
    let found = ty.byte_size().map_err(|error| error.to_string())?;
    if expected == found {
        return Ok(ty);
    }
    Err(format!("expected a type of {expected} bytes as {operand}, found {ty} of {found}"))
}

#[cfg(test)]
mod tests {
    use crate::{DType, Op, Tensor};

    #[test]
    fn a_float_is_four_bytes() {
        let operand = Tensor::from_values([1], &[1.0f32]).expect("a tensor");
        let op = Op::Bitcast { to: DType::U8, shape: vec![4] };
        let bytes = op.eval(&[&operand]).expect("4 bytes");
        assert_eq!(bytes.bytes(), 1.0f32.to_ne_bytes());
        let back = Op::Bitcast { to: DType::F32, shape: vec![1] };
        assert_eq!(back.eval(&[&bytes]).expect("4 bytes"), operand);
        let wrong = Op::Bitcast { to: DType::F16, shape: vec![1] }.eval(&[&operand]);
        assert_eq!(
            wrong.expect_err("2 bytes").to_string(),
            "bitcast: expected a type of 4 bytes as f32[1], found f16[1] of 2"
        );
    }
}
