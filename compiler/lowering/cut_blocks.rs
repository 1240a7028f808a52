//! Cuts long blocks of functions into a chain of blocks.
//!
//! Before: functions with branches. After: the same functions, in which no block has many more than
//! `MAX_OPS` ops. MLIR's conversions compare positions of ops in a block, and number the whole block again
//! after each insertion: without the cuts, their time is quadratic in the length of a block. Canonicalisation
//! joins the blocks again.
use irc_mlir::ops::{cf, func};
use irc_mlir::{
    Block, OpSpec, OperationLike, OperationRef, Options, Pass, PassResult, RegionLike, move_to_end,
    read, walk_collect,
};

/// Number of ops after which a block ends.
const MAX_OPS: usize = 1000;

/// The pass `cut-blocks`.
pub struct CutBlocks;

impl Pass for CutBlocks {
    fn name(&self) -> &'static str {
        "cut-blocks"
    }
    fn description(&self) -> &'static str {
        "cut long blocks of functions, which conversions need quadratic time for"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["cf"]
    }
    fn run(&self, module: OperationRef<'_, '_>, _: &Options) -> PassResult {
        for function in walk_collect(module, |op| read::op_name(&op) == func::FUNC) {
            cut_function(function);
        }
        Ok(())
    }
}

fn cut_function<'c: 'a, 'a>(function: OperationRef<'c, 'a>) {
    let Ok(region) = function.region(0) else { return };
    for block in read::blocks(function) {
        let ops = read::block_ops(block);
        if ops.len() <= MAX_OPS {
            continue;
        }
        let mut end = block;
        for ops in ops.chunks(MAX_OPS).skip(1) {
            let tail = region.append_block(Block::new(&[]));
            ops.iter().for_each(|op| move_to_end(*op, &tail));
            let context = irc_mlir::context_of(&function);
            let location = ops[0].location();
            OpSpec::new(context, cf::BR, location).successors(&[&tail]).append(&end);
            end = tail;
        }
    }
}

#[cfg(test)]
mod tests {
    use irc_mlir::{OperationLike, parse_module, run_pipeline, to_text};

    #[test]
    fn blocks_are_cut_and_joined_again() {
        crate::passes::register_all();
        let context = irc_dialects::new_context();
        let calls = "func.call @g() : () -> ()\n".repeat(2500);
        let text = format!("func.func private @g()\nfunc.func @f() {{\n{calls}return\n}}");
        let mut module = parse_module(&context, &text).unwrap();
        let mut blocks = |passes: &str| {
            let passes = format!("builtin.module({passes})");
            run_pipeline(&context, &mut module, &passes).unwrap();
            assert!(module.as_operation().verify());
            let text = to_text(&module.as_operation(), false);
            assert_eq!(text.matches("call @g()").count(), 2500);
            text.matches(irc_mlir::ops::cf::BR).count()
        };
        assert_eq!(blocks("cut-blocks"), 2);
        assert_eq!(blocks("canonicalize"), 0);
    }
}
