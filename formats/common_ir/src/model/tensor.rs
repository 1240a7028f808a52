//! Tensors and the representations of their elements in files.

use bytes::Bytes;

use super::{ElementType, Entries};

/// A constant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensor {
    /// The name.
    pub name: Option<String>,
    /// Type of the elements.
    pub element: ElementType,
    /// The extents; empty for a scalar. They are not validated, and may be negative.
    pub dims: Vec<i64>,
    /// The elements, in the field that the file uses.
    pub data: TensorData,
    /// `[begin, end)` of the elements that are present, if the tensor is a part of a larger one.
    pub segment: Option<Segment>,
    /// Documentation.
    pub doc: Option<String>,
    /// Further properties.
    pub properties: Entries,
}

/// The part of a larger tensor that a tensor holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// First element.
    pub begin: Option<i64>,
    /// One past the last element.
    pub end: Option<i64>,
}

/// Representation of the elements.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TensorData {
    /// No field is set: valid for a tensor without elements.
    #[default]
    Nothing,
    /// Little-endian bytes in row-major order, usually a part of the mapped file.
    Raw(Bytes),
    /// For `float`, and for `complex64` with alternating real and imaginary parts.
    Floats(Vec<f32>),
    /// For integers of at most 32 bits, `bool`, and the bits of narrow floats.
    Ints32(Vec<i32>),
    /// For strings.
    Strings(Vec<Bytes>),
    /// For `int64`; in Common IR also `uint32` and `uint64`.
    Ints64(Vec<i64>),
    /// For `double`, and for `complex128` with alternating real and imaginary parts.
    Doubles(Vec<f64>),
    /// For `uint32` and `uint64`.
    Uints64(Vec<u64>),
    /// In another file.
    External(External),
}

/// Elements in another file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct External {
    /// Path relative to the model's folder, as written.
    pub location: String,
    /// Offset in bytes.
    pub offset: u64,
    /// Number of bytes; `None` if the file does not state it.
    pub length: Option<u64>,
    /// Further keys, such as `checksum`.
    pub others: Entries,
    /// The bytes, a part of the mapped file, once it is resolved.
    pub bytes: Option<Bytes>,
}

/// A sparse tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseTensor {
    /// Extents of the dense tensor.
    pub dims: Vec<i64>,
    /// Indices of the values: `[nnz]` linear, or `[nnz, rank]`.
    pub indices: Option<Tensor>,
    /// The values, `[nnz]`; its name is the name of the sparse tensor.
    pub values: Option<Tensor>,
}

/// The reason why a tensor has no valid elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementsError(String);

impl std::fmt::Display for ElementsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ElementsError {}

fn error<T>(message: String) -> Result<T, ElementsError> {
    Err(ElementsError(message))
}

impl Tensor {
    /// A tensor of raw bytes.
    pub fn raw(
        name: impl Into<String>,
        element: ElementType,
        dims: impl Into<Vec<i64>>,
        bytes: impl Into<Bytes>,
    ) -> Self {
        let data = TensorData::Raw(bytes.into());
        Self { name: Some(name.into()), element, dims: dims.into(), data, ..Self::default() }
    }

    /// A tensor of `float`.
    pub fn floats(name: impl Into<String>, dims: impl Into<Vec<i64>>, values: &[f32]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self::raw(name, ElementType::Float, dims, bytes)
    }

    /// A tensor of `int64`.
    pub fn ints(name: impl Into<String>, dims: impl Into<Vec<i64>>, values: &[i64]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self::raw(name, ElementType::Int64, dims, bytes)
    }

    /// Number of elements: the product of the extents.
    ///
    /// # Errors
    /// A negative extent; a product beyond 63 bits.
    pub fn count(&self) -> Result<u64, ElementsError> {
        let mut count: i64 = 1;
        for (index, &size) in self.dims.iter().enumerate() {
            if size < 0 {
                return error(format!("dimension {index} has the negative size {size}"));
            }
            // A later zero makes any product valid, but no real file has such extents.
            let Some(product) = count.checked_mul(size) else {
                return error(format!("the product of the sizes {:?} exceeds 63 bits", self.dims));
            };
            count = product;
        }
        Ok(count as u64)
    }

    /// The elements as little-endian bytes in row-major order, from any representation.
    ///
    /// Raw and external data are not copied. `bool` is one byte, complex numbers are two floats,
    /// real part first. Elements of 4 and 2 bits are packed, the first in the lowest bits of each
    /// byte; those of 6 bits likewise, four in three bytes.
    ///
    /// # Errors
    /// The wrong number of elements or bytes for the extents; a field that cannot hold the element
    /// type; a value out of range; strings, for which there is [`Tensor::strings`]; unresolved external
    /// data; a segment of a larger tensor.
    pub fn elements(&self) -> Result<Bytes, ElementsError> {
        let count = self.count()?;
        let Some(size) = self.element.bytes_of(count) else {
            return error(match self.element {
                ElementType::String => "strings have no fixed width".into(),
                ElementType::Undefined => "the tensor has no element type".into(),
                other => format!("{count} elements of {other} have no size in bytes"),
            });
        };
        let bytes = match &self.data {
            TensorData::Nothing if size == 0 => Bytes::new(),
            TensorData::Nothing => return error(format!("no data for {count} elements")),
            TensorData::Raw(bytes) => bytes.clone(),
            TensorData::External(external) => match &external.bytes {
                Some(bytes) => bytes.clone(),
                None => return error(format!("external data `{}` is absent", external.location)),
            },
            typed => typed_bytes(typed, self.element)?,
        };
        if bytes.len() as u64 != size {
            let (have, sizes, element) = (bytes.len(), &self.dims, self.element);
            return error(format!(
                "{have} bytes for the sizes {sizes:?} of {element}, expected {size}"
            ));
        }
        Ok(bytes)
    }

    /// The elements of a tensor of strings.
    ///
    /// # Errors
    /// Another element type; another field; the wrong number.
    pub fn strings(&self) -> Result<&[Bytes], ElementsError> {
        let count = self.count()?;
        let strings: &[Bytes] = match &self.data {
            _ if self.element != ElementType::String => {
                return error(format!("expected strings, found {}", self.element));
            }
            TensorData::Strings(strings) => strings,
            TensorData::Nothing => &[],
            other => return error(format!("strings cannot be in `{}`", other.field())),
        };
        if strings.len() as u64 != count {
            let (have, sizes) = (strings.len(), &self.dims);
            return error(format!("{have} strings for the sizes {sizes:?}, expected {count}"));
        }
        Ok(strings)
    }
}

impl TensorData {
    /// Name of the field in files.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Raw(_) => "raw_data",
            Self::Floats(_) => "float_data",
            Self::Ints32(_) => "int32_data",
            Self::Strings(_) => "string_data",
            Self::Ints64(_) => "int64_data",
            Self::Doubles(_) => "double_data",
            Self::Uints64(_) => "uint64_data",
            Self::External(_) => "external_data",
        }
    }
}

/// Bytes of the elements of a typed field.
fn typed_bytes(data: &TensorData, element: ElementType) -> Result<Bytes, ElementsError> {
    use ElementType as E;
    let bytes = match (data, element) {
        (TensorData::Floats(values), E::Float | E::Complex64) => {
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        }
        (TensorData::Doubles(values), E::Double | E::Complex128) => {
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        }
        (TensorData::Ints64(values), E::Int64 | E::Uint64) => {
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        }
        (TensorData::Uints64(values), E::Uint64) => {
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        }
        (TensorData::Ints64(values), E::Uint32) => narrow(values, 4, element)?,
        (TensorData::Uints64(values), E::Uint32) => narrow(values, 4, element)?,
        (TensorData::Ints32(values), E::Int32) => {
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        }
        (TensorData::Ints32(values), E::Float6E2M3 | E::Float6E3M2) => sixes(values)?,
        (TensorData::Ints32(values), narrow_type) => match narrow_type.bits() {
            Some(16) => narrow(values, 2, element)?,
            // Two or four elements of less than a byte are packed in each number.
            Some(2 | 4 | 8) => narrow(values, 1, element)?,
            _ => return wrong_field(data, element),
        },
        _ => return wrong_field(data, element),
    };
    Ok(Bytes::from(bytes))
}

fn wrong_field<T>(data: &TensorData, element: ElementType) -> Result<T, ElementsError> {
    error(format!("elements of {element} cannot be in `{}`", data.field()))
}

/// The lowest `width` bytes of each number, which must fit as a signed or unsigned integer.
fn narrow<N: Copy + Into<i128>>(
    values: &[N],
    width: usize,
    element: ElementType,
) -> Result<Vec<u8>, ElementsError> {
    let limit = 1_i128 << (8 * width);
    let mut bytes = Vec::with_capacity(values.len().saturating_mul(width));
    for (index, &value) in values.iter().enumerate() {
        let value: i128 = value.into();
        if value < -limit / 2 || value >= limit {
            return error(format!("{value} at index {index} does not fit {element}"));
        }
        bytes.extend_from_slice(&value.to_le_bytes()[..width]);
    }
    Ok(bytes)
}

/// Numbers of six bits, one per entry, packed four in three bytes.
fn sixes(values: &[i32]) -> Result<Vec<u8>, ElementsError> {
    let mut bytes = Vec::with_capacity(values.len() / 4 * 3 + 3);
    for (group, values) in values.chunks(4).enumerate() {
        let mut bits = 0_u32;
        for (index, &value) in values.iter().enumerate() {
            if !(0..64).contains(&value) {
                return error(format!(
                    "{value} at index {} is wider than 6 bits",
                    group * 4 + index
                ));
            }
            bits |= (value as u32) << (6 * index);
        }
        bytes.extend_from_slice(&bits.to_le_bytes()[..(6 * values.len()).div_ceil(8)]);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(element: ElementType, dims: &[i64], data: TensorData) -> Tensor {
        Tensor { element, dims: dims.to_vec(), data, ..Tensor::default() }
    }

    #[test]
    fn every_field_gives_the_same_bytes_as_raw_data() {
        use ElementType as E;
        let rows: [(E, i64, TensorData, &[u8]); 9] = [
            (E::Float, 1, TensorData::Floats(vec![1.0]), &[0, 0, 0x80, 0x3f]),
            (E::Float16, 1, TensorData::Ints32(vec![0x3c00]), &[0, 0x3c]),
            (E::Int8, 2, TensorData::Ints32(vec![-1, 127]), &[0xff, 0x7f]),
            (E::Uint8, 1, TensorData::Ints32(vec![255]), &[0xff]),
            (E::Bool, 2, TensorData::Ints32(vec![1, 0]), &[1, 0]),
            (E::Int4, 3, TensorData::Ints32(vec![0x21, 0x03]), &[0x21, 0x03]),
            (E::Uint32, 1, TensorData::Uints64(vec![7]), &[7, 0, 0, 0]),
            (E::Uint64, 1, TensorData::Ints64(vec![-1]), &[0xff; 8]),
            (E::Float6E2M3, 4, TensorData::Ints32(vec![1, 2, 3, 4]), &[0x81, 0x30, 0x10]),
        ];
        for (element, count, data, expected) in rows {
            let field = data.field();
            let bytes = tensor(element, &[count], data).elements();
            assert_eq!(bytes.as_deref(), Ok(expected), "{element} in {field}");
        }
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let said = |tensor: Tensor| tensor.elements().expect_err("an error").to_string();
        let huge = tensor(ElementType::Float, &[i64::MAX, 2], TensorData::Nothing);
        assert!(said(huge).contains("exceeds 63 bits"));
        let huge = tensor(ElementType::Double, &[i64::MAX], TensorData::Nothing);
        assert!(said(huge).contains("no size in bytes"));
        let negative = tensor(ElementType::Float, &[-1], TensorData::Nothing);
        assert!(said(negative).contains("negative size -1"));
        let short = tensor(ElementType::Float, &[2], TensorData::Raw(vec![0; 7].into()));
        assert_eq!(said(short), "7 bytes for the sizes [2] of float, expected 8");
        let wide = tensor(ElementType::Int8, &[1], TensorData::Ints32(vec![256]));
        assert_eq!(said(wide), "256 at index 0 does not fit int8");
        let confused = tensor(ElementType::Float, &[1], TensorData::Ints64(vec![1]));
        assert_eq!(said(confused), "elements of float cannot be in `int64_data`");
    }
}
