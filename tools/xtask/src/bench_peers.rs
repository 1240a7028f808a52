//! Measures irc and other runtimes on the same models.

use crate::metadata::{self, text};
use crate::process::succeed;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs `tests/peers/bench.py` with these arguments, and writes `docs/performance.md` unless some of them choose models
/// (`--only`), with the models of the corpus, if there is one. Builds release versions of irc and its runtime, and installs the
/// peers in `target/peers/venv`; a package that cannot be installed is left out, except for what every measurement needs.
///
/// # Errors
/// If something cannot be built or installed, or a result is wrong.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let root = PathBuf::from(text(&metadata::read(&["--no-deps"])?, "workspace_root"));
    let folder = root.join("target/peers");
    let python = installed(&root, &folder)?;
    let cargo = env::var("CARGO").unwrap_or("cargo".into());
    let build = ["build", "--locked", "--release", "--package", "irc-tools", "--bins"];
    succeed(Command::new(&cargo).current_dir(&root).args(build))?;
    let library = ["build", "--locked", "--profile", "runtime", "--package", "irc-runtime-c"];
    succeed(Command::new(&cargo).current_dir(&root).args(library).env("RUSTFLAGS", ""))?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let mut command = Command::new(python);
    command.current_dir(&root).arg("tests/peers/bench.py").args(arguments);
    command.arg("--irc").arg(target.join("release/irc")).arg("--folder").arg(&folder);
    command.arg("--runtime").arg(target.join("runtime/libirc_runtime.so"));
    if !arguments.iter().any(|argument| argument == "--only") {
        command.args(["--page", "docs/performance.md"]);
        // Models that others published, where they are.
        let corpus = env::var_os("IRC_CORPUS").map_or(root.join("../shared/corpus"), PathBuf::from);
        if corpus.is_dir() {
            command.arg("--corpus").arg(corpus);
        }
    }
    succeed(&mut command)
}

/// A Python with the peers.
fn installed(root: &Path, folder: &Path) -> Result<PathBuf, String> {
    let python = folder.join("venv/bin/python");
    if !python.is_file() {
        succeed(Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")))?;
    }
    let wanted = root.join("tests/peers/requirements.txt");
    let wanted = std::fs::read_to_string(&wanted)
        .map_err(|error| format!("cannot read {}: {error}", wanted.display()))?;
    for package in wanted.lines() {
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]);
        let done = succeed(&mut install);
        if OPTIONAL.contains(&package) {
            done.unwrap_or_else(|message| eprintln!("{package} is left out: {message}"));
        } else {
            done?;
        }
    }
    Ok(python)
}

/// Packages without which the other peers can be measured.
const OPTIONAL: [&str; 2] = ["openvino", "torch"];
