//! Checks archives: `check [--form] FILE...` prints all diagnostics and timings.
//!
//! `--form` skips hashes and the data of parameters, as does a program that loads an archive.

use std::process::ExitCode;
use std::time::Instant;

use irc_diag::render;
use irc_mlf::{Depth, check, read};

fn main() -> ExitCode {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let is_form = files.first().is_some_and(|first| first == "--form");
    let depth = if is_form { Depth::Form } else { Depth::Content };
    files.retain(|file| file != "--form");
    let rejected = files.iter().filter(|file| !one(file, depth)).count();
    if rejected == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether a file is accepted.
fn one(file: &str, depth: Depth) -> bool {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes.into(),
        Err(error) => {
            eprintln!("{file}: {error}");
            return false;
        }
    };
    let start = Instant::now();
    let (package, report) = read(file, &bytes);
    let checked = package.map(|package| check(&package, depth)).unwrap_or_default();
    let took = start.elapsed();
    for found in report.files().chain(checked.files()) {
        eprint!("{}", render(&found.source, &found.found, false, 100));
    }
    println!("{file}: {} bytes in {took:?}", bytes.len());
    !report.has_errors() && !checked.has_errors()
}
