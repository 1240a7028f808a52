//! Which values of `@main` are the same memory, where they must live, and for how long.
use irc_dialects::tl::LAUNCH;
use irc_mlir::{BlockLike, OperationLike, OperationRef, RegionLike, Value, ValueLike, read};
use std::collections::BTreeMap;

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// An input's buffer.
    Input(usize),
    /// A result's buffer.
    Result(usize),
    /// The workspace.
    Local(usize),
}

/// A value that lives in the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// Its size.
    pub bytes: u64,
    /// Positions of the op that defines it and of its last use, both inclusive.
    pub range: (usize, usize),
}

/// Homes and live ranges of one function.
pub struct Liveness {
    homes: BTreeMap<usize, Home>,
    /// Workspace values in definition order.
    pub locals: Vec<Local>,
    /// Position and callee of every kernel call.
    pub calls: Vec<(usize, String)>,
}

type Failure<'c, 'a> = (OperationRef<'c, 'a>, String);

impl Liveness {
    /// Analyses a function of one block.
    pub fn of<'c: 'a, 'a>(main: OperationRef<'c, 'a>) -> Result<Self, Failure<'c, 'a>> {
        let ops = read::body_ops(main);
        let results = results_in_place(&ops);
        let mut live = Liveness { homes: BTreeMap::new(), locals: Vec::new(), calls: Vec::new() };
        let block = main.region(0).ok().and_then(|region| region.first_block());
        for index in 0..block.map_or(0, |block| block.argument_count()) {
            if let Some(Ok(argument)) = block.map(|block| block.argument(index)) {
                live.homes.insert(key(argument.into()), Home::Input(index));
            }
        }
        for (position, op) in ops.iter().enumerate() {
            live.op(position, *op, &results)?;
        }
        Ok(live)
    }

    fn op<'c: 'a, 'a>(
        &mut self,
        position: usize,
        op: OperationRef<'c, 'a>,
        results: &BTreeMap<usize, usize>,
    ) -> Result<(), Failure<'c, 'a>> {
        for operand in op.operands() {
            if let Home::Local(local) = self.home(operand) {
                self.locals[local].range.1 = position;
            }
        }
        match read::op_name(&op).as_str() {
            "tl.reshape" | "tl.bitcast" => {
                if let (Ok(from), Ok(to)) = (op.operand(0), op.result(0)) {
                    self.homes.insert(key(to.into()), self.home(from));
                }
            }
            LAUNCH => {
                self.calls.push((position, read::symbol(&op, "callee").unwrap_or_default()));
                for result in op.results() {
                    self.define(position, op, result.into(), results)?;
                }
            }
            "func.return" => {}
            other => return Err((op, format!("does not expect '{other}' outside kernels"))),
        }
        Ok(())
    }

    fn define<'c: 'a, 'a>(
        &mut self,
        position: usize,
        op: OperationRef<'c, 'a>,
        value: Value<'c, 'a>,
        results: &BTreeMap<usize, usize>,
    ) -> Result<(), Failure<'c, 'a>> {
        let home = match results.get(&key(value)) {
            Some(index) => Home::Result(*index),
            None => {
                let bytes = crate::interface::byte_size(value.r#type())
                    .ok_or_else(|| (op, "has a result without a fixed size".to_owned()))?;
                self.locals.push(Local { bytes, range: (position, position) });
                Home::Local(self.locals.len() - 1)
            }
        };
        self.homes.insert(key(value), home);
        Ok(())
    }

    /// Where a value lives.
    pub fn home(&self, value: Value<'_, '_>) -> Home {
        match self.homes.get(&key(value)) {
            Some(home) => *home,
            None => unreachable!("every value of the function is defined before its use"),
        }
    }
}

/// Values that a kernel can write straight into a result's buffer, by value.
fn results_in_place(ops: &[OperationRef<'_, '_>]) -> BTreeMap<usize, usize> {
    let mut found = BTreeMap::new();
    let Some(returned) = ops.last() else { return found };
    for (index, value) in returned.operands().enumerate() {
        let mut root = value;
        while let Some(op) = read::defining_op(root) {
            match (read::op_name(&op).as_str(), op.operand(0)) {
                ("tl.reshape" | "tl.bitcast", Ok(operand)) => root = irc_mlir::rebind(operand),
                _ => break,
            }
        }
        if read::defining_op(root).is_some() {
            found.entry(key(root)).or_insert(index);
        }
    }
    found
}

fn key(value: Value<'_, '_>) -> usize {
    value.to_raw().ptr as usize
}
