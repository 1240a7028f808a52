//! The frame around the instructions of a core: the begin and the end of its task, registers,
//! tokens.

use irc_npu::op::{CtEd, CtSt};
use irc_npu::{Core, Op, Origin};

use crate::configure::configure;
use crate::diagnostic::Result;
use crate::rings;
use crate::step::Step;
use crate::tokens::{Rules, synchronize};

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
    pub fn wrap(self, steps: Vec<Step>) -> Result<Core> {
        let control = |op, (origin, workload)| Step { configs: vec![], op, origin, workload };
        let first_path = format!("{}[{}]", self.path, self.begin.1);
        let table = rings::table(self.regions, &first_path)?;
        let opening: Vec<Op> = [CtSt {}.into()].into_iter().chain(table).collect();
        let begin = opening.into_iter().map(|op| control(op, self.begin.clone()));
        let end = control(CtEd {}.into(), self.end.clone());
        let mut issued = configure(begin.chain(steps).chain([end]));
        synchronize(&mut issued, self.rules, self.path)?;
        let code = issued.into_iter().map(|(instruction, _)| instruction).collect();
        Ok(Core { id: self.id, code })
    }
}
