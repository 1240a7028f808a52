//! Every model of the corpus that one process can run: compiled code against the reference.
//!
//! The corpus is not part of the project: `IRC_CORPUS` names its folder.

use crate::support;
use crate::support::files;

/// Multiply-adds beyond which the reference evaluator takes too long for a test.
const FLOPS_LIMIT: u64 = 4_000_000_000;

#[test]
fn corpus_models_agree_with_their_meaning() {
    let models = files::plain_models(&files::corpus());
    if models.is_empty() {
        return;
    }
    let (mut failures, mut ran, mut left) = (Vec::new(), 0, Vec::new());
    for path in &models {
        let name = files::name_of(path);
        let text = std::fs::read_to_string(path).unwrap();
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
