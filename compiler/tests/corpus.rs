//! Every model of the corpus that one process can run: compiled code against the reference.
//!
//! The corpus is not part of the project: `IRC_CORPUS` names its folder.
#![allow(clippy::unwrap_used)]

mod support;

use std::path::PathBuf;

/// Multiply-adds beyond which the reference evaluator takes too long for a test.
const FLOPS_LIMIT: u64 = 4_000_000_000;

fn corpus() -> Option<PathBuf> {
    let fallback = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus");
    let folder =
        std::env::var_os("IRC_CORPUS").map_or_else(|| PathBuf::from(fallback), PathBuf::from);
    let ark = folder.join("ark");
    if ark.is_dir() {
        return Some(ark);
    }
    eprintln!("skipped: no corpus at {}; set IRC_CORPUS", ark.display());
    None
}

#[test]
fn corpus_models_agree_with_their_meaning() {
    let Some(folder) = corpus() else { return };
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".model.json"))
        .filter(|path| !path.to_string_lossy().ends_with(".virtual.model.json"))
        .collect();
    files.sort();
    let (mut failures, mut ran, mut left) = (Vec::new(), 0, Vec::new());
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        match support::agreement(&text, FLOPS_LIMIT) {
            Ok(()) => ran += 1,
            Err(support::Disagreement::Left(why)) => left.push(format!("{name}: {why}")),
            Err(support::Disagreement::Wrong(why)) => failures.push(format!("{name}: {why}")),
        }
    }
    eprintln!("{ran} agree; {} left out:\n  {}", left.len(), left.join("\n  "));
    assert!(failures.is_empty(), "{} disagree:\n{}", failures.len(), failures.join("\n"));
    assert!(ran >= 40, "only {ran} models ran");
}
