//! Gemini schedules, frontend files and NPU programs.
use crate::{
    console::Console,
    crash,
    input::{self, Content},
    stop::Stop,
};
use irc_diag::{Diagnostic, Sink, Source};
use irc_gemini_format::{Options, frontend::Frontend, schedule::Schedule};
use irc_npu::Program;
use std::path::Path;

pub mod check;
pub mod simulate;
pub mod translate;

/// The text of a file, unpacked when it is compressed.
fn source(name: &str, bytes: &[u8]) -> Result<Source, Stop> {
    let name = if name == "-" { "<stdin>" } else { name };
    match irc_gemini_format::source(name, bytes) {
        Ok(source) => {
            crash::remember(&source);
            Ok(source)
        }
        Err(finding) => Err(Stop::Findings(Source::new(name, ""), vec![*finding])),
    }
}

/// A schedule without errors, with its source; its warnings are on the console.
fn schedule(console: &Console, name: &str, options: &Options) -> Result<(Source, Schedule), Stop> {
    let bytes = input::read(name)?;
    expect(name, &bytes, Content::Schedule)?;
    let source = source(name, &bytes)?;
    let mut sink = Sink::new();
    let read = irc_gemini_format::schedule::parse(&source, options, &mut sink);
    sound(console, source, read, sink.into_diagnostics())
}

/// A frontend file without errors, with its source; its warnings are on the console.
fn frontend(console: &Console, name: &str, options: &Options) -> Result<(Source, Frontend), Stop> {
    let bytes = input::read(name)?;
    expect(name, &bytes, Content::Frontend)?;
    let source = source(name, &bytes)?;
    let mut sink = Sink::new();
    let read = irc_gemini_format::frontend::parse(&source, options, &mut sink);
    sound(console, source, read, sink.into_diagnostics())
}

fn expect(name: &str, bytes: &[u8], expected: Content) -> Result<(), Stop> {
    let found = input::content(bytes);
    if found == expected {
        return Ok(());
    }
    let (expected, found) = (expected.words(), found.words());
    Err(Stop::problem(format!("{name}: expected {expected}, found {found}")))
}

fn sound<T>(
    console: &Console,
    source: Source,
    read: Option<T>,
    findings: Vec<Diagnostic>,
) -> Result<(Source, T), Stop> {
    match read {
        Some(read) if !findings.iter().any(Diagnostic::is_error) => {
            console.findings(&source, &findings);
            Ok((source, read))
        }
        _ => Err(Stop::Findings(source, findings)),
    }
}

/// The schedule of a network with the program that runs it. Schedules of one core need the layers.
fn assembled(
    console: &Console,
    schedule_name: &str,
    frontend_name: Option<&Path>,
    options: &Options,
) -> Result<(Schedule, Program), Stop> {
    let (source, schedule) = schedule(console, schedule_name, options)?;
    let layers = frontend_name.map(|path| frontend(console, &path.to_string_lossy(), options));
    let layers = layers.transpose()?.map(|(_, layers)| layers);
    let findings = layers.as_ref().map(|layers| irc_gemini_format::check_pair(&schedule, layers));
    let mut findings = findings.unwrap_or_default();
    let mut program = None;
    if !findings.iter().any(Diagnostic::is_error) {
        match irc_npu_emit::emit(&schedule, layers.as_ref()) {
            Ok(emitted) => program = Some(emitted),
            Err(found) => findings.extend(found),
        }
    }
    irc_gemini_format::place(&source, &mut findings);
    let (_, program) = sound(console, source, program, findings)?;
    Ok((schedule, program))
}
