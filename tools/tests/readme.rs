//! The commands in the README run as written, and print the output shown below them.
//!
//! Blocks marked `console` and `sh` run in order, in one folder that looks like the repository with a
//! `target` of its own. In the shown output, `…` matches any text, and on a line of its own any lines; the
//! output of a command without shown output is not checked. A command exits with 0, unless a comment after
//! it ends in `exit code N`. A block after a comment `<!-- not run: why -->` is skipped.

use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// A command, and its shown output.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    command: String,
    exit_code: i32,
    shown: Vec<String>,
}

/// The steps of a page's blocks that are run, and the number of skipped blocks.
fn steps(page: &str) -> (Vec<Step>, usize) {
    let (mut steps, mut left_out) = (Vec::new(), 0);
    let mut lines = page.lines();
    let mut above = "";
    while let Some(line) = lines.next() {
        let language = line.strip_prefix("```").unwrap_or_default();
        if !line.starts_with("```") {
            if !line.trim().is_empty() {
                above = line;
            }
            continue;
        }
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let is_left_out = above.starts_with("<!-- not run: ");
        above = "";
        match language {
            "console" | "sh" if is_left_out => left_out += 1,
            "sh" => steps.push(step(block.join("\n"))),
            "console" => {
                for line in block {
                    match (line.strip_prefix("$ "), steps.last_mut()) {
                        (Some(command), _) => steps.push(step(command.to_owned())),
                        (None, Some(step)) => step.shown.push(line.to_owned()),
                        (None, None) => panic!("output before any command: {line}"),
                    }
                }
            }
            _ => {}
        }
    }
    for step in &mut steps {
        while step.shown.last().is_some_and(|line| line.trim().is_empty()) {
            step.shown.pop();
        }
    }
    (steps, left_out)
}

fn step(command: String) -> Step {
    let code = command.rsplit_once("exit code ").filter(|_| command.contains(" # "));
    let exit_code = code.and_then(|(_, code)| code.parse().ok()).unwrap_or(0);
    Step { command, exit_code, shown: Vec::new() }
}

/// Whether output matches the shown output.
fn agrees(shown: &[String], output: &[&str]) -> bool {
    let Some((first, rest)) = shown.split_first() else {
        return output.iter().all(|line| line.trim().is_empty());
    };
    if first.trim() == "…" {
        return (0..=output.len()).any(|skipped| agrees(rest, &output[skipped..]));
    }
    output.split_first().is_some_and(|(line, left)| line_agrees(first, line) && agrees(rest, left))
}

fn line_agrees(shown: &str, line: &str) -> bool {
    let mut parts = shown.trim_end().split('…');
    let Some(mut left) = line.trim_end().strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return left.is_empty() };
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

/// A folder with the contents of the repository except for its `target`, of which it has the programs and
/// Python.
fn checkout(root: &Path, programs: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("target")).expect("a folder");
    for entry in fs::read_dir(root).expect("the repository") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        if name != "target" {
            symlink(&path, folder.join(name)).expect("a link");
        }
    }
    symlink(programs, folder.join("target/debug")).expect("a link");
    symlink(root.join("target/venv"), folder.join("target/venv")).expect("a link");
    folder
}

#[test]
fn the_readme_shows_what_happens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let python = root.join("target/venv/bin/python");
    if !python.exists() {
        println!("skipped: no Python at {}; ./irc-dev setup makes one", python.display());
        return;
    }
    let page = fs::read_to_string(root.join("README.md")).expect("the README");
    let (steps, left_out) = steps(&page);
    assert!(steps.len() > 30 && left_out < 10, "{} steps, {left_out} blocks left out", steps.len());
    let programs = Path::new(env!("CARGO_BIN_EXE_irc")).parent().expect("a folder of programs");
    let folder = checkout(root, programs);
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([programs.to_owned()].into_iter().chain(env::split_paths(&path)));
    let path = path.expect("a search path");
    let mut faults = Vec::new();
    for step in steps {
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &format!("{{ {}\n}} 2>&1", step.command)])
            .current_dir(&folder)
            .env("PATH", &path)
            .output()
            .expect("bash runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> = text.lines().collect();
        let is_as_shown = step.shown.is_empty() || agrees(&step.shown, &lines);
        if output.status.code() != Some(step.exit_code) || !is_as_shown {
            faults.push(format!("$ {}\n{}\n{text}", step.command, output.status));
        }
    }
    assert!(faults.is_empty(), "the README shows something else than this:\n{}", faults.join("\n"));
}

#[test]
fn steps_are_found() {
    let page = "\
```console
$ a b   # the first
one …

$ c   # exit code 3
```

<!-- not run: takes an hour -->
```sh
make
```
```sh
x
y
```
";
    let step = |command: &str, exit_code, shown: &[&str]| Step {
        command: command.into(),
        exit_code,
        shown: shown.iter().map(|line| (*line).into()).collect(),
    };
    let expected = vec![
        step("a b   # the first", 0, &["one …"]),
        step("c   # exit code 3", 3, &[]),
        step("x\ny", 0, &[]),
    ];
    assert_eq!(steps(page), (expected, 1));
}

#[test]
fn output_is_compared() {
    let agrees = |shown: &str, output: &str| {
        let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
        agrees(&shown, &output.lines().collect::<Vec<_>>())
    };
    assert!(agrees("a\n…\nd", "a\nb\nc\nd\n\n"));
    assert!(agrees("a\n…", "a"));
    assert!(agrees("x …, y …", "x 1, y 2"));
    assert!(!agrees("a\n…\nd", "a\nb"));
    assert!(!agrees("x …, y", "x 1, y 2"));
    assert!(!agrees("a", "a\nb"));
    assert!(!agrees("ab…b", "ab"));
}

/// Names before `::` in a text that are those of crates outside of the standard library.
fn crates(text: &str) -> BTreeSet<String> {
    let parts = text.split("::").map(|part| {
        let start = part.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        part[start..].replace('_', "-")
    });
    parts.filter(|name| name == "irc" || name.starts_with("irc-") || name == "tempfile").collect()
}

#[test]
fn the_readme_names_the_crates_that_its_example_needs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let page = fs::read_to_string(root.join("README.md")).expect("the README");
    let example = fs::read_to_string(root.join("compiler/examples/plan_and_run.rs"));
    let block = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let mut named = BTreeSet::new();
    for line in block.expect("a block of dependencies").lines() {
        named.insert(line.split(' ').next().unwrap_or_default().to_owned());
        if let Some(path) = line.split('"').find_map(|part| part.strip_prefix("../irc/")) {
            assert!(root.join(path).join("Cargo.toml").exists(), "{path} is no crate");
        }
    }
    assert_eq!(named, crates(&example.expect("the example")));
}
