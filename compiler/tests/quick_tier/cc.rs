//! The machine's C compiler.
use std::{fs, path::Path, process::Command};

/// What C source must compile without: warnings.
const STRICT: [&str; 4] = ["-std=c11", "-Wall", "-Wextra", "-Werror"];

/// Compiles C source to a shared library at a path.
pub fn library(source: &[u8], path: &Path, flags: &[&str]) {
    library_by("cc", source, path, flags);
}

/// As [`library`], by a compiler of a name.
pub fn library_by(compiler: &str, source: &[u8], path: &Path, flags: &[&str]) {
    let file = path.with_extension("c");
    fs::write(&file, source).unwrap();
    let compiled = Command::new(compiler)
        .args(STRICT)
        .args(flags)
        .args(["-fPIC", "-shared", "-o"])
        .args([path, &file])
        .arg("-lm")
        .output()
        .expect("a C compiler is installed");
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success() && said.is_empty(), "{}", &said[..said.len().min(4000)]);
}

/// Whether there is a program of a name.
pub fn is_there(name: &str) -> bool {
    Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
}
