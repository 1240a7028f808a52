//! A model has the same meaning in every generation of the format, whatever its ops.
//!
//! The models are those of the repository; a current one is rewritten as an older or newer ARK
//! would have written it, and read back.

use std::collections::BTreeSet;
use std::path::Path;

use irc_ark_format::model::{self, Model, Node, OpKind, Options};
use irc_diag::{Diagnostic, Severity, Sink, Source, render};
use serde_json::{Map, Value, json};

/// Name and text of every model.
fn models() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut models = vec![];
    for folder in ["examples", "tests/models", "tests/models/ranks"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("a folder of models") {
            let path = entry.expect("a readable folder").path();
            let name = path.to_string_lossy().into_owned();
            if name.ends_with(".model.json") {
                models.push((name, std::fs::read_to_string(path).expect("a readable file")));
            }
        }
    }
    models
}

fn parse(name: &str, text: &str, strict: bool) -> (Option<Model>, Vec<Diagnostic>) {
    let mut sink = Sink::with_limit(usize::MAX);
    let options = Options { strict, ..Options::default() };
    let document = model::parse(&Source::new(name, text), &options, &mut sink);
    (document.map(|document| document.model), sink.into_diagnostics())
}

/// Checks that the model as written by a generation is read as the model itself, with only warnings
/// about the deviations.
#[track_caller]
fn expect_same(name: &str, text: &str, rewritten: &Value, same: impl Fn(&Model, &Model) -> bool) {
    let (Some(model), _) = parse(name, text, true) else { panic!("{name} is not sound") };
    let rewritten = rewritten.to_string();
    let (read, found) = parse(name, &rewritten, true);
    let shown = render(&Source::new(name, &rewritten), &found, false, 160);
    let accepted = |f: &Diagnostic| f.code == "ark-generation" && f.severity == Severity::Warning;
    assert!(found.iter().all(accepted), "{shown}");
    assert!(same(&read.expect("a model"), &model), "{name} reads otherwise");
}

fn each_node(model: &mut Value, mut change: impl FnMut(&mut Map<String, Value>)) {
    for node in model["Nodes"].as_array_mut().expect("nodes") {
        change(node.as_object_mut().expect("a node"));
    }
}

fn each_tensor(op: &mut Value, mut change: impl FnMut(&mut Map<String, Value>)) {
    for list in ["ReadTensors", "WriteTensors", "ResultTensors"] {
        for tensor in op[list].as_array_mut().expect("tensors") {
            change(tensor.as_object_mut().expect("a tensor"));
        }
    }
}

/// The document's own form: `Ops`, `Pads`, `Value`, six arguments of `Matmul`.
fn generation_0(model: &mut Value) {
    each_node(model, |node| {
        let mut op = node.remove("Op").expect("an op");
        each_tensor(&mut op, |tensor| {
            tensor.remove("PaddedShape");
            let pads = vec![1; tensor["Shape"].as_array().expect("a shape").len()];
            tensor.insert("Pads".to_owned(), json!(pads));
        });
        let kind = op["Type"].clone();
        let args = op["Args"].as_object_mut().expect("arguments");
        if let Some(factor) = args.remove("Factor") {
            args.insert("Value".to_owned(), factor);
        }
        if kind == "Matmul" {
            let numbers = json!({"DIMS": [1, 1, 1]});
            for name in ["InputDimNC", "OtherDimNC", "ShapeMNK", "StridesACDB"] {
                args.insert(name.to_owned(), numbers.clone());
            }
        }
        node.insert("Ops".to_owned(), json!([op]));
    });
}

#[test]
fn generation_0_reads_the_same() {
    let mut kinds = BTreeSet::new();
    for (name, text) in models() {
        let (model, _) = parse(&name, &text, true);
        let model = model.expect("a valid model");
        // `Pads` cannot represent `PaddedShape`.
        if model.tensors().any(|tensor| tensor.padded_shape != tensor.shape) {
            continue;
        }
        kinds.extend(model.nodes.iter().map(|node| node.op.kind));
        let mut old: Value = serde_json::from_str(&text).expect("JSON");
        generation_0(&mut old);
        expect_same(&name, &text, &old, |read, model| read == model);
    }
    let all: BTreeSet<OpKind> = OpKind::ALL.iter().copied().collect();
    assert_eq!(kinds, all, "a kind of op is in no model");
}

/// `Ops` of several ops, where `compress()` merges: a node whose only producer has it as its only
/// consumer.
fn generation_1(model: &mut Value) {
    let nodes = model["Nodes"].as_array().expect("nodes").clone();
    let ids = |node: &Value, key: &str| -> Vec<u64> {
        node[key].as_array().expect("ids").iter().filter_map(Value::as_u64).collect()
    };
    let mut groups: Vec<Vec<Value>> = vec![];
    for node in nodes {
        let last = groups.last().and_then(|group| group.last());
        let joins = last.is_some_and(|last| {
            ids(&node, "ProducerNodeIds") == [last["Id"].as_u64().expect("an id")]
                && ids(last, "ConsumerNodeIds") == [node["Id"].as_u64().expect("an id")]
        });
        match groups.last_mut().filter(|_| joins) {
            Some(group) => group.push(node),
            None => groups.push(vec![node]),
        }
    }
    let group_of = |id: u64| groups.iter().position(|group| group.iter().any(|n| n["Id"] == id));
    let renamed = |ids: Vec<u64>| ids.into_iter().filter_map(group_of).collect::<Vec<_>>();
    let merged: Vec<Value> = groups
        .iter()
        .enumerate()
        .map(|(id, group)| {
            let ops: Vec<&Value> = group.iter().map(|node| &node["Op"]).collect();
            json!({
                "Id": id,
                "ProducerNodeIds": renamed(ids(&group[0], "ProducerNodeIds")),
                "ConsumerNodeIds": renamed(ids(&group[group.len() - 1], "ConsumerNodeIds")),
                "Ops": ops,
            })
        })
        .collect();
    model["Nodes"] = json!(merged);
}

/// Edges as sets.
fn edges(node: &Node) -> (u64, BTreeSet<u64>, BTreeSet<u64>) {
    let set = |ids: &[u64]| ids.iter().copied().collect();
    (node.id, set(&node.producers), set(&node.consumers))
}

#[test]
fn chains_of_generation_1_are_the_same_nodes() {
    let mut merged = 0;
    for (name, text) in models() {
        let mut old: Value = serde_json::from_str(&text).expect("JSON");
        let before = old["Nodes"].as_array().expect("nodes").len();
        generation_1(&mut old);
        merged += before - old["Nodes"].as_array().expect("nodes").len();
        expect_same(&name, &text, &old, |read, model| {
            let of = |model: &Model| model.nodes.iter().map(edges).collect::<Vec<_>>();
            let ops = |model: &Model| model.nodes.iter().map(|n| n.op.clone()).collect::<Vec<_>>();
            (of(read), ops(read)) == (of(model), ops(model))
        });
    }
    assert!(merged > 30, "only {merged} nodes were merged into others");
}

#[test]
fn generation_3_reads_the_same() {
    for (name, text) in models() {
        let mut new: Value = serde_json::from_str(&text).expect("JSON");
        each_node(&mut new, |node| {
            let op = node.get_mut("Op").expect("an op");
            if op["Type"] == "Tensor" && op["ReadTensors"] == json!([]) {
                op["Type"] = json!("Placeholder");
            }
            each_tensor(op, |tensor| {
                let external = json!(tensor["Id"].as_u64().is_some_and(|id| id % 2 == 0));
                tensor["Buffer"]["IsExternal"] = external;
            });
        });
        expect_same(&name, &text, &new, |read, model| read == model);
    }
}

#[test]
fn unknown_keys_anywhere_are_notes_and_strict_rejects_them() {
    let add = |object: &mut Map<String, Value>| {
        object.insert("Extra".to_owned(), json!({"a": [1]}));
    };
    for (name, text) in models() {
        let model = parse(&name, &text, true).0.expect("a valid model");
        let mut extra: Value = serde_json::from_str(&text).expect("JSON");
        each_node(&mut extra, |node| {
            let op = node.get_mut("Op").expect("an op");
            each_tensor(op, |tensor| {
                add(tensor["Buffer"].as_object_mut().expect("a buffer"));
                add(tensor);
            });
            add(op.as_object_mut().expect("an op"));
            add(node);
        });
        let text = extra.to_string();
        let (read, found) = parse(&name, &text, false);
        assert_eq!(read.as_ref(), Some(&model), "{name}");
        assert!(found.iter().all(|f| f.code == "ark-unknown-key" && f.severity == Severity::Note));
        // An additional key in the node, its op, each tensor and each buffer.
        let tensors = model.tensors().count();
        assert_eq!(
            found.len(),
            (2 * (model.nodes.len() + tensors)).min(found.capacity()),
            "{name}"
        );
        let (rejected, found) = parse(&name, &text, true);
        assert!(rejected.is_none(), "{name}");
        assert!(found.iter().all(|diagnostic| diagnostic.code == "ark-unknown-key"), "{name}");
    }
}
