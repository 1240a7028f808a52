//! Files that tests read.
#![allow(dead_code)]

pub mod llama;
pub mod transformer;

use irc_ark_format::{
    model::{self, Model},
    plan::{self, Plan},
};
use irc_diag::{Sink, Source, render};
use irc_planner::{Rules, rules};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files of the corpus whose names end in `suffix`, sorted; none when the corpus is absent.
pub fn corpus(suffix: &str) -> Vec<PathBuf> {
    let from_environment = std::env::var_os("IRC_CORPUS").map(PathBuf::from);
    let folder = from_environment.unwrap_or_else(|| root().join("../shared/corpus")).join("ark");
    if !folder.is_dir() {
        println!("skipped: no corpus at {}", folder.display());
        return vec![];
    }
    files(&folder, suffix)
}

/// Files of a folder whose names end in `suffix`, sorted.
pub fn files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths.filter(|path| name(path).ends_with(suffix)).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no *{suffix} in {}", folder.display());
    paths
}

/// Models compressed as ARK's planner takes them, without those that hold virtual nodes.
pub fn compressed(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.into_iter().filter(|path| !name(path).ends_with(".virtual.model.json")).collect()
}

/// The last part of a path.
pub fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The text of a file.
pub fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A model.
pub fn read_model(path: &Path) -> Model {
    let source = Source::new(path.to_string_lossy(), text(path));
    let mut sink = Sink::new();
    let document = model::parse(&source, &model::Options::default(), &mut sink);
    document.unwrap_or_else(|| panic!("{}", render(&source, sink.diagnostics(), false, 100))).model
}

/// A plan, whether its rules hold or not.
pub fn read_plan(path: &Path) -> Plan {
    let source = Source::new(path.to_string_lossy(), text(path));
    let options = model::Options { validate: false, ..Default::default() };
    let mut sink = Sink::new();
    let plan = plan::parse(&source, &options, &mut sink);
    plan.unwrap_or_else(|| panic!("{}", render(&source, sink.diagnostics(), false, 100)))
}

/// Models that were planned under a `PlannerContext`; the rules that say the same.
const RULES: [(&str, &str); 6] = [
    ("all_reduce_sm_", "all_reduce_sm.rules.json"),
    ("ctx_disjoint_processors", "ctx_disjoint_processors.rules.json"),
    ("ctx_fused_softmax", "ctx_fused_softmax.rules.json"),
    ("recv_reduce_send_", "recv_reduce_send.rules.json"),
    ("send_recv_sm_", "send_recv_sm.rules.json"),
    ("tutorial_ffn_larger_tile", "tutorial_ffn_larger_tile.rules.json"),
];

/// Rules of the tests.
pub fn read_rules(file: &str) -> Rules {
    let path = root().join("compiler/planner/tests/rules").join(file);
    let source = Source::new(path.to_string_lossy(), text(&path));
    let mut sink = Sink::new();
    let rules = rules::read(&source, &mut sink);
    rules.unwrap_or_else(|| panic!("{}", render(&source, sink.diagnostics(), false, 100)))
}

/// The file of rules under which ARK planned a model.
pub fn pinned(model: &str) -> Option<&'static str> {
    RULES.iter().find(|(name, _)| model.starts_with(name)).map(|(_, file)| *file)
}
