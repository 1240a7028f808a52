//! Rust types that are elements, and their conversion from and to `f64`.

use crate::DType;
use half::{bf16, f16};

/// A Rust type that is the element of some tensor.
pub trait Element: bytemuck::Pod + PartialEq {
    /// The corresponding element type.
    const DTYPE: DType;

    /// The value as `f64`; exact except for 64-bit integers beyond 2^53, which round to nearest even.
    fn to_f64(self) -> f64;

    /// The nearest value. Floats round once, to nearest even, whatever the width; integers
    /// truncate toward zero and saturate, NaN becoming 0 (Rust's `as`).
    fn from_f64(value: f64) -> Self;
}

macro_rules! native {
    ($($ty:ty => $dtype:ident),*) => {$(
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn from_f64(value: f64) -> Self {
                value as $ty
            }
        }
    )*};
}

native!(f64 => F64, f32 => F32, i64 => I64, i32 => I32, i16 => I16, i8 => I8);
native!(u64 => U64, u32 => U32, u16 => U16, u8 => U8);

impl Element for f16 {
    const DTYPE: DType = DType::F16;

    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn from_f64(value: f64) -> Self {
        Self::from_f32(round_to_odd(value))
    }
}

impl Element for bf16 {
    const DTYPE: DType = DType::BF16;

    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn from_f64(value: f64) -> Self {
        Self::from_f32(round_to_odd(value))
    }
}

/// Rounds to `f32` so that a second rounding, to a 16-bit float, equals a single rounding of the
/// `f64`: an inexact result takes the neighbour with an odd significand (Boldo and
/// Melquiond, "When double rounding is odd", 2005). `half`'s own conversion drops the low 32 bits
/// of the `f64`, and so mistakes values just above a tie for the tie.
fn round_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let inexact = f64::from(nearest) != value && !value.is_nan();
    if !inexact || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    let away = f64::from(nearest).abs() > value.abs();
    f32::from_bits(if away { nearest.to_bits() - 1 } else { nearest.to_bits() + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bit_floats_round_once() {
        let tie = 1.0 + 2f64.powi(-11);
        let above = tie + 2f64.powi(-40);
        assert_eq!(<f16 as Element>::from_f64(tie).to_f64(), 1.0);
        assert_eq!(<f16 as Element>::from_f64(above).to_f64(), 1.0 + 2f64.powi(-10));
        assert_eq!(<f16 as Element>::from_f64(-above).to_f64(), -1.0 - 2f64.powi(-10));
        let brain = 1.0 + 2f64.powi(-8);
        assert_eq!(<bf16 as Element>::from_f64(brain).to_f64(), 1.0);
        assert_eq!(<bf16 as Element>::from_f64(brain + 1e-15).to_f64(), 1.0 + 2f64.powi(-7));
        // Use the conversions of `Element`, not those of the same name in `half`.
        let ty = crate::TensorType::new(DType::F16, [1]);
        let tensor = crate::Tensor::from_f64(ty, &[above]).expect("one number");
        assert_eq!(tensor.to_f64(), [1.0 + 2f64.powi(-10)]);
    }

    #[test]
    fn out_of_range_floats_become_infinite_and_integers_saturate() {
        assert_eq!(<f16 as Element>::from_f64(1e300), f16::INFINITY);
        assert_eq!(<bf16 as Element>::from_f64(-1e300), bf16::NEG_INFINITY);
        assert!(<bf16 as Element>::from_f64(f64::NAN).is_nan());
        assert_eq!(<i8 as Element>::from_f64(300.7), 127);
        assert_eq!(<u8 as Element>::from_f64(-3.0), 0);
        assert_eq!(<i32 as Element>::from_f64(f64::NAN), 0);
    }

    #[test]
    fn every_half_reads_back() {
        for bits in 0..=u16::MAX {
            let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
            assert!(half.is_nan() || <f16 as Element>::from_f64(half.to_f64()) == half);
            assert!(brain.is_nan() || <bf16 as Element>::from_f64(brain.to_f64()) == brain);
        }
    }
}
