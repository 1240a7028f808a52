//! `docs/operators.md` lists every operator; `cargo xtask docs` regenerates it.

use irc_onnx_ops::{ONNX, Operator, operators};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs};

/// The newest operator set with a column in the table.
const NEWEST: i64 = 28;

const OPEN: &str = "<!-- operators, by cargo xtask docs -->\n";
const CLOSE: &str = "<!-- end -->";

fn row(operator: &Operator) -> String {
    let versions: Vec<_> = operator.versions.iter().map(i64::to_string).collect();
    let mut marks = String::new();
    for opset in 1..=NEWEST {
        marks.push(if operator.version_in(opset).is_some() { '■' } else { '·' });
    }
    format!("| `{}` | {} | `{marks}` |\n", operator.name, versions.join(", "))
}

fn tables() -> String {
    let mut domains: BTreeMap<&str, Vec<&Operator>> = BTreeMap::new();
    for operator in operators() {
        domains.entry(operator.domain).or_default().push(operator);
    }
    let mut text = String::new();
    for (domain, operators) in domains {
        let sets = if domain == ONNX { format!("sets 1 to {NEWEST}") } else { "sets".into() };
        text += &format!("\n## {domain}\n\n{} operators.\n\n", operators.len());
        text += &format!("| operator | meanings since | {sets} |\n|---|---|---|\n");
        operators.iter().for_each(|operator| text += &row(operator));
    }
    text + "\n"
}

#[test]
fn the_page_has_every_operator() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../docs/operators.md");
    let text = fs::read_to_string(&path).expect("docs/operators.md");
    let (before, rest) = text.split_once(OPEN).expect("the opening mark");
    let (_, after) = rest.split_once(CLOSE).expect("the closing mark");
    let expected = format!("{before}{OPEN}{}{CLOSE}{after}", tables());
    if env::var_os("IRC_BLESS").is_some() {
        fs::write(path, expected).expect("the page can be written");
    } else {
        assert!(text == expected, "docs/operators.md is out of date: run cargo xtask docs");
    }
}
