//! Disables the unrolling of long loops.
//!
//! Kernels have tiles as large as registers allow, in loops that are long already. LLVM would take a fifth of the time of its passes
//! to find out how to unroll them, and unroll some for processors with large buffers, which makes nothing faster.
use irc_mlir::ops::llvm;
use irc_mlir::{
    Attribute, BlockLike, Module, OperationLike, OperationRef, attr, context_of, read,
    set_attribute,
};
use std::collections::HashMap;

/// The number of ops from which on a loop is long.
const LONG: usize = 100;

/// Marks loops of many ops, which are not unrolled then.
pub fn disable_unrolling(module: &Module<'_>) {
    let module = module.as_operation();
    let disabled =
        attr::parse(context_of(&module), "#llvm.loop_annotation<unroll = <disable = true>>");
    let functions = read::body_ops(module);
    for function in functions.into_iter().filter(|op| read::op_name(op) == llvm::FUNC) {
        mark_loops(function, disabled);
    }
}

/// The blocks of a loop are in order: one that branches back to the first is the last.
fn mark_loops<'c>(function: OperationRef<'c, '_>, disabled: Attribute<'c>) {
    // The number of ops before each block.
    let (mut before, mut count) = (HashMap::new(), 0);
    for block in read::blocks(function) {
        before.insert(block.to_raw().ptr as usize, count);
        count += read::block_ops(block).len();
        if let Some(end) = block.terminator().filter(|end| read::op_name(end) == llvm::BR)
            && let Some(header) = end.successors().next()
            && let Some(start) = before.get(&(header.to_raw().ptr as usize))
            && count - start >= LONG
        {
            set_attribute(end, "loop_annotation", disabled);
        }
    }
}
