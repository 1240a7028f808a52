//! From a model file to a run: the compiled library against the reference evaluator.

use crate::support;
use std::path::Path;

fn agrees(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    support::agreement(&text, u64::MAX).unwrap_or_else(|why| panic!("{name}: {why:?}"));
}

#[test]
fn the_ffn_example_agrees_with_its_meaning() {
    agrees("ffn.model.json");
}

#[test]
fn the_softmax_example_agrees_with_its_meaning() {
    agrees("softmax.model.json");
}

#[test]
fn the_normalisation_examples_agree_with_their_meaning() {
    agrees("layernorm.model.json");
    agrees("rmsnorm.model.json");
}

#[test]
fn the_half_precision_ffn_agrees_with_its_meaning() {
    agrees("swiglu_ffn_f16.model.json");
}
