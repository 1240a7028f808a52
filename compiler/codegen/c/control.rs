//! Branches and returns. Operands of a branch are assigned to the variables of its block.
use super::{
    super::inst::Switch,
    function::{Body, Op, Parts, Result, no_translation, unsupported},
    literals, types,
};
use irc_mlir::OperationLike;

impl Body<'_> {
    /// Jumps to the only successor.
    pub fn jump(&mut self, op: &Op<'_, '_>) -> Result<()> {
        let arguments = self.all_parts(op, 0, op.operand_count())?;
        self.leave(op, 0, &arguments, "")
    }

    /// Returns the operands.
    pub fn give(&mut self, op: Op<'_, '_>) -> Result<()> {
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

    /// Jumps to one of two successors.
    pub fn branch(&mut self, op: &Op<'_, '_>, yes: usize, no: usize) -> Result<()> {
        let condition = self.scalar(op, 0)?;
        let (taken, otherwise) =
            (self.all_parts(op, 1, 1 + yes)?, self.all_parts(op, 1 + yes, 1 + yes + no)?);
        self.line(&format!("if ({condition}) {{"));
        self.leave(op, 0, &taken, "  ")?;
        self.line("}");
        self.leave(op, 1, &otherwise, "")
    }

    /// Jumps to the successor that a number selects.
    pub fn switch(&mut self, op: &Op<'_, '_>, switch: &Switch) -> Result<()> {
        let (shape, value) = self.operand(op, 0)?;
        let odd = || unsupported(op, "these cases");
        let default = self.all_parts(op, switch.default.start, switch.default.end)?;
        self.line(&format!("switch ({value}) {{"));
        for (case, operands) in switch.cases.iter().enumerate() {
            let arguments = self.all_parts(op, operands.start, operands.end)?;
            let number = switch.number(case, shape.element.bytes() as usize);
            let number = literals::plain(shape.element, number.ok_or_else(odd)?);
            self.line(&format!("case {}: {{", number.ok_or_else(odd)?));
            self.leave(op, case + 1, &arguments, "  ")?;
            self.line("}");
        }
        self.line("}");
        self.leave(op, 0, &default, "")
    }

    /// Assigns the arguments of a successor in parallel and jumps to it.
    fn leave(
        &mut self,
        op: &Op<'_, '_>,
        successor: usize,
        values: &[String],
        indent: &str,
    ) -> Result<()> {
        let block = op.successor(successor).ok().and_then(|block| self.block_of(block));
        let block = block.ok_or_else(|| no_translation(op))?;
        // A variable that is overwritten before its old value is read is saved first.
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

    /// The parts of a range of operands.
    fn all_parts(&mut self, op: &Op<'_, '_>, from: usize, to: usize) -> Result<Parts> {
        let mut parts = Parts::new();
        for index in from..to {
            parts.extend(self.parts(op, index)?);
        }
        Ok(parts)
    }
}

/// Whether a variable is overwritten before its old value is assigned to another.
fn is_saved<S>(variables: &[(S, String)], values: &[String], index: usize) -> bool {
    let (_, variable) = &variables[index];
    *variable != values[index] && values[index + 1..].contains(variable)
}
