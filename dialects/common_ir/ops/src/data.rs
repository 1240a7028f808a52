//! Element types and tensors of files, at the tensor level.

use bytes::Bytes;
use irc_common_format::model::{ElementType, Tensor};
use irc_tl::{Constant, DType, TensorType};

/// The element type at the tensor level; nothing for types that have none.
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
    }
}

/// The constant that a tensor of a file is; its bytes stay where they are, when the file holds them
/// raw. Elements below a byte are packed in files, the first in the lowest bits, and get a byte each.
///
/// # Errors
/// An element type that has no counterpart; elements that do not fill the shape.
pub fn tensor_of(tensor: &Tensor) -> Result<Constant, String> {
    let dtype = dtype_of(tensor.element)
        .ok_or_else(|| format!("elements of type {} are not supported", tensor.element))?;
    let ty = TensorType::new(dtype, tensor.dims.clone());
    let size = ty.byte_size().map_err(|error| error.to_string())?;
    let bytes = tensor.elements().map_err(|error| error.to_string())?;
    let bytes = if dtype.bits() < 8 { unpacked(&bytes, dtype, size) } else { bytes };
    if bytes.len() != size {
        return Err(format!("expected {size} bytes of {ty}, found {}", bytes.len()));
    }
    Ok(Constant { ty, bytes })
}

fn unpacked(bytes: &[u8], dtype: DType, count: usize) -> Bytes {
    let bits = dtype.bits() as usize;
    let rest = 8 - dtype.bits();
    let element = |index: usize| {
        let shifted = bytes.get(index * bits / 8).map_or(0, |byte| byte >> (index * bits % 8));
        // In memory an integer fills its byte, its sign as well.
        match dtype.is_signed_integer() {
            true => (((shifted << rest) as i8) >> rest) as u8,
            false => (shifted << rest) >> rest,
        }
    };
    (0..count).map(element).collect()
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
}
