//! A tensor with a box replaced.

use crate::EvalError;
use crate::slice::{box_positions, check_box};
use irc_tensor::{Tensor, TensorType};

pub(crate) fn infer(
    offsets: &[i64],
    dest: &TensorType,
    source: &TensorType,
) -> Result<TensorType, String> {
    if dest.dtype != source.dtype {
        return Err(format!("expected operands of one element type, found {dest} and {source}"));
    }
    check_box(offsets, &source.shape, dest)?;
    Ok(dest.clone())
}

pub(crate) fn eval(offsets: &[i64], dest: &Tensor, source: &Tensor) -> Result<Tensor, EvalError> {
    let mut result = dest.clone();
    let size = dest.dtype().size();
    let places = box_positions(offsets, source.shape(), dest.shape());
    for (element, place) in source.bytes().chunks_exact(size).zip(places) {
        result.bytes_mut()[place * size..][..size].copy_from_slice(element);
    }
    Ok(result)
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
