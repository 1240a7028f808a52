//! Schedules and listings.

use std::path::PathBuf;

use irc_diag::{Diagnostic, Sink, Source, render};
use irc_gemini_format::frontend::Frontend;
use irc_gemini_format::schedule::Schedule;
use irc_gemini_format::{Options, frontend, schedule, source};
use irc_npu::Program;
use irc_npu::listing::{self, Limits};
use irc_npu::verify::{self, Machine};

/// The folder of the published files; `None`, with a message, if it is absent.
#[allow(dead_code, reason = "not every test file reads the corpus")]
pub fn corpus() -> Option<PathBuf> {
    let root = std::env::var_os("IRC_CORPUS").map(PathBuf::from);
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus"));
    let folder = root.unwrap_or_else(default).join("gemini");
    if !folder.is_dir() {
        println!("skipped: no corpus at {}", folder.display());
        return None;
    }
    Some(folder)
}

/// The text of a file, decompressed.
#[allow(dead_code, reason = "not every test file reads the corpus")]
pub fn open(path: &std::path::Path) -> Source {
    let bytes = std::fs::read(path).expect("a readable file");
    source(&path.display().to_string(), &bytes).expect("a valid file")
}

/// Parses a schedule that must be valid.
pub fn plan(source: &Source) -> Schedule {
    let mut sink = Sink::new();
    let read = schedule::parse(source, &Options::default(), &mut sink);
    read.unwrap_or_else(|| panic!("{}", render(source, &sink.into_diagnostics(), false, 100)))
}

/// Parses a frontend file that must be valid.
#[allow(dead_code, reason = "not every test file has one")]
pub fn layers(source: &Source) -> Frontend {
    let mut sink = Sink::new();
    let read = frontend::parse(source, &Options::default(), &mut sink);
    read.unwrap_or_else(|| panic!("{}", render(source, &sink.into_diagnostics(), false, 100)))
}

/// Parses a listing that must be valid.
#[allow(dead_code, reason = "not every test file reads listings")]
pub fn listing(source: &Source) -> Program {
    let read = listing::parse(source, Limits::default(), &mut Sink::new());
    read.expect("a valid listing").program
}

/// The diagnostics of the verifier.
pub fn diagnostics(program: &Program) -> Vec<Diagnostic> {
    let mut sink = Sink::new();
    verify::verify(program, None, &Machine::default(), &mut sink);
    sink.into_diagnostics()
}
