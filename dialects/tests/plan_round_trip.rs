//! Import, print, parse, export, write: the same plan file.
use irc_ark_format::{model::Options, plan};
use irc_dialects::plan::{export, import};
use irc_mlir::{Capture, OperationLike, parse_module, to_text};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The plan files of a folder, in order; empty, with a line that says so, when it is absent.
fn plans(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        println!("skipped: no folder {}", folder.display());
        return vec![];
    };
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut plans: Vec<_> =
        paths.filter(|path| path.to_string_lossy().ends_with("plan.json")).collect();
    plans.sort();
    plans
}

fn assert_round_trip(path: &Path) {
    let text = fs::read_to_string(path).expect("a readable file");
    let source = irc_diag::Source::new(path.to_string_lossy(), &text);
    let options = Options { validate: false, ..Options::default() };
    let plan = plan::parse(&source, &options, &mut irc_diag::Sink::new()).expect("a plan");
    let context = irc_dialects::new_context();
    let capture = Capture::new(&context);
    let module = import(&context, &plan, None);
    assert!(module.as_operation().verify(), "{}: {:?}", path.display(), capture.take());
    let printed = to_text(&module.as_operation(), true);
    let parsed = parse_module(&context, &printed)
        .unwrap_or_else(|| panic!("{}: {:?}", path.display(), capture.take()));
    let exported = export(&parsed);
    let exported = exported.unwrap_or_else(|_| panic!("{}: {:?}", path.display(), capture.take()));
    assert!(exported == plan, "{}", path.display());
}

#[test]
fn a_fused_softmax_survives() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/ark/tests/data");
    let plans = plans(&data);
    assert!(!plans.is_empty(), "the repository carries plans");
    plans.iter().for_each(|path| assert_round_trip(path));
}

#[test]
fn corpus_plans_survive() {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let corpus = std::env::var_os("IRC_CORPUS").map_or(default, PathBuf::from).join("ark");
    plans(&corpus).iter().for_each(|path| assert_round_trip(path));
}
