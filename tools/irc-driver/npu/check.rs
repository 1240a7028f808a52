//! `irc check` of Gemini schedules, frontend files and NPU programs.
use super::source;
use crate::{input::Content, stop::Stop};
use irc_diag::{Diagnostic, Sink, Source};
use irc_gemini_format::{Options, frontend, frontend::Frontend, schedule, schedule::Schedule};
use irc_npu::{
    binary,
    listing::{self, Limits},
    verify::{Machine, verify},
};

/// What a file holds, when that has no error.
pub enum Found {
    /// A schedule.
    Schedule(Box<Schedule>),
    /// A frontend file.
    Frontend(Frontend),
}

/// Every finding of a file that holds `content`.
pub fn check(
    name: &str,
    bytes: &[u8],
    content: Content,
    strict: bool,
) -> Result<(Source, Vec<Diagnostic>, Option<Found>), Stop> {
    let mut sink = Sink::new();
    if content == Content::Binary {
        let source = Source::new(name, "");
        match binary::decode(bytes) {
            Ok(program) => verify(&program, None, &Machine::default(), &mut sink),
            Err(fault) => sink.push(fault.into()),
        }
        return Ok((source, sink.into_diagnostics(), None));
    }
    let source = source(name, bytes)?;
    let options = Options { strict, ..Options::default() };
    let found = match content {
        Content::Schedule => schedule::parse(&source, &options, &mut sink)
            .map(|schedule| Found::Schedule(Box::new(schedule))),
        Content::Frontend => frontend::parse(&source, &options, &mut sink).map(Found::Frontend),
        _ => {
            check_listing(&source, &mut sink);
            None
        }
    };
    Ok((source, sink.into_diagnostics(), found))
}

/// A listing, or one with the times of a run: a trace.
fn check_listing(source: &Source, sink: &mut Sink) {
    let first = source.text().lines().find(|line| line.starts_with('['));
    let is_trace = first.is_some_and(|line| line.contains("'inst_idx'"));
    let (program, spans) = if is_trace {
        let trace = listing::parse_trace(source, Limits::default(), sink);
        let Some(trace) = trace else { return };
        (trace.program, trace.spans)
    } else {
        let Some(read) = listing::parse(source, Limits::default(), sink) else { return };
        (read.program, read.spans)
    };
    verify(&program, Some(&spans), &Machine::default(), sink);
}

/// Findings in a schedule that is to run the layers of a frontend file.
pub fn check_pair(source: &Source, schedule: &Schedule, frontend: &Frontend) -> Vec<Diagnostic> {
    let mut findings = irc_gemini_format::check_pair(schedule, frontend);
    irc_gemini_format::place(source, &mut findings);
    findings
}
