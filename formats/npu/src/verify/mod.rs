//! Verifies that a program is correct for any duration of its instructions.
//!
//! Engines run in order; an instruction starts when those before it on its engine have ended
//! and all its tokens are available; a sending and a receiving instruction run together. From
//! that follows which instructions are ordered (happens-before, as vector clocks). Every two
//! instructions that access the same bytes, one of them writing, must be.
//!
//! Register contents follow from program order, as every engine owns its registers. Only the ring
//! regions are shared; they are treated as memory, which CT writes and all users of L2 read.

mod defined;
mod order;
mod races;
mod report;
mod tokens;
mod weights;

use irc_diag::Sink;

use crate::access::{self, Access};
use crate::program::{Program, Spans};
use crate::registers::Registers;
use crate::{Engine, Op};

use report::Report;

/// Visits the instructions in an order that tokens and transfers allow: index of the
/// core, index of the instruction. Both ends of a transfer are consecutive.
///
/// Returns whether all instructions can run.
pub fn in_order(program: &Program, mut visit: impl FnMut(usize, usize)) -> bool {
    order::run(program, |step| visit(step.core, step.index)).is_empty()
}

/// Properties of the machine that programs do not state.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Bytes of L2 of a core.
    pub l2_bytes: i64,
    /// Units of 64 bytes of WL0 of a core; not checked if unknown.
    pub wl0_units: Option<i64>,
}

impl Default for Machine {
    /// L2 of 8 MiB; the size of WL0 is not published.
    fn default() -> Self {
        Self { l2_bytes: 8 << 20, wl0_units: None }
    }
}

/// Verifies a program; diagnostics go to the sink.
///
/// `spans` locates diagnostics in the text of the program. Codes: `README.md` of the crate.
pub fn verify(program: &Program, spans: Option<&Spans>, machine: &Machine, sink: &mut Sink) {
    let mut report = Report { program, spans, sink };
    let effects = effects(program, machine, &mut report);
    let paired = tokens::check(&mut report);
    let paired = tokens::check_transfers(&mut report) && paired;
    let mut races = races::Races::new(program, &effects);
    let mut defined = defined::Defined::new(program, machine);
    let mut weights = weights::Weights::new(program);
    let stuck = order::run(program, |step| {
        races.step(step, &mut report);
        defined.step(step, &effects[step.core][step.index], &mut report);
        weights.step(step, &effects[step.core][step.index], &mut report);
    });
    races.finish(&mut report);
    // Waits for tokens that are never given have been reported.
    if paired {
        order::report(&stuck, &mut report);
    }
}

/// The accesses of each instruction, by index of the core, by instruction.
type Effects = Vec<Vec<Vec<Access>>>;

fn effects(program: &Program, machine: &Machine, report: &mut Report<'_>) -> Effects {
    let mut all = vec![];
    for (core, code) in program.cores.iter().enumerate() {
        let mut registers = Registers::default();
        let mut repeats = false;
        let mut of_core = Vec::with_capacity(code.code.len());
        for (index, instruction) in code.code.iter().enumerate() {
            let at = (core, index);
            if let Err(message) = registers.write(instruction) {
                report.error("npu-register", message.into(), at);
            }
            let accesses = access::accesses(&registers, &instruction.op);
            let accesses = accesses.unwrap_or_else(|error| {
                report.access_error(&error, at);
                vec![]
            });
            if registers.image == 1 && !repeats && instruction.op.engine() == Engine::Vp {
                repeats = true;
                report.repeat(at);
            }
            within(&accesses, machine, at, report);
            in_place(&instruction.op, &accesses, at, report);
            of_core.push(accesses);
        }
        ends(core, report);
        all.push(of_core);
    }
    all
}

/// No access may exceed the memory.
fn within(accesses: &[Access], machine: &Machine, at: (usize, usize), report: &mut Report<'_>) {
    for Access { space, area, .. } in accesses {
        let size = match space {
            access::Space::L2 => machine.l2_bytes,
            access::Space::Wl0 => machine.wl0_units.unwrap_or(i64::MAX),
            access::Space::Dram(_) | access::Space::Regions => i64::MAX,
        };
        if area.start < 0 || area.end() > size {
            let message = format!(
                "accesses {} to {} of {}, which ends at {size}",
                area.start,
                area.end(),
                report::name(*space),
            );
            report.error("npu-memory-end", message, at);
        }
    }
}

/// An instruction may overwrite its own input only element by element.
fn in_place(op: &Op, accesses: &[Access], at: (usize, usize), report: &mut Report<'_>) {
    let same_bytes = matches!(op, Op::VpSelf(_));
    for read in accesses.iter().filter(|access| !access.write) {
        let over = accesses.iter().filter(|write| write.write && write.space == read.space);
        for write in over {
            let Some((start, end)) = read.area.common(&write.area) else { continue };
            // A convolution that accumulates reads exactly the bytes that it writes.
            if read.area == write.area && (same_bytes || matches!(op, Op::PeConv(_))) {
                continue;
            }
            let message =
                format!("writes {start} to {end} of {}, which it reads", report::name(read.space));
            return report.error("npu-in-place", message, at);
        }
    }
}

/// The control engine's first instruction begins the task, its last one ends it.
fn ends(core: usize, report: &mut Report<'_>) {
    let code = &report.program.cores[core].code;
    let is_control = |i: &usize| code[*i].op.engine() == Engine::Ct;
    let mut control = (0..code.len()).filter(is_control);
    let Some(first) = control.next() else { return };
    let last = control.next_back().unwrap_or(first);
    if !matches!(code[first].op, Op::CtSt(_)) {
        report.error("npu-begin", "the task does not begin with `ct_st`".into(), (core, first));
    }
    if !matches!(code[last].op, Op::CtEd(_)) {
        report.error("npu-end", "the task does not end with `ct_ed`".into(), (core, last));
    }
}
