//! Each rule has a file that keeps it and one that breaks it, and that alone. They are tests of the
//! command as well.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use irc_common_format::library::{LoadOptions, load};
use irc_common_format::validate::{Rule, ValidateOptions, validate};
use irc_common_format::{Format, Options, open};
use irc_diag::{Diagnostic, Sink};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lit_tests/common_ir/rules")
}

/// Reads a file in the form that its command names, loads its libraries, validates.
fn findings(path: &Path) -> Vec<Diagnostic> {
    let text = std::fs::read_to_string(path).expect("a file");
    let form = text.split("--format=").nth(1).and_then(|rest| rest.split(' ').next());
    let format = Format::from_name(form.expect("a form")).expect("a form");
    let mut sink = Sink::new();
    let options = Options { format, ..Options::default() };
    if let Some(document) = open(path, &options, &mut sink) {
        let libraries = load(&document.module, &LoadOptions::beside(path), &mut sink);
        validate(&document.module, &libraries, &ValidateOptions::default(), &mut sink);
    }
    sink.into_diagnostics()
}

/// The rules that findings name.
fn rules(findings: &[Diagnostic]) -> BTreeSet<String> {
    let named = |finding: &Diagnostic| {
        let found = finding.message.rsplit_once('(').and_then(|(_, end)| end.strip_suffix(')'));
        found.map_or_else(|| format!("{}: {}", finding.code, finding.message), str::to_owned)
    };
    findings.iter().map(named).collect()
}

#[test]
fn files_break_the_rule_they_are_named_after() {
    let mut wrong = vec![];
    for rule in Rule::ALL {
        let found = findings(&folder().join(format!("{}_ok.pbtxt", rule.id())));
        // That control inputs may be ignored is said of every file that has some.
        let found: Vec<Diagnostic> =
            found.into_iter().filter(|finding| finding.code != Rule::R51.code()).collect();
        if !found.is_empty() {
            wrong.push(format!("{}_ok: {found:#?}", rule.id()));
        }
        let found = findings(&folder().join(format!("{}_bad.pbtxt", rule.id())));
        let mut broken = rules(&found);
        if *rule != Rule::R51 {
            broken.remove("R51");
        }
        if broken != BTreeSet::from([rule.id().to_owned()]) {
            wrong.push(format!("{}_bad: {found:#?}", rule.id()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn findings_have_place_code_and_help() {
    for rule in Rule::ALL {
        for finding in findings(&folder().join(format!("{}_bad.pbtxt", rule.id()))) {
            let is_whole = finding.code == "cir-root";
            assert!(finding.path.is_some() || is_whole, "{finding:?}");
            assert!(finding.help.is_some(), "{finding:?}");
        }
    }
}
