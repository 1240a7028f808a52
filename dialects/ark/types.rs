//! `!ark.tensor` and element types.
//!
//! The C API has no accessors for these types, so they are built and read as text in the ODS assembly
//! format.
use irc_ark_format::model::{Buffer, DataType, Tensor};
use irc_mlir::{Context, Type};

/// The IR text of a data type: `i32` is signed and `ui32` unsigned.
pub(crate) fn element_text(dtype: DataType) -> &'static str {
    match dtype {
        DataType::Fp32 => "f32",
        DataType::Fp16 => "f16",
        DataType::Bf16 => "bf16",
        DataType::Int32 => "i32",
        DataType::Uint32 => "ui32",
        DataType::Int8 => "i8",
        DataType::Uint8 => "ui8",
        DataType::Byte => "!ark.byte",
    }
}

/// The type of one element at the tensor level, where `BYTE` is `ui8`.
pub fn element_type(context: &Context, dtype: DataType) -> Type<'_> {
    let dtype = if dtype == DataType::Byte { DataType::Uint8 } else { dtype };
    irc_mlir::ty::parse(context, element_text(dtype))
}

/// The text of the type of a tensor.
pub(crate) fn tensor_text(tensor: &Tensor) -> String {
    let element = element_text(tensor.dtype);
    let Tensor { shape, strides, offsets, padded_shape, .. } = tensor;
    format!(
        "!ark.tensor<{element}, {shape:?}, strides {strides:?}, offsets {offsets:?}, \
         padded {padded_shape:?}>"
    )
}

/// The `!ark.tensor` type of a tensor.
pub fn tensor_type<'c>(context: &'c Context, tensor: &Tensor) -> Type<'c> {
    irc_mlir::ty::parse(context, &tensor_text(tensor))
}

/// The tensor with the given type, id and buffer; `None` for other types.
pub(crate) fn tensor_of(ty: Type<'_>, id: u64, buffer: Buffer) -> Option<Tensor> {
    let text = ty.to_string();
    let body = text.strip_prefix("!ark.tensor<")?;
    let (element, rest) = body.split_once(", ")?;
    let dtype = DataType::ALL.into_iter().find(|dtype| element_text(*dtype) == element)?;
    let mut lists = rest.split('[').skip(1).map(list);
    let mut next = || lists.next().flatten();
    let (shape, strides, offsets, padded_shape) = (next()?, next()?, next()?, next()?);
    Some(Tensor { id, dtype, shape, strides, offsets, padded_shape, buffer })
}

/// The integers up to the closing bracket.
fn list(text: &str) -> Option<Vec<i64>> {
    let (list, _) = text.split_once(']')?;
    if list.is_empty() {
        return Some(vec![]);
    }
    list.split(", ").map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_carry_the_whole_tensor() {
        let context = crate::new_context();
        for dtype in DataType::ALL {
            let tensor = Tensor {
                strides: vec![4, 8],
                offsets: vec![1, 2],
                ..Tensor::dense(3, dtype, &[2, 5], Buffer::local(7))
            };
            let ty = tensor_type(&context, &tensor);
            assert_eq!(tensor_of(ty, 3, Buffer::local(7)), Some(tensor));
        }
    }
}
