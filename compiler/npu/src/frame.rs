//! What goes around the instructions of a core: the begin and the end of its task, registers,
//! tokens.

use irc_npu::op::{CtEd, CtSt};
use irc_npu::{Core, Op, Origin};

use crate::configure::configure;
use crate::diagnostic::Result;
use crate::rings;
use crate::step::Step;
use crate::tokens::{Rules, synchronize};

/// What a core's program needs beside its instructions.
pub struct Frame<'p> {
    /// Number of the core.
    pub id: u32,
    /// Path of the core in the schedule's file.
    pub path: &'p str,
    /// Where the begin comes from, and its workload.
    pub begin: (Origin, usize),
    /// The first ring table.
    pub regions: &'p [[i64; 2]],
    /// Where the end comes from, and its workload.
    pub end: (Origin, usize),
    /// How tokens are chosen.
    pub rules: Rules,
}

impl Frame<'_> {
    /// The program of the core.
    pub fn around(self, steps: Vec<Step>) -> Result<Core> {
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
