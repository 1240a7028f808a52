//! The launcher's handling of a driver that crashes.
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Runs one test at a time: while a test writes a program, a process that another test starts inherits the
/// open file, and the program cannot be executed.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

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
    let _alone = alone();
    let (folder, mut irc) = with_driver("kill -SEGV $$");
    let model = folder.path().join("model.json");
    fs::write(&model, "{}").expect("a model");
    let output = irc.arg("check").arg(&model).output().expect("it starts");
    assert_eq!(output.status.code(), Some(70));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("irc: error: internal error: the driver was killed by signal 11"),
        "{said}"
    );
    let reproducer = said.trim().rsplit(' ').next().expect("a folder");
    let copy = fs::read_to_string(Path::new(reproducer).join("1_model.json"));
    assert_eq!(copy.expect("a copy of the input"), "{}");
}

#[test]
fn an_exit_code_passes_through() {
    let _alone = alone();
    let (_folder, mut irc) = with_driver("exit 3");
    assert_eq!(irc.output().expect("it starts").status.code(), Some(3));
}

/// Waits for `done`. Returns whether it became true.
fn comes(done: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > Duration::from_secs(20) {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

#[test]
fn a_driver_ends_with_the_launcher_that_was_killed() {
    let _alone = alone();
    // A driver that ignores all signals that can be ignored.
    let (folder, mut irc) = with_driver(
        "trap '' TERM INT HUP\necho $$ > $TMPDIR/new\nmv $TMPDIR/new $TMPDIR/id\nwhile true; do sleep 0.05; done",
    );
    let id = folder.path().join("id");
    let mut launcher = irc.spawn().expect("it starts");
    assert!(comes(|| id.exists()), "the driver does not start");
    let id = fs::read_to_string(&id).expect("a number").trim().to_owned();
    launcher.kill().expect("it runs");
    launcher.wait().expect("it ends");
    // A process that has ended does not exist, or is a zombie.
    let runs = || {
        let state = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        state.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    };
    let ended = comes(|| !runs());
    if !ended {
        Command::new("kill").args(["-KILL", &id]).status().expect("it starts");
    }
    assert!(ended, "process {id} runs on");
}
