//! Loops that LLVM leaves as they are.
//!
//! Kernels have tiles as large as registers allow, in loops that are long already. LLVM would take a fifth of the time of its passes
//! to find out how to unroll them, and unroll some for processors with large buffers, which makes nothing faster.
use irc_mlir::ops::llvm;
use irc_mlir::{
    BlockLike, Module, OperationLike, OperationRef, attr, context_of, read, set_attribute,
    walk_collect,
};
use melior::ir::RegionLike;
use std::collections::HashMap;

/// The number of ops from which on a loop is long.
const LONG: usize = 100;

/// Marks loops of many ops, which are not unrolled then.
pub fn keep_long_loops(module: &Module<'_>) {
    for function in walk_collect(module.as_operation(), |op| read::op_name(&op) == llvm::FUNC) {
        keep_loops(function);
    }
}

/// The blocks of a loop are in order: one that branches back to the first is the last.
fn keep_loops(function: OperationRef<'_, '_>) {
    let mut next = function.region(0).ok().and_then(|region| region.first_block());
    // The number of ops before each block.
    let (mut before, mut count) = (HashMap::new(), 0);
    while let Some(block) = next {
        before.insert(block.to_raw().ptr as usize, count);
        count += std::iter::successors(block.first_operation(), |op| op.next_in_block()).count();
        if let Some(end) = block.terminator().filter(|end| read::op_name(end) == llvm::BR)
            && let Some(header) = end.successors().next()
            && let Some(start) = before.get(&(header.to_raw().ptr as usize))
            && count - start >= LONG
        {
            let text = "#llvm.loop_annotation<unroll = <disable = true>>";
            set_attribute(end, "loop_annotation", attr::parse(context_of(&end), text));
        }
        next = block.next_in_region();
    }
}
