//! Reads, checks and writes files, and prints diagnostics and timings:
//!
//!     cargo run --release -p irc-gemini-format --example check -- FILE...

use std::time::Instant;

use irc_diag::{Sink, render};
use irc_gemini_format::{FileKind, Options, frontend, schedule, source};

fn main() {
    for path in std::env::args().skip(1) {
        let start = Instant::now();
        match check(&path) {
            Ok(diagnostics) => println!("{path}: {:?}\n{diagnostics}", start.elapsed()),
            Err(message) => eprintln!("{path}: {message}"),
        }
    }
}

fn check(path: &str) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let source = source(path, &bytes).map_err(|diagnostic| diagnostic.message)?;
    let mut sink = Sink::new();
    match FileKind::of(source.text()) {
        Some(FileKind::Schedule) => drop(schedule::parse(&source, &Options::default(), &mut sink)),
        Some(FileKind::Frontend) => drop(frontend::parse(&source, &Options::default(), &mut sink)),
        None => return Err("neither a schedule nor a frontend file".into()),
    }
    Ok(render(&source, &sink.into_diagnostics(), false, 100))
}
