//! Parses listings.

use std::ops::Range;

use irc_diag::{Diagnostic, Sink, Source, counted, nearest};

use super::lex::Lexer;
use crate::Op;
use crate::dict::Dict;
use crate::op::empty;
use crate::program::{Core, Instruction, Origin, Part, Program, Spans, Time, Tokens};
use crate::value::{BoxedDiagnostic, Spanned, Value, error};

/// Limits of the reader.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum bytes of text.
    pub bytes: usize,
    /// Maximum number of instructions.
    pub instructions: usize,
    /// Maximum number of cores.
    pub cores: usize,
}

impl Default for Limits {
    /// A GiB, 16 million instructions, 4096 cores.
    fn default() -> Self {
        Self { bytes: 1 << 30, instructions: 1 << 24, cores: 4096 }
    }
}

/// A parsed listing.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// The program.
    pub program: Program,
    /// The ranges of its instructions.
    pub spans: Spans,
}

/// A parsed trace: a listing whose instructions have times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The program.
    pub program: Program,
    /// The ranges of its instructions.
    pub spans: Spans,
    /// Their times, by index of the core, by instruction.
    pub times: Vec<Vec<Time>>,
}

/// Parses a listing of one program.
///
/// `None` if and only if there are errors in the sink: one for every invalid line.
pub fn parse(source: &Source, limits: Limits, sink: &mut Sink) -> Option<Listing> {
    only(parse_all(source, limits, sink)?, sink)
}

/// Parses a listing of a program, or of those of all parts of a model; as [`parse`].
pub fn parse_all(source: &Source, limits: Limits, sink: &mut Sink) -> Option<Vec<Listing>> {
    let all = read(source, limits, false, sink)?.into_iter();
    Some(all.map(|Trace { program, spans, .. }| Listing { program, spans }).collect())
}

/// Parses a trace of one program; as [`parse`].
pub fn parse_trace(source: &Source, limits: Limits, sink: &mut Sink) -> Option<Trace> {
    only(read(source, limits, true, sink)?, sink)
}

fn only<T>(mut all: Vec<T>, sink: &mut Sink) -> Option<T> {
    if all.len() > 1 {
        let message = format!("expected one program, found {}, of parts of a model", all.len());
        sink.push(Diagnostic::error("npu-parts", message));
        return None;
    }
    all.pop()
}

fn read(source: &Source, limits: Limits, timed: bool, sink: &mut Sink) -> Option<Vec<Trace>> {
    let errors = sink.error_count();
    if let Some(at) = source.invalid_utf8() {
        sink.push(*error(at..at, "npu-encoding", "the text is not UTF-8"));
    }
    if source.text().len() > limits.bytes {
        let message = format!("the text has more than {} bytes", limits.bytes);
        sink.push(Diagnostic::error("npu-limit", message));
    }
    if sink.error_count() > errors {
        return None;
    }
    let mut reader = Reader { limits, timed, ..Reader::default() };
    let mut start = 0;
    for line in source.text().split_inclusive('\n') {
        let (text, base) = (line.trim_end(), start);
        start += line.len();
        if let Err(diagnostic) = reader.line(text, base) {
            let over = diagnostic.code == "npu-limit";
            sink.push(*diagnostic);
            if over {
                break;
            }
        }
    }
    let last = reader.found.program.part;
    if let Some(last) = last.filter(|last| last.number != last.count) {
        let message = format!("the last program is part {last}");
        sink.push(Diagnostic::error("npu-parts", message));
    }
    reader.before.push(reader.found);
    (sink.error_count() == errors).then_some(reader.before)
}

#[derive(Default)]
struct Reader {
    limits: Limits,
    timed: bool,
    /// The programs of earlier parts.
    before: Vec<Trace>,
    found: Trace,
    count: usize,
}

impl Reader {
    fn line(&mut self, text: &str, base: usize) -> Result<(), BoxedDiagnostic> {
        let trimmed = text.trim_start();
        if trimmed.is_empty() {
            return Ok(());
        }
        if let Some(header) = trimmed.strip_prefix('#') {
            return self.header(header, base..base + text.len());
        }
        if self.count == self.limits.instructions {
            let message = format!("more than {} instructions", self.limits.instructions);
            return Err(error(base..base + text.len(), "npu-limit", message));
        }
        self.count += 1;
        if self.found.program.cores.is_empty() {
            self.begin(0);
        }
        let line = Lexer::new(text, base).line()?;
        let (instruction, time) = instruction(&line, self.timed)?;
        let last = self.found.program.cores.len() - 1;
        self.found.program.cores[last].code.push(instruction);
        self.found.spans.0[last].push(line.span);
        self.found.times[last].extend(time);
        Ok(())
    }

    /// `# core N`; before the first core `# model` and a fingerprint, and before it `# part N of N`.
    fn header(&mut self, text: &str, span: Range<usize>) -> Result<(), BoxedDiagnostic> {
        if let Some(part) = text.trim().strip_prefix("part ") {
            let part = part.parse();
            let part = part.map_err(|message: String| {
                error(span.clone(), "npu-syntax", format!("`# part`: {message}"))
            })?;
            return self.part(part, span);
        }
        if let Some(model) = text.trim().strip_prefix("model ") {
            if self.found.program.model.is_some() || !self.found.program.cores.is_empty() {
                let message = "expected `# model` once, before all instructions";
                return Err(error(span, "npu-syntax", message));
            }
            let parsed = model.parse();
            self.found.program.model = Some(parsed.map_err(|message: String| {
                error(span, "npu-syntax", format!("`# model`: {message}"))
            })?);
            return Ok(());
        }
        let number = text.trim().strip_prefix("core").and_then(|n| n.trim().parse().ok());
        let Some(id) = number else {
            return Err(error(span, "npu-syntax", "expected `# core` and a number"));
        };
        if self.found.program.cores.last().is_some_and(|core| core.id >= id) {
            let message = "cores must be in ascending order, each once";
            return Err(error(span, "npu-core-order", message));
        }
        if self.found.program.cores.len() == self.limits.cores {
            let message = format!("more than {} cores", self.limits.cores);
            return Err(error(span, "npu-limit", message));
        }
        self.begin(id);
        Ok(())
    }

    /// Begins the program of a part.
    fn part(&mut self, part: Part, span: Range<usize>) -> Result<(), BoxedDiagnostic> {
        let is_next = match self.found.program.part {
            Some(last) => (part.number, part.count) == (last.number + 1, last.count),
            None => part.number == 1 && self.found.program == Program::default(),
        };
        if !is_next {
            let message = "expected the parts of a model in their order, each once";
            return Err(error(span, "npu-parts", message));
        }
        if part.number > 1 {
            self.before.push(std::mem::take(&mut self.found));
        }
        self.found.program.part = Some(part);
        Ok(())
    }

    fn begin(&mut self, id: u32) {
        self.found.program.cores.push(Core { id, code: vec![] });
        self.found.spans.0.push(vec![]);
        self.found.times.push(vec![]);
    }
}

fn instruction(
    line: &Spanned<'_>,
    timed: bool,
) -> Result<(Instruction, Option<Time>), BoxedDiagnostic> {
    let Value::List(parts) = &line.value else {
        return Err(error(line.span.clone(), "npu-syntax", "expected `[` and an instruction"));
    };
    let (name, origin_part, time, fields) = match (&parts[..], timed) {
        ([name, origin, fields], false) => (name, origin, None, fields),
        ([name, origin, time, fields], true) => (name, origin, Some(time), fields),
        _ => return Err(wrong_parts(line, parts.len(), timed)),
    };
    let time = time.map(read_time).transpose()?;
    let (op, tokens) = read_op(name, fields)?;
    let origin = read_origin(origin_part)?;
    Ok((Instruction { op, origin, tokens }, time))
}

fn wrong_parts(line: &Spanned<'_>, found: usize, timed: bool) -> BoxedDiagnostic {
    let (what, expected) = match timed {
        false => ("a listing", "name, origin, fields"),
        true => ("a trace", "name, origin, time, fields"),
    };
    let message =
        format!("expected the parts of {what}: {expected}; found {}", counted(found, "part"));
    error(line.span.clone(), "npu-syntax", message)
}

fn read_op(name: &Spanned<'_>, fields: &Spanned<'_>) -> Result<(Op, Tokens), BoxedDiagnostic> {
    let Value::Word(word) = name.value else {
        let message = format!("expected the name of an instruction, found {}", name.value.kind());
        return Err(error(name.span.clone(), "npu-wrong-type", message));
    };
    let mut keys = Dict::new(fields)?;
    let op = Op::read(word, &mut keys).unwrap_or_else(|| {
        let diagnostic = error(name.span.clone(), "npu-unknown-instruction", "unknown instruction");
        Err(match nearest(word, Op::NAMES.iter().copied()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")).into(),
            None => diagnostic,
        })
    })?;
    let tokens = match op.is_config() {
        true => Tokens::default(),
        false => Tokens { prev: keys.take("Prev_Insts")?, next: keys.take("Next_Insts")? },
    };
    keys.finish()?;
    match op.empty_field() {
        Some(key) => Err(error(span_of(fields, key), "npu-range", empty(key))),
        None => Ok((op, tokens)),
    }
}

/// The range of the value with a key.
fn span_of(fields: &Spanned<'_>, key: &str) -> Range<usize> {
    let Value::Dict(entries) = &fields.value else { return fields.span.clone() };
    let is_key = |(own, _): &&(Spanned<'_>, Spanned<'_>)| matches!(own.value, Value::Text(text) if text == key);
    entries.iter().find(is_key).map_or(fields.span.clone(), |(_, value)| value.span.clone())
}

fn read_origin(part: &Spanned<'_>) -> Result<Origin, BoxedDiagnostic> {
    let mut keys = Dict::new(part)?;
    let origin = Origin {
        slyr: keys.take("slyr")?,
        clyr: keys.take::<Vec<u32>>("clyr")?.into(),
        s_flyr: keys.take("s_flyr")?,
        c_flyr: keys.take::<Vec<u32>>("c_flyr")?.into(),
        wkl: keys.take("wkl")?,
        tile: keys.take("tile")?,
    };
    keys.finish()?;
    Ok(origin)
}

/// The number of the instruction, counted from one, is dropped: it follows from the position.
fn read_time(part: &Spanned<'_>) -> Result<Time, BoxedDiagnostic> {
    let mut keys = Dict::new(part)?;
    let _: u32 = keys.take("inst_idx")?;
    let (start, end): (i64, i64) = keys.take("time")?;
    keys.finish()?;
    match (u64::try_from(start), u64::try_from(end)) {
        (Ok(start), Ok(end)) if start <= end => Ok(Time { start, end }),
        _ => {
            let message = "expected a time of a start and an end that is not before it";
            Err(error(part.span.clone(), "npu-time", message))
        }
    }
}
