//! Types of tensors, in TVM's notation and encoding.

use std::fmt;
use std::str::FromStr;

use irc_tensor::DType;

/// An element type: kind, bits, lanes, as DLPack encodes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataType {
    /// Kind of number.
    pub code: Code,
    /// Bits per lane.
    pub bits: u8,
    /// Number of lanes; 1 for a scalar.
    pub lanes: u16,
}

/// Kinds of numbers, by DLPack's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Code {
    /// Signed integer.
    Int = 0,
    /// Unsigned integer; with one bit a boolean, which takes a byte in memory.
    Uint = 1,
    /// IEEE 754 float.
    Float = 2,
    /// Pointer.
    Handle = 3,
    /// The upper half of a binary32.
    Bfloat = 4,
}

impl Code {
    /// All kinds, by code.
    pub const ALL: [Self; 5] = [Self::Int, Self::Uint, Self::Float, Self::Handle, Self::Bfloat];

    /// Name of the kind, to which the name of a type appends the bits.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Float => "float",
            Self::Handle => "handle",
            Self::Bfloat => "bfloat",
        }
    }
}

impl DataType {
    /// A scalar type.
    pub const fn scalar(code: Code, bits: u8) -> Self {
        Self { code, bits, lanes: 1 }
    }

    /// Bytes per element: each lane takes whole bytes.
    pub fn size(self) -> u64 {
        u64::from(self.bits).div_ceil(8) * u64::from(self.lanes)
    }

    /// The corresponding element type of host tensors, if there is one.
    pub fn element(self) -> Option<DType> {
        let is_same = |ty: &DType| DataType::of(*ty) == Some(self);
        DType::ALL.into_iter().find(is_same)
    }

    /// The type for an element type of host tensors; `None` for types that TVM's clients lack, small
    /// floats and integers below eight bits, and strings.
    pub fn of(ty: DType) -> Option<Self> {
        let code = match ty {
            DType::Bool => return Some(Self::scalar(Code::Uint, 1)),
            DType::String => return None,
            _ if ty.is_small() => return None,
            DType::BF16 => Code::Bfloat,
            _ if ty.is_float() => Code::Float,
            _ if ty.is_signed_integer() => Code::Int,
            _ => Code::Uint,
        };
        Some(Self::scalar(code, 8 * ty.size() as u8))
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.bits) {
            (Code::Uint, 1) => f.write_str("bool")?,
            // A pointer's size is that of the machine, which is not stated.
            (Code::Handle, _) => f.write_str("handle")?,
            (code, bits) => write!(f, "{}{bits}", code.name())?,
        }
        if self.lanes == 1 { Ok(()) } else { write!(f, "x{}", self.lanes) }
    }
}

impl FromStr for DataType {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let unknown = || format!("`{}` is not an element type", irc_diag::clip(name));
        let (scalar, lanes) = match name.split_once('x') {
            Some((scalar, lanes)) => (scalar, number(lanes).ok_or_else(unknown)?),
            None => (name, 1),
        };
        match scalar {
            "bool" => return Ok(Self { code: Code::Uint, bits: 1, lanes }),
            "handle" => return Ok(Self { code: Code::Handle, bits: 64, lanes }),
            _ => {}
        }
        let end = scalar.find(|c: char| c.is_ascii_digit()).ok_or_else(unknown)?;
        let code = Code::ALL.into_iter().find(|code| code.name() == &scalar[..end]);
        let bits = number::<u8>(&scalar[end..]);
        let (Some(code), Some(bits)) = (code.filter(|code| *code != Code::Handle), bits) else {
            return Err(unknown());
        };
        Ok(Self { code, bits, lanes })
    }
}

/// A positive number in its shortest spelling.
fn number<T: FromStr + fmt::Display>(text: &str) -> Option<T> {
    let number: T = text.parse().ok()?;
    (number.to_string() == text && text != "0").then_some(number)
}

/// Maximum rank.
pub(crate) const MAX_RANK: usize = 32;

/// Maximum size of a tensor: sums over the tensors of a model fit into 64 bits.
const MAX_BYTES: u64 = 1 << 40;

/// The type of a tensor: elements and shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// Type of an element.
    pub dtype: DataType,
    /// Elements along each dimension, outermost first.
    pub shape: Vec<i64>,
}

impl Type {
    /// Bytes of a dense tensor; `None` if a dimension is negative, the size exceeds a tebibyte, or
    /// there are more than 32 dimensions.
    pub fn bytes(&self) -> Option<u64> {
        if self.shape.len() > MAX_RANK {
            return None;
        }
        let dims: Option<Vec<u64>> = self.shape.iter().map(|dim| (*dim).try_into().ok()).collect();
        let dims = dims?;
        if dims.contains(&0) {
            return Some(0);
        }
        let total = dims.into_iter().try_fold(self.dtype.size(), u64::checked_mul);
        total.filter(|total| *total <= MAX_BYTES)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.shape.iter().map(i64::to_string).collect();
        write!(f, "{}[{}]", self.dtype, dims.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for name in ["float32", "int8", "bool", "bfloat16", "handle", "uint64", "float32x4"] {
            assert_eq!(name.parse::<DataType>().map(|ty| ty.to_string()), Ok(name.into()));
        }
        for name in ["", "float", "float0", "float032", "float999", "handle8", "f32", "int8x0"] {
            assert!(name.parse::<DataType>().is_err(), "{name}");
        }
    }

    #[test]
    fn element_types_read_back() {
        for ty in DType::NUMBERS.iter().copied().filter(|ty| !ty.is_small()) {
            assert_eq!(DataType::of(ty).and_then(DataType::element), Some(ty));
        }
    }

    #[test]
    fn sizes_are_checked() {
        let float32 = DataType::scalar(Code::Float, 32);
        let bytes = |shape: &[i64]| Type { dtype: float32, shape: shape.to_vec() }.bytes();
        assert_eq!([bytes(&[]), bytes(&[2, 3]), bytes(&[0, -0])], [Some(4), Some(24), Some(0)]);
        assert_eq!([bytes(&[-1]), bytes(&[1 << 62, 4]), bytes(&[1 << 40])], [None; 3]);
    }
}
