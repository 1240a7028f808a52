//! The signature of the lowered function, on memory.
use super::{
    error::{LowerError, Result},
    kernel::{self, Kernel, Origin},
    layout::Layouts,
};
use crate::{
    attributes::{KERNEL, KernelInfo},
    kernel::declare::on_memory,
};
use irc_mlir::{Attribute, BlockLike, Context, OperationLike, OperationRef, Type, attr};
use melior::ir::{
    attribute::StridedLayoutAttribute,
    r#type::{FunctionType, IntegerType, MemRefType, ShapedTypeLike},
};

/// The types of the lowered kernel's arguments: inputs, outputs, kept memory if any, and the
/// workspace. The sizes of the last two are not known yet.
pub fn parameters<'c>(
    context: &'c Context,
    kernel: &Kernel<'c, '_>,
    layouts: &Layouts,
    keeps: bool,
) -> Vec<Type<'c>> {
    let mut types = vec![];
    for tensor in &kernel.tensors {
        let Origin::Argument(index) = tensor.origin else { continue };
        types.push(memref(context, tensor.element, &tensor.shape, layouts.argument(index)));
    }
    let results = kernel.results.iter().zip(&kernel.result_shapes).enumerate();
    for (index, (result, shape)) in results {
        let element = kernel.tensors[result.tensor].element;
        types.push(memref(context, element, shape, layouts.result(index)));
    }
    let byte = IntegerType::new(context, 8).into();
    let sized_later: Type = MemRefType::new(byte, &[i64::MIN], None, None).into();
    types.extend(std::iter::repeat_n(sized_later, 1 + usize::from(keeps)));
    types
}

fn memref<'c>(
    context: &'c Context,
    element: Type<'c>,
    shape: &[i64],
    strides: Option<&[i64]>,
) -> Type<'c> {
    let layout = strides
        .map(|strides| -> Attribute { StridedLayoutAttribute::new(context, 0, strides).into() });
    MemRefType::new(element, shape, layout, None).into()
}

/// Adds an empty function with the new signature after the old one.
///
/// # Errors
/// If the old one is not in a module.
pub fn declare<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    types: &[Type<'c>],
) -> Result<OperationRef<'c, 'a>> {
    let spec = on_memory(func, types, |_| {});
    let block =
        func.block().ok_or_else(|| LowerError::at(func, "expected a function in a module"))?;
    Ok(block.insert_operation_after(func, spec.build()))
}

/// Records the properties of the kernel once its body is written, and sets the sizes of the last arguments
/// and of those that are packed.
pub fn record_memory<'c: 'a, 'a>(
    context: &'c Context,
    func: OperationRef<'c, 'a>,
    mut types: Vec<Type<'c>>,
    info: &KernelInfo,
) {
    let last = types.len() - 1;
    let byte: Type = IntegerType::new(context, 8).into();
    let kept = info.kept.iter().map(|kept| (last - 1, kept.bytes.cast_signed(), byte));
    let element =
        |index: usize| MemRefType::try_from(types[index]).map_or(byte, |memref| memref.element());
    let packed = info.packed.iter();
    let packed: Vec<_> = packed
        .map(|packing| (packing.argument(), packing.elements(), element(packing.argument())))
        .collect();
    let workspace = (last, info.scratch().cast_signed(), byte);
    for (index, size, element) in kept.chain([workspace]).chain(packed) {
        types[index] = MemRefType::new(element, &[size], None, None).into();
        if let Ok(block) = kernel::entry(func)
            && let Ok(argument) = block.argument(index)
        {
            irc_mlir::set_type(argument.into(), types[index]);
        }
    }
    let signature = FunctionType::new(context, &types, &[]);
    irc_mlir::set_attribute(func, "function_type", attr::ty(signature.into()));
    KERNEL.write(func, info);
}
