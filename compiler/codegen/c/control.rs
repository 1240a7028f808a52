//! Branches and returns. Operands of a branch are assigned to the variables of its block.
use super::{
    super::constant,
    function::{Body, Op, Parts, Result, no_translation, unsupported},
    literals, types,
};
use irc_mlir::{OperationLike, llvm, read};

impl Body<'_> {
    /// Translates an op that ends a block.
    pub fn control(&mut self, op: Op<'_, '_>, name: &str) -> Result<()> {
        match name {
            "br" => {
                let arguments = self.all_parts(&op, 0, op.operand_count())?;
                self.leave(&op, 0, &arguments, "")
            }
            "cond_br" => self.branch(op),
            "switch" => self.switch(op),
            "return" => self.give(op),
            _ => {
                // Nothing gets here; what does must not run on into other code.
                self.line("__builtin_trap();");
                Ok(())
            }
        }
    }

    fn give(&mut self, op: Op<'_, '_>) -> Result<()> {
        let values = self.all_parts(&op, 0, op.operand_count())?;
        let results = self.results.clone();
        match values.as_slice() {
            [] => self.line("return;"),
            [one] if !types::is_wide(results[0]) => self.line(&format!("return {one};")),
            several => {
                let ty = self.unit.result_type(&results);
                self.line(&format!("return ({ty}){{{}}};", several.join(", ")));
            }
        }
        Ok(())
    }

    fn branch(&mut self, op: Op<'_, '_>) -> Result<()> {
        let sizes = segments(&op, "operandSegmentSizes")?;
        let [1, yes, no] = sizes[..] else { return Err(no_translation(&op)) };
        let condition = self.scalar(&op, 0)?;
        let (taken, otherwise) =
            (self.all_parts(&op, 1, 1 + yes)?, self.all_parts(&op, 1 + yes, 1 + yes + no)?);
        self.line(&format!("if ({condition}) {{"));
        self.leave(&op, 0, &taken, "  ")?;
        self.line("}");
        self.leave(&op, 1, &otherwise, "")
    }

    fn switch(&mut self, op: Op<'_, '_>) -> Result<()> {
        let (shape, value) = self.operand(&op, 0)?;
        let sizes = segments(&op, "operandSegmentSizes")?;
        let odd = || unsupported(&op, "these cases");
        let cases = match read::attribute(&op, "case_values") {
            Some(cases) => llvm::data(cases).ok_or_else(odd)?,
            None => llvm::Data::Elements(Vec::new()),
        };
        let per_case = segments(&op, "case_operand_segments").unwrap_or_default();
        let mut first = 1 + sizes.get(1).copied().unwrap_or(0);
        let default = self.all_parts(&op, 1, first)?;
        self.line(&format!("switch ({value}) {{"));
        for case in 0..op.successor_count().saturating_sub(1) {
            let operands = per_case.get(case).copied().unwrap_or(0);
            let arguments = self.all_parts(&op, first, first + operands)?;
            first += operands;
            let number = case_value(&cases, case, shape.element.bytes() as usize);
            let number = literals::plain(shape.element, number.ok_or_else(odd)?);
            self.line(&format!("case {}: {{", number.ok_or_else(odd)?));
            self.leave(&op, case + 1, &arguments, "  ")?;
            self.line("}");
        }
        self.line("}");
        self.leave(&op, 0, &default, "")
    }

    /// Assigns the arguments of a successor all at once, and goes there.
    fn leave(
        &mut self,
        op: &Op<'_, '_>,
        successor: usize,
        values: &[String],
        indent: &str,
    ) -> Result<()> {
        let block = op.successor(successor).ok().and_then(|block| self.block_of(block));
        let block = block.ok_or_else(|| no_translation(op))?;
        // What is assigned anew before another reads it is saved first.
        let mut open = 0;
        for (index, (shape, variable)) in block.arguments.iter().enumerate() {
            if is_saved(&block.arguments, values, index) {
                let saved = types::constant(&self.unit.ty(*shape), &format!("{variable}s"));
                self.line(&format!("{indent}{{ {saved} = {variable};"));
                open += 1;
            }
        }
        for (index, ((_, variable), value)) in block.arguments.iter().zip(values).enumerate() {
            let source = block.arguments[..index].iter().position(|(_, name)| name == value);
            let source = match source {
                Some(before) if is_saved(&block.arguments, values, before) => format!("{value}s"),
                _ => value.clone(),
            };
            if source != *variable {
                self.line(&format!("{indent}{variable} = {source};"));
            }
        }
        let close = " }".repeat(open);
        self.line(&format!("{indent}goto {};{close}", block.name));
        Ok(())
    }

    /// The parts of the operands from one to before another.
    fn all_parts(&mut self, op: &Op<'_, '_>, from: usize, to: usize) -> Result<Parts> {
        let mut parts = Parts::new();
        for index in from..to {
            parts.extend(self.parts(op, index)?);
        }
        Ok(parts)
    }
}

/// Whether a variable is assigned anew before another is assigned what it was.
fn is_saved<S>(variables: &[(S, String)], values: &[String], index: usize) -> bool {
    let (_, variable) = &variables[index];
    *variable != values[index] && values[index + 1..].contains(variable)
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
    Some(constant::bits(value))
}
