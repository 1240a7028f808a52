//! `mma.sync`: which thread has which elements, and the product.
//!
//! Products are exact and summed in binary64; the sum is rounded once. Hardware may round within the sum.

use crate::code::Matrix;
use crate::float::{self, E4M3, E5M2, F16, F32, Rounding};
use crate::row::{Row, WARP};
use crate::types::Type;

/// Rows, columns, and the extent of the sum.
pub type Shape = (usize, usize, usize);

/// Whether there is an instruction of a shape and of types of D, A, B and C.
pub fn is_supported(shape: Shape, types: [Type; 4]) -> bool {
    use Type::*;
    let [d, a, b, c] = types;
    let integer = |ty: Type| matches!(ty, S8 | U8);
    let byte = |ty: Type| matches!(ty, E4m3 | E5m2);
    match (shape, a, b, d, c) {
        ((16, 8, 8 | 16), F16, F16, F16 | F32, F16 | F32) => d == c,
        ((16, 8, 8 | 16), Bf16, Bf16, F32, F32) | ((16, 8, 4 | 8), Tf32, Tf32, F32, F32) => true,
        ((8, 8, 4) | (16, 8, 4 | 8 | 16), F64, F64, F64, F64) => true,
        ((16, 8, 16 | 32), a, b, S32, S32) => integer(a) && integer(b),
        ((16, 8, 16 | 32), a, b, F32, F32) => byte(a) && byte(b),
        _ => false,
    }
}

/// Elements of a type in a register.
fn packed(ty: Type) -> usize {
    (4 / ty.bytes() as usize).max(1)
}

/// The numbers of registers of D, A, B and C.
pub fn register_counts((m, n, k): Shape, [d, a, b, c]: [Type; 4]) -> [usize; 4] {
    let count = |elements: usize, ty: Type| elements / WARP / packed(ty);
    [count(m * n, d), count(m * k, a), count(k * n, b), count(m * n, c)]
}

/// The row and column of an element of A: of register `i`, part `part`.
pub fn left_position(lane: usize, i: usize, part: usize, m: usize, e: usize) -> (usize, usize) {
    let (group, thread) = (lane / 4, lane % 4);
    match m {
        8 => (group, thread * e + part + 4 * e * i),
        _ => (group + 8 * (i % 2), thread * e + part + 4 * e * (i / 2)),
    }
}

fn right_position(lane: usize, i: usize, part: usize, e: usize) -> (usize, usize) {
    (lane % 4 * e + part + 4 * e * i, lane / 4)
}

fn result_position(lane: usize, i: usize, part: usize, e: usize) -> (usize, usize) {
    let element = i * e + part;
    (lane / 4 + 8 * (element / 2), lane % 4 * 2 + element % 2)
}

/// The number that an element of a register represents.
#[inline(always)]
pub fn number(register: u64, part: usize, ty: Type) -> f64 {
    match ty {
        Type::F64 => f64::from_bits(register),
        Type::F32 => f64::from(f32::from_bits(register as u32)),
        // Hardware reads the upper 19 bits.
        Type::Tf32 => f64::from(f32::from_bits(register as u32 & !0x1fff)),
        Type::F16 => f64::from(float::from_f16((register >> (16 * part)) as u16)),
        Type::Bf16 => f64::from(float::from_bf16((register >> (16 * part)) as u16)),
        Type::E4m3 => float::value((register >> (8 * part)) as u32 & 0xff, E4M3),
        Type::E5m2 => float::value((register >> (8 * part)) as u32 & 0xff, E5M2),
        Type::S8 => f64::from((register >> (8 * part)) as i8),
        Type::U8 => f64::from((register >> (8 * part)) as u8),
        _ => f64::from(register as i32),
    }
}

/// The bits of a result.
pub fn result_bits(sum: f64, ty: Type, saturate: bool) -> u64 {
    match ty {
        Type::F64 => sum.to_bits(),
        Type::F32 if sum.is_nan() => u64::from(float::round(sum, F32, Rounding::Nearest)),
        // The conversion rounds in the same way.
        Type::F32 => u64::from((sum as f32).to_bits()),
        Type::F16 => u64::from(float::round(sum, F16, Rounding::Nearest)),
        // Sums of products of bytes are exact in binary64.
        _ if saturate => sum.clamp(f64::from(i32::MIN), f64::from(i32::MAX)) as i32 as u32 as u64,
        _ => sum as i64 as u32 as u64,
    }
}

/// The numbers that registers represent, each with its register, thread and part.
#[inline(always)]
fn unpack(registers: &[Row], ty: Type, mut put: impl FnMut(usize, usize, usize, f64)) {
    // The type is known in the loop for those that are frequent.
    macro_rules! unpack {
        ($ty:expr) => {
            for (i, row) in registers.iter().enumerate() {
                for (lane, register) in row.iter().enumerate() {
                    (0..packed($ty))
                        .for_each(|part| put(i, lane, part, number(*register, part, $ty)));
                }
            }
        };
    }
    match ty {
        Type::F16 => unpack!(Type::F16),
        Type::Bf16 => unpack!(Type::Bf16),
        Type::F32 => unpack!(Type::F32),
        _ => unpack!(ty),
    }
}

/// The registers of D = A * B + C.
pub fn multiply(matrix: &Matrix, a: &[Row], b: &[Row], c: &[Row]) -> Vec<Row> {
    /// The most elements of A, B and D, and the columns of B and D.
    const LEFT: usize = 16 * 32;
    const COLUMNS: usize = 8;
    let (m, _, k) = matrix.shape;
    let [d_type, a_type, b_type, c_type] = matrix.types;
    let mut left = [0.0; LEFT];
    let e = packed(a_type);
    unpack(a, a_type, |i, lane, part, number| {
        let (row, column) = left_position(lane, i, part, m, e);
        left[row * k + column] = number;
    });
    let mut right = [[0.0; COLUMNS]; 32];
    let e = packed(b_type);
    unpack(b, b_type, |i, lane, part, number| {
        let (row, column) = right_position(lane, i, part, e);
        right[row][column] = number;
    });
    let mut sums = [[0.0; COLUMNS]; 16];
    let e = packed(c_type);
    unpack(c, c_type, |i, lane, part, number| {
        let (row, column) = result_position(lane, i, part, e);
        sums[row][column] = number;
    });
    // Each sum is in the order of the products; those of a row are computed together.
    for (sums, left) in sums.iter_mut().zip(left.chunks_exact(k)).take(m) {
        for (left, right) in left.iter().zip(&right) {
            for (sum, right) in sums.iter_mut().zip(right) {
                *sum = match d_type {
                    Type::F64 => left.mul_add(*right, *sum),
                    _ => *sum + left * right,
                };
            }
        }
    }
    let e = packed(d_type);
    let mut d = vec![[0; WARP]; matrix.d.len()];
    for (i, row) in d.iter_mut().enumerate() {
        for (lane, register) in row.iter_mut().enumerate() {
            for part in 0..e {
                let (row, column) = result_position(lane, i, part, e);
                let bits = result_bits(sums[row][column], d_type, matrix.saturate);
                *register |= bits << (16 * part);
            }
        }
    }
    d
}
