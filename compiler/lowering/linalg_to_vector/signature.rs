//! The signature of the lowered function, on memory.
use super::{
    error::{LowerError, Result},
    kernel::{self, Kernel, Origin},
    layout::Layouts,
};
use crate::{
    attributes::{KERNEL, KernelInfo, LINKAGE, POOL, launcher, part_of},
    kernel::{declare::on_memory, emit::Emit},
};
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    Attribute, BlockLike, Context, OpSpec, OperationLike, OperationRef, Region, Type, attr, read,
};
use melior::ir::{
    attribute::StridedLayoutAttribute,
    r#type::{FunctionType, IntegerType, MemRefType, ShapedTypeLike},
};

/// The types of the lowered kernel's arguments: inputs, numbers of rows and columns if they are passed, outputs, kept memory if any,
/// and the workspace. The sizes of the last two are not known yet.
pub fn parameters<'c>(
    context: &'c Context,
    kernel: &Kernel<'c, '_>,
    layouts: &Layouts,
    info: &KernelInfo,
) -> Vec<Type<'c>> {
    let mut types = vec![];
    for tensor in &kernel.tensors {
        let Origin::Argument(index) = tensor.origin else { continue };
        let byte: Type = IntegerType::new(context, 8).into();
        let is_bool = tensor.element == IntegerType::new(context, 1).into();
        let element = if is_bool { byte } else { tensor.element };
        types.push(memref(context, element, &tensor.shape, layouts.argument(index)));
    }
    types.extend(info.passed().map(|_| Type::index(context)));
    let results = kernel.results.iter().zip(&kernel.result_shapes).enumerate();
    for (index, (result, shape)) in results {
        let element = kernel.tensors[result.tensor].element;
        types.push(memref(context, element, shape, layouts.result(index)));
    }
    let byte = IntegerType::new(context, 8).into();
    let sized_later: Type = MemRefType::new(byte, &[i64::MIN], None, None).into();
    types.extend(std::iter::repeat_n(sized_later, 1 + usize::from(info.keeps)));
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

/// The number of parameters of a function for parts of a kernel after those of the kernel: memory of the part, the
/// first phase and the one after the last, the number of the part, and the number of parts.
pub const PART_PARAMETERS: usize = 5;

/// Adds an empty function for parts of the kernel after it, which the [`whole`] kernel calls.
///
/// # Errors
/// If the kernel is not in a module.
pub fn declare_part<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    types: &[Type<'c>],
) -> Result<OperationRef<'c, 'a>> {
    let context = irc_mlir::context_of(&func);
    let lowered = declare(func, &with_part(context, types, i64::MIN))?;
    let name = read::string(&func, "sym_name").unwrap_or_default();
    irc_mlir::set_attribute(lowered, "sym_name", attr::string(context, &part_of(&name)));
    irc_mlir::set_attribute(lowered, "sym_visibility", attr::string(context, "private"));
    irc_mlir::set_attribute(lowered, LINKAGE, attr::parse(context, "#llvm.linkage<internal>"));
    irc_mlir::remove_attribute(lowered, KERNEL.name());
    // Nothing else points to the memory of the part.
    let count = types.len() + PART_PARAMETERS;
    let of = |index| if index == types.len() { "{llvm.noalias}" } else { "{}" };
    let each: Vec<_> = (0..count).map(of).collect();
    let text = format!("[{}]", each.join(", "));
    irc_mlir::set_attribute(lowered, "arg_attrs", attr::parse(context, &text));
    Ok(lowered)
}

/// The parameters of a function for parts of a kernel with these parameters.
fn with_part<'c>(context: &'c Context, types: &[Type<'c>], bytes: i64) -> Vec<Type<'c>> {
    let byte = IntegerType::new(context, 8).into();
    let mut types = types.to_vec();
    types.push(MemRefType::new(byte, &[bytes], None, None).into());
    types.extend([Type::index(context); PART_PARAMETERS - 1]);
    types
}

/// Adds the kernel, which runs all phases of its function for parts as one part, and declares its launcher.
///
/// # Errors
/// If it is not in a module.
pub fn whole<'c: 'a, 'a>(
    context: &'c Context,
    func: OperationRef<'c, 'a>,
    part: OperationRef<'c, 'a>,
    types: Vec<Type<'c>>,
    info: &KernelInfo,
) -> Result<()> {
    let phases = info.phases.clone().unwrap_or_default();
    let (types, bytes) = (sized(context, types, info), phases.part_bytes.cast_signed());
    set_parameters(part, &with_part(context, &types, bytes));
    let lowered = declare(func, &types)?;
    KERNEL.write(lowered, info);
    let block = kernel::entry(lowered)?;
    let e = Emit { context, block, location: func.location() };
    let arguments = (0..types.len()).map(|index| kernel::argument(func, block, index));
    let mut operands = arguments.collect::<Result<Vec<_>>>()?;
    let start = info.scratch().cast_signed() - bytes;
    let own = e.workspace_view(operands[types.len() - 1], start, bytes, e.int(8));
    operands.push(own.memref);
    let count = phases.parts.len() as i64;
    operands.extend([0, count, 0, 1].map(|value| e.index(value)));
    let name = read::string(&func, "sym_name").unwrap_or_default();
    let call = e.spec(func::CALL).attr("callee", attr::symbol(context, &part_of(&name)));
    call.operands(&operands).append(&block);
    e.spec(func::RETURN).append(&block);
    let pool = irc_mlir::ty::parse(context, POOL);
    let signature = FunctionType::new(context, &[&types[..], &[pool]].concat(), &[]);
    let declared = OpSpec::new(context, func::FUNC, func.location())
        .attr("sym_name", attr::string(context, &launcher(&name)))
        .attr("sym_visibility", attr::string(context, "private"))
        .attr("function_type", attr::ty(signature.into()))
        .region(Region::new());
    if let Some(module) = func.block() {
        module.insert_operation_after(lowered, declared.build());
    }
    Ok(())
}

/// Records the properties of the kernel once its body is written, and sets the sizes of the last arguments
/// and of those that are packed.
pub fn record_memory<'c: 'a, 'a>(
    context: &'c Context,
    func: OperationRef<'c, 'a>,
    types: Vec<Type<'c>>,
    info: &KernelInfo,
) {
    set_parameters(func, &sized(context, types, info));
    KERNEL.write(func, info);
}

/// Sets the types of the parameters of a function.
fn set_parameters<'c: 'a, 'a>(func: OperationRef<'c, 'a>, types: &[Type<'c>]) {
    for (index, ty) in types.iter().enumerate() {
        if let Ok(block) = kernel::entry(func)
            && let Ok(argument) = block.argument(index)
        {
            irc_mlir::set_type(argument.into(), *ty);
        }
    }
    irc_mlir::update_function_type(func);
}

/// The parameters with the sizes of the last ones and of those that are packed.
fn sized<'c>(context: &'c Context, mut types: Vec<Type<'c>>, info: &KernelInfo) -> Vec<Type<'c>> {
    let last = types.len() - 1;
    let byte: Type = IntegerType::new(context, 8).into();
    let kept = info.kept.iter().map(|kept| (last - 1, kept.bytes.cast_signed(), byte));
    let element =
        |index: usize| MemRefType::try_from(types[index]).map_or(byte, |memref| memref.element());
    let packed = info.packed.iter();
    let packed: Vec<_> = packed
        .map(|packing| {
            let own = || element(packing.argument());
            let element =
                packing.dtype().map_or_else(own, |dtype| tl::dtype_to_mlir(context, dtype));
            (packing.argument(), packing.elements(), element)
        })
        .collect();
    let workspace = (last, info.scratch().cast_signed(), byte);
    for (index, size, element) in kept.chain([workspace]).chain(packed) {
        types[index] = MemRefType::new(element, &[size], None, None).into();
    }
    types
}
