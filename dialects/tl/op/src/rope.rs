//! Rotary position embedding.

use crate::EvalError;
use crate::broadcast::broadcast_shapes;
use crate::index::{broadcast_strides, positions};
use irc_tensor::{Tensor, TensorType};

pub(crate) fn infer(input: &TensorType, other: &TensorType) -> Result<TensorType, String> {
    if input.dtype != other.dtype || !input.dtype.is_float() {
        return Err(format!("expected float operands of one type, found {input} and {other}"));
    }
    let width = input.shape.last().copied().unwrap_or(1);
    if width % 2 != 0 || other.shape.last() != Some(&width) {
        return Err(format!("expected one even last dimension, found {input} and {other}"));
    }
    if broadcast_shapes(&input.shape, &other.shape).as_ref() != Some(&input.shape) {
        return Err(format!("expected the second operand to broadcast to {input}, found {other}"));
    }
    Ok(input.clone())
}

pub(crate) fn eval(input: &Tensor, other: &Tensor, ty: TensorType) -> Result<Tensor, EvalError> {
    let (x, angles) = (input.to_f64(), other.to_f64());
    let strides = broadcast_strides(other.shape(), &ty.shape);
    let places: Vec<_> = positions(&ty.shape, &strides, 0).collect();
    let mut result = Vec::with_capacity(x.len());
    for (pair, place) in x.chunks_exact(2).zip(places.chunks_exact(2)) {
        let (cos, sin) = (angles[place[0]], angles[place[1]]);
        result.push(pair[0] * cos - pair[1] * sin);
        result.push(pair[0] * sin + pair[1] * cos);
    }
    Ok(Tensor::from_f64(ty, &result)?)
}

#[cfg(test)]
mod tests {
    use crate::{Op, Tensor};

    #[test]
    fn adjacent_pairs_turn() {
        let input = Tensor::from_values([2, 4], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let input = input.expect("a tensor");
        // The first pair turns by a quarter, the second not at all.
        let angles = Tensor::from_values([4], &[0.0f32, 1.0, 1.0, 0.0]).expect("a tensor");
        let turned = Op::Rope.eval(&[&input, &angles]).expect("even");
        assert_eq!(turned.to_f64(), [-2.0, 1.0, 3.0, 4.0, -6.0, 5.0, 7.0, 8.0]);
        let odd = Tensor::from_values([3], &[1.0f32, 2.0, 3.0]).expect("a tensor");
        assert_eq!(
            Op::Rope.eval(&[&odd, &odd]).expect_err("odd").to_string(),
            "rope: expected one even last dimension, found f32[3] and f32[3]"
        );
    }
}
