//! Configuration: elides register writes that change nothing.

use std::collections::BTreeMap;

use irc_npu::{Instruction, Op};

use crate::step::Step;
use crate::tokens::IssuedInstruction;

/// Instructions, each preceded by the configuration that it needs.
///
/// Registers keep their value, so a write of the current value is omitted.
#[derive(Default)]
pub struct Configured {
    registers: BTreeMap<&'static str, Op>,
    code: Vec<IssuedInstruction>,
}

impl Configured {
    /// Adds a step.
    pub fn push(&mut self, step: Step) {
        for config in step.configs {
            let register = self.registers.get_mut(config.name());
            if register.as_deref() == Some(&config) {
                continue;
            }
            let instruction = Instruction::new(config.clone(), step.origin.clone());
            self.code.push((instruction, step.workload));
            match register {
                Some(register) => *register = config,
                None => drop(self.registers.insert(config.name(), config)),
            }
        }
        self.code.push((Instruction::new(step.op, step.origin), step.workload));
    }

    /// The workload with which the last instruction is issued; `None` without instructions.
    pub fn last_workload(&self) -> Option<usize> {
        self.code.last().map(|(_, workload)| *workload)
    }

    /// All instructions.
    pub fn into_code(self) -> Vec<IssuedInstruction> {
        self.code
    }
}

impl FromIterator<Step> for Configured {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        let mut all = Self::default();
        steps.into_iter().for_each(|step| all.push(step));
        all
    }
}
