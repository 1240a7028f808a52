//! Compares two programs, such as a generated and a published one.

use irc_diag::{Diagnostic, Sink, counted};

use crate::listing::write_instruction;
use crate::program::{Core, Instruction, Program, Spans};

/// Whether two instructions are equal, disregarding the order of lists that represent sets: tokens, layers.
pub fn same(a: &Instruction, b: &Instruction) -> bool {
    a.op == b.op && differing(a, b).is_empty()
}

/// Reports every instruction of `program` that is not the [`same`] as the one at its index in `other`, and
/// surplus instructions of either: diagnostics in `program`, at `spans` if it has a text.
pub fn compare(program: &Program, spans: Option<&Spans>, other: &Program, sink: &mut Sink) {
    let numbers = |program: &Program| program.cores.iter().map(|core| core.id).collect::<Vec<_>>();
    let (found, expected) = (numbers(program), numbers(other));
    if found != expected {
        let message = format!("the program has cores {found:?}, the other {expected:?}");
        return sink.push(Diagnostic::error("npu-differs", message));
    }
    for (place, (core, other)) in program.cores.iter().zip(&other.cores).enumerate() {
        for (index, (a, b)) in core.code.iter().zip(&other.code).enumerate() {
            let diagnostic = (!same(a, b)).then(|| differs(core, index, b));
            let span = spans.and_then(|spans| spans.get(place, index));
            sink.extend(diagnostic.map(|diagnostic| match span {
                Some(span) => diagnostic.at(span, ""),
                None => diagnostic,
            }));
        }
        sink.extend(lengths(core, other));
    }
}

fn differs(core: &Core, index: usize, other: &Instruction) -> Diagnostic {
    let own = &core.code[index];
    let (name, number) = (own.op.name(), index + 1);
    let message = match own.op.name() == other.op.name() {
        true => format!("differs in `{}`", differing(own, other).join("`, `")),
        false => format!("the other program has `{}` here", other.op.name()),
    };
    let message = format!("`{name}` {number} of core {}: {message}", core.id);
    let note = format!("the other: {}", write_instruction(other));
    Diagnostic::error("npu-differs", message).with_note(note)
}

fn lengths(core: &Core, other: &Core) -> Option<Diagnostic> {
    let (found, expected) = (core.code.len(), other.code.len());
    let own = counted(found, "instruction");
    let message = format!("core {} has {own}, in the other program {expected}", core.id);
    (found != expected).then(|| Diagnostic::error("npu-differs", message))
}

/// Keys whose values differ, in instructions with one name.
fn differing(a: &Instruction, b: &Instruction) -> Vec<&'static str> {
    let sorted = |layers: &[u32]| {
        let mut sorted = layers.to_vec();
        sorted.sort_unstable();
        sorted
    };
    let (of_a, of_b) = (&a.origin, &b.origin);
    let origin = [
        ("slyr", of_a.slyr == of_b.slyr),
        ("clyr", sorted(&of_a.clyr) == sorted(&of_b.clyr)),
        ("s_flyr", of_a.s_flyr == of_b.s_flyr),
        ("c_flyr", of_a.c_flyr == of_b.c_flyr),
        ("wkl", of_a.wkl == of_b.wkl),
        ("tile", of_a.tile == of_b.tile),
    ];
    let tokens = [
        ("Prev_Insts", a.tokens.prev.same(&b.tokens.prev)),
        ("Next_Insts", a.tokens.next.same(&b.tokens.next)),
    ];
    let (fields, others) = (a.op.fields(), b.op.fields());
    let fields = fields.iter().zip(&others).map(|((key, own), (_, other))| (*key, own == other));
    let all = origin.into_iter().chain(fields).chain(tokens);
    all.filter_map(|(key, is_same)| (!is_same).then_some(key)).collect()
}
