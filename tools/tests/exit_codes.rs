//! Exit codes, and which stream each tool writes to.
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

fn tool(name: &str) -> Command {
    let driver = Path::new(env!("CARGO_BIN_EXE_irc-driver"));
    Command::new(driver.with_file_name(name))
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

fn run(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the tool starts");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (status.code().expect("no signal"), text(&stdout), text(&stderr))
}

#[test]
fn help_and_version_are_on_standard_output() {
    for name in ["irc", "irc-translate"] {
        for flag in ["--help", "--version"] {
            let (code, out, err) = run(tool(name).arg(flag));
            assert_eq!((code, err.as_str()), (0, ""), "{name} {flag}");
            assert!(out.contains("irc"), "{name} {flag}: {out}");
        }
    }
    let (_, help, _) = run(tool("irc").args(["run", "--help"]));
    assert!(help.contains("Examples:") && help.contains("Exit codes:"), "{help}");
}

#[test]
fn wrong_usage_is_two() {
    let cases: [&[&str]; 5] = [
        &[],
        &["frobnicate"],
        &["run"],
        &["run", "m.json", "--backend", "abacus"],
        &["compile", "m.json", "-o", "m.zip"],
    ];
    for arguments in cases {
        let (code, out, err) = run(tool("irc").args(arguments));
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(!err.is_empty(), "{arguments:?}");
    }
}

#[test]
fn results_that_differ_are_three() {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("y.npz");
    let softmax = |seed: &str| {
        let mut command = tool("irc");
        command.arg("run").arg(example("softmax.model.json")).args(["--seed", seed]);
        command
    };
    let (code, out, err) = run(softmax("1").arg("--outputs").arg(&archive));
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", ""));
    assert_eq!(run(softmax("1").arg("--expected").arg(&archive)).0, 0);
    assert_eq!(run(softmax("2").arg("--expected").arg(&archive)).0, 3);
}

#[test]
fn what_is_not_built_says_so() {
    let cases: [&[&str]; 2] =
        [&["simulate", "s.json", "--frontend", "f.json"], &["compile", "m.json", "-o", "m.tar"]];
    for arguments in cases {
        let (code, out, err) = run(tool("irc").args(arguments));
        assert_eq!((code, out.as_str()), (1, ""), "{arguments:?}");
        assert!(err.starts_with("irc: error: not built yet: "), "{err}");
    }
}

#[test]
fn an_output_that_exists_stays_when_the_input_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let (model, output) = (folder.path().join("m.json"), folder.path().join("m.so"));
    std::fs::write(&model, "{").expect("writable");
    std::fs::write(&output, "old").expect("writable");
    let (code, _, err) = run(tool("irc").arg("compile").arg(&model).arg("-o").arg(&output));
    assert_eq!(code, 1, "{err}");
    assert_eq!(std::fs::read(&output).expect("still there"), b"old");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let irc = Path::new(env!("CARGO_BIN_EXE_irc-driver")).with_file_name("irc");
    let line = format!(
        "set -o pipefail; '{}' compile '{}' -o - --emit ll | head -c 1",
        irc.display(),
        example("ffn.model.json").display()
    );
    let (code, _, err) = run(Command::new("bash").args(["-c", &line]));
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
fn messages_are_coloured_when_asked_only() {
    let check = |flag: &str| run(tool("irc").args(["check", "/no/such/file", flag])).2;
    assert!(check("--color=always").contains('\x1b'));
    assert!(!check("--color=never").contains('\x1b'));
    assert!(!check("--color=auto").contains('\x1b'));
}
