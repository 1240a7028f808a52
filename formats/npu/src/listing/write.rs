//! Prints listings.

use std::fmt::Write;

use crate::field::Field;
use crate::program::{Instruction, Origin, Program, Time};
use crate::value::Value;

/// The listing of a program, in the published layout; core 0 alone has no `# core` line, unless it has
/// no instructions.
pub fn write(program: &Program) -> String {
    write_all(program, |_, _| None)
}

/// The trace of a program.
///
/// `times` has the time of each instruction, by index of the core. A missing one prints as zero.
pub fn write_trace(program: &Program, times: &[Vec<Time>]) -> String {
    let zero = Time { start: 0, end: 0 };
    let time = |core: usize, i: usize| times.get(core).and_then(|times| times.get(i)).copied();
    write_all(program, |core, i| Some(time(core, i).unwrap_or(zero)))
}

fn write_all(program: &Program, time: impl Fn(usize, usize) -> Option<Time>) -> String {
    // A published line has about 240 bytes.
    let mut out = String::with_capacity(240 * program.len());
    let bare = matches!(&program.cores[..], [core] if core.id == 0 && !core.code.is_empty());
    if let Some(part) = program.part {
        let _ = writeln!(out, "# part {part}");
    }
    if let Some(model) = &program.model {
        let _ = writeln!(out, "# model {model}");
    }
    for (place, core) in program.cores.iter().enumerate() {
        if !bare {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "# core {}", core.id);
        }
        for (i, instruction) in core.code.iter().enumerate() {
            line(instruction, time(place, i).map(|time| (i + 1, time)), &mut out);
            out.push('\n');
        }
    }
    out
}

/// The line of one instruction, without the line end.
pub fn write_instruction(instruction: &Instruction) -> String {
    let mut out = String::new();
    line(instruction, None, &mut out);
    out
}

fn line(instruction: &Instruction, time: Option<(usize, Time)>, out: &mut String) {
    out.push('[');
    out.push_str(instruction.op.name());
    out.push_str(", ");
    origin(&instruction.origin, out);
    if let Some((number, Time { start, end })) = time {
        let _ = write!(out, ", {{'inst_idx': {number}, 'time': [{start}, {end}]}}");
    }
    out.push_str(", {");
    let mut fields = instruction.op.fields();
    if !instruction.op.is_config() {
        fields.push(("Prev_Insts", instruction.tokens.prev.value()));
        fields.push(("Next_Insts", instruction.tokens.next.value()));
    }
    separated(&fields, out, |(key, value), out| {
        let _ = write!(out, "'{key}': ");
        print(value, out);
    });
    out.push_str("}]");
}

fn print(value: &Value<'_>, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = match value {
        Value::Number(number) => write!(out, "{number}"),
        Value::Bool(flag) => write!(out, "{}", if *flag { "True" } else { "False" }),
        Value::Text(text) => write!(out, "'{text}'"),
        Value::Word(word) => write!(out, "{word}"),
        Value::Name(name) => write!(out, "{name}"),
        Value::Named { class, name, number } => write!(out, "<{class}.{name}: {number}>"),
        Value::List(items) => {
            out.push('[');
            separated(items, out, |item, out| print(&item.value, out));
            write!(out, "]")
        }
        Value::Dict(entries) => {
            out.push('{');
            separated(entries, out, |(key, value), out| {
                print(&key.value, out);
                out.push_str(": ");
                print(&value.value, out);
            });
            write!(out, "}}")
        }
    };
}

/// Prints items separated by commas.
fn separated<T>(items: &[T], out: &mut String, print: impl Fn(&T, &mut String)) {
    for (index, item) in items.iter().enumerate() {
        out.push_str(if index == 0 { "" } else { ", " });
        print(item, out);
    }
}

fn origin(origin: &Origin, out: &mut String) {
    let _ = write!(out, "{{'slyr': {}, 'clyr': ", origin.slyr);
    print(&origin.clyr.value(), out);
    let _ = write!(out, ", 's_flyr': {}, 'c_flyr': ", origin.s_flyr);
    print(&origin.c_flyr.value(), out);
    let _ = write!(out, ", 'wkl': {}, 'tile': {}}}", origin.wkl, origin.tile);
}
