//! Compares irc with ONNX Runtime on random models.

use crate::metadata::{self, text};
use crate::process::{built, python, succeed};
use std::path::PathBuf;
use std::process::Command;

/// Runs `tests/differential/run.py` with these arguments: the number of models, and its flags. Builds the runner
/// of cases, unless `--program` names it.
///
/// # Errors
/// If the runner cannot be built, or the script fails or finds a difference.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let root = PathBuf::from(text(&metadata::read(&["--no-deps"])?, "workspace_root"));
    let mut command = Command::new(python(&root));
    command.current_dir(&root).arg("tests/differential/run.py").args(arguments);
    if !arguments.iter().any(|argument| argument == "--program") {
        command.arg("--program").arg(built(&root)?);
    }
    succeed(&mut command)
}
