//! Branches and returns. Operands of a branch become arguments of Cranelift's block.
use super::function::{Body, Op, Parts, Result, no_translation, unsupported};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, TrapCode, types::I64};
use cranelift_frontend::Switch;
use irc_mlir::{OperationLike, llvm, read};

impl Body<'_, '_, '_> {
    /// Translates an op that ends a block.
    pub fn control(&mut self, op: Op<'_, '_>, name: &str) -> Result<()> {
        match name {
            "br" => {
                let arguments = self.arguments(&op, 0, op.operand_count())?;
                let target = self.successor(&op, 0)?;
                self.b.ins().jump(target, &arguments);
                Ok(())
            }
            "cond_br" => self.branch(op),
            "switch" => self.switch(op),
            "return" => {
                let mut values = Parts::new();
                for index in 0..op.operand_count() {
                    values.extend(self.operand(&op, index)?);
                }
                self.b.ins().return_(&values);
                Ok(())
            }
            _ => {
                // Nothing gets here; what does must not run on into other code.
                let code = TrapCode::user(1).ok_or_else(|| no_translation(&op))?;
                self.b.ins().trap(code);
                Ok(())
            }
        }
    }

    fn branch(&mut self, op: Op<'_, '_>) -> Result<()> {
        let sizes = segments(&op, "operandSegmentSizes")?;
        let [1, yes, no] = sizes[..] else { return Err(no_translation(&op)) };
        let condition = self.scalar(&op, 0)?;
        let (taken, otherwise) = (self.successor(&op, 0)?, self.successor(&op, 1)?);
        let yes_arguments = self.arguments(&op, 1, 1 + yes)?;
        let no_arguments = self.arguments(&op, 1 + yes, 1 + yes + no)?;
        self.b.ins().brif(condition, taken, &yes_arguments, otherwise, &no_arguments);
        Ok(())
    }

    /// A switch leads to blocks of its own, which pass the arguments on: Cranelift's takes none.
    fn switch(&mut self, op: Op<'_, '_>) -> Result<()> {
        let shape = self.operand_shape(&op, 0)?;
        let value = self.scalar(&op, 0)?;
        let sizes = segments(&op, "operandSegmentSizes")?;
        let cases = match read::attribute(&op, "case_values") {
            Some(cases) => llvm::data(cases).ok_or_else(|| unsupported(&op, "these cases"))?,
            None => llvm::Data::Elements(Vec::new()),
        };
        let per_case = segments(&op, "case_operand_segments").unwrap_or_default();
        let count = op.successor_count().saturating_sub(1);
        let mut first = 1 + sizes.get(1).copied().unwrap_or(0);
        let mut switch = Switch::new();
        let mut landings: Vec<(Block, Block, Vec<BlockArg>)> = Vec::new();
        for case in 0..count {
            let operands = per_case.get(case).copied().unwrap_or(0);
            let arguments = self.arguments(&op, first, first + operands)?;
            first += operands;
            let number = case_value(&cases, case, shape.element.bytes() as usize);
            let number = number.ok_or_else(|| unsupported(&op, "these cases"))?;
            let landing = self.b.create_block();
            landings.push((landing, self.successor(&op, case + 1)?, arguments));
            switch.set_entry(number, landing);
        }
        let arguments = self.arguments(&op, 1, 1 + sizes.get(1).copied().unwrap_or(0))?;
        let landing = self.b.create_block();
        landings.push((landing, self.successor(&op, 0)?, arguments));
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

    /// The parts of the operands from one to before another, as arguments.
    fn arguments(&mut self, op: &Op<'_, '_>, from: usize, to: usize) -> Result<Vec<BlockArg>> {
        let mut arguments = Vec::new();
        for index in from..to {
            arguments.extend(self.operand(op, index)?.into_iter().map(BlockArg::Value));
        }
        Ok(arguments)
    }
}

fn segments(op: &Op<'_, '_>, name: &str) -> Result<Vec<usize>> {
    let numbers = llvm::numbers(op, name).ok_or_else(|| no_translation(op))?;
    Ok(numbers.into_iter().map(|number| usize::try_from(number).unwrap_or(0)).collect())
}

fn case_value(cases: &llvm::Data, index: usize, bytes: usize) -> Option<u128> {
    let value = match cases {
        llvm::Data::Splat(value) => value.as_slice(),
        llvm::Data::Elements(all) => all.get(index * bytes..(index + 1) * bytes)?,
    };
    Some(value.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}
