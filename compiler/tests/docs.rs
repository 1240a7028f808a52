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

/// Words between backquotes that start with a folder of the repository.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let folders = ["compiler/", "dialects/", "docs/", "fuzz/", "lit_tests/", "runtime/", "tools/"];
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(move |word| {
        folders.iter().any(|folder| word.starts_with(folder)) && !word.contains([' ', '*', '<'])
    })
}

/// Targets of links to files.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://"))
}

#[test]
fn what_the_pages_name_exists() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let names = [
        "README.md",
        "docs/ARCHITECTURE.md",
        "docs/diagnostics.md",
        "docs/how-to-add.md",
        "docs/kernels.md",
        "docs/tolerances.md",
        "docs/dialects/ark-rationale.md",
        "docs/dialects/plan-rationale.md",
        "docs/dialects/tl-rationale.md",
    ];
    let mut checked = 0;
    for name in names {
        let page = root.join(name);
        let text = fs::read_to_string(&page).expect("the page");
        let folder = page.parent().expect("a page is in a folder");
        let missing: Vec<&str> = paths(&text)
            .filter(|path| !root.join(path).exists())
            .chain(links(&text).filter(|target| !folder.join(target).exists()))
            .collect();
        assert!(missing.is_empty(), "{name} names what is not there: {missing:?}");
        checked += paths(&text).count() + links(&text).count();
    }
    assert!(checked > 20, "the pages name files");
}
