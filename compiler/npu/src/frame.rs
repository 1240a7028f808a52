//! The frame around the instructions of a core: the begin and the end of its task, registers,
//! tokens.

use irc_npu::op::{CtEd, CtSt};
use irc_npu::{Core, Instruction, Op, Origin};

use crate::configure::Configured;
use crate::diagnostic::Result;
use crate::rings;
use crate::tokens::{IssuedInstruction, Rules, synchronize};

/// The parts of a core's program other than its instructions.
pub struct Frame<'p> {
    /// Number of the core.
    pub id: u32,
    /// Path of the core in the schedule's file.
    pub path: &'p str,
    /// Origin of the begin, and its workload.
    pub begin: (Origin, usize),
    /// The first ring table.
    pub regions: &'p [[i64; 2]],
    /// Origin of the end, and its workload.
    pub end: (Origin, usize),
    /// The rules for tokens.
    pub rules: Rules,
}

impl Frame<'_> {
    /// The program of the core.
    pub fn wrap(self, configured: Configured) -> Result<Core> {
        let control =
            |op, (origin, workload): (Origin, usize)| (Instruction::new(op, origin), workload);
        let first_path = format!("{}[{}]", self.path, self.begin.1);
        let table = rings::table(self.regions, &first_path)?;
        let opening: Vec<Op> = [CtSt {}.into()].into_iter().chain(table).collect();
        let inner = configured.into_code();
        let mut issued: Vec<IssuedInstruction> =
            Vec::with_capacity(opening.len() + inner.len() + 1);
        issued.extend(opening.into_iter().map(|op| control(op, self.begin.clone())));
        issued.extend(inner);
        issued.push(control(CtEd {}.into(), self.end));
        synchronize(&mut issued, self.rules, self.path)?;
        // A new list has no room for the workloads.
        let mut code = Vec::with_capacity(issued.len());
        code.extend(issued.into_iter().map(|(instruction, _)| instruction));
        Ok(Core { id: self.id, code })
    }
}
