//! Runs ONNX's test cases through the code generators.

use crate::metadata::{self, text};
use crate::process::{built, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The package with the cases; later versions do not contain them.
const PACKAGE: &str = "onnx==1.22.0";
/// The folder within it.
const DATA: &str = "onnx/backend/test/data";

/// Fetches the cases, unless `IRC_ONNX_DATA` names them, builds the runner, unless the first argument is
/// `--program` with its path, and runs it. Without other arguments, all cases run with both code
/// generators, and `docs/conformance.md` is written.
///
/// # Errors
/// If the cases cannot be fetched, the runner cannot be built, or it fails.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let root = PathBuf::from(text(&metadata::read(&["--no-deps"])?, "workspace_root"));
    let data = match env::var_os("IRC_ONNX_DATA") {
        Some(data) => PathBuf::from(data),
        None => fetched(&root)?,
    };
    let (program, arguments) = match arguments {
        [flag, program, rest @ ..] if flag == "--program" => (PathBuf::from(program), rest),
        _ => (built(&root)?, arguments),
    };
    let mut command = Command::new(program);
    command.arg(data);
    if arguments.is_empty() {
        command.args(irc_cli::GENERATORS.iter().flat_map(|(name, _)| ["--backend", name]));
        command.arg("--write");
        command.arg(root.join("docs/conformance.md"));
    }
    succeed(command.args(arguments))
}

/// The cases, downloaded once.
fn fetched(root: &Path) -> Result<PathBuf, String> {
    let folder = root.join("target/onnx-cases");
    let data = folder.join(DATA);
    if data.is_dir() {
        return Ok(data);
    }
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let python = crate::process::python(root);
    // The package of any platform will do: only its data are used.
    let download = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"];
    let platform = ["--python-version=3.11", "--platform=manylinux_2_28_x86_64", PACKAGE];
    succeed(Command::new(&python).current_dir(&folder).args(download).args(platform))?;
    let unpack = format!(
        "import glob, zipfile\n\
         wheel = zipfile.ZipFile(glob.glob('onnx-*.whl')[0])\n\
         wheel.extractall('.', [name for name in wheel.namelist() if name.startswith('{DATA}/')])"
    );
    succeed(Command::new(&python).current_dir(&folder).args(["-c", &unpack]))?;
    Ok(data)
}
