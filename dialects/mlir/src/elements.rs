//! Constant elements: `dense` and `dense_resource` attributes as bytes, and texts of any bytes.
//!
//! Bytes are little-endian and in row-major order, one or more whole bytes for each element. MLIR does not
//! interpret elements of a `dense_resource`, which may have any layout.
use crate::bridge::{self, string_ref};
use melior::{
    Context,
    ir::{Attribute, AttributeLike, Type, TypeLike},
};
use std::ffi::c_void;

/// `dense<...>` of a ranked tensor type; `None` if the number of bytes does not match.
pub fn dense<'c>(ty: Type<'c>, bytes: &[u8]) -> Option<Attribute<'c>> {
    // Safety: the type is live, and MLIR copies the bytes after it has checked how many there are.
    unsafe {
        let raw = mlir_sys::mlirDenseElementsAttrRawBufferGet(
            ty.to_raw(),
            bytes.len(),
            bytes.as_ptr().cast(),
        );
        Attribute::from_option_raw(raw)
    }
}

/// `dense<...>` of a ranked tensor type of `i1`, one value for each element.
pub fn dense_bools<'c>(ty: Type<'c>, values: &[bool]) -> Attribute<'c> {
    let values: Vec<i32> = values.iter().copied().map(i32::from).collect();
    // Safety: the type is live, and MLIR copies as many values as there are.
    unsafe {
        let (count, values) = (values.len() as isize, values.as_ptr());
        Attribute::from_raw(mlir_sys::mlirDenseElementsAttrBoolGet(ty.to_raw(), count, values))
    }
}

/// `dense_resource<NAME>` of a ranked tensor type, over bytes that are not copied: the context
/// owns `bytes`. A name that is taken gets a numeric suffix.
pub fn resource<'c, T: AsRef<[u8]> + Send + 'static>(
    ty: Type<'c>,
    name: &str,
    bytes: T,
) -> Attribute<'c> {
    unsafe extern "C" fn drop_owner<T>(owner: *mut c_void, _: *const c_void, _: usize, _: usize) {
        // Safety: MLIR calls this once, with the pointer that it was given for it.
        drop(unsafe { Box::from_raw(owner.cast::<T>()) });
    }
    let owner = Box::new(bytes);
    let (data, length) = ((*owner).as_ref().as_ptr(), (*owner).as_ref().len());
    // Safety: the bytes live as long as their owner, which MLIR drops with the blob; they are not
    // written to, since the blob is not mutable.
    unsafe {
        Attribute::from_raw(mlir_sys::mlirUnmanagedDenseResourceElementsAttrGet(
            ty.to_raw(),
            string_ref(name),
            data.cast_mut().cast(),
            length,
            1,
            false,
            Some(drop_owner::<T>),
            Box::into_raw(owner).cast(),
        ))
    }
}

/// Whether an attribute is `dense<...>` or `dense_resource<...>`.
pub fn is_elements(attribute: Attribute<'_>) -> bool {
    attribute.is_dense_elements()
        // Safety: the attribute is live.
        || unsafe { mlir_sys::mlirAttributeIsADenseResourceElements(attribute.to_raw()) }
}

/// The bytes of `dense<...>` or `dense_resource<...>`; `None` for other attributes, and for a
/// resource that the file does not contain. Elements of `i1` in `dense` are one byte each.
pub fn bytes_of(attribute: Attribute<'_>) -> Option<Vec<u8>> {
    let raw = attribute.to_raw();
    let (mut data, mut length) = (std::ptr::null(), 0_usize);
    // Safety: the attribute is live; the bridge returns a range that lives as long, or null.
    let bytes = unsafe {
        if !bridge::ircElementsData(raw, &raw mut data, &raw mut length) {
            return None;
        }
        if length == 0 { &[] } else { std::slice::from_raw_parts(data, length) }
    };
    if !attribute.is_dense_elements() {
        return Some(bytes.to_vec());
    }
    // Safety: the attribute is live, and indices are below its number of elements.
    unsafe {
        let count = mlir_sys::mlirElementsAttrGetNumElements(raw);
        if is_bools(attribute) {
            let bit = |index| u8::from(mlir_sys::mlirDenseElementsAttrGetBoolValue(raw, index));
            return Some((0..count as isize).map(bit).collect());
        }
        let repeats = if mlir_sys::mlirDenseElementsAttrIsSplat(raw) { count as usize } else { 1 };
        Some(bytes.repeat(repeats))
    }
}

fn is_bools(attribute: Attribute<'_>) -> bool {
    let ty = attribute.r#type();
    crate::read::tensor_of(ty).is_some_and(|(_, element)| {
        let integer = melior::ir::r#type::IntegerType::try_from(element);
        integer.is_ok_and(|integer| integer.width() == 1)
    })
}

/// A string attribute of any bytes.
pub fn text<'c>(context: &'c Context, bytes: &[u8]) -> Attribute<'c> {
    let text = mlir_sys::MlirStringRef { data: bytes.as_ptr().cast(), length: bytes.len() };
    // Safety: the context copies the bytes.
    unsafe { Attribute::from_raw(mlir_sys::mlirStringAttrGet(context.to_raw(), text)) }
}

/// The bytes of a string attribute.
pub fn text_bytes(attribute: Attribute<'_>) -> Option<Vec<u8>> {
    // Safety: the attribute is live, and so are its bytes.
    unsafe {
        if !mlir_sys::mlirAttributeIsAString(attribute.to_raw()) {
            return None;
        }
        let text = mlir_sys::mlirStringAttrGetValue(attribute.to_raw());
        if text.length == 0 {
            return Some(vec![]);
        }
        Some(std::slice::from_raw_parts(text.data.cast::<u8>(), text.length).to_vec())
    }
}

/// `array<f32: ...>`.
pub fn floats<'c>(context: &'c Context, values: &[f32]) -> Attribute<'c> {
    // Safety: the context copies as many values as there are.
    unsafe {
        let (count, values) = (values.len() as isize, values.as_ptr());
        Attribute::from_raw(mlir_sys::mlirDenseF32ArrayGet(context.to_raw(), count, values))
    }
}

/// The elements of `array<f32: ...>`.
pub fn floats_of(attribute: Attribute<'_>) -> Option<Vec<f32>> {
    let raw = attribute.to_raw();
    // Safety: the attribute is live, its kind is checked first, and indices are below its length.
    unsafe {
        if !mlir_sys::mlirAttributeIsADenseF32Array(raw) {
            return None;
        }
        let count = mlir_sys::mlirDenseArrayGetNumElements(raw);
        Some((0..count).map(|at| mlir_sys::mlirDenseF32ArrayGetElement(raw, at)).collect())
    }
}
