//! Matrix product with a 16-bit accumulator, rounded once per step.

use super::{Family, Op, Operands, Row, matmul, no_loops};
use crate::index::{broadcast_strides, positions};
use crate::{Compute, DType, EvalError, Type};
use irc_tensor::{Tensor, TensorType, f16};

pub(super) static ROW: Row = Row {
    description:
        "The products of 16 terms are summed in `f32`, from zero and in order; that sum and the
accumulator are added in `f32` and rounded to `f16`. Batch dimensions broadcast as in `matmul`.",
    operands: Operands::Named(&["lhs", "rhs"]),
    family: Family::Accumulation,
    read: |_| Ok(Op::SteppedMatmul),
    example: || {
        let shapes: [&[i64]; 2] = [&[2, 32], &[32, 8]];
        (Op::SteppedMatmul, shapes.map(|shape| TensorType::new(DType::F16, shape)).to_vec())
    },
    ..Row::new(
        "stepped_matmul",
        "matrix product of f16 with an f16 accumulator, rounded every 16 terms",
    )
};

/// Number of terms that are summed before the accumulator is rounded: the depth of one `mma.m16n8k16`.
pub const STEP: usize = 16;

pub(super) fn infer(operands: &[TensorType]) -> Result<TensorType, String> {
    let ty = matmul::infer(operands, &false, &false)?;
    if ty.dtype != DType::F16 {
        return Err(format!("expected f16 operands, found {} and {}", operands[0], operands[1]));
    }
    Ok(ty)
}

pub(super) fn eval(operands: &[&Tensor], ty: TensorType) -> Result<Tensor, EvalError> {
    let [lhs, rhs] = [0, 1].map(|side| operands[side].to_f32());
    let batch = &ty.shape[..ty.rank() - 2];
    let starts = |operand: &Tensor| {
        let shape = operand.shape();
        let strides = broadcast_strides(&shape[..shape.len() - 2], batch);
        let matrix = shape[shape.len() - 2..].iter().product::<i64>() as usize;
        positions(batch, &strides, 0).map(move |index| index * matrix)
    };
    let [rows, columns] = [ty.rank() - 2, ty.rank() - 1].map(|axis| ty.shape[axis] as usize);
    let depth = operands[0].shape()[operands[0].ty().rank() - 1] as usize;
    let mut result = Vec::new();
    for (left, right) in starts(operands[0]).zip(starts(operands[1])) {
        for row in 0..rows {
            let row = &lhs[left + row * depth..][..depth];
            for column in 0..columns {
                let term = |k: usize| row[k] * rhs[right + k * columns + column];
                result.push(accumulate(depth, term));
            }
        }
    }
    Ok(Tensor::from_f64(ty, &result)?)
}

/// The products of a step are exact in `f32`, and are added to zero in order.
fn accumulate(depth: usize, term: impl Fn(usize) -> f32) -> f64 {
    let mut sum = f16::ZERO;
    for start in (0..depth).step_by(STEP) {
        let step = start..depth.min(start + STEP);
        let partial = step.fold(0.0f32, |partial, k| partial + term(k));
        sum = f16::from_f32(sum.to_f32() + partial);
    }
    sum.to_f64()
}

pub(super) fn compute(_: &[Type]) -> Result<Compute, String> {
    no_loops()
}

pub(super) fn flops(operands: &[TensorType], result: &TensorType) -> u64 {
    matmul::flops(operands, result, &false, &false)
}

#[cfg(test)]
mod tests {
    use crate::{DType, Op, Tensor, TensorType};
    use irc_tensor::f16;

    #[test]
    fn the_accumulator_is_rounded_once_a_step() {
        // Steps of 17 ones: each adds 17 up to 2048, and beyond it 16, the even neighbour.
        let depth = 16 * 200;
        let ones: Vec<f16> = std::iter::repeat_n(f16::ONE, depth).collect();
        let mut column = ones.clone();
        column.iter_mut().step_by(16).for_each(|value| *value = f16::from_f32(2.0));
        let lhs = Tensor::from_values([1, depth as i64], &ones).expect("a tensor");
        let rhs = Tensor::from_values([depth as i64, 1], &column).expect("a tensor");
        let product = Op::SteppedMatmul.eval(&[&lhs, &rhs]).expect("halves").to_f64();
        let mut expected = f16::ZERO;
        (0..200).for_each(|_| expected = f16::from_f32(expected.to_f32() + 17.0));
        assert_eq!(product, [expected.to_f64()]);
        assert_ne!(product, [3400.0]);
    }

    #[test]
    fn batches_broadcast_and_other_types_are_rejected() {
        let random = |shape: &[i64], seed| {
            Tensor::random(TensorType::new(DType::F16, shape), seed).expect("a tensor")
        };
        let (lhs, rhs) = (random(&[2, 1, 3, 5], 1), random(&[4, 5, 2], 2));
        let product = Op::SteppedMatmul.eval(&[&lhs, &rhs]).expect("halves");
        let wide = Op::Matmul { transpose_lhs: false, transpose_rhs: false };
        let wide = wide.eval(&[&lhs, &rhs]).expect("halves");
        assert_eq!(product.shape(), [2, 4, 3, 2]);
        // A single step rounds once, like the wide product, except for f32 sums of five terms.
        for (stepped, wide) in product.to_f64().into_iter().zip(wide.to_f64()) {
            assert!((stepped - wide).abs() <= 1e-3 * (1.0 + wide.abs()), "{stepped} {wide}");
        }
        let single = TensorType::new(DType::F32, [2, 2]);
        let error = Op::SteppedMatmul.infer(&[single.clone(), single]).expect_err("not f16");
        assert!(error.message.contains("expected f16 operands"), "{error}");
    }
}
