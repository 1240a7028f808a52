//! Configuration: elides register writes that change nothing.

use std::collections::BTreeMap;

use irc_npu::{Instruction, Op};

use crate::step::Step;
use crate::tokens::IssuedInstruction;

/// The steps, each preceded by the configuration it needs.
///
/// Registers keep their value, so a write of the current value is omitted.
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
