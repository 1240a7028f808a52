//! Sums of elements stored as bytes, rounded at every addition, as in ARK's kernels.

use irc_ark_format::model::DataType;
use irc_tensor::{bf16, f16};

/// Adds the elements of `other` to those of `sum`; the slices have the same length. Sixteen-bit floats
/// are added in 32 bits and rounded; integers wrap around.
pub(crate) fn accumulate(dtype: DataType, sum: &mut [u8], other: &[u8]) {
    match dtype {
        DataType::Fp32 => {
            each(sum, other, |a, b| (f32::from_ne_bytes(a) + f32::from_ne_bytes(b)).to_ne_bytes())
        }
        DataType::Fp16 => each(sum, other, |a, b| {
            let (a, b) = (f16::from_ne_bytes(a), f16::from_ne_bytes(b));
            f16::from_f32(a.to_f32() + b.to_f32()).to_ne_bytes()
        }),
        DataType::Bf16 => each(sum, other, |a, b| {
            let (a, b) = (bf16::from_ne_bytes(a), bf16::from_ne_bytes(b));
            bf16::from_f32(a.to_f32() + b.to_f32()).to_ne_bytes()
        }),
        DataType::Int32 | DataType::Uint32 => each(sum, other, |a, b| {
            u32::from_ne_bytes(a).wrapping_add(u32::from_ne_bytes(b)).to_ne_bytes()
        }),
        DataType::Int8 | DataType::Uint8 | DataType::Byte => {
            each(sum, other, |[a]: [u8; 1], [b]| [a.wrapping_add(b)]);
        }
    }
}

fn each<const N: usize>(sum: &mut [u8], other: &[u8], add: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    let (sums, _) = sum.as_chunks_mut::<N>();
    let (others, _) = other.as_chunks::<N>();
    for (sum, other) in sums.iter_mut().zip(others) {
        *sum = add(*sum, *other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_addition_rounds_once() {
        let bytes = |value: f32| f16::from_f32(value).to_ne_bytes();
        let mut sum = bytes(2048.0);
        accumulate(DataType::Fp16, &mut sum, &bytes(1.0));
        accumulate(DataType::Fp16, &mut sum, &bytes(1.0));
        assert_eq!(f16::from_ne_bytes(sum).to_f32(), 2048.0);
        let mut sum = bf16::from_f32(1.5).to_ne_bytes();
        accumulate(DataType::Bf16, &mut sum, &bf16::from_f32(2.0).to_ne_bytes());
        assert_eq!(bf16::from_ne_bytes(sum).to_f32(), 3.5);
        let mut sum = [1.5f32.to_ne_bytes(), 2.5f32.to_ne_bytes()].concat();
        let other = [0.5f32.to_ne_bytes(), 1.0f32.to_ne_bytes()].concat();
        accumulate(DataType::Fp32, &mut sum, &other);
        assert_eq!(sum, [2.0f32.to_ne_bytes(), 3.5f32.to_ne_bytes()].concat());
    }

    #[test]
    fn integers_wrap() {
        let mut sum = i32::MAX.to_ne_bytes();
        accumulate(DataType::Int32, &mut sum, &1i32.to_ne_bytes());
        assert_eq!(i32::from_ne_bytes(sum), i32::MIN);
        let mut sum = [250, 1];
        accumulate(DataType::Uint8, &mut sum, &[10, 2]);
        assert_eq!(sum, [4, 3]);
    }
}
