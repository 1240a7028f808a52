//! Processes that run cases, so that a crash affects only a few.

use crate::Outcome;
use crate::case::{self, Check};
use crate::engine::Engine;
use crate::report::Pass;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Number of cases that one process compiles together.
const BATCH: usize = 128;

/// Reads folders from standard input, one per line, and writes their outcomes, one per line.
pub fn serve(engine: &str, check: &str) -> ExitCode {
    let (Ok(engine), Some(check)) = (engine.parse(), Check::named(check)) else {
        return ExitCode::from(2);
    };
    let lines: Vec<_> = std::io::stdin().lock().lines().map_while(Result::ok).collect();
    let folders: Vec<PathBuf> = lines.into_iter().map(PathBuf::from).collect();
    let mut out = std::io::stdout().lock();
    for outcome in case::run(engine, check, &folders) {
        let line = match outcome {
            Ok(pass) => json!([pass.name()]),
            Err(message) => json!(message),
        };
        if writeln!(out, "{line}").is_err() {
            return ExitCode::from(1);
        }
    }
    ExitCode::SUCCESS
}

/// How processes run cases.
pub struct Workers {
    /// The engine that runs them.
    pub engine: Engine,
    /// What becomes of the results.
    pub check: Check,
    /// How long a process may take for each case.
    pub limit: Option<Duration>,
}

impl Workers {
    /// Runs cases in separate processes. Returns an outcome for each.
    ///
    /// # Errors
    /// If no process can be started.
    pub fn run(&self, cases: &[PathBuf]) -> Result<Vec<Outcome>, String> {
        let mut outcomes = vec![];
        for batch in cases.chunks(BATCH) {
            outcomes.extend(self.run_batch(batch)?);
            if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
                eprint!("\r{}: {} of {} cases", self.engine, outcomes.len(), cases.len());
            }
        }
        if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            eprintln!();
        }
        if self.check == Check::Outputs {
            for (case, outcome) in cases.iter().zip(&outcomes) {
                let Err(message) = outcome else { continue };
                std::fs::write(case.join(format!("{}.txt", self.engine)), message)
                    .map_err(|error| format!("cannot write to {}: {error}", case.display()))?;
            }
        }
        Ok(outcomes)
    }

    fn run_batch(&self, batch: &[PathBuf]) -> Result<Vec<Outcome>, String> {
        match self.ask(batch)? {
            Ok(outcomes) => Ok(outcomes),
            Err(death) if batch.len() == 1 => Ok(vec![Err(format!("compiling: {death}"))]),
            Err(_) => {
                let (first, second) = batch.split_at(batch.len() / 2);
                let mut outcomes = self.run_batch(first)?;
                outcomes.extend(self.run_batch(second)?);
                Ok(outcomes)
            }
        }
    }

    /// The outcomes that a process writes, or how it ended.
    fn ask(&self, batch: &[PathBuf]) -> Result<Result<Vec<Outcome>, String>, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new(own)
            .args(["--worker", &self.engine.to_string(), self.check.name()])
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
        let limit = self.limit.map(|limit| limit * batch.len() as u32);
        let in_time = match limit {
            Some(limit) => wait(&mut child, limit)?,
            None => true,
        };
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        if !in_time {
            return Ok(Err("the process took too long".into()));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let outcomes: Option<Vec<Outcome>> = text.lines().map(outcome).collect();
        match outcomes.filter(|outcomes| output.status.success() && outcomes.len() == batch.len()) {
            Some(outcomes) => Ok(Ok(outcomes)),
            None => Ok(Err(format!("the process ended with {}", output.status))),
        }
    }
}

/// Waits for a process, and kills it at the limit; returns whether it ended in time. What it writes fits into
/// the buffer of a pipe: a line for each case.
fn wait(child: &mut Child, limit: Duration) -> Result<bool, String> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if child.try_wait().map_err(|error| error.to_string())?.is_some() {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().map_err(|error| error.to_string())?;
    Ok(false)
}

fn outcome(line: &str) -> Option<Outcome> {
    match serde_json::from_str(line).ok()? {
        Value::Array(pass) => Some(Ok(Pass::named(pass.first()?.as_str()?)?)),
        Value::String(message) => Some(Err(message)),
        _ => None,
    }
}
