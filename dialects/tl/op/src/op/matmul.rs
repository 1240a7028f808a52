//! Matrix product.

use super::{Attribute, Family, Op, Operands, Row, count};
use crate::general::{join_dims, stretch};
use crate::index::{broadcast_strides, positions};
use crate::values::Values;
use crate::{Combine, Compute, EvalError, Scalar, Type, broadcast_shapes};
use irc_tensor::{DType, Tensor, TensorType};
use ndarray::{ArrayView2, LinalgScalar, ShapeBuilder};

pub(super) static ROW: Row = Row {
    operands: Operands::Named(&["lhs", "rhs"]),
    attributes: &[Attribute::flag("transpose_lhs"), Attribute::flag("transpose_rhs")],
    family: Family::Contraction,
    read: |attributes| {
        let [transpose_lhs, transpose_rhs] =
            [attributes.flag("transpose_lhs")?, attributes.flag("transpose_rhs")?];
        Ok(Op::Matmul { transpose_lhs, transpose_rhs })
    },
    write: |op| match op {
        Op::Matmul { transpose_lhs, transpose_rhs } => vec![
            ("transpose_lhs", (*transpose_lhs).into()),
            ("transpose_rhs", (*transpose_rhs).into()),
        ],
        _ => vec![],
    },
    example: || {
        let op = Op::Matmul { transpose_lhs: false, transpose_rhs: true };
        let shapes: [&[i64]; 2] = [&[2, 4], &[8, 4]];
        (op, shapes.map(|shape| TensorType::new(DType::F32, shape)).to_vec())
    },
    ..Row::new(
        "matmul",
        "matrix product of the last two dimensions, `i32` of `u8` and `i8`, `f32` of it and `f16` or `bf16`; leading dimensions broadcast",
    )
};

pub(super) fn infer(
    operands: &[TensorType],
    transpose_lhs: &bool,
    transpose_rhs: &bool,
) -> Result<TensorType, String> {
    let [lhs, rhs] = [&operands[0], &operands[1]];
    let transposed = [*transpose_lhs, *transpose_rhs];
    let dtype = sum_type(lhs.dtype, rhs.dtype).ok_or_else(|| {
        format!(
            "expected float or integer operands of one element type, u8 and i8, or f32 and f16 or bf16, found {lhs} and {rhs}"
        )
    })?;
    if lhs.rank() < 2 || rhs.rank() < 2 {
        return Err(format!("expected operands of rank 2 or more, found {lhs} and {rhs}"));
    }
    let ([rows, depth], [other, columns]) =
        (matrix(lhs, transposed[0]), matrix(rhs, transposed[1]));
    if depth != other {
        return Err(format!(
            "expected one contracted size, found {depth} of {lhs} and {other} of {rhs}"
        ));
    }
    let mut shape = broadcast_shapes(batch(&lhs.shape), batch(&rhs.shape)).ok_or_else(|| {
        format!("expected batch dimensions that broadcast together, found {lhs} and {rhs}")
    })?;
    shape.extend([rows, columns]);
    Ok(TensorType::new(dtype, shape))
}

/// The type of sums of products of elements of two types: theirs if it is one, and `i32` for `u8` and `i8`, whose
/// products are exact in it, and `f32` for it and `f16` or `bf16`, whose elements it holds. `None` for others.
pub(super) fn sum_type(lhs: DType, rhs: DType) -> Option<DType> {
    match (lhs, rhs) {
        (DType::U8, DType::I8) | (DType::I8, DType::U8) => Some(DType::I32),
        (DType::F32, DType::F16 | DType::BF16) | (DType::F16 | DType::BF16, DType::F32) => {
            Some(DType::F32)
        }
        (DType::Bool | DType::String, _) => None,
        _ => (lhs == rhs).then_some(lhs),
    }
}

/// An element of an operand as a factor of such a product.
pub(super) fn factor(element: Scalar, own: DType, other: DType) -> Scalar {
    match sum_type(own, other) {
        Some(sum) if sum != own => element.cast(sum),
        _ => element,
    }
}

/// Two operations per multiply-accumulate.
pub(super) fn flops(
    operands: &[TensorType],
    result: &TensorType,
    transpose_lhs: &bool,
    _: &bool,
) -> u64 {
    let [_, depth] = matrix(&operands[0], *transpose_lhs);
    count(result).saturating_mul(depth.unsigned_abs()).saturating_mul(2)
}

pub(super) fn eval(
    operands: &[&Tensor],
    ty: TensorType,
    transpose_lhs: &bool,
    transpose_rhs: &bool,
) -> Result<Tensor, EvalError> {
    let operands = [operands[0], operands[1]];
    let transposed = [*transpose_lhs, *transpose_rhs];
    let [lhs, rhs] = operands;
    let result = match (Values::of(lhs), Values::of(rhs)) {
        (Values::Float(left), Values::Float(right)) => {
            Values::Float(products(operands, transposed, &ty, [&left, &right], |a, b| {
                a.dot(&b).into_iter()
            }))
        }
        (Values::Integer(left), Values::Integer(right)) => {
            Values::Integer(products(operands, transposed, &ty, [&left, &right], |a, b| {
                integer(a, b).into_iter()
            }))
        }
        _ => unreachable!("inference found one element type"),
    };
    Ok(result.into_tensor(ty)?)
}

/// The products of all matrices of the broadcast batch, in order.
fn products<T: LinalgScalar, I: Iterator<Item = T>>(
    operands: [&Tensor; 2],
    transposed: [bool; 2],
    ty: &TensorType,
    values: [&[T]; 2],
    product: impl Fn(ArrayView2<'_, T>, ArrayView2<'_, T>) -> I,
) -> Vec<T> {
    let shape = batch(&ty.shape);
    let starts = |side: usize| {
        let strides = broadcast_strides(batch(operands[side].shape()), shape);
        positions(shape, &strides, 0)
    };
    let view = |side: usize, at: usize| {
        let [rows, columns] = matrix(operands[side].ty(), transposed[side]);
        let dims = (rows as usize, columns as usize);
        let stored = &values[side][at * dims.0 * dims.1..][..dims.0 * dims.1];
        let layout = dims.set_f(transposed[side]);
        ArrayView2::from_shape(layout, stored).expect("the slice has the size of the shape")
    };
    let pairs = starts(0).zip(starts(1));
    pairs.flat_map(|(left, right)| product(view(0, left), view(1, right))).collect()
}

/// Modulo 2^128, so that the low bits are right for any width.
fn integer(lhs: ArrayView2<'_, i128>, rhs: ArrayView2<'_, i128>) -> Vec<i128> {
    let mut result = Vec::with_capacity(lhs.nrows() * rhs.ncols());
    for row in lhs.rows() {
        for column in rhs.columns() {
            let terms = row.iter().zip(column).map(|(a, b)| a.wrapping_mul(*b));
            result.push(terms.fold(0, i128::wrapping_add));
        }
    }
    result
}

/// `[rows, columns]` of the matrices of an operand in the multiplication.
fn matrix(ty: &TensorType, transposed: bool) -> [i64; 2] {
    let [rows, columns] = [ty.shape[ty.rank() - 2], ty.shape[ty.rank() - 1]];
    if transposed { [columns, rows] } else { [rows, columns] }
}

fn batch(shape: &[i64]) -> &[i64] {
    &shape[..shape.len() - 2]
}

pub(super) fn compute(
    operands: &[Type],
    transpose_lhs: &bool,
    transpose_rhs: &bool,
) -> Result<Compute, String> {
    let [lhs, rhs] = [&operands[0], &operands[1]];
    let transposed = [*transpose_lhs, *transpose_rhs];
    if lhs.rank() < 2 || rhs.rank() < 2 {
        return Err(format!("expected operands of rank 2 or more, found {lhs} and {rhs}"));
    }
    let batch = |ty: &Type| ty.dims[..ty.rank() - 2].to_vec();
    let mut dims = join_dims(&batch(lhs), &batch(rhs))
        .ok_or("expected batch dimensions that broadcast together")?;
    let outer = dims.len();
    let matrix = |ty: &Type, transposed: bool| {
        let [rows, columns] = [ty.dims[ty.rank() - 2].clone(), ty.dims[ty.rank() - 1].clone()];
        if transposed { [columns, rows] } else { [rows, columns] }
    };
    let ([rows, depth], [_, columns]) = (matrix(lhs, transposed[0]), matrix(rhs, transposed[1]));
    dims.extend([rows, columns]);
    let side = |index: usize, ty: &Type, pair: [usize; 2]| {
        let own = ty.rank() - 2;
        let at = |axis: usize| {
            let to = outer - own + axis;
            stretch(&ty.dims[axis], &dims[to], Scalar::Loop(to))
        };
        let pair = if transposed[index] { [pair[1], pair[0]] } else { pair };
        let at: Vec<_> = (0..own).map(at).chain(pair.map(Scalar::Loop)).collect();
        factor(Scalar::load(index, at), ty.dtype, operands[1 - index].dtype)
    };
    let inner = outer + 2;
    let body = side(0, lhs, [outer, inner]) * side(1, rhs, [inner, outer + 1]);
    Ok(Compute::reduce(dims, Combine::Sum, [depth], body))
}

#[cfg(test)]
mod tests {
    use crate::{DType, Op, Tensor, TensorType};

    const PLAIN: Op = Op::Matmul { transpose_lhs: false, transpose_rhs: false };

    #[test]
    fn known_values() {
        let lhs = Tensor::from_values([2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let rhs = Tensor::from_values([3, 2], &[7.0f32, 8.0, 9.0, 10.0, 11.0, 12.0]);
        let (lhs, rhs) = (lhs.expect("a tensor"), rhs.expect("a tensor"));
        let product = PLAIN.eval(&[&lhs, &rhs]).expect("matrices");
        assert_eq!(product.to_f64(), [58.0, 64.0, 139.0, 154.0]);
    }

    #[test]
    fn transposed_operands_are_read_so() {
        let swap = Op::Transpose { permutation: vec![0, 2, 1] };
        let random = |shape: [i64; 3], seed| {
            Tensor::random(TensorType::new(DType::F32, shape), seed).expect("a tensor")
        };
        let (lhs, rhs) = (random([2, 3, 4], 1), random([1, 4, 5], 2));
        let expected = PLAIN.eval(&[&lhs, &rhs]).expect("matrices");
        let (lhs_t, rhs_t) = (swap.eval(&[&lhs]), swap.eval(&[&rhs]));
        let both = Op::Matmul { transpose_lhs: true, transpose_rhs: true };
        let turned = [&lhs_t.expect("rank 3"), &rhs_t.expect("rank 3")];
        assert_eq!(both.eval(&turned).expect("matrices"), expected);
        assert_eq!(expected.shape(), [2, 3, 5]);
    }

    #[test]
    fn batches_broadcast() {
        let lhs = Tensor::from_values([2, 1, 1, 1], &[2i32, 3]).expect("a tensor");
        let rhs = Tensor::from_values([3, 1, 1], &[5i32, 7, 11]).expect("a tensor");
        let product = PLAIN.eval(&[&lhs, &rhs]).expect("matrices");
        assert_eq!(product.shape(), [2, 3, 1, 1]);
        assert_eq!(product.to_f64(), [10.0, 14.0, 22.0, 15.0, 21.0, 33.0]);
    }

    #[test]
    fn integers_wrap() {
        let bytes = Tensor::from_values([1, 2], &[100u8, 100]).expect("a tensor");
        let square = Op::Matmul { transpose_lhs: false, transpose_rhs: true };
        let product = square.eval(&[&bytes, &bytes]).expect("matrices");
        assert_eq!(product.to_f64(), [f64::from(20_000 % 256)]);
    }

    #[test]
    fn bytes_of_both_signs_multiply_exactly() {
        let lhs = Tensor::from_values([1, 3], &[255u8, 255, 0]).expect("a tensor");
        let rhs = Tensor::from_values([3, 1], &[-128i8, -128, 127]).expect("a tensor");
        let product = PLAIN.eval(&[&lhs, &rhs]).expect("matrices");
        assert_eq!((product.dtype(), product.to_f64()), (DType::I32, vec![-65280.0]));
        let types = [&lhs, &rhs].map(|operand| operand.ty().clone().into());
        let loops = PLAIN.as_compute(&types).expect("loops");
        assert_eq!(loops.eval(&[&lhs, &rhs]).expect("matrices"), product);
        let floats = TensorType::new(DType::F32, [3, 1]);
        assert!(PLAIN.infer(&[lhs.ty().clone(), floats]).is_err());
    }

    #[test]
    fn sizes_must_agree() {
        let ty = |shape: &[i64]| TensorType::new(DType::F32, shape);
        let error = |lhs: &[i64], rhs: &[i64]| {
            PLAIN.infer(&[ty(lhs), ty(rhs)]).expect_err("sizes differ").to_string()
        };
        assert_eq!(
            error(&[2, 3], &[2, 3]),
            "matmul: expected one contracted size, found 3 of f32[2,3] and 2 of f32[2,3]"
        );
        assert!(error(&[3], &[3, 1]).contains("rank 2 or more"));
        assert!(error(&[2, 1, 1], &[3, 1, 1]).contains("batch dimensions"));
        assert_eq!(PLAIN.flops(&[ty(&[2, 3]), ty(&[3, 4])]), Ok(48));
    }
}
