//! Element types.

use std::fmt;
use std::str::FromStr;

/// The type of one element of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DType {
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of a binary32. NumPy has no such type, so `.npz` files hold its
    /// bits as `uint16`.
    BF16,
    /// 64-bit two's complement integer.
    I64,
    /// 32-bit two's complement integer.
    I32,
    /// 16-bit two's complement integer.
    I16,
    /// 8-bit two's complement integer.
    I8,
    /// 64-bit unsigned integer.
    U64,
    /// 32-bit unsigned integer.
    U32,
    /// 16-bit unsigned integer.
    U16,
    /// 8-bit unsigned integer.
    U8,
    /// One byte holding 0 or 1.
    Bool,
    /// Float with 4 exponent bits and 3 mantissa bits, without infinities; NaN of either sign. Like the
    /// types below it takes one byte in memory, and NumPy has no such type: `.npz` files hold the bits as
    /// `uint8`, or `int8` for signed integers.
    F8E4M3Fn,
    /// The same with an exponent bias larger by one, one zero and one NaN.
    F8E4M3Fnuz,
    /// Float with 5 exponent bits and 2 mantissa bits, with infinities.
    F8E5M2,
    /// The same with an exponent bias larger by one, without infinities, with one zero and one NaN.
    F8E5M2Fnuz,
    /// A power of two, or NaN: 8 exponent bits only.
    F8E8M0,
    /// Float with 2 exponent bits and 1 mantissa bit, in the low half of a byte; no NaN.
    F4E2M1,
    /// 4-bit two's complement integer, in the low half of a byte.
    I4,
    /// 4-bit unsigned integer.
    U4,
    /// 2-bit two's complement integer, in the low bits of a byte.
    I2,
    /// 2-bit unsigned integer.
    U2,
    /// A string, as its handle: see [`Strings`](crate::Strings). `.npz` files hold the characters.
    String,
}

impl DType {
    /// Every element type, in declaration order.
    pub const ALL: [Self; 24] = [
        Self::F64,
        Self::F32,
        Self::F16,
        Self::BF16,
        Self::I64,
        Self::I32,
        Self::I16,
        Self::I8,
        Self::U64,
        Self::U32,
        Self::U16,
        Self::U8,
        Self::Bool,
        Self::F8E4M3Fn,
        Self::F8E4M3Fnuz,
        Self::F8E5M2,
        Self::F8E5M2Fnuz,
        Self::F8E8M0,
        Self::F4E2M1,
        Self::I4,
        Self::U4,
        Self::I2,
        Self::U2,
        Self::String,
    ];

    /// The types of numbers, bool included: all except strings.
    pub const NUMBERS: &[Self] = Self::ALL.split_at(Self::ALL.len() - 1).0;

    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 | Self::U64 | Self::String => 8,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F16 | Self::BF16 | Self::I16 | Self::U16 => 2,
            _ => 1,
        }
    }

    /// Bits per element that hold its value.
    pub const fn bits(self) -> u32 {
        match self {
            Self::I4 | Self::U4 | Self::F4E2M1 => 4,
            Self::I2 | Self::U2 => 2,
            _ => 8 * self.size() as u32,
        }
    }

    /// Whether the type is too narrow for processors to compute with: a float of 8
    /// bits or fewer, or an integer below 8 bits.
    pub const fn is_small(self) -> bool {
        self.bits() < 8 || self.is_float() && self.bits() == 8
    }

    /// Rounds a float to the type, to nearest even, or as [`Element::from_f64`](crate::Element) states;
    /// other types leave it unchanged.
    pub fn round_float(self, value: f64) -> f64 {
        if self.is_float() { crate::tensor::rounded(self, value) } else { value }
    }

    /// The largest finite number of a float type.
    pub const fn largest_float(self) -> Option<f64> {
        match self {
            Self::F64 => Some(f64::MAX),
            Self::F32 => Some(f32::MAX as f64),
            Self::F16 => Some(65504.0),
            Self::BF16 => Some(3.389_531_389_251_535_5e38),
            Self::F8E4M3Fn => Some(448.0),
            Self::F8E4M3Fnuz => Some(240.0),
            Self::F8E5M2 | Self::F8E5M2Fnuz => Some(57344.0),
            Self::F8E8M0 => Some(1.701_411_834_604_692_3e38),
            Self::F4E2M1 => Some(6.0),
            _ => None,
        }
    }

    /// The short lower-case name: `f32`, `bf16`, `u8`, `bool`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::I64 => "i64",
            Self::I32 => "i32",
            Self::I16 => "i16",
            Self::I8 => "i8",
            Self::U64 => "u64",
            Self::U32 => "u32",
            Self::U16 => "u16",
            Self::U8 => "u8",
            Self::Bool => "bool",
            Self::F8E4M3Fn => "f8e4m3fn",
            Self::F8E4M3Fnuz => "f8e4m3fnuz",
            Self::F8E5M2 => "f8e5m2",
            Self::F8E5M2Fnuz => "f8e5m2fnuz",
            Self::F8E8M0 => "f8e8m0",
            Self::F4E2M1 => "f4e2m1",
            Self::I4 => "i4",
            Self::U4 => "u4",
            Self::I2 => "i2",
            Self::U2 => "u2",
            Self::String => "string",
        }
    }

    /// The `descr` of this type in a `.npy` header; `bf16` is stored as `<u2`, small types as
    /// `|u1` and `|i1`, and strings as `<U` with the length of the longest.
    pub const fn npy_descr(self) -> &'static str {
        match self {
            Self::F64 => "<f8",
            Self::F32 => "<f4",
            Self::F16 => "<f2",
            Self::BF16 | Self::U16 => "<u2",
            Self::I64 => "<i8",
            Self::I32 => "<i4",
            Self::I16 => "<i2",
            Self::I8 | Self::I4 | Self::I2 => "|i1",
            Self::U64 => "<u8",
            Self::U32 => "<u4",
            Self::Bool => "|b1",
            Self::String => "<U",
            _ => "|u1",
        }
    }

    /// The type of a `.npy` `descr` of numbers. Never `bf16` or a small type, which a file cannot express.
    pub fn from_npy_descr(descr: &str) -> Option<Self> {
        let other = |ty: &Self| matches!(ty, Self::BF16 | Self::String) || ty.is_small();
        let stored = |ty: &Self| !other(ty) && ty.npy_descr() == descr;
        Self::ALL.into_iter().find(stored)
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Self::F64
                | Self::F32
                | Self::F16
                | Self::BF16
                | Self::F8E4M3Fn
                | Self::F8E4M3Fnuz
                | Self::F8E5M2
                | Self::F8E5M2Fnuz
                | Self::F8E8M0
                | Self::F4E2M1
        )
    }

    /// Whether this is a signed or unsigned integer type; `bool` and `string` are not.
    pub const fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, Self::Bool | Self::String)
    }

    /// Whether this is a signed integer type.
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, Self::I64 | Self::I32 | Self::I16 | Self::I8 | Self::I4 | Self::I2)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|ty| ty.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|ty| ty.name()).collect();
            format!("unknown element type `{text}`: expected one of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_descrs_read_back() {
        assert_eq!("string".parse(), Ok(DType::String));
        assert!(!DType::NUMBERS.contains(&DType::String));
        for ty in DType::NUMBERS.iter().copied() {
            assert_eq!(ty.name().parse(), Ok(ty));
            let stored = match ty {
                DType::BF16 => DType::U16,
                small if small.is_small() && small.is_signed_integer() => DType::I8,
                small if small.is_small() => DType::U8,
                other => other,
            };
            assert_eq!(DType::from_npy_descr(ty.npy_descr()), Some(stored));
        }
        assert!("f8".parse::<DType>().is_err());
    }
}
