//! Branches and returns. Operands of a branch become arguments of Cranelift's block.
use super::function::{Body, Op, Parts, Result, no_translation, unsupported};
use crate::codegen::inst;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, TrapCode, types::I64};
use cranelift_frontend::Switch;
use irc_mlir::OperationLike;
use std::ops::Range;

impl Body<'_, '_, '_> {
    /// Jumps to the only successor.
    pub fn jump(&mut self, op: &Op<'_, '_>) -> Result<()> {
        let arguments = self.arguments(op, 0..op.operand_count())?;
        let target = self.successor(op, 0)?;
        self.b.ins().jump(target, &arguments);
        Ok(())
    }

    /// Returns the operands.
    pub fn give(&mut self, op: &Op<'_, '_>) -> Result<()> {
        let mut values = Parts::new();
        for index in 0..op.operand_count() {
            values.extend(self.operand(op, index)?);
        }
        self.b.ins().return_(&values);
        Ok(())
    }

    /// Unreachable; if reached, execution must not continue into other code.
    pub fn trap(&mut self, op: &Op<'_, '_>) -> Result<()> {
        let code = TrapCode::user(1).ok_or_else(|| no_translation(op))?;
        self.b.ins().trap(code);
        Ok(())
    }

    /// Jumps to one of two successors.
    pub fn branch(&mut self, op: &Op<'_, '_>, yes: usize, no: usize) -> Result<()> {
        let condition = self.scalar(op, 0)?;
        let (taken, otherwise) = (self.successor(op, 0)?, self.successor(op, 1)?);
        let yes_arguments = self.arguments(op, 1..1 + yes)?;
        let no_arguments = self.arguments(op, 1 + yes..1 + yes + no)?;
        self.b.ins().brif(condition, taken, &yes_arguments, otherwise, &no_arguments);
        Ok(())
    }

    /// A switch jumps to blocks of its own, which pass on the arguments: Cranelift's switch passes none.
    pub fn switch(&mut self, op: &Op<'_, '_>, cases: &inst::Switch) -> Result<()> {
        let shape = self.operand_shape(op, 0)?;
        let value = self.scalar(op, 0)?;
        let mut switch = Switch::new();
        let mut landings: Vec<(Block, Block, Vec<BlockArg>)> = Vec::new();
        for (case, operands) in cases.cases.iter().enumerate() {
            let arguments = self.arguments(op, operands.clone())?;
            let number = cases.number(case, shape.element.bytes() as usize);
            let number = number.ok_or_else(|| unsupported(op, "these cases"))?;
            let landing = self.b.create_block();
            landings.push((landing, self.successor(op, case + 1)?, arguments));
            switch.set_entry(number, landing);
        }
        let arguments = self.arguments(op, cases.default.clone())?;
        let landing = self.b.create_block();
        landings.push((landing, self.successor(op, 0)?, arguments));
        let wide = if shape.element.scalar().bits() < I64.bits() {
            self.b.ins().uextend(I64, value)
        } else {
            value
        };
        switch.emit(self.b, wide, landing);
        for (landing, target, arguments) in landings {
            self.b.switch_to_block(landing);
            self.b.ins().jump(target, &arguments);
        }
        Ok(())
    }

    fn successor(&self, op: &Op<'_, '_>, index: usize) -> Result<Block> {
        let block = op.successor(index).ok().and_then(|block| self.block_of(block));
        block.ok_or_else(|| no_translation(op))
    }

    /// The parts of some operands, as arguments.
    fn arguments(&mut self, op: &Op<'_, '_>, operands: Range<usize>) -> Result<Vec<BlockArg>> {
        let mut arguments = Vec::new();
        for index in operands {
            arguments.extend(self.operand(op, index)?.into_iter().map(BlockArg::Value));
        }
        Ok(arguments)
    }
}
