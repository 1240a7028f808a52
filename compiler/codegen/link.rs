//! Links objects to a shared library with the system's linker.
use super::CodegenError;
use std::{fs, process::Command};

/// What models and plans export; everything else stays local.
const EXPORTS: &str = "{ global: irc_run*; irc_metadata*; irc_task_*; local: *; };\n";

const LINKERS: [&str; 5] = ["ld.lld-22", "ld.lld", "ld.gold", "ld.bfd", "ld"];

/// Links objects, given as name and bytes, to a shared library's bytes. `aliases` gives symbols
/// further names.
///
/// # Errors
/// No linker on the machine, its message, or no room for its files.
pub fn link_library<'a>(
    objects: impl IntoIterator<Item = (String, &'a [u8])>,
    aliases: &[(String, String)],
) -> Result<Vec<u8>, CodegenError> {
    let io =
        |what: &str, error: std::io::Error| CodegenError::new(format!("cannot {what}: {error}"));
    let folder = tempfile::tempdir().map_err(|error| io("create a temporary folder", error))?;
    let mut arguments: Vec<String> =
        ["-shared", "-z", "noexecstack", "-z", "now", "--build-id=none"]
            .map(str::to_owned)
            .to_vec();
    for (name, bytes) in objects {
        let file = folder.path().join(format!("{name}.o"));
        fs::write(&file, bytes).map_err(|error| io("write an object", error))?;
        arguments.push(file.display().to_string());
    }
    arguments.extend(aliases.iter().map(|(alias, symbol)| format!("--defsym={alias}={symbol}")));
    let script = folder.path().join("exports.map");
    fs::write(&script, EXPORTS).map_err(|error| io("write the export list", error))?;
    arguments.push(format!("--version-script={}", script.display()));
    let linked = folder.path().join("model.so");
    arguments.extend(["-o".to_owned(), linked.display().to_string()]);
    run_linker(&arguments)?;
    fs::read(&linked).map_err(|error| io("read what was linked", error))
}

fn run_linker(arguments: &[String]) -> Result<(), CodegenError> {
    for linker in LINKERS {
        let Ok(result) = Command::new(linker).args(arguments).output() else { continue };
        if result.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&result.stderr).trim().to_owned();
        return Err(CodegenError::new(format!("{linker}: {message}")));
    }
    Err(CodegenError::new("no linker found: install binutils or lld"))
}
