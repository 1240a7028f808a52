//! Kernels on tensors become functions on memory.
use crate::attributes::{BLOCK_BYTES, BLOCK_CALLEES, BLOCK_COUNT, BLOCK_ITEMS, SYMBOLS};
use irc_mlir::ops::func;
use irc_mlir::{
    Block, OpSpec, OperationLike, OperationRef, Type, attr, context_of,
    melior::ir::r#type::FunctionType, region_of,
};

/// The attributes of a function on tensors that do not describe the one on memory.
const REPLACED: [&str; 8] = [
    "function_type",
    "arg_attrs",
    "res_attrs",
    SYMBOLS.name(),
    BLOCK_CALLEES.name(),
    BLOCK_ITEMS.name(),
    BLOCK_COUNT.name(),
    BLOCK_BYTES.name(),
];

/// A function in place of a kernel: with its name, its location and what else is known of it, parameters
/// of these types, no results, and an empty block for its body.
pub(crate) fn on_memory<'c: 'a, 'a>(
    kernel: OperationRef<'c, 'a>,
    parameters: &[Type<'c>],
) -> OpSpec<'c> {
    let context = context_of(&kernel);
    let arguments: Vec<_> = parameters.iter().map(|ty| (*ty, kernel.location())).collect();
    let signature = FunctionType::new(context, parameters, &[]);
    let mut spec = OpSpec::new(context, func::FUNC, kernel.location())
        .region(region_of(Block::new(&arguments)))
        .attr("function_type", attr::ty(signature.into()));
    for (name, value) in kernel.attributes() {
        let name = name.as_string_ref().as_str().unwrap_or_default().to_owned();
        if !REPLACED.contains(&name.as_str()) {
            spec = spec.attr(&name, value);
        }
    }
    spec
}
