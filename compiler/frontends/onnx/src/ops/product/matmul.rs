//! Matrix products of floats or integers.

use super::block_scaled::{BlockScaled, Given, block_scaled_product};
use super::rows::{flattened, with_unit};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Binary, Builder, Built, DType, Op, Relation, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    Operator::new("MatMul", &[1, 9, 13], |cx| {
        let x = cx.input(0)?;
        if let Some(weights) = dequantised(cx, x, false)? {
            return one(block_scaled_product(cx.b, x, &weights));
        }
        let y = right_operand(cx, x)?;
        one(product(cx.b, x, y))
    }),
    Operator::new("Gemm", &[1, 6, 7, 9, 11, 13], gemm),
];

/// NumPy's `matmul`: an operand of rank 1 is a row on the left, a column on the right.
pub(in crate::ops) fn product(b: &mut Builder, x: ValueId, y: ValueId) -> Built {
    let (row, column) = (b.rank(x) == 1, b.rank(y) == 1);
    if b.rank(x) == 0 || b.rank(y) == 0 {
        return Err("expected operands of rank 1 or more, found a scalar".into());
    }
    let left = if row { with_unit(b, x, 0)? } else { x };
    let right = if column { with_unit(b, y, 1)? } else { y };
    let result = flat_product(b, left, right)?;
    let mut dims = b.dims(result);
    if column {
        dims.pop();
    }
    if row {
        dims.remove(dims.len() - if column { 1 } else { 2 });
    }
    b.reshape(result, &dims)
}

/// The second operand of a product. Narrow constants that are converted to `f32` stay narrow: the product converts them.
fn right_operand(cx: &mut Context<'_>, x: ValueId) -> Result<ValueId, LowerError> {
    let y = cx.input(1)?;
    let are_floats = [x, y].iter().all(|value| cx.dtype(*value) == DType::F32);
    let cast = cx.producer(1).filter(|found| found.node.op == "Cast" && are_floats);
    let Some([Some(narrow)]) = cast.as_ref().map(|cast| &cast.inputs[..]) else { return Ok(y) };
    let is_narrow = matches!(cx.dtype(*narrow), DType::F16 | DType::BF16);
    Ok(if is_narrow && cx.b.is_constant(*narrow) { *narrow } else { y })
}

/// The second operand of a product of `f32`, if it is a constant matrix of integers that is dequantised for each column or in
/// blocks along the depth.
fn dequantised(
    cx: &mut Context<'_>,
    x: ValueId,
    is_transposed: bool,
) -> Result<Option<BlockScaled>, LowerError> {
    let Some(found) = cx.producer(1).filter(|found| found.node.op == "DequantizeLinear") else {
        return Ok(None);
    };
    let [Some(integers), Some(scales), ..] = found.inputs[..] else { return Ok(None) };
    let y = cx.input(1)?;
    if [x, y, scales].iter().any(|value| cx.dtype(*value) != DType::F32) || cx.b.rank(y) != 2 {
        return Ok(None);
    }
    let zeros = found.inputs.get(2).copied().flatten();
    let tensor = |value: Option<ValueId>| value.map(|value| cx.b.constant_of(value)).transpose();
    let (Some(integers), Some(scales), zeros) =
        (cx.b.constant_of(integers)?, cx.b.constant_of(scales)?, tensor(zeros)?)
    else {
        return Ok(None);
    };
    if zeros.as_ref().is_some_and(Option::is_none) {
        return Ok(None);
    }
    let zeros = zeros.flatten();
    let int = |name: &str, default: i64| found.int(name).unwrap_or(default);
    let axis = int("axis", 1);
    let is_along_depth = (if axis < 0 { axis + 2 } else { axis }) == i64::from(is_transposed);
    let block = match (scales.shape().len(), usize::try_from(int("block_size", 0))) {
        (2, Ok(block @ 1..)) if is_along_depth => Some(block),
        (1, Ok(0)) if !is_along_depth || scales.shape() == [1] => None,
        (0, Ok(0)) => None,
        _ => return Ok(None),
    };
    let given =
        Given { integers: &integers, scales: &scales, zeros: zeros.as_ref(), is_transposed, block };
    Ok(given.operand(cx.b)?)
}

/// A stack of matrices times one matrix is one product of a taller matrix.
fn flat_product(b: &mut Builder, x: ValueId, y: ValueId) -> Built {
    if b.rank(y) > 2 || b.ty(y).known().is_none() {
        return b.matmul(x, y);
    }
    let columns = b.dims(y)[1].clone();
    flattened(b, x, columns, |b, x| b.matmul(x, y))
}

fn gemm(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let y = right_operand(cx, x)?;
    let transposed = |name| -> Result<bool, LowerError> { Ok(cx.int_or(name, 0)? != 0) };
    let op =
        Op::Matmul { transpose_lhs: transposed("transA")?, transpose_rhs: transposed("transB")? };
    for value in [x, y] {
        if cx.b.rank(value) != 2 {
            let found = cx.ty(value);
            return Err(LowerError::invalid(format!("expected matrices, found {found}")));
        }
    }
    let weights = match op {
        Op::Matmul { transpose_lhs: false, transpose_rhs } => dequantised(cx, x, transpose_rhs)?,
        _ => None,
    };
    let (alpha, beta) = (cx.float_or("alpha", 1.0)?, cx.float_or("beta", 1.0)?);
    let result = match weights {
        Some(weights) => block_scaled_product(cx.b, x, &weights)?,
        None => cx.b.op(op, &[x, y])?,
    };
    let result = scaled(cx.b, result, alpha)?;
    let added = if cx.version < 11 { Some(cx.input(2)?) } else { cx.optional(2) };
    let Some(added) = added.filter(|_| beta != 0.0) else { return Ok(vec![result]) };
    let added = scaled(cx.b, added, beta)?;
    fits(cx.b, added, result)?;
    one(cx.b.binary(Binary::Add, result, added))
}

/// Multiplies every element by a float, whatever the type of the elements.
fn scaled(b: &mut Builder, x: ValueId, by: f32) -> Built {
    let dtype = b.dtype(x);
    if dtype.is_float() || by == 1.0 {
        return crate::ops::pieces::scale(b, x, f64::from(by));
    }
    let float = b.cast(x, DType::F64)?;
    let float = crate::ops::pieces::scale(b, float, f64::from(by))?;
    b.cast(float, dtype)
}

/// Checks that a value broadcasts to another's shape, but not vice versa.
fn fits(b: &mut Builder, x: ValueId, to: ValueId) -> Built<()> {
    let (own, to) = (b.dims(x), b.dims(to));
    let Some(new) = to.len().checked_sub(own.len()) else {
        return Err(format!("expected C of rank 2 at most, found {}", b.ty(x)).into());
    };
    for (own, to) in own.iter().zip(&to[new..]) {
        b.require(own, Relation::EqualOrOne, to, "expected C to broadcast to the product")?;
    }
    Ok(())
}
