//! Checks that tokens taken and given match, and transfers likewise.

use std::collections::BTreeMap;

use super::report::{At, Report};
use crate::enums::DataFmt;
use crate::op::{SiMov, SoMov};
use crate::registers::Registers;
use crate::{Engine, Op};

/// Compares, for each pair of engines, the numbers of tokens given and taken.
///
/// Returns whether all tokens that are taken are given.
pub fn check(report: &mut Report<'_>) -> bool {
    let mut complete = true;
    for core in 0..report.program.cores.len() {
        configs(core, report);
        for from in Engine::ALL {
            for to in Engine::ALL {
                complete &= check_pair(core, from, to, report);
            }
        }
    }
    complete
}

/// Instructions that only write registers have no tokens.
fn configs(core: usize, report: &mut Report<'_>) {
    for (i, instruction) in report.program.cores[core].code.iter().enumerate() {
        let tokens = instruction.tokens;
        if instruction.op.is_config() && !(tokens.prev.is_empty() && tokens.next.is_empty()) {
            let message = "an instruction that only writes registers has no tokens".into();
            report.error("npu-config-token", message, (core, i));
        }
    }
}

fn check_pair(core: usize, from: Engine, to: Engine, report: &mut Report<'_>) -> bool {
    let code = &report.program.cores[core].code;
    let all = |holds: &dyn Fn(usize) -> bool| (0..code.len()).filter(|i| holds(*i)).collect();
    let given: Vec<usize> =
        all(&|i| code[i].op.engine() == from && code[i].tokens.next.contains(to));
    let taken: Vec<usize> =
        all(&|i| code[i].op.engine() == to && code[i].tokens.prev.contains(from));
    if let Some(first) = taken.get(given.len()) {
        let message = format!(
            "takes token {} of {from} for {to}, but only {} are given",
            given.len() + 1,
            given.len()
        );
        report.error("npu-token-missing", message, (core, *first));
    }
    if let Some(first) = given.get(taken.len()) {
        let message = format!(
            "gives token {} of {from} for {to}, but only {} are taken",
            taken.len() + 1,
            taken.len()
        );
        report.error("npu-token-left", message, (core, *first));
    }
    taken.len() <= given.len()
}

/// Sender, receiver, transfer.
type Key = (u32, u32, u32);

struct TransferEnd {
    at: At,
    tile: [u32; 4],
    format: Option<DataFmt>,
}

/// Pairs sends with receives, in program order.
///
/// Returns whether each has its other end.
pub fn check_transfers(report: &mut Report<'_>) -> bool {
    let (sent, received) = transfers(report);
    let mut complete = true;
    let mut keys: Vec<_> = sent.keys().chain(received.keys()).copied().collect();
    keys.sort_unstable();
    keys.dedup();
    let none = vec![];
    for key in keys {
        let sent = sent.get(&key).unwrap_or(&none);
        let received = received.get(&key).unwrap_or(&none);
        for (out, into) in sent.iter().zip(received) {
            compare(out, into, report);
        }
        let common = sent.len().min(received.len());
        for end in sent[common..].iter().chain(&received[common..]) {
            complete = false;
            let (from, to, transfer) = key;
            let message =
                format!("transfer {transfer} from core {from} to core {to} has no counterpart");
            report.error("npu-transfer-alone", message, end.at);
        }
    }
    complete
}

type Ends = BTreeMap<Key, Vec<TransferEnd>>;

fn transfers(report: &Report<'_>) -> (Ends, Ends) {
    let (mut sent, mut received) = (Ends::new(), Ends::new());
    for (place, core) in report.program.cores.iter().enumerate() {
        let mut registers = Registers::default();
        for (i, instruction) in core.code.iter().enumerate() {
            // An invalid register is reported with the accesses.
            let _ = registers.write(instruction);
            let at = (place, i);
            match instruction.op {
                Op::SoMov(SoMov { core: to, xfer, tile, .. }) => {
                    let format = registers.so.as_ref().map(|cfg| cfg.df);
                    let key = (core.id, to, xfer);
                    sent.entry(key).or_default().push(TransferEnd { at, tile, format });
                }
                Op::SiMov(SiMov { core: from, xfer, tile, .. }) => {
                    let format = registers.si.as_ref().map(|cfg| cfg.df);
                    let key = (from, core.id, xfer);
                    received.entry(key).or_default().push(TransferEnd { at, tile, format });
                }
                _ => {}
            }
        }
    }
    (sent, received)
}

fn compare(out: &TransferEnd, into: &TransferEnd, report: &mut Report<'_>) {
    let moves = out.tile != [0; 4];
    if out.tile == into.tile && (!moves || out.format == into.format) {
        return;
    }
    let message = "sender and receiver differ in tile or format".into();
    let diagnostic = report.diagnostic("npu-transfer-shape", message, out.at);
    let diagnostic = report.also(diagnostic, into.at, "received here");
    report.sink.push(diagnostic);
}
