//! Generates documentation from the code.

use crate::bless;
use crate::metadata::{self, text};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Writes `dialects/tl/ops.td` and `dialects/ark/ops.td` from the rows of the crates `irc-tl` and
/// `irc-ark-format`, `docs/dialects/<name>.md` from each `dialects/<name>/<name>.td`, the stage table, and
/// the table of operators.
///
/// # Errors
/// If mlir-tblgen is missing or rejects a definition, or a page cannot be written.
pub fn run() -> Result<(), String> {
    bless::cargo_test(&["--lib", "--", "ods::"])?;
    for page in pages(&root()?)? {
        let write = || {
            fs::create_dir_all(page.path.parent().unwrap_or(&page.path))?;
            fs::write(&page.path, &page.text)
        };
        write().map_err(|error| format!("cannot write {}: {error}", page.path.display()))?;
    }
    let path = root()?.join("docs/matrix.md");
    let written = fs::write(&path, irc_cli::matrix_page());
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    bless::cargo_test(&["--test", "main", "--", "docs::"])
}

/// The expected contents of a page.
struct Page {
    path: PathBuf,
    text: String,
}

fn root() -> Result<PathBuf, String> {
    Ok(PathBuf::from(text(&metadata::read(&["--no-deps"])?, "workspace_root")))
}

fn pages(root: &Path) -> Result<Vec<Page>, String> {
    let folder = root.join("dialects");
    let names = dialects(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let page = |name: &String| {
        let path = root.join("docs/dialects").join(format!("{name}.md"));
        Ok(Page { path, text: page(&manual(&folder, name)?, name) })
    };
    names.iter().map(page).collect()
}

/// Folders that contain a definition with their own name.
fn dialects(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if folder.join(&name).join(format!("{name}.td")).exists() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The output of mlir-tblgen for a definition.
fn manual(folder: &Path, name: &str) -> Result<String, String> {
    let prefix = env::var("MLIR_SYS_220_PREFIX").unwrap_or("/usr/lib/llvm-22".into());
    let output = Command::new(format!("{prefix}/bin/mlir-tblgen"))
        .current_dir(folder)
        .args(["-gen-dialect-doc", &format!("--dialect={name}"), &format!("{name}/{name}.td")])
        .args(["-I", &format!("{prefix}/include"), "-I", "."])
        .output()
        .map_err(|error| format!("cannot run {prefix}/bin/mlir-tblgen: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

/// The manual as a page: with an index at mlir-tblgen's placeholder, and without repeated blank lines.
fn page(manual: &str, name: &str) -> String {
    let origin = format!(
        "<!-- Written by `cargo xtask docs` from dialects/{name}/{name}.td; edit that instead. -->\n"
    );
    let mut page = origin;
    for line in manual.lines().skip(1) {
        let line = line.trim_end();
        match line {
            "[TOC]" => page += &index(manual),
            "" if page.ends_with("\n\n") => {}
            // The C++ class is of no use to readers.
            _ => page += line.split(" (::irc::").next().unwrap_or(line),
        }
        if !page.ends_with("\n\n") {
            page.push('\n');
        }
    }
    page.truncate(page.trim_end().len());
    page + "\n"
}

/// A table of the ops with their summaries.
fn index(manual: &str) -> String {
    let mut table = String::from("| op | |\n|---|---|\n");
    let mut lines = manual.lines().filter(|line| !line.is_empty()).peekable();
    while let Some(line) = lines.next() {
        let Some(op) = line.strip_prefix("### `").and_then(|rest| rest.split('`').next()) else {
            continue;
        };
        let summary = lines.peek().map_or("", |next| next.trim_matches('_'));
        let anchor = op.replace('.', "");
        table += &format!("| [`{op}`](#{anchor}) | {summary} |\n");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_are_those_of_the_definitions() {
        let root = root().expect("a workspace");
        for page in pages(&root).expect("pages") {
            let found = fs::read_to_string(&page.path).unwrap_or_default();
            let path = page.path.display();
            assert!(found == page.text, "{path} is out of date: run cargo xtask docs");
        }
    }

    #[test]
    fn a_manual_gets_an_index() {
        let manual =
            "<!-- x -->\n\n# 'd'\n\n[TOC]\n\n\n### `d.op` (::irc::d::Op)\n\n_Does it_\n\n\n";
        let expected = "\n# 'd'\n\n| op | |\n|---|---|\n| [`d.op`](#dop) | Does it |\n\n\
            ### `d.op`\n\n_Does it_\n";
        assert!(page(manual, "d").ends_with(expected), "{}", page(manual, "d"));
    }
}
