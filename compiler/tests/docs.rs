//! What the documentation copies from the code is the same there; `cargo xtask docs` copies anew.
use irc::pipeline::{PIPELINES, Pipeline};
use std::{env, fs, path::PathBuf};

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
