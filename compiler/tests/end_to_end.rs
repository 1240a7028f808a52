//! From a model file to a run: the compiled library against the reference evaluator.
use irc::{CompileOptions, Results, Session};
use irc_runtime::Library;
use irc_tensor::{Tensor, Tolerance, compare, seed_for};
use std::{collections::BTreeMap, path::Path};

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn agrees(name: &str, text: &str) {
    let options = CompileOptions { results: Results::All, ..Default::default() };
    let mut session = Session::new();
    let file = session.open(name, text);
    let compiled = session.compile(file, &options).unwrap_or_else(|failure| panic!("{failure:#?}"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.so");
    std::fs::write(&path, &compiled.library).unwrap();
    let library = Library::load(&path).unwrap();

    let inputs: BTreeMap<String, Tensor> = compiled
        .interface
        .inputs
        .iter()
        .map(|port| {
            let ty = port.tensor_type().unwrap();
            (port.name.clone(), Tensor::random(ty, seed_for(1, &port.name)).unwrap())
        })
        .collect();
    let expected = session.run_reference(file, inputs.clone(), &options).unwrap();
    let actual = library.run(inputs).unwrap();
    assert_eq!(expected.keys().collect::<Vec<_>>(), actual.keys().collect::<Vec<_>>());
    for (buffer, expected) in &expected {
        let actual = &actual[buffer];
        let result = compare(expected, actual, Tolerance::of(expected.dtype())).unwrap();
        assert!(result.is_match(), "{name} {buffer}: {result}");
    }
}

#[test]
fn the_ffn_example_agrees_with_its_meaning() {
    agrees("ffn", &example("ffn.model.json"));
}

#[test]
fn the_softmax_example_agrees_with_its_meaning() {
    agrees("softmax", &example("softmax.model.json"));
}

#[test]
fn the_normalisation_examples_agree_with_their_meaning() {
    agrees("layernorm", &example("layernorm.model.json"));
    agrees("rmsnorm", &example("rmsnorm.model.json"));
}

#[test]
fn the_half_precision_ffn_agrees_with_its_meaning() {
    agrees("swiglu", &example("swiglu_ffn_f16.model.json"));
}
