//! What the launcher makes of a driver that dies.
use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

/// A copy of `irc` beside a driver that is this shell script.
fn with_driver(script: &str) -> (tempfile::TempDir, Command) {
    let folder = tempfile::tempdir().expect("a folder");
    let irc = folder.path().join("irc");
    fs::copy(env!("CARGO_BIN_EXE_irc"), &irc).expect("a copy");
    let driver = folder.path().join("irc-driver");
    fs::write(&driver, format!("#!/bin/sh\n{script}\n")).expect("a script");
    fs::set_permissions(&driver, fs::Permissions::from_mode(0o755)).expect("an executable");
    let mut command = Command::new(irc);
    command.env("TMPDIR", folder.path());
    (folder, command)
}

#[test]
fn a_crash_is_a_sentence_a_reproducer_and_70() {
    let (folder, mut irc) = with_driver("kill -SEGV $$");
    let model = folder.path().join("model.json");
    fs::write(&model, "{}").expect("a model");
    let output = irc.arg("check").arg(&model).output().expect("it starts");
    assert_eq!(output.status.code(), Some(70));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("irc: error: internal error: the driver died of signal 11"), "{said}");
    let reproducer = said.trim().rsplit(' ').next().expect("a folder");
    let copy = fs::read_to_string(Path::new(reproducer).join("1_model.json"));
    assert_eq!(copy.expect("a copy of the input"), "{}");
}

#[test]
fn an_exit_code_passes_through() {
    let (_folder, mut irc) = with_driver("exit 3");
    assert_eq!(irc.output().expect("it starts").status.code(), Some(3));
}
