//! Rotary position embedding.

use super::{Family, Op, Operands, Row, count};
use crate::general::spread;
use crate::index::{broadcast_strides, positions};
use crate::{Binary, Compute, DType, EvalError, Scalar, Type, Unary, broadcast_shapes};
use irc_tensor::{Tensor, TensorType};

pub(super) static ROW: Row = Row {
    description: "`rhs` holds `(cos, sin)` pairs in its last dimension and broadcasts to `lhs`:
`out[2i] = x[2i] c - x[2i+1] s`, `out[2i+1] = x[2i] s + x[2i+1] c`; floats.",
    operands: Operands::Named(&["lhs", "rhs"]),
    family: Family::Pick,
    read: |_| Ok(Op::Rope),
    example: || (Op::Rope, vec![TensorType::new(DType::F32, [2, 8]); 2]),
    ..Row::new("rope", "rotary embedding of adjacent pairs by interleaved (cos, sin)")
};

pub(super) fn infer(operands: &[TensorType]) -> Result<TensorType, String> {
    let [input, other] = [&operands[0], &operands[1]];
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

pub(super) fn eval(operands: &[&Tensor], ty: TensorType) -> Result<Tensor, EvalError> {
    let [input, other] = [operands[0], operands[1]];
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

pub(super) fn compute(operands: &[Type]) -> Result<Compute, String> {
    let dims = operands[0].dims.clone();
    let last = dims.len().checked_sub(1).ok_or("expected at least one dimension")?;
    let two = || Scalar::index(2);
    let odd = Scalar::Loop(last).binary(Binary::Rem, two());
    let even = Scalar::Loop(last) - odd.clone();
    let other = even.clone() + (Scalar::index(1) - odd.clone());
    let at = |operand: usize, index: &Scalar| {
        spread(operand, operands, &dims)
            .replace(&mut |part| (*part == Scalar::Loop(last)).then(|| index.clone()))
    };
    let dtype = operands[0].dtype;
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let [own, other, cos, sin] = [
        at(0, &Scalar::Loop(last)),
        at(0, &other),
        at(1, &even),
        at(1, &(even.clone() + Scalar::index(1))),
    ]
    .map(|part| part.cast(wide));
    let turned = odd.equals(Scalar::index(0)).select(sin.clone().unary(Unary::Neg), sin);
    Ok(Compute::map(dims, (own * cos + other * turned).cast(dtype)))
}

/// Six operations per pair.
pub(super) fn flops(_: &[TensorType], result: &TensorType) -> u64 {
    count(result).saturating_mul(3)
}

#[cfg(test)]
mod tests {
    use crate::{Op, Tensor};

    #[test]
    fn adjacent_pairs_turn() {
        let input = Tensor::from_values([2, 4], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let input = input.expect("a tensor");
        // The first pair is rotated by 90 degrees, the second not at all.
        let angles = Tensor::from_values([4], &[0.0f32, 1.0, 1.0, 0.0]).expect("a tensor");
        let turned = Op::Rope.eval(&[&input, &angles]).expect("even");
        let types = [&input, &angles].map(|tensor| tensor.ty().clone().into());
        let loops = Op::Rope.as_compute(&types).expect("loops").eval(&[&input, &angles]);
        assert_eq!(loops.expect("in bounds"), turned);
        assert_eq!(turned.to_f64(), [-2.0, 1.0, 3.0, 4.0, -6.0, 5.0, 7.0, 8.0]);
        let odd = Tensor::from_values([3], &[1.0f32, 2.0, 3.0]).expect("a tensor");
        assert_eq!(
            Op::Rope.eval(&[&odd, &odd]).expect_err("odd").to_string(),
            "rope: expected one even last dimension, found f32[3] and f32[3]"
        );
    }
}
