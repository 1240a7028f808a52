//! Files that other tools wrote are read without errors.

use crate::support::corpus;
use std::path::Path;

use irc_common_format::model::{AttributeValue, Graph, Module, Tensor};
use irc_common_format::{Document, Encoding, Form, Options, Root, open};
use irc_diag::{Sink, render};

fn read(path: &Path) -> Document {
    let mut sink = Sink::new();
    let document = open(path, &Options::default(), &mut sink);
    let document =
        document.unwrap_or_else(|| panic!("{}: {:?}", path.display(), sink.diagnostics()));
    let shown = render(&document.input.source(), sink.diagnostics(), false, 120);
    assert!(shown.is_empty(), "{}: {shown}", path.display());
    document
}

fn tensors<'g>(graph: &'g Graph, all: &mut Vec<&'g Tensor>) {
    all.extend(&graph.initializers);
    for attribute in graph.nodes.iter().flat_map(|node| &node.attributes) {
        if let AttributeValue::Tensor(tensor) = &attribute.value {
            all.push(tensor);
        }
        attribute.value.graphs().iter().for_each(|graph| tensors(graph, all));
    }
}

fn check_tensors(module: &Module, path: &Path) {
    let mut all = vec![];
    module.graph.iter().for_each(|graph| tensors(graph, &mut all));
    for tensor in all {
        let found = tensor.elements().map(|_| ()).or_else(|_| tensor.strings().map(|_| ()));
        assert_eq!(found, Ok(()), "{:?} of {}", tensor.name, path.display());
    }
}

#[test]
fn models_are_read() {
    for path in corpus::files("models", &[".onnx"]) {
        let document = read(&path);
        assert_eq!(document.input.form(), Form::binary(Root::Model));
        let graph = document.module.graph.as_ref().expect("a graph");
        assert!(graph.nodes.len() > 3 && !graph.inputs.is_empty(), "{}", path.display());
        check_tensors(&document.module, &path);
    }
}

#[test]
fn files_of_the_era_are_read() {
    for path in corpus::files("era", &[".pb"]) {
        let document = read(&path);
        let is_first = path.to_string_lossy().ends_with("d2ed4e2e.pb");
        let root = if is_first { Root::Graph } else { Root::Model };
        assert_eq!(document.input.form(), Form::binary(root), "{}", path.display());
        let graph = document.module.graph.as_ref().expect("a graph");
        assert_eq!(graph.nodes.len(), 14);
        let count = |tensor: &Tensor| tensor.count().expect("a count");
        assert_eq!(graph.initializers.iter().map(count).sum::<u64>(), 59_657);
        check_tensors(&document.module, &path);
    }
}

#[test]
fn samples_are_distinguished() {
    for path in corpus::files("samples", &[".pb"]) {
        let document = read(&path);
        let is_library = path.to_string_lossy().contains("library");
        let root = if is_library { Root::Library } else { Root::Graph };
        assert_eq!(document.input.form(), Form { root, encoding: Encoding::Binary });
        assert_eq!(document.module.is_library(), is_library);
    }
}

#[test]
fn samples_say_the_same_in_three_forms() {
    for path in corpus::files("samples", &[".pb"]) {
        let binary = read(&path);
        for (suffix, encoding) in [("json", Encoding::Json), ("pbtxt", Encoding::Text)] {
            let other = read(&path.with_extension(suffix));
            assert_eq!(other.input.form().encoding, encoding);
            assert_eq!(other.input.form().root, binary.input.form().root);
            assert_eq!(other.module, binary.module, "{}", path.display());
        }
    }
}

#[test]
fn items_are_found_in_every_form() {
    for path in corpus::files("samples", &["classifier_graph.pb"]) {
        let forms = ["pb", "json", "pbtxt"].map(|suffix| read(&path.with_extension(suffix)).input);
        let spans = |path: &str| {
            forms.each_ref().map(|input| {
                let span = input.locate(path).expect("a place");
                String::from_utf8_lossy(&input.bytes()[span]).into_owned()
            })
        };
        assert_eq!(spans("graph.node[2].name"), ["l2", "\"l2\"", "name: \"l2\""]);
        assert_eq!(spans("metadata.producer")[0], "sample-alpha");
        assert_eq!(spans("import[0]")[1], "\"libs/mlp.pb\"");
        assert_eq!(spans("graph.input[0].shape.dim[0]")[0], "\u{12}\u{1}N");
        assert_eq!(spans("graph.node[3].attribute[axis].i")[2], "i: 1");
        assert_eq!(spans("graph.node[3].attribute[axis].i")[1], "\"1\"");
        assert_eq!(spans("operator[0].signature[0].attribute[0].name")[0], "axis");
        // Absent items are located at their parent.
        assert_eq!(spans("graph.node[3].doc")[0], spans("graph.node[3]")[0]);
        assert_eq!(forms[0].locate("graph.node[9].doc"), Some(0..forms[0].bytes().len()));
    }
}
