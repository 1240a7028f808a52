//! Element types and tensors of files, at the tensor level.

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
    }
}

/// The constant that a tensor of a file is; its bytes stay where they are, when the file holds them
/// raw.
///
/// # Errors
/// An element type that has no counterpart; elements that do not fill the shape.
pub fn tensor_of(tensor: &Tensor) -> Result<Constant, String> {
    let dtype = dtype_of(tensor.element)
        .ok_or_else(|| format!("elements of type {} are not supported", tensor.element))?;
    let ty = TensorType::new(dtype, tensor.dims.clone());
    let size = ty.byte_size().map_err(|error| error.to_string())?;
    let bytes = tensor.elements().map_err(|error| error.to_string())?;
    if bytes.len() != size {
        return Err(format!("expected {size} bytes of {ty}, found {}", bytes.len()));
    }
    Ok(Constant { ty, bytes })
}
