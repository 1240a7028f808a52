//! Unused config keys are reported, because they have no effect.

use irc_ark_format::model::{OpKind, Options};
use irc_ark_format::plan;
use irc_diag::{Diagnostic, Severity, Sink, Source};

const PLAN: &str = include_str!("data/fused_softmax.plan.json");

/// The diagnostics of the plan with the first occurrence of `from` replaced.
fn diagnostics(from: &str, to: &str, strict: bool) -> Vec<Diagnostic> {
    assert!(PLAN.contains(from), "`{from}` must occur");
    let source = Source::new("fused_softmax.plan.json", PLAN.replacen(from, to, 1));
    let mut sink = Sink::new();
    let _ = plan::parse(&source, &Options { strict, ..Options::default() }, &mut sink);
    sink.into_diagnostics()
}

#[test]
fn a_key_of_another_op_is_a_note() {
    let found =
        diagnostics("\"ImplType\": ", "\"Tile\": [1,64],\n            \"ImplType\": ", false);
    let [note] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((note.severity, note.code), (Severity::Note, "plan-unknown-config"));
    assert_eq!(note.path.as_deref(), Some("$.TaskInfos[0].Ops[0].Config.Tile"));
    assert_eq!(note.help, None);
}

#[test]
fn a_misspelt_key_is_an_error_when_strict() {
    let found = diagnostics("\"NumTasks\"", "\"NumTask\"", true);
    let [error] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((error.severity, error.code), (Severity::Error, "plan-unknown-config"));
    assert_eq!(error.help.as_deref(), Some("did you mean `NumTasks`?"));
}

#[test]
fn a_key_is_listed_once_for_each_op() {
    for &kind in OpKind::ALL {
        let mut names: Vec<_> = plan::config_keys(kind).into_iter().map(|key| key.name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "{kind}: {names:?}");
        assert!(names.contains(&"NumTasks") && names.contains(&"NumWarps"), "{kind}");
    }
}
