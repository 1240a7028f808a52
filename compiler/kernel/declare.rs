//! Declares the functions on memory that replace kernels on tensors.
use crate::attributes::{BLOCKS, KERNEL, KernelInfo};
use irc_mlir::ops::func;
use irc_mlir::{
    Block, OpSpec, OperationLike, OperationRef, Type, attr, context_of,
    melior::ir::r#type::FunctionType, region_of,
};

/// The attributes of a function on tensors that do not apply to the one on memory.
const REPLACED: [&str; 5] =
    ["function_type", "arg_attrs", "res_attrs", KERNEL.name(), BLOCKS.name()];

/// A function to replace a kernel: with its name, location and other properties, parameters of these
/// types, no results, and an empty block as its body. `learn` adds the properties that the lowering
/// determines.
pub(crate) fn on_memory<'c: 'a, 'a>(
    kernel: OperationRef<'c, 'a>,
    parameters: &[Type<'c>],
    learn: impl FnOnce(&mut KernelInfo),
) -> OpSpec<'c> {
    let mut info = KERNEL.read(&kernel).unwrap_or_default();
    learn(&mut info);
    let context = context_of(&kernel);
    let arguments: Vec<_> = parameters.iter().map(|ty| (*ty, kernel.location())).collect();
    let signature = FunctionType::new(context, parameters, &[]);
    let mut spec = OpSpec::new(context, func::FUNC, kernel.location())
        .region(region_of(Block::new(&arguments)))
        .attr("function_type", attr::ty(signature.into()))
        .with(KERNEL, &info);
    for (name, value) in kernel.attributes() {
        let name = name.as_string_ref().as_str().unwrap_or_default().to_owned();
        if !REPLACED.contains(&name.as_str()) {
            spec = spec.attr(&name, value);
        }
    }
    spec
}
