//! `irc check` of Gemini schedules, frontend files and NPU programs.
use super::{
    of_model::{self, Pair},
    parse_schedule, without_errors,
};
use crate::{
    console::Console,
    error::Error,
    input::{self, Content},
};
use bytes::Bytes;
use irc::{ImportOptions, Session};
use irc_diag::{Diagnostic, Severity, Sink, Source};
use irc_gemini_format::{Options, frontend, frontend::Frontend, schedule::Schedule};
use irc_npu::{
    Program, Spans, binary, compare,
    listing::{self, Limits},
    verify::{Machine, verify},
};

/// The contents of a file without errors.
pub enum Network {
    /// A schedule.
    Schedule(Box<Schedule>),
    /// A frontend file.
    Frontend(Frontend),
}

/// All diagnostics of a file of kind `content`; for a program, also its differences from another.
pub fn check(
    name: &str,
    bytes: &Bytes,
    content: Content,
    strict: bool,
    against: Option<&Program>,
) -> Result<(Source, Vec<Diagnostic>, Option<Network>), Error> {
    let mut sink = Sink::new();
    if content == Content::Binary {
        let source = Source::new(name, "");
        match binary::decode(bytes) {
            Ok(program) => check_program(&program, None, against, &mut sink),
            Err(error) => sink.push(error.into()),
        }
        return Ok((source, sink.into_diagnostics(), None));
    }
    let source = input::source(name, bytes);
    let options = Options { strict, ..Options::default() };
    let found = match content {
        Content::Schedule => parse_schedule(&source, &options, &mut sink)
            .map(|schedule| Network::Schedule(Box::new(schedule))),
        Content::Frontend => {
            let read = frontend::parse(&source, &options, &mut sink);
            if sink.error_count() == 0 {
                let (session, bytes) = (Session::new(), Bytes::copy_from_slice(bytes));
                let model = session.parse(name, bytes, &ImportOptions::default())?;
                model.check().into_iter().filter_map(of_graph).for_each(|found| sink.push(found));
            }
            read.map(Network::Frontend)
        }
        _ => {
            let found = parse_listing(&source, &mut sink).unwrap_or_default();
            if found.len() > 1 && against.is_some() {
                let message = "the programs of several parts of a model are compared with one";
                sink.push(Diagnostic::error("npu-parts", message));
            }
            for (program, spans) in &found {
                let against = against.filter(|_| found.len() == 1);
                check_program(program, Some(spans), against, &mut sink);
            }
            None
        }
    };
    Ok((source, sink.into_diagnostics(), found))
}

/// What keeps layers from being run without a schedule, as a warning: programs of the NPU do not need it.
fn of_graph(found: Diagnostic) -> Option<Diagnostic> {
    let is_error = found.is_error();
    let found = Diagnostic { severity: Severity::Warning, ..found };
    is_error.then(|| found.help("irc run and irc compile need it; irc simulate does not"))
}

fn check_program(
    program: &Program,
    spans: Option<&Spans>,
    against: Option<&Program>,
    sink: &mut Sink,
) {
    verify(program, spans, &Machine::default(), sink);
    if let Some(other) = against {
        compare(program, spans, other, sink);
    }
}

/// The programs of a listing, or that of a trace: a listing with the times of a run.
fn parse_listing(source: &Source, sink: &mut Sink) -> Option<Vec<(Program, Spans)>> {
    let first = source.text().lines().find(|line| line.starts_with('['));
    if first.is_some_and(|line| line.contains("'inst_idx'")) {
        let trace = listing::parse_trace(source, Limits::default(), sink)?;
        return Some(vec![(trace.program, trace.spans)]);
    }
    let read = listing::parse_all(source, Limits::default(), sink)?;
    Some(read.into_iter().map(|one| (one.program, one.spans)).collect())
}

/// Rejects programs with errors that `irc check` reports; their warnings are left to it.
pub fn expect_runnable(source: &Source, programs: &[(Program, Spans)]) -> Result<(), Error> {
    let mut sink = Sink::new();
    for (program, spans) in programs {
        check_program(program, Some(spans), None, &mut sink);
    }
    let mut found = sink.into_diagnostics();
    found.retain(Diagnostic::is_error);
    if found.is_empty() { Ok(()) } else { Err(Error::Diagnostics(source.clone(), found)) }
}

/// The program of a listing, a trace or a binary file, with the spans of its instructions in text.
pub fn program(
    console: &Console,
    name: &str,
    bytes: &Bytes,
    content: Content,
) -> Result<(Source, Program, Spans), Error> {
    let (source, mut found) = programs(console, name, bytes, content)?;
    match (found.pop(), found.len()) {
        (Some((program, spans)), 0) => Ok((source, program, spans)),
        (_, before) => Err(Error::problem(format!(
            "{name} has programs of {} parts of a model: expected one program",
            before + 1
        ))
        .help(format!(
            "irc run {name} --model MODEL runs all parts, irc check {name} checks them"
        ))),
    }
}

/// The programs of a file: one, or in a listing those of all parts of a model.
pub fn programs(
    console: &Console,
    name: &str,
    bytes: &Bytes,
    content: Content,
) -> Result<(Source, Vec<(Program, Spans)>), Error> {
    let mut sink = Sink::new();
    let (source, read) = match content {
        Content::Binary => {
            let decoded = binary::decode(bytes).map_err(|error| sink.push(error.into()));
            let found = decoded.ok().map(|program| vec![(program, Spans::default())]);
            (Source::new(name, ""), found)
        }
        // A listing without instructions looks like any text; other text is rejected with a location.
        Content::Listing | Content::Empty | Content::Unknown => {
            let source = input::source(name, bytes);
            let mut lines = source.text().lines().map(str::trim);
            let is_other = |line: &str| !line.is_empty() && !line.starts_with('#');
            let has_instruction = source.text().lines().any(|line| line.starts_with('['));
            if content == Content::Unknown && !has_instruction && lines.any(is_other) {
                return Err(input::unexpected(name, Content::Binary.words(), content));
            }
            let read = parse_listing(&source, &mut sink);
            (source, read)
        }
        found => return Err(input::unexpected(name, Content::Binary.words(), found)),
    };
    without_errors(console, source, read, sink.into_diagnostics())
}

/// Diagnostics of a schedule for the layers of a frontend file of a name.
pub fn check_pair(
    source: &Source,
    schedule: &Schedule,
    (name, frontend): (&str, &Frontend),
) -> Vec<Diagnostic> {
    let pair = Pair { file: source.name(), model: name };
    let mut diagnostics = of_model::check_pair(pair, schedule, frontend);
    irc_gemini_format::place(source, &mut diagnostics);
    diagnostics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_that_cannot_run_alone_are_warnings() {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/gemini/tests/data/frontend.json");
        let bytes = std::fs::read(path).expect("a frontend file").into();
        let (_, found, network) =
            check("f.json", &bytes, Content::Frontend, false, None).expect("readable");
        let found: Vec<_> = found.iter().map(|one| (one.severity, &*one.message)).collect();
        let expected = "layer `l2_add`: missing key `requan_scale_b`, which a sum needs";
        assert_eq!(found, [(Severity::Warning, expected)]);
        assert!(network.is_some());
    }
}
