//! The README lists every diagnostic code of this crate, and no other.

use std::path::Path;

use irc_common_format::model::Schema;
use irc_common_format::validate::{Level, Rule};
use irc_diag::{Severity, codes};

#[test]
fn every_code_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("a README");
    let prefixes = ["cir-"];
    let used = codes::in_sources(&root.join("src"), &prefixes).expect("source files");
    assert!(!used.is_empty());
    assert_eq!(used, codes::in_page(&readme, &prefixes));
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
