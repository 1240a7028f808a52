//! Types and constants of the `llvm` dialect, as plain data.
use crate::read;
use melior::ir::{
    Attribute, AttributeLike, OperationRef, Type as MlirType, TypeLike,
    attribute::{StringAttribute, TypeAttribute},
};

/// A type of the `llvm` dialect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// No value.
    Void,
    /// An integer of so many bits.
    Integer(u32),
    /// IEEE binary16.
    Half,
    /// bfloat16.
    Bfloat,
    /// IEEE binary32.
    Float,
    /// IEEE binary64.
    Double,
    /// A pointer of address space 0.
    Pointer,
    /// A vector of integers, floats or pointers.
    Vector(Box<Type>, u32),
    /// An array.
    Array(Box<Type>, u64),
    /// A struct, with padding between fields unless packed.
    Struct {
        /// Fields in order of address.
        fields: Vec<Type>,
        /// Whether it is packed.
        packed: bool,
    },
}

/// Converts a type; `None` for types that have no one-dimensional value in the `llvm` dialect.
pub fn type_of(ty: MlirType<'_>) -> Option<Type> {
    let raw = ty.to_raw();
    // Safety: the type is live, and each accessor follows its type check.
    unsafe {
        if mlir_sys::mlirTypeIsAInteger(raw) {
            return Some(Type::Integer(mlir_sys::mlirIntegerTypeGetWidth(raw)));
        }
        if mlir_sys::mlirTypeIsAVector(raw) {
            let flat = mlir_sys::mlirShapedTypeGetRank(raw) == 1
                && !mlir_sys::mlirVectorTypeIsScalable(raw);
            let lanes = flat.then(|| mlir_sys::mlirShapedTypeGetDimSize(raw, 0))?;
            let element = MlirType::from_raw(mlir_sys::mlirShapedTypeGetElementType(raw));
            return Some(Type::Vector(type_of(element)?.into(), u32::try_from(lanes).ok()?));
        }
        if mlir_sys::mlirTypeIsALLVMPointerType(raw) {
            let space = mlir_sys::mlirLLVMPointerTypeGetAddressSpace(raw);
            return (space == 0).then_some(Type::Pointer);
        }
        if mlir_sys::mlirTypeIsALLVMStructType(raw) {
            let count = mlir_sys::mlirLLVMStructTypeGetNumElementTypes(raw);
            let field = |at| mlir_sys::mlirLLVMStructTypeGetElementType(raw, at);
            let fields = (0..count).map(|at| type_of(MlirType::from_raw(field(at))));
            let packed = mlir_sys::mlirLLVMStructTypeIsPacked(raw);
            return Some(Type::Struct { fields: fields.collect::<Option<_>>()?, packed });
        }
        let floats = [
            (mlir_sys::mlirTypeIsAF32(raw), Type::Float),
            (mlir_sys::mlirTypeIsAF64(raw), Type::Double),
            (mlir_sys::mlirTypeIsAF16(raw), Type::Half),
            (mlir_sys::mlirTypeIsABF16(raw), Type::Bfloat),
        ];
        floats.into_iter().find(|(is, _)| *is).map(|(_, ty)| ty).or_else(|| by_name(ty))
    }
}

/// Types that MLIR's C interface cannot query.
fn by_name(ty: MlirType<'_>) -> Option<Type> {
    let text = ty.to_string();
    if text == "!llvm.void" {
        return Some(Type::Void);
    }
    let count = text.strip_prefix("!llvm.array<")?.split(' ').next()?.parse().ok()?;
    // Safety: the type is a live array type, by its name.
    let element =
        unsafe { MlirType::from_raw(mlir_sys::mlirLLVMArrayTypeGetElementType(ty.to_raw())) };
    Some(Type::Array(type_of(element)?.into(), count))
}

/// The type in an attribute of an op.
pub fn type_attribute(op: &OperationRef<'_, '_>, name: &str) -> Option<Type> {
    type_of(TypeAttribute::try_from(read::attribute(op, name)?).ok()?.value())
}

/// Argument and result types of the function type in an attribute of an op; `None` for a variadic
/// one.
pub fn function_type(op: &OperationRef<'_, '_>, name: &str) -> Option<(Vec<Type>, Type)> {
    let ty = TypeAttribute::try_from(read::attribute(op, name)?).ok()?.value();
    let text = ty.to_string();
    if !text.starts_with("!llvm.func<") || text.contains("...") {
        return None;
    }
    // Safety: the type is a live function type, by its name.
    unsafe {
        let count = mlir_sys::mlirLLVMFunctionTypeGetNumInputs(ty.to_raw());
        let input = |at| mlir_sys::mlirLLVMFunctionTypeGetInput(ty.to_raw(), at);
        let inputs = (0..count).map(|at| type_of(MlirType::from_raw(input(at))));
        let result = mlir_sys::mlirLLVMFunctionTypeGetReturnType(ty.to_raw());
        Some((inputs.collect::<Option<_>>()?, type_of(MlirType::from_raw(result))?))
    }
}

/// The contents of a constant, in the target's bytes: little-endian, an `i1` in a byte of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// Every element is the same.
    Splat(Vec<u8>),
    /// Every element, in order.
    Elements(Vec<u8>),
}

/// Reads the value of a constant or global: an integer, a float, dense elements or a string.
pub fn data(value: Attribute<'_>) -> Option<Data> {
    if let Ok(text) = StringAttribute::try_from(value) {
        return Some(Data::Elements(string_bytes(text)));
    }
    // Safety: the attribute is live, and each accessor follows its type check. A vector
    // of one element holds a single number in the bytes of its type.
    unsafe {
        let raw = value.to_raw();
        if mlir_sys::mlirAttributeIsADenseElements(raw) {
            return dense(value);
        }
        if mlir_sys::mlirAttributeIsAInteger(raw) || mlir_sys::mlirAttributeIsAFloat(raw) {
            let ty = mlir_sys::mlirAttributeGetType(raw);
            if mlir_sys::mlirTypeIsAIndex(ty) {
                let value = mlir_sys::mlirIntegerAttrGetValueInt(raw);
                return Some(Data::Splat(value.to_le_bytes().to_vec()));
            }
            let one = mlir_sys::mlirVectorTypeGet(1, [1].as_ptr(), ty);
            return dense(Attribute::from_raw(mlir_sys::mlirDenseElementsAttrSplatGet(one, raw)));
        }
    }
    None
}

/// The bytes of a string attribute, which may contain zeros and invalid UTF-8.
fn string_bytes(text: StringAttribute<'_>) -> Vec<u8> {
    // Safety: the attribute is live, and so is its text; melior's accessor rejects an empty one.
    unsafe {
        let raw = mlir_sys::mlirStringAttrGetValue(text.to_raw());
        if raw.length == 0 {
            return Vec::new();
        }
        std::slice::from_raw_parts(raw.data.cast::<u8>(), raw.length).to_vec()
    }
}

fn dense(value: Attribute<'_>) -> Option<Data> {
    // Safety: the attribute is a live dense one; the size of its data is that of its elements.
    unsafe {
        let raw = value.to_raw();
        let ty = mlir_sys::mlirAttributeGetType(raw);
        let element = MlirType::from_raw(mlir_sys::mlirShapedTypeGetElementType(ty));
        let splat = mlir_sys::mlirDenseElementsAttrIsSplat(raw);
        let count = usize::try_from(mlir_sys::mlirElementsAttrGetNumElements(raw)).ok()?;
        // Constants keep the type `index` in an attribute where their own is `i64`.
        let index = mlir_sys::mlirTypeIsAIndex(element.to_raw());
        let bits = match if index { Type::Integer(64) } else { type_of(element)? } {
            Type::Integer(bits) => bits as usize,
            Type::Half | Type::Bfloat => 16,
            Type::Float => 32,
            Type::Double => 64,
            _ => return None,
        };
        let stored = if splat { 1 } else { count };
        if bits == 1 {
            let bit = |at| u8::from(mlir_sys::mlirDenseElementsAttrGetBoolValue(raw, at as isize));
            let bytes = (0..stored).map(bit).collect();
            return Some(if splat { Data::Splat(bytes) } else { Data::Elements(bytes) });
        }
        let data = mlir_sys::mlirDenseElementsAttrGetRawData(raw).cast::<u8>();
        if stored == 0 {
            return Some(Data::Elements(Vec::new()));
        }
        let bytes = std::slice::from_raw_parts(data, stored * bits.div_ceil(8)).to_vec();
        Some(if splat { Data::Splat(bytes) } else { Data::Elements(bytes) })
    }
}

/// A symbol's linkage: `external`, `internal`, …; external by default.
pub fn linkage(op: &OperationRef<'_, '_>) -> String {
    let text = read::attribute(op, "linkage").map(|linkage| linkage.to_string());
    let name = text.as_deref().and_then(|text| text.split(['<', '>']).nth(1));
    name.unwrap_or("external").to_owned()
}

/// The elements of an `array<i32: ...>` or `array<i64: ...>` attribute of an op.
pub fn numbers(op: &OperationRef<'_, '_>, name: &str) -> Option<Vec<i64>> {
    let raw = read::attribute(op, name)?.to_raw();
    // Safety: the attribute is a live array of the checked width.
    unsafe {
        if mlir_sys::mlirAttributeIsADenseI64Array(raw) {
            let count = mlir_sys::mlirDenseArrayGetNumElements(raw);
            return Some(
                (0..count).map(|at| mlir_sys::mlirDenseI64ArrayGetElement(raw, at)).collect(),
            );
        }
        if mlir_sys::mlirAttributeIsADenseI32Array(raw) {
            let count = mlir_sys::mlirDenseArrayGetNumElements(raw);
            let element = |at| i64::from(mlir_sys::mlirDenseI32ArrayGetElement(raw, at));
            return Some((0..count).map(element).collect());
        }
    }
    None
}
