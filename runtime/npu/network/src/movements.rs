//! Checks that a program moves the data that the network has in DRAM.

use irc_npu::registers::Registers;
use irc_npu::{Core, Op, Program};

use crate::layout::WEIGHTS;
use crate::{Error, Layout, Weights};

/// Checks every movement from and to DRAM against the layout.
///
/// # Errors
/// The first movement of a tensor, or of weights, that is not in the layout at its address.
pub fn check(program: &Program, layout: &Layout) -> Result<(), Error> {
    program.cores.iter().try_for_each(|core| check_core(core, layout))
}

fn check_core(core: &Core, layout: &Layout) -> Result<(), Error> {
    let mut registers = Registers::default();
    for (index, instruction) in core.code.iter().enumerate() {
        // The simulator reports errors of registers.
        let _ = registers.write(instruction);
        if let Some(what) = foreign(&registers, &instruction.op, layout) {
            return Err(Error::Foreign { core: core.id, index, what });
        }
    }
    Ok(())
}

/// The data moved by an instruction that is not in the layout.
fn foreign(registers: &Registers, op: &Op, layout: &Layout) -> Option<String> {
    match op {
        Op::LdaMov(op) => {
            let cfg = registers.lda.get(op.rs as usize)?.as_ref()?;
            // The constants of layers whose weights are results.
            let has =
                |weights: &Weights| usize::try_from(op.st_addr).is_ok_and(|at| weights.has(at, 0));
            match cfg.bas == WEIGHTS && layout.weights.iter().any(has) {
                true => None,
                false => layout.lacks_activations(op.st_addr, cfg.s_tile),
            }
        }
        Op::StaMov(op) => {
            let cfg = registers.sta.get(op.rs as usize)?.as_ref()?;
            layout.lacks_activations(op.dt_addr, cfg.d_tile)
        }
        Op::LdwMov(op) => {
            let cfg = registers.ldw.get(op.rs as usize)?.as_ref()?;
            layout.lacks_weights(op.st_addr, cfg.sw_size)
        }
        Op::LwMov(op) if op.ss == 1 => {
            layout.lacks_weights(op.st_addr, registers.lw.as_ref()?.sw_size)
        }
        _ => None,
    }
}

impl Layout {
    fn lacks_activations(&self, address: i64, shape: [u32; 3]) -> Option<String> {
        let at = usize::try_from(address).ok();
        let has = self.activations.iter().any(|tensor| {
            let range = tensor.address..tensor.address + tensor.bytes();
            let [_, own @ ..] = tensor.shape();
            at.is_some_and(|at| range.contains(&at)) && own == shape.map(|size| size as usize)
        });
        (!has).then(|| format!("a tensor {shape:?} at {address} of activations"))
    }

    fn lacks_weights(&self, address: i64, [c, r, s]: [u32; 3]) -> Option<String> {
        let at = usize::try_from(address).ok();
        let has = self.weights.iter().any(|weights| {
            let [.., kernel] = weights.shape();
            let is_same = kernel as u64 == u64::from(r) * u64::from(s);
            is_same && at.is_some_and(|at| weights.has(at, c as usize))
        });
        (!has).then(|| format!("rows {:?} at {address} of weights", [c, r, s]))
    }
}
