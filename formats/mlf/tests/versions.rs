//! Every version of the format can be read: the small archive, in the layout of each.

use std::collections::BTreeMap;

use crate::support::{c_source, contents, diagnostics, graph, package, tar};
use bytes::Bytes;
use irc_diag::Severity;
use irc_mlf::graph::Graph;
use irc_mlf::metadata::{Executor, Memory};
use irc_mlf::{Archive, Depth, Version, build, check, read};
use serde_json::{Value, json};

type Members = BTreeMap<String, Bytes>;

/// Members and metadata of the small archive in version 5, without irc's extensions.
fn plain() -> (Members, Value) {
    let members = package(Version::V5).archive.members().clone();
    let mut members: Members = members.into_iter().collect();
    members.retain(|path, _| !path.ends_with(".weights") && !path.starts_with("test-vectors"));
    let metadata = members.remove("metadata.json").expect("metadata");
    let mut metadata: Value = serde_json::from_slice(&metadata).expect("JSON");
    metadata.as_object_mut().expect("an object").remove("irc");
    (members, metadata)
}

fn file(mut members: Members, metadata: &Value) -> Bytes {
    members.insert("metadata.json".into(), metadata.to_string().into());
    let mut bytes = vec![];
    Archive::new("test.tar", members).write(0, &mut bytes).expect("memory");
    bytes.into()
}

fn rename(members: &mut Members, from: &str, to: &str) {
    let content = members.remove(from).expect("the member");
    members.insert(to.into(), content);
}

fn object(metadata: &mut Value) -> &mut serde_json::Map<String, Value> {
    metadata.as_object_mut().expect("an object")
}

/// The archive in a version before 5.
fn old(version: u32) -> Bytes {
    let (mut members, mut metadata) = plain();
    let graph = "graph/graph.json";
    rename(&mut members, &format!("executor-config/{graph}"), &format!("runtime-config/{graph}"));
    let keys = object(&mut metadata);
    keys.insert("version".into(), json!(version));
    let executors = keys.remove("executors").expect("executors");
    keys.insert("runtimes".into(), executors);
    if version < 4 {
        keys.remove("style");
        rename(&mut members, "src/model.mlir", "relay.txt");
    }
    if version == 1 {
        metadata["memory"] = metadata["memory"]["sids"].clone();
    }
    file(members, &metadata)
}

fn read_graph(bytes: &Bytes) -> Option<Graph> {
    let (package, report) = read("test.tar", bytes);
    package.unwrap_or_else(|| panic!("{report:#?}")).parts.remove(0).graph
}

#[test]
fn versions_before_five_are_read() {
    for version in 1..5 {
        assert_eq!(diagnostics(&old(version)), [], "version {version}");
        assert_eq!(read_graph(&old(version)), Some(graph()));
    }
}

#[test]
fn version_six_lists_targets() {
    let (members, mut metadata) = plain();
    metadata["version"] = json!(6);
    metadata["target"] = json!(["llvm -keys=cpu"]);
    assert_eq!(diagnostics(&file(members.clone(), &metadata)), []);
    metadata["target"] = json!({"1": "llvm"});
    let codes: Vec<_> =
        diagnostics(&file(members, &metadata)).iter().map(|each| each.code).collect();
    assert_eq!(codes, ["mlf-wrong-type"]);
}

#[test]
fn the_form_of_the_document_is_read_with_warnings() {
    let (members, mut metadata) = plain();
    let functions = object(&mut metadata["memory"]).remove("functions").expect("functions");
    let operators = functions["operator_functions"].as_array().expect("a list");
    let by_name = |each: &Value| {
        (each["function_name"].as_str().expect("a name").to_owned(), each["workspace"].clone())
    };
    let operators: serde_json::Map<String, Value> = operators.iter().map(by_name).collect();
    metadata["memory"] = json!({"main": functions["main"], "operator_functions": operators});
    object(&mut metadata).remove("style");
    let found = diagnostics(&file(members, &metadata));
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found.iter().all(|each| each.code == "mlf-metadata-form"));
    assert!(found.iter().all(|each| each.severity == Severity::Warning));
}

#[test]
fn version_seven_has_several_models() {
    let mut contents = contents(Version::V7, "src/lib0.c", c_source().into());
    let mut second = contents.models[0].clone();
    second.name = "second".into();
    contents.models.push(second);
    let package = build("test.tar", &contents).unwrap_or_else(|report| panic!("{report:#?}"));
    let bytes = tar(&package);
    assert_eq!(diagnostics(&bytes), []);
    let (read, _) = read("test.tar", &bytes);
    assert_eq!(read.map(|package| package.parts.len()), Some(2));
    contents.version = Version::V5;
    assert!(build("test.tar", &contents).is_err());
}

#[test]
fn what_runs_without_a_graph_has_its_function() {
    let (mut members, mut metadata) = plain();
    members.remove("executor-config/graph/graph.json");
    metadata["executors"] = json!(["aot"]);
    object(&mut metadata["memory"]).remove("sids");
    let codes: Vec<_> =
        diagnostics(&file(members.clone(), &metadata)).iter().map(|each| each.code).collect();
    assert_eq!(codes, ["mlf-missing-function"]);
    let run = "int32_t tvmgen_default_run_model(void* args) { return 0; }";
    members.insert("codegen/host/src/default_lib1.c".into(), run.into());
    assert_eq!(diagnostics(&file(members, &metadata)), []);
}

#[test]
fn operators_are_read() {
    let (mut members, mut metadata) = plain();
    members.retain(|path, _| path.starts_with("codegen"));
    metadata["style"] = json!("operator");
    metadata["executors"] = json!([]);
    let argument =
        json!({"size_bytes": 32, "shape": [1, 8], "dtype": "float32", "input_binding": "x"});
    metadata["memory"] = json!({"tvmgen_default_relu": [argument, argument]});
    for (version, target) in [(5, json!({"1": "llvm"})), (7, json!(["llvm"]))] {
        metadata["version"] = json!(version);
        metadata["target"] = target;
        let bytes = file(members.clone(), &metadata);
        assert_eq!(diagnostics(&bytes), []);
        let (package, _) = read("test.tar", &bytes);
        let package = package.expect("sound");
        assert!(matches!(package.metadata.modules[0].memory, Memory::Operators(_)));
        assert!(!package.metadata.modules[0].executors.contains(&Executor::Graph));
        let written = irc_mlf::metadata::write(&package.metadata).expect("written");
        assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), metadata);
    }
    metadata["memory"] = json!({"tvmgen_default_other": [argument]});
    let (package, _) = read("test.tar", &file(members, &metadata));
    let report = check(&package.expect("read"), Depth::Form);
    let codes: Vec<_> = report.all().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(codes, ["mlf-missing-function"]);
}
