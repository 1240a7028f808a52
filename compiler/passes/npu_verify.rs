//! `npu-verify`: whether programs of the NPU are correct for any timing of their instructions.
//!
//! Does not change the module; a module without a program is rejected. The errors of `irc_npu::verify` for
//! each `npu.program` are diagnostics at the instruction, with the instructions that it conflicts with.
use irc_diag::{Diagnostic, Sink};
use irc_dialects::npu::{self, Exported};
use irc_mlir::{
    OperationRef, OptionKind, Options, Pass, PassError, PassOption, PassResult, emit_warning, read,
};
use irc_npu::{
    Spans,
    listing::write_instruction,
    verify::{Machine, verify},
};

/// The pass `npu-verify`.
pub struct NpuVerify;

impl Pass for NpuVerify {
    fn name(&self) -> &'static str {
        "npu-verify"
    }

    fn description(&self) -> &'static str {
        "prove NPU programs free of races, deadlocks and reads of nothing"
    }

    fn options(&self) -> &'static [PassOption] {
        &[PassOption {
            name: "l2-bytes",
            help: "bytes of L2 of a core",
            default: "8388608",
            kind: OptionKind::Integer,
        }]
    }

    fn run(&self, module: OperationRef<'_, '_>, options: &Options) -> PassResult {
        let machine = Machine { l2_bytes: options.integer("l2-bytes"), ..Machine::default() };
        let is_program = |op: &OperationRef<'_, '_>| read::op_name(op) == "npu.program";
        let mut checked = Ok(());
        let programs: Vec<_> = read::body_ops(module).into_iter().filter(is_program).collect();
        if programs.is_empty() {
            return Err(PassError::at(&module, "expected an npu.program, found none"));
        }
        for program in programs {
            let exported = npu::export(program)?;
            let mut sink = Sink::new();
            verify(&exported.program, Some(&numbers(&exported)), &machine, &mut sink);
            for diagnostic in sink.into_diagnostics() {
                checked = checked.and(report(program, &exported, &diagnostic));
            }
        }
        checked
    }
}

/// A span for every instruction: its number in the whole program.
fn numbers(exported: &Exported<'_, '_>) -> Spans {
    let mut next = 0;
    let mut place = |_: &_| {
        next += 1;
        next - 1..next
    };
    Spans(exported.ops.iter().map(|ops| ops.iter().map(&mut place).collect()).collect())
}

/// Reports a diagnostic at the instruction of its first span; the message names the others, then
/// the code.
fn report(
    program: OperationRef<'_, '_>,
    exported: &Exported<'_, '_>,
    diagnostic: &Diagnostic,
) -> PassResult {
    let all: Vec<_> = exported.ops.iter().flatten().copied().collect();
    let code: Vec<_> = exported.program.cores.iter().flat_map(|core| &core.code).collect();
    let primary = diagnostic.labels.iter().find(|label| label.primary);
    let op = primary.and_then(|label| all.get(label.span.start)).copied().unwrap_or(program);
    let mut message = diagnostic.message.clone();
    for label in diagnostic.labels.iter().filter(|label| !label.primary) {
        if let Some(instruction) = code.get(label.span.start) {
            let text = if label.text.is_empty() { "with" } else { &label.text };
            message += &format!("; {text}: {}", write_instruction(instruction));
        }
    }
    message += &format!(" [{}]", diagnostic.code);
    if !diagnostic.is_error() {
        emit_warning(&op, &message);
        return Ok(());
    }
    Err(PassError::at(&op, message))
}
