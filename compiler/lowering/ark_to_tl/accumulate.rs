//! Sums and products in the order and precision of ARK's kernels on CUDA_80.
//!
//! `docs/accumulation.md` says what they do, and where ARK says so.
use super::emit::{Emitter, Val};
use irc_ark_format::model::DataType;
use irc_mlir::attr;

/// Threads of the warp that reduces a row.
const LANES: i64 = 32;

/// Bytes that a thread loads at once, at most.
const LOAD_BYTES: i64 = 16;

/// A matmul that accumulates in `f32` and rounds once.
pub fn plain_matmul<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    operands: [&Val<'c, 'a>; 2],
    transposed: [bool; 2],
    shape: &[i64],
) -> Val<'c, 'a> {
    let flags = transposed.map(|flag| attr::bool(emitter.context(), flag));
    let attributes = [("transpose_lhs", flags[0]), ("transpose_rhs", flags[1])];
    emitter.op("matmul", &operands, &attributes, (operands[0].dtype, shape))
}

/// ARK's matmul: `f16` in an `f16` accumulator, `f32` through TF32, `bf16` in `f32`.
pub fn matmul<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    operands: [Val<'c, 'a>; 2],
    transposed: [bool; 2],
    shape: &[i64],
) -> Val<'c, 'a> {
    let [lhs, rhs] = operands;
    match lhs.dtype {
        DataType::Fp16 => {
            let [lhs, rhs] = [(lhs, transposed[0]), (rhs, transposed[1])]
                .map(|(val, flag)| if flag { swapped(emitter, &val) } else { val });
            emitter.op("stepped_matmul", &[&lhs, &rhs], &[], (DataType::Fp16, shape))
        }
        DataType::Fp32 => {
            let [lhs, rhs] = [lhs, rhs]
                .map(|val| emitter.op("round_tf32", &[&val], &[], (DataType::Fp32, &val.shape)));
            plain_matmul(emitter, [&lhs, &rhs], transposed, shape)
        }
        _ => plain_matmul(emitter, [&lhs, &rhs], transposed, shape),
    }
}

/// The last two dimensions in the other order.
fn swapped<'c: 'a, 'a>(emitter: &mut Emitter<'c, 'a>, val: &Val<'c, 'a>) -> Val<'c, 'a> {
    let rank = val.shape.len();
    let mut axes: Vec<i64> = (0..rank as i64).collect();
    axes.swap(rank - 2, rank - 1);
    let shape: Vec<i64> = axes.iter().map(|axis| val.shape[*axis as usize]).collect();
    let permutation = attr::i64s(emitter.context(), &axes);
    emitter.op("transpose", &[val], &[("permutation", permutation)], (val.dtype, &shape))
}

/// ARK's sum or mean of 16-bit floats along an axis, which goes.
pub fn reduce<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    input: &Val<'c, 'a>,
    axis: usize,
    is_mean: bool,
) -> Val<'c, 'a> {
    let extent = input.shape[axis];
    let is_last = axis + 1 == input.shape.len();
    let sum = if is_last { rows(emitter, input) } else { add_along(emitter, input, axis) };
    if !is_mean {
        return sum;
    }
    let count = emitter.fill(extent as f64, input.dtype, &[]);
    emitter.op("div", &[&sum, &count], &[], (input.dtype, &sum.shape))
}

fn add_along<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    input: &Val<'c, 'a>,
    axis: usize,
) -> Val<'c, 'a> {
    let mut shape = input.shape.clone();
    shape.remove(axis);
    let axis = attr::i64(emitter.context(), axis as i64);
    emitter.op("sequential_sum", &[input], &[("axis", axis)], (input.dtype, &shape))
}

/// One warp for each row: every thread adds what it loads, step after step, then halves what it
/// holds by adding; then the warp halves itself.
fn rows<'c: 'a, 'a>(emitter: &mut Emitter<'c, 'a>, input: &Val<'c, 'a>) -> Val<'c, 'a> {
    let width = input.shape[input.shape.len() - 1];
    let rows = input.elements() / width;
    let held = elements_per_thread(width, input.dtype);
    let step = LANES * held;
    let steps = (width + step - 1) / step;
    let flat = emitter.reshape(input.clone(), &[rows, width]);
    let padded = pad(emitter, flat, &[rows, steps * step]);
    let loaded = emitter.reshape(padded, &[rows, steps, step]);
    let threads = add_along(emitter, &loaded, 1);
    let lanes = halve(emitter, threads, rows * LANES, held);
    // The shuffles of a warp add bf16 in f32.
    let wide = cast(
        emitter,
        lanes,
        if input.dtype == DataType::Bf16 { DataType::Fp32 } else { input.dtype },
    );
    let sums = halve(emitter, wide, rows, LANES);
    let sums = cast(emitter, sums, input.dtype);
    emitter.reshape(sums, &input.shape[..input.shape.len() - 1])
}

/// Elements that a thread loads at once: as many bytes as divide a row.
fn elements_per_thread(width: i64, dtype: DataType) -> i64 {
    let element = dtype.bytes().cast_signed();
    let mut bytes = LOAD_BYTES;
    while width * element % bytes != 0 {
        bytes /= 2;
    }
    (bytes / element).max(1)
}

/// Rows filled up with zeros, which change no sum.
fn pad<'c: 'a, 'a>(emitter: &mut Emitter<'c, 'a>, val: Val<'c, 'a>, shape: &[i64]) -> Val<'c, 'a> {
    if val.shape == shape {
        return val;
    }
    let zeros = emitter.fill(0.0, val.dtype, shape);
    emitter.update(&zeros, &val, &[0, 0])
}

/// `[groups * count]` to `[groups]`: the second half of every group is added to the first, and so on.
fn halve<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    mut val: Val<'c, 'a>,
    groups: i64,
    mut count: i64,
) -> Val<'c, 'a> {
    while count > 1 {
        count /= 2;
        let halves = emitter.reshape(val, &[groups, 2, count]);
        val = add_along(emitter, &halves, 1);
    }
    emitter.reshape(val, &[groups])
}

fn cast<'c: 'a, 'a>(
    emitter: &mut Emitter<'c, 'a>,
    val: Val<'c, 'a>,
    dtype: DataType,
) -> Val<'c, 'a> {
    if val.dtype == dtype {
        return val;
    }
    let rounding = attr::string(emitter.context(), "nearest_even");
    let shape = val.shape.clone();
    emitter.op("cast", &[&val], &[("rounding", rounding)], (dtype, &shape))
}
