//! Files that other tools wrote are read without an error.

#[path = "support/corpus.rs"]
mod support;

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
    for path in support::files("models", &[".onnx"]) {
        let document = read(&path);
        assert_eq!(document.input.form(), Form::binary(Root::Model));
        let graph = document.module.graph.as_ref().expect("a graph");
        assert!(graph.nodes.len() > 3 && !graph.inputs.is_empty(), "{}", path.display());
        check_tensors(&document.module, &path);
    }
}

#[test]
fn files_of_the_era_are_read() {
    for path in support::files("era", &[".pb"]) {
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
fn samples_are_told_apart() {
    for path in support::files("samples", &[".pb"]) {
        let document = read(&path);
        let is_library = path.to_string_lossy().contains("library");
        let root = if is_library { Root::Library } else { Root::Graph };
        assert_eq!(document.input.form(), Form { root, encoding: Encoding::Binary });
        assert_eq!(document.module.is_library(), is_library);
    }
}
