//! Configuration: what writes registers is issued only where it changes them.

use std::collections::BTreeMap;

use irc_npu::{Instruction, Op};

use crate::step::Step;

/// The steps with the configuration they need in front of them.
///
/// Registers stay until written again, so one is left out that would write what is there.
pub fn configure(steps: Vec<Step>) -> Vec<Instruction> {
    let mut registers: BTreeMap<&'static str, Op> = BTreeMap::new();
    let mut code = vec![];
    for step in steps {
        for config in step.configs {
            if registers.get(config.name()) == Some(&config) {
                continue;
            }
            code.push(Instruction::new(config.clone(), step.origin.clone()));
            registers.insert(config.name(), config);
        }
        code.push(Instruction::new(step.op, step.origin));
    }
    code
}
