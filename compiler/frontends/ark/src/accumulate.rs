//! Sums and products in the order and precision of ARK's kernels on CUDA_80.
//!
//! `docs/accumulation.md` describes them, with references to ARK.

use crate::emit::{fill, reshape, shape, tensor_type, update};
use irc_tl::{Binary, Builder, Built, DType, Op, Rounding, Unary, ValueId};

/// Threads of the warp that reduces a row.
const LANES: i64 = 32;

/// Maximum number of bytes that a thread loads at once.
const LOAD_BYTES: i64 = 16;

/// A matmul that accumulates in `f32` and rounds once.
pub(crate) fn plain_matmul(
    builder: &mut Builder,
    operands: [ValueId; 2],
    [transpose_lhs, transpose_rhs]: [bool; 2],
) -> Built {
    builder.op(Op::Matmul { transpose_lhs, transpose_rhs }, &operands)
}

/// ARK's matmul: `f16` in an `f16` accumulator, `f32` through TF32, `bf16` in `f32`.
pub(crate) fn matmul(
    builder: &mut Builder,
    [lhs, rhs]: [ValueId; 2],
    transposed: [bool; 2],
) -> Built {
    match builder.dtype(lhs) {
        DType::F16 => {
            let lhs = if transposed[0] { swapped(builder, lhs)? } else { lhs };
            let rhs = if transposed[1] { swapped(builder, rhs)? } else { rhs };
            builder.op(Op::SteppedMatmul, &[lhs, rhs])
        }
        DType::F32 => {
            let lhs = builder.unary(Unary::RoundTf32, lhs)?;
            let rhs = builder.unary(Unary::RoundTf32, rhs)?;
            plain_matmul(builder, [lhs, rhs], transposed)
        }
        _ => plain_matmul(builder, [lhs, rhs], transposed),
    }
}

/// Exchanges the last two dimensions.
fn swapped(builder: &mut Builder, value: ValueId) -> Built {
    let rank = builder.rank(value);
    let mut permutation: Vec<usize> = (0..rank).collect();
    permutation.swap(rank - 2, rank - 1);
    builder.op(Op::Transpose { permutation }, &[value])
}

/// ARK's sum or mean of 16-bit floats along an axis, which is removed.
pub(crate) fn reduce(builder: &mut Builder, input: ValueId, axis: usize, is_mean: bool) -> Built {
    let ty = tensor_type(builder, input)?;
    let is_last = axis + 1 == ty.rank();
    let sum = if is_last { rows(builder, input)? } else { add_along(builder, input, axis)? };
    if !is_mean {
        return Ok(sum);
    }
    let count = fill(builder, ty.shape[axis] as f64, ty.dtype, &[])?;
    builder.binary(Binary::Div, sum, count)
}

fn add_along(builder: &mut Builder, input: ValueId, axis: usize) -> Built {
    builder.op(Op::SequentialSum { axis }, &[input])
}

/// One warp for each row: every thread adds the elements that it loads step by step, then reduces them
/// by adding halves; then the threads of the warp are reduced in the same way.
fn rows(builder: &mut Builder, input: ValueId) -> Built {
    let ty = tensor_type(builder, input)?;
    let Some((&width, outer)) = ty.shape.split_last() else {
        return Err("expected an axis to reduce".into());
    };
    let rows: i64 = outer.iter().product();
    let held = elements_per_thread(width, ty.dtype);
    let step = LANES * held;
    let steps = (width + step - 1) / step;
    let flat = reshape(builder, input, &[rows, width])?;
    let padded = pad(builder, flat, &[rows, steps * step])?;
    let loaded = reshape(builder, padded, &[rows, steps, step])?;
    let threads = add_along(builder, loaded, 1)?;
    let lanes = halve(builder, threads, rows * LANES, held)?;
    // The shuffles of a warp add bf16 in f32.
    let wide = if ty.dtype == DType::BF16 { DType::F32 } else { ty.dtype };
    let wide = cast(builder, lanes, wide)?;
    let sums = halve(builder, wide, rows, LANES)?;
    let sums = cast(builder, sums, ty.dtype)?;
    reshape(builder, sums, outer)
}

/// Number of elements that a thread loads at once: the maximum that divides a row.
fn elements_per_thread(width: i64, dtype: DType) -> i64 {
    let element = dtype.size() as i64;
    let mut bytes = LOAD_BYTES;
    while width * element % bytes != 0 {
        bytes /= 2;
    }
    (bytes / element).max(1)
}

/// Pads rows with zeros, which change no sum.
fn pad(builder: &mut Builder, value: ValueId, to: &[i64]) -> Built {
    if shape(builder, value)? == to {
        return Ok(value);
    }
    let zeros = fill(builder, 0.0, builder.dtype(value), to)?;
    update(builder, zeros, value, &[0, 0])
}

/// `[groups * count]` to `[groups]`: repeatedly adds the second half of every group to the first.
fn halve(builder: &mut Builder, mut value: ValueId, groups: i64, mut count: i64) -> Built {
    while count > 1 {
        count /= 2;
        let halves = reshape(builder, value, &[groups, 2, count])?;
        value = add_along(builder, halves, 1)?;
    }
    reshape(builder, value, &[groups])
}

fn cast(builder: &mut Builder, value: ValueId, to: DType) -> Built {
    if builder.dtype(value) == to {
        return Ok(value);
    }
    builder.op(Op::Cast { to, rounding: Rounding::NearestEven }, &[value])
}
