//! What the documentation copies from the code is the same there; `cargo xtask docs` copies anew.
use irc::pipeline::{PIPELINES, Pipeline};
use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

fn page(name: &str) -> (PathBuf, String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (path, text)
}

fn table(pipeline: &Pipeline) -> String {
    let mut table = String::from("| stage | why it stands there | may remain |\n|---|---|---|\n");
    for stage in pipeline.stages {
        let leaves: Vec<_> = stage.leaves.iter().map(|name| format!("`{name}`")).collect();
        table += &format!("| `{}` | {} | {} |\n", stage.name, stage.why, leaves.join(", "));
    }
    table
}

/// The text with what stands between two marks replaced.
fn with_part(text: &str, open: &str, part: &str) -> Option<String> {
    let (before, rest) = text.split_once(open)?;
    let (_, after) = rest.split_once("<!-- end -->")?;
    Some(format!("{before}{open}{part}<!-- end -->{after}"))
}

#[test]
fn the_architecture_page_has_every_stage() {
    let (path, text) = page("ARCHITECTURE.md");
    let mut expected = text.clone();
    for pipeline in PIPELINES {
        let open = format!("<!-- stages of {}, by cargo xtask docs -->\n", pipeline.name);
        expected = with_part(&expected, &open, &table(pipeline))
            .unwrap_or_else(|| panic!("docs/ARCHITECTURE.md lacks {open}"));
    }
    if env::var_os("IRC_BLESS").is_some() {
        fs::write(path, &expected).expect("the page can be written");
    } else {
        assert!(text == expected, "docs/ARCHITECTURE.md is out of date: run cargo xtask docs");
    }
}

/// The first string literal after each of some calls, in all sources below a folder.
fn literals_after(calls: &[&str], folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            literals_after(calls, &path, found);
        } else if path.extension().is_some_and(|suffix| suffix == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            for after in calls.iter().flat_map(|call| text.split(call).skip(1)) {
                found.extend(after.split('"').next().map(str::to_owned));
            }
        }
    }
}

#[test]
fn the_diagnostics_page_has_every_code_of_the_compiler() {
    let (path, text) = page("diagnostics.md");
    let calls = ["error(", "warning(", "note("].map(|kind| format!("Diagnostic::{kind}\""));
    let calls = calls.each_ref().map(String::as_str);
    let root = path.parent().and_then(Path::parent).expect("the repository").to_owned();
    let mut expected = BTreeSet::new();
    for folder in ["compiler/session", "tools/irc-driver"] {
        literals_after(&calls, &root.join(folder), &mut expected);
    }
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(rows.map(str::to_owned).collect::<BTreeSet<_>>(), expected);
}
