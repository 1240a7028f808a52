//! Reproducible random tensors.

use crate::strings::tensor_of;
use crate::{DType, Tensor, TensorError, TensorType};

impl Tensor {
    /// A tensor of pseudo-random values that depends only on `ty` and `seed`, on every machine.
    ///
    /// Element `i` takes the SplitMix64 outputs number `3i`, `3i+1` and `3i+2` of the stream that
    /// starts at state `seed` (Steele, Lea and Flood, 2014; output `k` mixes the state
    /// `seed + (k+1) * 0x9e3779b97f4a7c15`).
    ///
    /// * floats: approximately N(0, 1): the twelve 16-bit pieces of the three outputs, added,
    ///   less 393210, over 65536 (Irwin-Hall; within 6 of zero, exact in `f32`);
    /// * signed integers: the first output modulo 16, less 8; unsigned: modulo 8; bool: modulo 2;
    /// * strings: the first output modulo 8 in decimal digits.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    pub fn random(ty: TensorType, seed: u64) -> Result<Self, TensorError> {
        if ty.dtype == DType::String {
            return tensor_of(&ty, |index| (output(seed, 3 * index) % 8).to_string());
        }
        let element = match ty.dtype {
            dtype if dtype.is_float() => normal,
            DType::Bool => |seed, index| (output(seed, 3 * index) % 2) as f64,
            dtype if dtype.is_signed_integer() => {
                |seed, index| (output(seed, 3 * index) % 16) as f64 - 8.0
            }
            _ => |seed, index| (output(seed, 3 * index) % 8) as f64,
        };
        let mut tensor = Self::zeros(ty)?;
        for index in 0..tensor.elements() {
            tensor.set_f64(index, element(seed, index as u64));
        }
        Ok(tensor)
    }
}

/// The seed of a named tensor of a program run with `--seed`: the seed, xor the 64-bit FNV-1a
/// hash of the name, so that every input has its own stream, independent of their order.
pub fn seed_for(seed: u64, name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    seed ^ name.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

fn normal(seed: u64, index: u64) -> f64 {
    let pieces = |word: u64| [word, word >> 16, word >> 32, word >> 48].map(|piece| piece & 0xffff);
    let words = (0..3).map(|word| output(seed, 3 * index + word));
    let sum: u64 = words.flat_map(pieces).sum();
    (sum as f64 - 393_210.0) / 65_536.0
}

/// Output number `k` of SplitMix64.
fn output(seed: u64, k: u64) -> u64 {
    let state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(k.wrapping_add(1)));
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_gives_its_published_outputs() {
        let seed = 1_234_567;
        assert_eq!(output(seed, 0), 6_457_827_717_110_365_317);
        assert_eq!(output(seed, 1), 3_203_168_211_198_807_973);
    }

    #[test]
    fn floats_are_standard_normal() {
        let tensor = Tensor::random(TensorType::new(DType::F32, [100, 100]), 7).expect("a tensor");
        let values = tensor.to_f64();
        let mean = values.iter().sum::<f64>() / 1e4;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.03, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }

    /// The same values as `tests/oracle/ark_numpy.py` computes from the same description.
    #[test]
    fn the_oracle_draws_the_same_values() {
        let draw = |dtype| Tensor::random(TensorType::new(dtype, [4]), 7).expect("a tensor");
        let floats = [-0.671_813_964_843_75, -0.245_712_280_273_437_5, 0.292_968_75];
        assert_eq!(draw(DType::F32).to_f64()[..3], floats);
        let bits = draw(DType::BF16).reinterpret(DType::U16).expect("same width");
        assert_eq!(bits.to_f64(), [48940.0, 48764.0, 16022.0, 48777.0]);
        assert_eq!(draw(DType::I8).to_f64(), [-1.0, 3.0, -2.0, 1.0]);
        assert_eq!(draw(DType::U8).to_f64(), [7.0, 3.0, 6.0, 1.0]);
        assert_eq!(seed_for(0, "buffer_0"), 7_319_579_734_182_657_492);
    }

    #[test]
    fn integers_are_small_and_seeds_matter() {
        let ty = TensorType::new(DType::I64, [1000]);
        let one = Tensor::random(ty.clone(), 1).expect("a tensor");
        assert!(one.to_f64().iter().all(|x| (-8.0..8.0).contains(x)));
        assert_eq!(one, Tensor::random(ty.clone(), 1).expect("a tensor"));
        assert_ne!(one, Tensor::random(ty, 2).expect("a tensor"));
        assert_ne!(seed_for(0, "buffer_0"), seed_for(0, "buffer_1"));
    }
}
