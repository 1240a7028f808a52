//! Parses listings.

use std::ops::Range;

use irc_diag::{Diagnostic, Sink, Source, nearest};

use super::lex::Lexer;
use crate::Op;
use crate::dict::Dict;
use crate::program::{Core, Instruction, Origin, Program, Spans, Time, Tokens};
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
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The program.
    pub program: Program,
    /// The ranges of its instructions.
    pub spans: Spans,
    /// Their times, by index of the core, by instruction.
    pub times: Vec<Vec<Time>>,
}

/// Parses a listing.
///
/// `None` if and only if there are errors in the sink: one for every invalid line.
pub fn parse(source: &Source, limits: Limits, sink: &mut Sink) -> Option<Listing> {
    let (program, spans, _) = read(source, limits, false, sink)?;
    Some(Listing { program, spans })
}

/// Parses a trace; as [`parse`].
pub fn parse_trace(source: &Source, limits: Limits, sink: &mut Sink) -> Option<Trace> {
    let (program, spans, times) = read(source, limits, true, sink)?;
    Some(Trace { program, spans, times })
}

type Parts = (Program, Spans, Vec<Vec<Time>>);

fn read(source: &Source, limits: Limits, timed: bool, sink: &mut Sink) -> Option<Parts> {
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
    match sink.error_count() > errors {
        true => None,
        false => Some((reader.program, reader.spans, reader.times)),
    }
}

#[derive(Default)]
struct Reader {
    limits: Limits,
    timed: bool,
    program: Program,
    spans: Spans,
    times: Vec<Vec<Time>>,
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
        if self.program.cores.is_empty() {
            self.begin(0);
        }
        let line = Lexer::new(text, base).line()?;
        let (instruction, time) = instruction(&line, self.timed)?;
        let last = self.program.cores.len() - 1;
        self.program.cores[last].code.push(instruction);
        self.spans.0[last].push(line.span);
        self.times[last].extend(time);
        Ok(())
    }

    /// `# core N`, or before the first core `# model` and a fingerprint.
    fn header(&mut self, text: &str, span: Range<usize>) -> Result<(), BoxedDiagnostic> {
        if let Some(model) = text.trim().strip_prefix("model ") {
            if self.program.model.is_some() || !self.program.cores.is_empty() {
                let message = "expected `# model` once, before all instructions";
                return Err(error(span, "npu-syntax", message));
            }
            let parsed = model.parse();
            self.program.model = Some(parsed.map_err(|message: String| {
                error(span, "npu-syntax", format!("`# model`: {message}"))
            })?);
            return Ok(());
        }
        let number = text.trim().strip_prefix("core").and_then(|n| n.trim().parse().ok());
        let Some(id) = number else {
            return Err(error(span, "npu-syntax", "expected `# core` and a number"));
        };
        if self.program.cores.last().is_some_and(|core| core.id >= id) {
            let message = "cores must be in ascending order, each once";
            return Err(error(span, "npu-core-order", message));
        }
        if self.program.cores.len() == self.limits.cores {
            let message = format!("more than {} cores", self.limits.cores);
            return Err(error(span, "npu-limit", message));
        }
        self.begin(id);
        Ok(())
    }

    fn begin(&mut self, id: u32) {
        self.program.cores.push(Core { id, code: vec![] });
        self.spans.0.push(vec![]);
        self.times.push(vec![]);
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
    let message = format!("expected the parts of {what}: {expected}; found {found} parts");
    error(line.span.clone(), "npu-syntax", message)
}

fn read_op(name: &Spanned<'_>, fields: &Spanned<'_>) -> Result<(Op, Tokens), BoxedDiagnostic> {
    let Value::Word(word) = name.value else {
        let message = format!("expected the name of an instruction, found {}", name.value.kind());
        return Err(error(name.span.clone(), "npu-wrong-type", message));
    };
    let mut fields = Dict::new(fields)?;
    let op = Op::read(word, &mut fields).unwrap_or_else(|| {
        let diagnostic = error(name.span.clone(), "npu-unknown-instruction", "unknown instruction");
        Err(match nearest(word, Op::NAMES.iter().copied()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")).into(),
            None => diagnostic,
        })
    })?;
    let tokens = match op.is_config() {
        true => Tokens::default(),
        false => Tokens { prev: fields.take("Prev_Insts")?, next: fields.take("Next_Insts")? },
    };
    fields.finish()?;
    Ok((op, tokens))
}

fn read_origin(part: &Spanned<'_>) -> Result<Origin, BoxedDiagnostic> {
    let mut keys = Dict::new(part)?;
    let origin = Origin {
        slyr: keys.take("slyr")?,
        clyr: keys.take("clyr")?,
        s_flyr: keys.take("s_flyr")?,
        c_flyr: keys.take("c_flyr")?,
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
