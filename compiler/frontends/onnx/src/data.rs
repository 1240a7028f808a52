//! Conversion of element types and tensors of files to the tensor level.

use bytes::Bytes;
use irc_common_format::model::{ElementType, SparseTensor, Tensor};
use irc_tl::{Constant, DType, TensorType};

/// The element type at the tensor level; `None` for unsupported types.
pub const fn dtype_of(element: ElementType) -> Option<DType> {
    Some(match element {
        ElementType::Float => DType::F32,
        ElementType::Double => DType::F64,
        ElementType::Float16 => DType::F16,
        ElementType::Bfloat16 => DType::BF16,
        ElementType::Int64 => DType::I64,
        ElementType::Int32 => DType::I32,
        ElementType::Int16 => DType::I16,
        ElementType::Int8 => DType::I8,
        ElementType::Uint64 => DType::U64,
        ElementType::Uint32 => DType::U32,
        ElementType::Uint16 => DType::U16,
        ElementType::Uint8 => DType::U8,
        ElementType::Bool => DType::Bool,
        ElementType::Float8E4M3Fn => DType::F8E4M3Fn,
        ElementType::Float8E4M3Fnuz => DType::F8E4M3Fnuz,
        ElementType::Float8E5M2 => DType::F8E5M2,
        ElementType::Float8E5M2Fnuz => DType::F8E5M2Fnuz,
        ElementType::Float8E8M0 => DType::F8E8M0,
        ElementType::Float4E2M1 => DType::F4E2M1,
        ElementType::Int4 => DType::I4,
        ElementType::Uint4 => DType::U4,
        ElementType::Int2 => DType::I2,
        ElementType::Uint2 => DType::U2,
        ElementType::String => DType::String,
        _ => return None,
    })
}

/// The element type in files; the inverse of [`dtype_of`].
pub const fn element_of(dtype: DType) -> ElementType {
    match dtype {
        DType::F32 => ElementType::Float,
        DType::F64 => ElementType::Double,
        DType::F16 => ElementType::Float16,
        DType::BF16 => ElementType::Bfloat16,
        DType::I64 => ElementType::Int64,
        DType::I32 => ElementType::Int32,
        DType::I16 => ElementType::Int16,
        DType::I8 => ElementType::Int8,
        DType::U64 => ElementType::Uint64,
        DType::U32 => ElementType::Uint32,
        DType::U16 => ElementType::Uint16,
        DType::U8 => ElementType::Uint8,
        DType::Bool => ElementType::Bool,
        DType::F8E4M3Fn => ElementType::Float8E4M3Fn,
        DType::F8E4M3Fnuz => ElementType::Float8E4M3Fnuz,
        DType::F8E5M2 => ElementType::Float8E5M2,
        DType::F8E5M2Fnuz => ElementType::Float8E5M2Fnuz,
        DType::F8E8M0 => ElementType::Float8E8M0,
        DType::F4E2M1 => ElementType::Float4E2M1,
        DType::I4 => ElementType::Int4,
        DType::U4 => ElementType::Uint4,
        DType::I2 => ElementType::Int2,
        DType::U2 => ElementType::Uint2,
        DType::String => ElementType::String,
    }
}

/// Converts a tensor of a file to a constant, without a copy if the file stores raw bytes.
/// Elements below a byte are packed in files, the first in the lowest bits, and are unpacked to a byte each.
///
/// # Errors
/// An unsupported element type; elements that do not fill the shape.
pub fn tensor_of(tensor: &Tensor) -> Result<Constant, String> {
    let dtype = dtype_of(tensor.element)
        .ok_or_else(|| format!("elements of type {} are not supported", tensor.element))?;
    if dtype == DType::String {
        let strings = tensor.strings().map_err(|error| error.to_string())?;
        let strings = irc_tl::Tensor::from_strings(tensor.dims.clone(), strings);
        return Ok(Constant::of(&strings.map_err(|error| error.to_string())?));
    }
    let ty = TensorType::new(dtype, tensor.dims.clone());
    let size = ty.byte_size().map_err(|error| error.to_string())?;
    let bytes = tensor.elements().map_err(|error| error.to_string())?;
    let bytes = if dtype.bits() < 8 { unpacked(&bytes, dtype, size) } else { bytes };
    if bytes.len() != size {
        return Err(format!("expected {size} bytes of {ty}, found {}", bytes.len()));
    }
    Ok(Constant::new(ty, bytes))
}

fn unpacked(bytes: &[u8], dtype: DType, count: usize) -> Bytes {
    let bits = dtype.bits() as usize;
    let rest = 8 - dtype.bits();
    let element = |index: usize| {
        let shifted = bytes.get(index * bits / 8).map_or(0, |byte| byte >> (index * bits % 8));
        // In memory an integer is extended to its byte, with its sign.
        match dtype.is_signed_integer() {
            true => (((shifted << rest) as i8) >> rest) as u8,
            false => (shifted << rest) >> rest,
        }
    };
    (0..count).map(element).collect()
}

/// Converts a sparse tensor of a file to a dense constant.
///
/// # Errors
/// As [`tensor_of`]; invalid indices.
pub fn dense_of(sparse: &SparseTensor) -> Result<Constant, String> {
    let missing = |what: &str| format!("expected {what} of a sparse tensor, found none");
    let values = tensor_of(sparse.values.as_ref().ok_or_else(|| missing("values"))?)?;
    if values.ty.dtype == DType::String {
        return Err("sparse tensors of strings are not supported".to_owned());
    }
    let places = tensor_of(sparse.indices.as_ref().ok_or_else(|| missing("indices"))?)?;
    let places_of = |constant: &Constant| constant.tensor().ok()?.to_i128();
    let indices = places_of(&places).ok_or("expected integer indices of a sparse tensor")?;
    let ty = TensorType::new(values.ty.dtype, sparse.dims.clone());
    let count = values.ty.elements().map_err(|error| error.to_string())?;
    let per_value = if places.ty.shape.len() == 2 { sparse.dims.len() } else { 1 };
    if indices.len() != count * per_value {
        let found = &places.ty;
        return Err(format!("expected indices of {count} values, found {found}"));
    }
    let (width, size) = (ty.dtype.size(), ty.byte_size().map_err(|error| error.to_string())?);
    let mut bytes = vec![0; size];
    for (value, index) in indices.chunks(per_value.max(1)).enumerate() {
        let place = linear(index, &sparse.dims, size / width.max(1));
        let place = place.ok_or_else(|| format!("index {index:?} is outside of {ty}"))?;
        bytes[place * width..][..width].copy_from_slice(&values.bytes[value * width..][..width]);
    }
    Ok(Constant::new(ty, bytes))
}

/// The position of an element, given one linear index or one index per dimension.
fn linear(index: &[i128], dims: &[i64], count: usize) -> Option<usize> {
    if let [index] = index {
        return usize::try_from(*index).ok().filter(|index| *index < count);
    }
    let mut place = 0;
    for (index, dim) in index.iter().zip(dims) {
        if !(0..i128::from(*dim)).contains(index) {
            return None;
        }
        place = place * *dim as usize + *index as usize;
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_elements_get_a_byte_each() {
        let of = |element, bytes: &'static [u8]| {
            let tensor = Tensor::raw("x", element, [3], Bytes::from_static(bytes));
            tensor_of(&tensor).expect("three elements").tensor().expect("of its type").to_f64()
        };
        assert_eq!(of(ElementType::Int4, &[0x8f, 0x07]), [-1.0, -8.0, 7.0]);
        assert_eq!(of(ElementType::Uint2, &[0b0010_0111]), [3.0, 1.0, 2.0]);
        assert_eq!(of(ElementType::Float4E2M1, &[0x9f, 0x02]), [-6.0, -0.5, 1.0]);
    }

    #[test]
    fn sparse_tensors_become_dense() {
        let whole = |name: &str, dims: &[i64], values: &[i64]| {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            Tensor::raw(name, ElementType::Int64, dims.to_vec(), bytes)
        };
        let sparse = |indices| SparseTensor {
            dims: vec![2, 3],
            indices: Some(indices),
            values: Some(Tensor::floats("x", [2], &[5.0, 7.0])),
        };
        let values =
            |sparse| dense_of(&sparse).map(|dense| dense.tensor().expect("a tensor").to_f64());
        let expected = vec![0.0, 5.0, 0.0, 0.0, 0.0, 7.0];
        assert_eq!(values(sparse(whole("i", &[2], &[1, 5]))), Ok(expected.clone()));
        assert_eq!(values(sparse(whole("i", &[2, 2], &[0, 1, 1, 2]))), Ok(expected));
        let error = values(sparse(whole("i", &[2], &[1, 6]))).expect_err("outside");
        assert_eq!(error, "index [6] is outside of f32[2,3]");
    }
}
