//! Configuration: what writes registers is issued only where it changes them.

use std::collections::BTreeMap;

use irc_npu::{Instruction, Op};

use crate::step::Step;
use crate::tokens::IssuedInstruction;

/// The steps with the configuration they need in front of them.
///
/// Registers stay until written again, so one is left out that would write what is there.
pub fn configure(steps: impl Iterator<Item = Step>) -> Vec<IssuedInstruction> {
    let mut registers: BTreeMap<&'static str, Op> = BTreeMap::new();
    let mut code = vec![];
    for step in steps {
        for config in step.configs {
            if registers.get(config.name()) == Some(&config) {
                continue;
            }
            let instruction = Instruction::new(config.clone(), step.origin.clone());
            code.push((instruction, step.workload));
            registers.insert(config.name(), config);
        }
        code.push((Instruction::new(step.op, step.origin), step.workload));
    }
    code
}
