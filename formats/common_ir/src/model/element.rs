//! Element types.

use std::fmt;

/// The type of a tensor's elements, by ONNX's numbers, which are also Common IR's up to 15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum ElementType {
    /// Not specified.
    #[default]
    Undefined,
    Float,
    Uint8,
    Int8,
    Uint16,
    Int16,
    Int32,
    Int64,
    String,
    Bool,
    Float16,
    Double,
    Uint32,
    Uint64,
    Complex64,
    Complex128,
    Bfloat16,
    Float8E4M3Fn,
    Float8E4M3Fnuz,
    Float8E5M2,
    Float8E5M2Fnuz,
    Uint4,
    Int4,
    Float4E2M1,
    Float8E8M0,
    Uint2,
    Int2,
    Float6E2M3,
    Float6E3M2,
    /// A number that is not defined by any format.
    Other(i32),
}

/// Every defined element type, with its name in Common IR's text notation and its
/// width in bits; strings have none. The index is the number in files.
const ALL: [(ElementType, &str, u32); 29] = [
    (ElementType::Undefined, "undefined", 0),
    (ElementType::Float, "float", 32),
    (ElementType::Uint8, "uint8", 8),
    (ElementType::Int8, "int8", 8),
    (ElementType::Uint16, "uint16", 16),
    (ElementType::Int16, "int16", 16),
    (ElementType::Int32, "int32", 32),
    (ElementType::Int64, "int64", 64),
    (ElementType::String, "string", 0),
    (ElementType::Bool, "bool", 8),
    (ElementType::Float16, "float16", 16),
    (ElementType::Double, "double", 64),
    (ElementType::Uint32, "uint32", 32),
    (ElementType::Uint64, "uint64", 64),
    (ElementType::Complex64, "complex64", 64),
    (ElementType::Complex128, "complex128", 128),
    (ElementType::Bfloat16, "bfloat16", 16),
    (ElementType::Float8E4M3Fn, "float8e4m3fn", 8),
    (ElementType::Float8E4M3Fnuz, "float8e4m3fnuz", 8),
    (ElementType::Float8E5M2, "float8e5m2", 8),
    (ElementType::Float8E5M2Fnuz, "float8e5m2fnuz", 8),
    (ElementType::Uint4, "uint4", 4),
    (ElementType::Int4, "int4", 4),
    (ElementType::Float4E2M1, "float4e2m1", 4),
    (ElementType::Float8E8M0, "float8e8m0", 8),
    (ElementType::Uint2, "uint2", 2),
    (ElementType::Int2, "int2", 2),
    (ElementType::Float6E2M3, "float6e2m3", 6),
    (ElementType::Float6E3M2, "float6e3m2", 6),
];

impl ElementType {
    /// The type with a number in files.
    pub fn from_number(number: i32) -> Self {
        let row = usize::try_from(number).ok().and_then(|index| ALL.get(index));
        row.map_or(Self::Other(number), |row| row.0)
    }

    /// Its number in files.
    pub fn number(self) -> i32 {
        match self {
            Self::Other(number) => number,
            known => ALL.iter().position(|row| row.0 == known).map_or(0, |index| index as i32),
        }
    }

    /// The type with a name, as [`fmt::Display`] writes it.
    pub fn from_name(name: &str) -> Option<Self> {
        ALL.iter().skip(1).find(|row| row.1 == name).map(|row| row.0)
    }

    /// Bits per element; `None` for strings and for undefined types.
    pub fn bits(self) -> Option<u32> {
        let row = ALL.iter().find(|row| row.0 == self);
        row.map(|row| row.2).filter(|bits| *bits > 0)
    }

    /// Bytes of `count` elements in row-major order, with those narrower than a byte packed and the last
    /// byte padded; `None` for strings, undefined types, and sizes beyond 64 bits.
    pub fn bytes_of(self, count: u64) -> Option<u64> {
        Some(count.checked_mul(self.bits()?.into())?.div_ceil(8))
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(number) => write!(f, "element type {number}"),
            known => f.write_str(ALL.iter().find(|row| row.0 == *known).map_or("", |row| row.1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_come_back() {
        for number in 0..ALL.len() as i32 {
            assert_eq!(ElementType::from_number(number).number(), number);
        }
        assert_eq!(ElementType::from_number(-3).number(), -3);
        assert_eq!(ElementType::from_name("bfloat16"), Some(ElementType::Bfloat16));
    }

    #[test]
    fn narrow_elements_are_packed() {
        assert_eq!(ElementType::Int4.bytes_of(5), Some(3));
        assert_eq!(ElementType::Float6E2M3.bytes_of(4), Some(3));
        assert_eq!(ElementType::Double.bytes_of(u64::MAX), None);
    }
}
