//! Import, print, parse, export, write: the same bytes as the file.
use irc_ark_format::model::{self, Document, Options};
use irc_dialects::ark::{Origins, export, import};
use irc_mlir::{Capture, Context, Frame, OperationLike, frames, parse_bytecode, parse_module};
use irc_mlir::{to_bytecode, to_text};
use std::{fs, path::PathBuf};

fn read(path: &str, text: &str) -> Document {
    let source = irc_diag::Source::new(path, text);
    let mut sink = irc_diag::Sink::new();
    let document = model::parse(&source, &Options::default(), &mut sink);
    document.unwrap_or_else(|| panic!("{path}: {:?}", sink.into_diagnostics()))
}

/// The model files of the corpus; empty, with a line that says so, when it is absent.
fn corpus() -> Vec<PathBuf> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus");
    let root = std::env::var("IRC_CORPUS").unwrap_or_else(|_| root.to_owned());
    let Ok(entries) = fs::read_dir(PathBuf::from(&root).join("ark")) else {
        println!("skipped: no corpus at {root}");
        return vec![];
    };
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut models: Vec<_> =
        paths.filter(|path| path.to_string_lossy().ends_with(".model.json")).collect();
    models.sort();
    models
}

fn assert_round_trip(context: &Context, path: &str, text: &str) {
    let document = read(path, text);
    let origins = Origins { file: Some(path), nodes: &document.origins };
    let module = import(context, &document.model, origins);
    let capture = Capture::new(context);
    assert!(module.as_operation().verify(), "{path}: {:?}", capture.take());
    let printed = to_text(&module.as_operation(), true);
    let parsed = parse_module(context, &printed).unwrap_or_else(|| panic!("{path}"));
    let exported = export(&parsed).unwrap_or_else(|_| panic!("{path}: {:?}", capture.take()));
    assert!(exported == document.model, "{path}");
    assert!(model::write(&exported) == model::write(&document.model), "{path}");
    let bytecode = to_bytecode(&parsed);
    let decoded = parse_bytecode(context, &bytecode).unwrap_or_else(|| panic!("{path}"));
    assert!(to_text(&decoded.as_operation(), true) == printed, "{path}");
}

#[test]
fn corpus_models_survive_byte_for_byte() {
    for path in corpus() {
        let text = fs::read_to_string(&path).expect("a readable file");
        let path = path.to_string_lossy();
        assert_round_trip(&irc_dialects::new_context(), &path, &text);
        assert!(model::write(&read(&path, &text).model) == text, "{path}");
    }
}

#[test]
fn the_repositorys_models_survive_byte_for_byte() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    for folder in ["examples", "tests/models", "tests/models/ranks"] {
        let entries = fs::read_dir(PathBuf::from(root).join(folder)).expect("a folder of models");
        let paths = entries.map(|entry| entry.expect("a readable folder").path());
        for path in paths.filter(|path| path.to_string_lossy().ends_with(".model.json")) {
            let text = fs::read_to_string(&path).expect("a readable file");
            let path = path.to_string_lossy();
            assert_round_trip(&irc_dialects::new_context(), &path, &text);
            assert!(model::write(&read(&path, &text).model) == text, "{path}");
        }
    }
}

const TENSOR: &str = r#"{"Id":0,"DataType":"FP32","Shape":[2],"Strides":[2],"Offsets":[0],
  "PaddedShape":[2],"Buffer":{"Id":0,"Rank":-1,"SendTags":[],"RecvTags":[]}}"#;

fn small(args: &str) -> String {
    let written = TENSOR.replace("\"Id\":0", "\"Id\":1");
    let result = written.replacen("\"Id\":1", "\"Id\":2", 1);
    format!(
        r#"{{"Rank":0,"WorldSize":1,"Nodes":[
  {{"Id":0,"ProducerNodeIds":[],"ConsumerNodeIds":[],"Op":{{"Type":"ScalarAdd","Name":"half",
  "IsVirtual":false,"ReadTensors":[{TENSOR}],"WriteTensors":[{written}],"ResultTensors":[{result}],
  "Args":{args}}}}}]}}"#
    )
}

#[test]
fn arguments_of_every_type_are_kept() {
    let extra = r#"{"A":{"INT":-1},"B":{"INT64":-4294967297},"C":{"UINT32":4294967295},
      "D":{"UINT64":18446744073709551615},"E":{"BOOL":true},"F":{"DIMS":[1,2]},
      "Factor":{"FLOAT":0.10000000149011612}}"#;
    assert_round_trip(&irc_dialects::new_context(), "small.json", &small(extra));
}

#[test]
fn locations_hold_path_and_place() {
    let document = read("small.json", &small(r#"{"Factor":{"FLOAT":0.5}}"#));
    let context = irc_dialects::new_context();
    let location = |file| {
        let origins = Origins { file, nodes: &document.origins };
        let module = import(&context, &document.model, origins);
        let model = irc_dialects::ark::model_op(module.as_operation()).expect("a model");
        let nodes = irc_dialects::ark::nodes(model).expect("nodes");
        frames(nodes[0].0.location())
    };
    let name = Frame::Name("$.Nodes[0].Op".to_owned());
    let place = Frame::File { name: "small.json".to_owned(), line: 2, column: 3 };
    assert_eq!(location(Some("small.json")), [name.clone(), place]);
    assert_eq!(location(None), [name]);
}
