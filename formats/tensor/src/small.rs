//! Elements of at most 8 bits: one byte each in memory, whatever their width.
//!
//! Floats follow "FP8 formats for deep learning" (Micikevicius et al., 2022), "8-bit numerical formats
//! for deep neural networks" (Noune et al., 2022) for those without a negative zero (`uz`), and the
//! OCP Microscaling Formats specification 1.0 for `f4e2m1` and `f8e8m0`. Integers hold their value in
//! the low bits of the byte; the high bits are ignored.

use crate::{DType, Element};
use bytemuck::{Pod, Zeroable};

/// The meaning of the codes at the end of a [`SmallFloat`]'s range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// As in IEEE 754: the last exponent is that of infinities and NaN.
    Ieee,
    /// No infinity; NaN is the last code of either sign. Numbers out of range become NaN.
    Last,
    /// No infinity; NaN is the code of the negative zero. Numbers out of range become NaN.
    NegativeZero,
    /// Neither: numbers out of range become the largest number.
    None,
}

/// The format of a float of one byte or less: a sign, an exponent and a mantissa.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallFloat {
    /// Bits of the exponent.
    pub exponent: u32,
    /// Bits of the mantissa.
    pub mantissa: u32,
    /// The exponent bias.
    pub bias: i32,
    /// The meaning of the codes at the end of the range.
    pub special: Special,
}

impl SmallFloat {
    /// The format of an element type; `None` for other types, and for `f8e8m0`, which
    /// has neither sign nor mantissa.
    pub const fn of(dtype: DType) -> Option<Self> {
        Some(match dtype {
            DType::F8E4M3Fn => F8E4M3Fn::FORMAT,
            DType::F8E4M3Fnuz => F8E4M3Fnuz::FORMAT,
            DType::F8E5M2 => F8E5M2::FORMAT,
            DType::F8E5M2Fnuz => F8E5M2Fnuz::FORMAT,
            DType::F4E2M1 => F4E2M1::FORMAT,
            _ => return None,
        })
    }

    /// The code of the sign bit.
    pub const fn sign(self) -> u8 {
        1 << (self.exponent + self.mantissa)
    }

    /// The code of the largest finite number.
    pub const fn largest(self) -> u8 {
        let all = self.sign() - 1;
        match self.special {
            Special::Ieee => all - (1 << self.mantissa),
            Special::Last => all - 1,
            Special::NegativeZero | Special::None => all,
        }
    }

    /// The exponent of the last place of the smallest numbers.
    pub const fn least(self) -> i32 {
        1 - self.bias - self.mantissa as i32
    }

    /// The code of NaN: the negative zero in formats without one.
    pub const fn nan(self) -> u8 {
        match self.special {
            Special::NegativeZero | Special::None => self.sign(),
            Special::Ieee | Special::Last => self.sign() - 1,
        }
    }

    fn decode(self, code: u8) -> f64 {
        let size = code & (self.sign() - 1);
        let negative = code & self.sign() != 0;
        let is_nan = match self.special {
            Special::NegativeZero => negative && size == 0,
            Special::Last | Special::Ieee => size > self.largest(),
            Special::None => false,
        };
        if self.special == Special::Ieee && size == self.largest() + 1 {
            return if negative { f64::NEG_INFINITY } else { f64::INFINITY };
        }
        if is_nan {
            return f64::NAN;
        }
        let exponent = i32::from(size >> self.mantissa);
        let unit = 1 << self.mantissa;
        let fraction = i32::from(size) & (unit - 1);
        let places = if exponent == 0 { fraction } else { unit + fraction };
        let value = f64::from(places) * 2f64.powi(self.least() + (exponent - 1).max(0));
        if negative { -value } else { value }
    }

    /// The nearest number, ties to even.
    fn encode(self, value: f64) -> u8 {
        if value.is_nan() {
            return self.nan();
        }
        let sign = if value.is_sign_negative() { self.sign() } else { 0 };
        let size = self.size(value.abs());
        match self.special {
            // NaN has no sign.
            Special::Last if size == self.nan() => size,
            // Without a negative zero, numbers that round to zero become zero.
            Special::NegativeZero if size == 0 => 0,
            _ => sign | size,
        }
    }

    /// The code, without its sign, of numbers out of range.
    pub const fn overflow_code(self) -> u8 {
        match self.special {
            Special::Ieee => self.largest() + 1,
            Special::Last | Special::NegativeZero => self.nan(),
            Special::None => self.largest(),
        }
    }

    /// The code, without its sign, of a value that is not negative.
    fn size(self, value: f64) -> u8 {
        let beyond = self.overflow_code();
        if value > 2.0 * self.decode(self.largest()) {
            return beyond;
        }
        // In units of the last place at its exponent.
        let exponent = exponent_of(value).max(1 - self.bias);
        let places = (value * 2f64.powi(self.mantissa as i32 - exponent)).round_ties_even();
        let steps = (exponent - (1 - self.bias)) as u32;
        // A carry out of the mantissa increments the exponent.
        let code = (steps << self.mantissa) + places as u32;
        if code > u32::from(self.largest()) { beyond } else { code as u8 }
    }
}

/// The exponent of a number that is not negative.
fn exponent_of(value: f64) -> i32 {
    const BIAS: i32 = 1023;
    (value.to_bits() >> 52) as i32 - BIAS
}

macro_rules! floats {
    ($($(#[$doc:meta])* $name:ident: $dtype:ident, $format:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
        #[repr(transparent)]
        pub struct $name(pub u8);

        impl $name {
            const FORMAT: SmallFloat = $format;
        }

        impl Element for $name {
            const DTYPE: DType = DType::$dtype;

            fn to_f64(self) -> f64 {
                Self::FORMAT.decode(self.0)
            }

            fn from_f64(value: f64) -> Self {
                Self(Self::FORMAT.encode(value))
            }
        }
    )*};
}

floats! {
    /// An element of [`DType::F8E4M3Fn`].
    F8E4M3Fn: F8E4M3Fn, SmallFloat { exponent: 4, mantissa: 3, bias: 7, special: Special::Last };
    /// An element of [`DType::F8E4M3Fnuz`].
    F8E4M3Fnuz: F8E4M3Fnuz,
        SmallFloat { exponent: 4, mantissa: 3, bias: 8, special: Special::NegativeZero };
    /// An element of [`DType::F8E5M2`].
    F8E5M2: F8E5M2, SmallFloat { exponent: 5, mantissa: 2, bias: 15, special: Special::Ieee };
    /// An element of [`DType::F8E5M2Fnuz`].
    F8E5M2Fnuz: F8E5M2Fnuz,
        SmallFloat { exponent: 5, mantissa: 2, bias: 16, special: Special::NegativeZero };
    /// An element of [`DType::F4E2M1`].
    F4E2M1: F4E2M1, SmallFloat { exponent: 2, mantissa: 1, bias: 1, special: Special::None };
}

/// An element of [`DType::F8E8M0`]: a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct F8E8M0(pub u8);

impl Element for F8E8M0 {
    const DTYPE: DType = DType::F8E8M0;

    fn to_f64(self) -> f64 {
        if self.0 == u8::MAX { f64::NAN } else { 2f64.powi(i32::from(self.0) - 127) }
    }

    /// The next power of two that is not below the magnitude; NaN beyond the largest.
    fn from_f64(value: f64) -> Self {
        if !value.is_finite() {
            return Self(u8::MAX);
        }
        let exponent = exponent_of(value.abs());
        let is_power = value.to_bits() << 12 == 0;
        let up = i32::from(!is_power);
        Self((exponent + up + 127).clamp(0, 255) as u8)
    }
}

macro_rules! integers {
    ($($(#[$doc:meta])* $name:ident: $dtype:ident, $wide:ty, $bits:literal, $signed:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
        #[repr(transparent)]
        pub struct $name(pub u8);

        impl $name {
            /// The value.
            pub const fn value(self) -> $wide {
                const REST: u32 = 8 - $bits;
                ((self.0 << REST) as $wide) >> REST
            }
        }

        impl From<$name> for i128 {
            fn from(element: $name) -> Self {
                Self::from(element.value())
            }
        }

        impl Element for $name {
            const DTYPE: DType = DType::$dtype;

            fn to_f64(self) -> f64 {
                f64::from(self.value())
            }

            fn from_f64(value: f64) -> Self {
                const MIN: f64 = if $signed { -((1 << ($bits - 1)) as f64) } else { 0.0 };
                const MAX: f64 = MIN + ((1 << $bits) - 1) as f64;
                // NaN becomes 0.
                Self(value.clamp(MIN, MAX) as $wide as u8)
            }
        }
    )*};
}

integers! {
    /// An element of [`DType::I4`].
    I4: I4, i8, 4, true;
    /// An element of [`DType::U4`].
    U4: U4, u8, 4, false;
    /// An element of [`DType::I2`].
    I2: I2, i8, 2, true;
    /// An element of [`DType::U2`].
    U2: U2, u8, 2, false;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads_back<T: Element + std::fmt::Debug>(make: fn(u8) -> T, codes: u8) {
        for code in 0..=codes {
            let value = make(code).to_f64();
            assert!(value.is_nan() || T::from_f64(value) == make(code), "{code} is {value}");
        }
    }

    #[test]
    fn every_code_reads_back() {
        reads_back(F8E4M3Fn, 255);
        reads_back(F8E4M3Fnuz, 255);
        reads_back(F8E5M2, 255);
        reads_back(F8E5M2Fnuz, 255);
        reads_back(F8E8M0, 255);
        reads_back(F4E2M1, 15);
    }

    #[test]
    fn the_largest_and_the_smallest_are_those_of_the_formats() {
        assert_eq!(F8E4M3Fn(0x7e).to_f64(), 448.0);
        assert_eq!(F8E4M3Fn(1).to_f64(), 2f64.powi(-9));
        assert_eq!(F8E4M3Fnuz(0x7f).to_f64(), 240.0);
        assert_eq!(F8E4M3Fnuz(1).to_f64(), 2f64.powi(-10));
        assert_eq!(F8E5M2(0x7b).to_f64(), 57344.0);
        assert_eq!(F8E5M2(1).to_f64(), 2f64.powi(-16));
        assert_eq!(F8E5M2Fnuz(0x7f).to_f64(), 57344.0);
        assert_eq!(F8E5M2Fnuz(1).to_f64(), 2f64.powi(-17));
        let all: Vec<f64> = (0..8).map(|code| F4E2M1(code).to_f64()).collect();
        assert_eq!(all, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
    }

    #[test]
    fn ties_go_to_even_and_what_is_out_of_range_follows_the_format() {
        assert_eq!(F8E4M3Fn::from_f64(464.0).0, 0x7e, "a tie with the first number out of range");
        assert_eq!(F8E4M3Fn::from_f64(464.1).0, 0x7f);
        assert!(F8E4M3Fnuz::from_f64(-1e9).to_f64().is_nan());
        assert_eq!(F8E5M2::from_f64(-1e9).to_f64(), f64::NEG_INFINITY);
        assert_eq!(F8E4M3Fnuz::from_f64(-0.0).0, 0);
        assert_eq!(F4E2M1::from_f64(100.0).to_f64(), 6.0);
        assert_eq!(F4E2M1::from_f64(f64::NAN).0, 8);
        assert_eq!(F4E2M1::from_f64(2.5).to_f64(), 2.0);
        assert_eq!(F4E2M1::from_f64(-0.75).to_f64(), -1.0);
    }

    #[test]
    fn integers_sit_in_the_low_bits() {
        assert_eq!((I4(0xf8).value(), I4(0x07).value()), (-8, 7));
        assert_eq!((U2(0xff).value(), I2(0b10).value()), (3, -2));
        assert_eq!(I4::from_f64(-100.0).value(), -8);
        assert_eq!(U4::from_f64(15.9).value(), 15);
        assert_eq!(U4::from_f64(f64::NAN).value(), 0);
    }

    #[test]
    fn scales_are_powers_of_two() {
        assert_eq!(F8E8M0::from_f64(3.0).to_f64(), 4.0);
        assert_eq!(F8E8M0::from_f64(4.0).to_f64(), 4.0);
        assert_eq!(F8E8M0::from_f64(0.0).0, 0);
        assert!(F8E8M0::from_f64(1e300).to_f64().is_nan());
    }
}
