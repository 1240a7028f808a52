//! The README names every code a finding can have, and no other.

use std::collections::BTreeSet;
use std::path::Path;

use irc_common_format::model::Schema;
use irc_common_format::validate::{Level, Rule};
use irc_diag::Severity;

fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => sources(&path, text),
            false => text.push_str(&std::fs::read_to_string(&path).expect("a source file")),
        }
    }
}

/// Codes between two quotes of the kind given.
fn codes(text: &str, quote: char) -> BTreeSet<&str> {
    let is_code = |part: &&str| {
        let rest = part.strip_prefix("cir-");
        rest.is_some_and(|rest| {
            rest.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        })
    };
    text.split(quote).filter(is_code).collect()
}

#[test]
fn every_code_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("a README");
    let mut text = String::new();
    sources(&root.join("src"), &mut text);
    assert_eq!(codes(&text, '"'), codes(&readme, '`'));
}

#[test]
fn every_rule_is_documented_as_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("a README");
    for rule in Rule::ALL {
        let mark = |level, schema| match rule.severity(level, schema) {
            Some(Severity::Error) => "e",
            Some(Severity::Warning) => "w",
            Some(Severity::Note) => "n",
            None => "",
        };
        let strict = mark(Level::Strict, Schema::CommonIr);
        let compat = mark(Level::Compat, Schema::CommonIr);
        let onnx = mark(Level::Strict, Schema::Onnx);
        let (code, title) = (rule.code(), rule.title());
        let row = format!("| `{code}` | {strict} | {compat} | {onnx} | {title} |");
        assert!(readme.contains(&row), "{row}");
    }
}
