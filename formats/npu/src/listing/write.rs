//! Prints listings.

use std::fmt::Write;
use std::io;

use crate::field::Field;
use crate::program::{Fingerprint, Instruction, Origin, Part, Program, Time};
use crate::value::Value;

/// The listing of a program, in the published layout; core 0 alone has no `# core` line, unless it has
/// no instructions.
pub fn write(program: &Program) -> String {
    to_text(program, |_, _| None)
}

/// What a listing states before the instructions.
#[derive(Clone, Copy, Debug)]
pub struct Heading<'p> {
    /// The part of a model that the program computes.
    pub part: Option<Part>,
    /// The model whose numbers it has.
    pub model: Option<&'p Fingerprint>,
}

impl<'p> Heading<'p> {
    /// What a program states.
    pub fn of(program: &'p Program) -> Self {
        Self { part: program.part, model: program.model.as_ref() }
    }
}

/// As [`write()`], line by line, with another heading: the text of a program is several times as large as the program.
///
/// # Errors
/// Those of `out`.
pub fn write_to(
    program: &Program,
    heading: Heading<'_>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let line = &mut |line: &str| out.write_all(line.as_bytes());
    write_all(program, heading, |_, _| None, line)
}

/// The trace of a program.
///
/// `times` has the time of each instruction, by index of the core. A missing one prints as zero.
pub fn write_trace(program: &Program, times: &[Vec<Time>]) -> String {
    let zero = Time { start: 0, end: 0 };
    let time = |core: usize, i: usize| times.get(core).and_then(|times| times.get(i)).copied();
    to_text(program, |core, i| Some(time(core, i).unwrap_or(zero)))
}

fn to_text(program: &Program, time: impl Fn(usize, usize) -> Option<Time>) -> String {
    // A published line has about 240 bytes.
    let mut text = String::with_capacity(240 * program.len());
    let append = &mut |line: &str| {
        text.push_str(line);
        Ok(())
    };
    // Appending to a text cannot fail.
    let _ = write_all(program, Heading::of(program), time, append);
    text
}

/// Writes line by line.
fn write_all(
    program: &Program,
    heading: Heading<'_>,
    time: impl Fn(usize, usize) -> Option<Time>,
    write: &mut dyn FnMut(&str) -> io::Result<()>,
) -> io::Result<()> {
    let bare = matches!(&program.cores[..], [core] if core.id == 0 && !core.code.is_empty());
    if let Some(part) = heading.part {
        write(&format!("# part {part}\n"))?;
    }
    if let Some(model) = heading.model {
        write(&format!("# model {model}\n"))?;
    }
    let mut text = String::new();
    for (place, core) in program.cores.iter().enumerate() {
        if !bare {
            write(&format!("# core {}\n", core.id))?;
        }
        for (i, instruction) in core.code.iter().enumerate() {
            text.clear();
            line(instruction, time(place, i).map(|time| (i + 1, time)), &mut text);
            text.push('\n');
            write(&text)?;
        }
    }
    Ok(())
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
    print(&origin.clyr.to_vec().value(), out);
    let _ = write!(out, ", 's_flyr': {}, 'c_flyr': ", origin.s_flyr);
    print(&origin.c_flyr.to_vec().value(), out);
    let _ = write!(out, ", 'wkl': {}, 'tile': {}}}", origin.wkl, origin.tile);
}
