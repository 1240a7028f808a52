//! Internal errors: instead of a panic message, one sentence and a folder with a reproducer.
use crate::{console::Console, error::Error};
use bytes::Bytes;
use std::{
    backtrace::Backtrace,
    fs, io,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

/// The contents of a reproducer: the inputs and panics so far.
struct Evidence {
    inputs: Vec<(String, Bytes)>,
    panics: Vec<String>,
}

static EVIDENCE: Mutex<Evidence> = Mutex::new(Evidence { inputs: vec![], panics: vec![] });

fn with_evidence<T>(use_it: impl FnOnce(&mut Evidence) -> T) -> T {
    use_it(&mut EVIDENCE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Silences panics, and records them for the reproducer.
pub fn catch_panics() {
    panic::set_hook(Box::new(|panic| {
        let trace = Backtrace::force_capture();
        with_evidence(|evidence| evidence.panics.push(format!("{panic}\n{trace}")));
    }));
}

/// Records an input for the reproducer.
pub fn remember(name: &str, bytes: &Bytes) {
    with_evidence(|evidence| evidence.inputs.push((name.to_owned(), bytes.clone())));
}

/// Runs a command, and reports its error, if any.
pub fn guard(
    console: &Console,
    arguments: &[String],
    command: impl FnOnce() -> Result<(), Error>,
) -> ExitCode {
    let Err(error) = caught(command) else { return ExitCode::SUCCESS };
    report(console, arguments, &error);
    ExitCode::from(error.code())
}

/// Reports the error of a command.
pub fn report(console: &Console, arguments: &[String], error: &Error) {
    match error {
        Error::Diagnostics(source, diagnostics) => console.diagnostics(source, diagnostics),
        Error::Problem { message, help } => console.error(message, help.as_deref()),
        Error::Usage(message) => console.error(message, Some(&help_of(arguments))),
        Error::Reported | Error::Mismatch => {}
        Error::Internal(message) => console.error(&internal_error(message, arguments), None),
    }
}

/// Where what a command takes is described.
fn help_of(arguments: &[String]) -> String {
    let tool = arguments.first().map(|tool| Path::new(tool).file_name().unwrap_or_default());
    let tool = tool.unwrap_or_default().to_string_lossy();
    let command = arguments.get(1).filter(|command| tool == "irc" && !command.starts_with('-'));
    let command = command.map_or_else(String::new, |command| format!(" {command}"));
    format!("for more information, try '{tool}{command} --help'")
}

/// Runs a command, turning a panic into an internal error.
fn caught(command: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    panic::catch_unwind(AssertUnwindSafe(command))
        .unwrap_or_else(|_| Err(Error::Internal("a panic".into())))
}

/// Writes the reproducer of an internal error. Returns the message.
fn internal_error(message: &str, arguments: &[String]) -> String {
    match write_reproducer(message, arguments) {
        Ok(folder) => {
            format!("internal error: {message}; a reproducer is in {}", folder.display())
        }
        Err(error) => format!("internal error: {message}; no reproducer could be written: {error}"),
    }
}

fn write_reproducer(message: &str, arguments: &[String]) -> io::Result<PathBuf> {
    let folder = tempfile::Builder::new().prefix("irc-reproducer-").tempdir()?.keep();
    let mut report = format!(
        "irc {}: internal error: {message}\n\ncommand: {}\n",
        env!("CARGO_PKG_VERSION"),
        arguments.join(" ")
    );
    if let Ok(current) = std::env::current_dir() {
        report += &format!("in folder: {}\n", current.display());
    }
    let (inputs, panics) =
        with_evidence(|evidence| (evidence.inputs.clone(), evidence.panics.clone()));
    for (index, (input, bytes)) in inputs.iter().enumerate() {
        let name = Path::new(input).file_name().unwrap_or("input".as_ref());
        let copy = format!("{index}_{}", name.to_string_lossy());
        fs::write(folder.join(&copy), bytes)?;
        report += &format!("input {copy}: {input}\n");
    }
    for panic in panics {
        report += &format!("\n{panic}\n");
    }
    fs::write(folder.join("report.txt"), report)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_exit_code_70() {
        let error = caught(|| panic!("an invariant")).expect_err("a panic");
        assert_eq!(error.code(), 70);
    }

    #[test]
    fn a_reproducer_holds_the_inputs_and_the_command() {
        remember("some/model.onnx", &Bytes::from_static(b"\x08\xff"));
        let arguments = ["irc".to_owned(), "run".to_owned()];
        let folder = write_reproducer("why", &arguments).expect("writable");
        let report = fs::read_to_string(folder.join("report.txt")).expect("a report");
        assert!(report.contains("internal error: why"), "{report}");
        assert!(report.contains("command: irc run"), "{report}");
        assert_eq!(fs::read(folder.join("0_model.onnx")).expect("a copy"), b"\x08\xff");
        fs::remove_dir_all(folder).expect("removable");
    }
}
