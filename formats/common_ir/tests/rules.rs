//! Each rule has a file that satisfies it and one that violates only that rule. They are lit tests of
//! the command as well.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use irc_common_format::library::{LoadOptions, load};
use irc_common_format::validate::{Rule, ValidateOptions, validate};
use irc_common_format::{Format, Options, open};
use irc_diag::{Diagnostic, Sink};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lit_tests/common_ir/rules")
}

/// Reads a file in the form stated in its command, loads its libraries, validates.
fn diagnostics(path: &Path) -> Vec<Diagnostic> {
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

/// The rules that diagnostics name.
fn rules(diagnostics: &[Diagnostic]) -> BTreeSet<String> {
    let named = |diagnostic: &Diagnostic| {
        let found = diagnostic.message.rsplit_once('(').and_then(|(_, end)| end.strip_suffix(')'));
        found.map_or_else(|| format!("{}: {}", diagnostic.code, diagnostic.message), str::to_owned)
    };
    diagnostics.iter().map(named).collect()
}

#[test]
fn files_break_the_rule_they_are_named_after() {
    let mut wrong = vec![];
    for rule in Rule::ALL {
        let found = diagnostics(&folder().join(format!("{}_ok.pbtxt", rule.id())));
        // Every file with control inputs has the note that they may be ignored.
        let found: Vec<Diagnostic> =
            found.into_iter().filter(|diagnostic| diagnostic.code != Rule::R51.code()).collect();
        if !found.is_empty() {
            wrong.push(format!("{}_ok: {found:#?}", rule.id()));
        }
        let found = diagnostics(&folder().join(format!("{}_bad.pbtxt", rule.id())));
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
fn diagnostics_have_place_code_and_help() {
    for rule in Rule::ALL {
        for diagnostic in diagnostics(&folder().join(format!("{}_bad.pbtxt", rule.id()))) {
            let is_whole = diagnostic.code == "cir-root";
            assert!(diagnostic.path.is_some() || is_whole, "{diagnostic:?}");
            assert!(diagnostic.help.is_some(), "{diagnostic:?}");
        }
    }
}
