//! Reads attributes and types.
use crate::bridge::ircTensorParts;
use melior::ir::{
    Attribute, AttributeLike, BlockRef, OperationRef, RegionRef, Type, TypeLike, Value,
    attribute::{
        BoolAttribute, DenseI32ArrayAttribute, DenseI64ArrayAttribute, FlatSymbolRefAttribute,
        FloatAttribute, IntegerAttribute, TypeAttribute,
    },
    operation::OperationLike,
    r#type::FunctionType,
};
use mlir_sys::{MlirAttribute, MlirType};

/// A ranked tensor type.
pub struct RankedTensor<'c> {
    /// The extents. A dynamic one is `i64::MIN`, as in MLIR.
    pub shape: &'c [i64],
    /// The type of the elements.
    pub element: Type<'c>,
    /// The encoding, if there is one.
    pub encoding: Option<Attribute<'c>>,
}

/// The parts of a ranked tensor type; `None` for other types.
pub fn ranked_tensor<'c>(ty: Type<'c>) -> Option<RankedTensor<'c>> {
    let (mut shape, mut rank) = (std::ptr::null(), 0);
    let mut element = MlirType { ptr: std::ptr::null() };
    let mut encoding = MlirAttribute { ptr: std::ptr::null() };
    // Safety: the type is live; its context owns the shape, the element type and the encoding, which do not
    // change. The bridge writes all of them if it returns true; only the encoding may be null.
    unsafe {
        ircTensorParts(
            ty.to_raw(),
            &raw mut shape,
            &raw mut rank,
            &raw mut element,
            &raw mut encoding,
        )
        .then(|| RankedTensor {
            shape: if rank == 0 { &[] } else { std::slice::from_raw_parts(shape, rank) },
            element: Type::from_raw(element),
            encoding: Attribute::from_option_raw(encoding),
        })
    }
}

/// Shape and element type of a ranked tensor; see [`ranked_tensor`].
pub fn tensor_of<'c>(ty: Type<'c>) -> Option<(Vec<i64>, Type<'c>)> {
    ranked_tensor(ty).map(|tensor| (tensor.shape.to_vec(), tensor.element))
}

/// The encoding of a ranked tensor type; `None` for other types, and if there is none.
pub fn encoding(ty: Type<'_>) -> Option<Attribute<'_>> {
    ranked_tensor(ty)?.encoding
}

/// A value's identity, for tables of values.
pub fn identity(value: Value<'_, '_>) -> usize {
    use melior::ir::ValueLike;
    value.to_raw().ptr as usize
}

/// The parent op; `None` for a top-level op.
pub fn parent<'c, 'a>(op: OperationRef<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
    // Safety: the op is live, and so is its parent.
    unsafe { OperationRef::from_option_raw(mlir_sys::mlirOperationGetParentOperation(op.to_raw())) }
}

/// The op whose region a block argument belongs to; `None` for results of ops.
pub fn owner_of_argument<'c, 'a>(value: Value<'c, 'a>) -> Option<(OperationRef<'c, 'a>, usize)> {
    use melior::ir::ValueLike;
    let raw = value.to_raw();
    value.is_block_argument().then_some(())?;
    // Safety: the value is a live block argument, so that its block and the op around it are live.
    unsafe {
        let block = mlir_sys::mlirBlockArgumentGetOwner(raw);
        let op = OperationRef::from_option_raw(mlir_sys::mlirBlockGetParentOperation(block))?;
        Some((op, mlir_sys::mlirBlockArgumentGetArgNumber(raw) as usize))
    }
}

/// The number of an op's result.
pub fn result_number(value: Value<'_, '_>) -> Option<usize> {
    use melior::ir::ValueLike;
    // Safety: the value is a live result.
    value
        .is_operation_result()
        .then(|| unsafe { mlir_sys::mlirOpResultGetResultNumber(value.to_raw()) as usize })
}

/// An attribute of an op, inherent or discardable.
pub fn attribute<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>, name: &str) -> Option<Attribute<'c>> {
    op.attribute(name).ok()
}

/// A string attribute.
pub fn string<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>, name: &str) -> Option<String> {
    crate::string_value(attribute(op, name)?)
}

/// A `@symbol` attribute, without the sign.
pub fn symbol<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>, name: &str) -> Option<String> {
    Some(FlatSymbolRefAttribute::try_from(attribute(op, name)?).ok()?.value().to_owned())
}

/// An integer attribute.
pub fn integer<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>, name: &str) -> Option<i64> {
    Some(IntegerAttribute::try_from(attribute(op, name)?).ok()?.value())
}

/// Parses an attribute's text in the context of another; `None` where it is none.
pub fn parse_like<'c>(like: Attribute<'c>, text: &str) -> Option<Attribute<'c>> {
    let context = like.context();
    // Safety: the reference is to the handle above, which lives to the end of this function, and what is
    // parsed lives in the context that it stands for.
    let context = unsafe { context.to_ref() };
    Attribute::parse(context, text)
}

/// A boolean attribute; `None` if it is absent.
pub fn boolean<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>, name: &str) -> Option<bool> {
    Some(BoolAttribute::try_from(attribute(op, name)?).ok()?.value())
}

/// A float attribute, as a double.
pub fn float<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>, name: &str) -> Option<f64> {
    let value = FloatAttribute::try_from(attribute(op, name)?).ok()?;
    // Safety: the attribute is a live float attribute.
    Some(unsafe { mlir_sys::mlirFloatAttrGetValueDouble(value.to_raw()) })
}

/// An `array<i64: ...>` attribute, or one of `i32`.
pub fn integers<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>, name: &str) -> Option<Vec<i64>> {
    array_integers(attribute(op, name)?)
}

/// The numbers of an `array<i64: ...>`, or of one of `i32`.
pub fn array_integers(attribute: Attribute<'_>) -> Option<Vec<i64>> {
    if let Ok(array) = DenseI32ArrayAttribute::try_from(attribute) {
        return (0..array.len()).map(|index| array.element(index).ok().map(i64::from)).collect();
    }
    let array = DenseI64ArrayAttribute::try_from(attribute).ok()?;
    (0..array.len()).map(|index| array.element(index).ok()).collect()
}

/// An `array<i8: ...>` attribute.
pub fn bytes<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>, name: &str) -> Option<Vec<u8>> {
    let array = attribute(op, name)?.to_raw();
    // Safety: the attribute is live, its kind is checked first, and indices are below its length.
    unsafe {
        if !mlir_sys::mlirAttributeIsADenseI8Array(array) {
            return None;
        }
        let count = mlir_sys::mlirDenseArrayGetNumElements(array);
        let byte = |index| mlir_sys::mlirDenseI8ArrayGetElement(array, index).cast_unsigned();
        Some((0..count).map(byte).collect())
    }
}

/// The elements of an array attribute.
pub fn elements<'c: 'a, 'a>(
    op: &impl OperationLike<'c, 'a>,
    name: &str,
) -> Option<Vec<Attribute<'c>>> {
    array_elements(attribute(op, name)?)
}

/// The elements of an array attribute. melior 0.27.2's `ArrayAttribute::try_from` accepts only
/// `array<i64: ...>`, which is another attribute.
pub fn array_elements(attribute: Attribute<'_>) -> Option<Vec<Attribute<'_>>> {
    if !attribute.is_array() {
        return None;
    }
    let raw = attribute.to_raw();
    // Safety: the attribute is a live array attribute, the indices are below its length, and its
    // elements live in the same context.
    let elements = unsafe {
        let count = mlir_sys::mlirArrayAttrGetNumElements(raw);
        (0..count)
            .map(|index| Attribute::from_raw(mlir_sys::mlirArrayAttrGetElement(raw, index)))
            .collect()
    };
    Some(elements)
}

/// One element of an array attribute.
pub fn array_element(attribute: Attribute<'_>, index: usize) -> Option<Attribute<'_>> {
    if !attribute.is_array() {
        return None;
    }
    let raw = attribute.to_raw();
    // Safety: as in `array_elements`.
    unsafe {
        let is_there = (index as isize) < mlir_sys::mlirArrayAttrGetNumElements(raw);
        is_there
            .then(|| Attribute::from_raw(mlir_sys::mlirArrayAttrGetElement(raw, index as isize)))
    }
}

/// The input and result types of a `func.func`.
pub fn signature<'c: 'a, 'a>(
    function: &impl OperationLike<'c, 'a>,
) -> Option<(Vec<Type<'c>>, Vec<Type<'c>>)> {
    let ty = TypeAttribute::try_from(attribute(function, "function_type")?).ok()?.value();
    let ty = FunctionType::try_from(ty).ok()?;
    let inputs = (0..ty.input_count()).map(|index| ty.input(index).ok());
    let results = (0..ty.result_count()).map(|index| ty.result(index).ok());
    Some((inputs.collect::<Option<_>>()?, results.collect::<Option<_>>()?))
}

/// The op's name: `tl.add`.
pub fn op_name<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>) -> String {
    op.name().as_string_ref().as_str().unwrap_or("").to_owned()
}

/// The ops of the first block of an op's first region.
pub fn body_ops<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    first_block(op).map(block_ops).unwrap_or_default()
}

/// The blocks of an op's first region, in order.
pub fn blocks<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Vec<BlockRef<'c, 'a>> {
    use melior::ir::BlockLike;
    std::iter::successors(first_block(op), |block| block.next_in_region()).collect()
}

/// The ops of a block, in order.
pub fn block_ops<'c: 'a, 'a>(block: BlockRef<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    use melior::ir::BlockLike;
    let next = |op: &OperationRef<'c, 'a>| op.next_in_block();
    std::iter::successors(block.first_operation(), next).collect()
}

fn first_block<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Option<BlockRef<'c, 'a>> {
    use melior::ir::RegionLike;
    // Checked first, as melior prints an op without such a region, with everything around it.
    if op.region_count() == 0 {
        return None;
    }
    op.region(0).ok()?.first_block()
}

/// The op that defines a value; `None` for block arguments.
pub fn defining_op<'c, 'a>(value: Value<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
    use melior::ir::ValueLike;
    value.is_operation_result().then(|| {
        // Safety: the value is an op result, so it has a live owner.
        unsafe { OperationRef::from_raw(mlir_sys::mlirOpResultGetOwner(value.to_raw())) }
    })
}

/// Moves the blocks of one region to another.
pub fn take_body<'c>(target: &RegionRef<'c, '_>, source: &RegionRef<'c, '_>) {
    use melior::ir::RegionLike;
    // Safety: both regions are live and distinct.
    unsafe { mlir_sys::mlirRegionTakeBody(target.to_raw(), source.to_raw()) }
}
