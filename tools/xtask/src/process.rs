//! Programs that tasks run.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the runner of ONNX's test cases.
///
/// # Errors
/// If it cannot be built.
pub fn built(root: &Path) -> Result<PathBuf, String> {
    let cargo = env::var("CARGO").unwrap_or("cargo".into());
    let build = ["build", "--locked", "--package", "irc-tools", "--bin", "irc-conformance"];
    succeed(Command::new(cargo).current_dir(root).args(build))?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    Ok(target.join("debug/irc-conformance"))
}

/// The Python of the oracles, or of the system where they are not installed.
pub fn python(root: &Path) -> PathBuf {
    let python = root.join("target/venv/bin/python");
    if python.is_file() { python } else { PathBuf::from("python3") }
}

/// Runs a program.
///
/// # Errors
/// If it cannot be started, or fails.
pub fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.status();
    let status = status.map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}")) }
}
