//! Levels, other forms, and libraries, on whole files.

#[path = "support/corpus.rs"]
mod corpus;

use std::collections::BTreeMap;
use std::path::Path;

use irc_common_format::library::{LoadOptions, Symbol, load, standard};
use irc_common_format::validate::{Level, ValidateOptions, validate};
use irc_common_format::write::{self, Target, write};
use irc_common_format::{Document, Encoding, Format, Options, open, read};
use irc_diag::{Diagnostic, Severity, Sink};

fn check(path: &Path, level: Level, implicit_std: bool) -> (Document, Vec<Diagnostic>) {
    let mut sink = Sink::with_limit(100_000);
    let document = open(path, &Options::default(), &mut sink).expect("a module");
    let libraries = load(&document.module, &LoadOptions::beside(path), &mut sink);
    let options = ValidateOptions { level, implicit_std, ..ValidateOptions::default() };
    validate(&document.module, &libraries, &options, &mut sink);
    (document, sink.into_diagnostics())
}

fn tally(findings: &[Diagnostic]) -> BTreeMap<(&str, Severity), usize> {
    let mut tally = BTreeMap::new();
    for finding in findings {
        *tally.entry((finding.code, finding.severity)).or_insert(0) += 1;
    }
    tally
}

#[test]
fn the_file_of_the_era_is_sound_but_for_warnings() {
    for path in corpus::files("era", &["d2ed4e2e.pb"]) {
        let (_, strict) = check(&path, Level::Strict, true);
        let (_, compat) = check(&path, Level::Compat, true);
        println!("{:?}\n{:?}", tally(&strict), tally(&compat));
        assert!(strict.iter().any(Diagnostic::is_error));
        let errors: Vec<&Diagnostic> = compat.iter().filter(|found| found.is_error()).collect();
        assert!(errors.is_empty() && !compat.is_empty(), "{errors:#?}");
    }
}

#[test]
fn models_of_today_are_sound() {
    for path in corpus::files("models", &[".onnx"]) {
        let (_, findings) = check(&path, Level::Strict, false);
        println!("{}: {:?}", path.display(), tally(&findings));
        let errors: Vec<&Diagnostic> = findings.iter().filter(|found| found.is_error()).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
    }
}

#[test]
fn samples_and_their_library_are_sound() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("libs")).expect("a folder");
    let samples = corpus::files("samples", &[".pb"]);
    for path in &samples {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let to = if name.starts_with("mlp") { "libs/mlp.pb".into() } else { name };
        std::fs::copy(path, folder.path().join(to.as_ref())).expect("a copy");
    }
    if samples.is_empty() {
        return;
    }
    let path = folder.path().join("classifier_graph.pb");
    let (document, findings) = check(&path, Level::Strict, false);
    let tally = tally(&findings);
    // An implied control edge, control at all, and an attribute whose shape is not said.
    let known = ["cir-r50", "cir-r51"];
    assert!(tally.keys().all(|(code, _)| known.contains(code)), "{findings:#?}");
    let libraries = load(&document.module, &LoadOptions::beside(&path), &mut Sink::new());
    let found = libraries.resolve("com.example.nn.mlp", "Linear");
    assert!(matches!(found, Some(Symbol::Function(function)) if function.nodes.len() == 2));
}

#[test]
fn the_standard_library_is_a_sound_document() {
    let library = standard();
    let mut sink = Sink::new();
    validate(library, &Default::default(), &ValidateOptions::default(), &mut sink);
    let outside =
        |found: &&Diagnostic| found.code != "cir-r80" || found.severity == Severity::Error;
    let found: Vec<&Diagnostic> = sink.diagnostics().iter().filter(outside).collect();
    assert!(found.is_empty(), "{found:#?}");
    for encoding in Encoding::ALL {
        let options = write::Options { encoding, ..write::Options::binary(Target::CommonIr) };
        let bytes = write(library, &options, &mut Sink::new()).expect("a file");
        let format = Format::from_name("common-ir-library").expect("a form");
        let options = Options { format, ..Options::default() };
        let again = read("standard", bytes.into(), &options, &mut Sink::new()).expect("a module");
        assert!(again.module == *library);
    }
}
