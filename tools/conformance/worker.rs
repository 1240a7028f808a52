//! Processes that run cases, so that a crash affects only a few.

use crate::Outcome;
use crate::case;
use crate::engine::Engine;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// Number of cases that one process compiles together.
const BATCH: usize = 128;

/// Reads folders from standard input, one per line, and writes their outcomes, one per line.
pub fn serve(engine: &str) -> ExitCode {
    let Ok(engine) = engine.parse() else { return ExitCode::from(2) };
    let lines: Vec<_> = std::io::stdin().lock().lines().map_while(Result::ok).collect();
    let folders: Vec<PathBuf> = lines.into_iter().map(PathBuf::from).collect();
    let mut out = std::io::stdout().lock();
    for outcome in case::run(engine, &folders) {
        let message = outcome.err().map_or(Value::Null, |message| json!(message));
        if writeln!(out, "{message}").is_err() {
            return ExitCode::from(1);
        }
    }
    ExitCode::SUCCESS
}

/// Runs cases in separate processes. Returns an outcome for each.
///
/// # Errors
/// If no process can be started.
pub fn run(engine: Engine, cases: &[PathBuf]) -> Result<Vec<Outcome>, String> {
    let mut outcomes = vec![];
    for batch in cases.chunks(BATCH) {
        outcomes.extend(run_batch(engine, batch)?);
        if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            eprint!("\r{engine}: {} of {} cases", outcomes.len(), cases.len());
        }
    }
    if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
        eprintln!();
    }
    Ok(outcomes)
}

fn run_batch(engine: Engine, batch: &[PathBuf]) -> Result<Vec<Outcome>, String> {
    match ask(engine, batch)? {
        Ok(outcomes) => Ok(outcomes),
        Err(death) if batch.len() == 1 => Ok(vec![Err(format!("compiling: {death}"))]),
        Err(_) => {
            let (first, second) = batch.split_at(batch.len() / 2);
            let mut outcomes = run_batch(engine, first)?;
            outcomes.extend(run_batch(engine, second)?);
            Ok(outcomes)
        }
    }
}

/// The outcomes that a process writes, or its exit status.
fn ask(engine: Engine, batch: &[PathBuf]) -> Result<Result<Vec<Outcome>, String>, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(own)
        .args(["--worker", &engine.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start a process: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        for case in batch {
            // The exit code shows if the process has already ended.
            let _ = writeln!(input, "{}", case.display());
        }
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let outcomes: Option<Vec<Outcome>> = text.lines().map(outcome).collect();
    match outcomes.filter(|outcomes| output.status.success() && outcomes.len() == batch.len()) {
        Some(outcomes) => Ok(Ok(outcomes)),
        None => Ok(Err(format!("the process ended with {}", output.status))),
    }
}

fn outcome(line: &str) -> Option<Outcome> {
    match serde_json::from_str(line).ok()? {
        Value::Null => Some(Ok(())),
        Value::String(message) => Some(Err(message)),
        _ => None,
    }
}
