//! A module that is written is read as an equal module.

use crate::support::corpus;
use std::path::Path;

use crate::support::small::{graph, library};
use irc_common_format::model::*;
use irc_common_format::write::{self, Options, Target, write};
use irc_common_format::{Document, Encoding, Root, open, read};
use irc_diag::Sink;

fn opened(path: &Path) -> Document {
    let mut sink = Sink::new();
    let document = open(path, &irc_common_format::Options::default(), &mut sink);
    document.unwrap_or_else(|| panic!("{}: {:?}", path.display(), sink.diagnostics()))
}

/// Writes without diagnostics.
fn written(module: &Module, target: Target, encoding: Encoding) -> Vec<u8> {
    let mut sink = Sink::new();
    let options = Options { encoding, ..Options::binary(target) };
    let bytes = write(module, &options, &mut sink);
    assert!(sink.diagnostics().is_empty(), "{target:?}: {:?}", sink.diagnostics());
    bytes.expect("a file")
}

fn again(bytes: Vec<u8>) -> Document {
    let mut sink = Sink::new();
    let document = read("again", bytes.into(), &Default::default(), &mut sink);
    let document = document.unwrap_or_else(|| panic!("{:?}", sink.diagnostics()));
    assert!(sink.diagnostics().is_empty(), "{:?}", sink.diagnostics());
    document
}

/// All forms of a target are read as the same module, the binary one is rewritten as the same bytes.
fn check(module: &Module, target: Target) {
    let binary = written(module, target, Encoding::Binary);
    for encoding in Encoding::ALL {
        let found = again(written(module, target, encoding));
        assert_eq!(found.input.form().encoding, encoding);
        assert_eq!(found.module, *module, "{target:?} {encoding:?}");
        assert_eq!(written(&found.module, target, Encoding::Binary), binary);
    }
}

#[test]
fn the_file_of_the_era_comes_back_byte_for_byte() {
    for path in corpus::files("era", &["d2ed4e2e.pb"]) {
        let document = opened(&path);
        let bytes = written(&document.module, Target::CommonIr, Encoding::Binary);
        assert!(bytes == *document.input.bytes(), "{}", path.display());
        check(&document.module, Target::CommonIr);
        check(&document.module, Target::Carrier);
        check(&document.module, Target::Onnx);
    }
}

#[test]
fn samples_come_back_in_every_form() {
    for path in corpus::files("samples", &[".pb"]) {
        let document = opened(&path);
        let bytes = written(&document.module, Target::CommonIr, Encoding::Binary);
        assert!(bytes == *document.input.bytes(), "{}", path.display());
        check(&document.module, Target::CommonIr);
        if document.input.form().root == Root::Graph {
            check(&document.module, Target::Carrier);
        }
    }
}

#[test]
fn models_come_back() {
    for path in corpus::files("models", &[".onnx"]) {
        let document = opened(&path);
        let binary = written(&document.module, Target::Onnx, Encoding::Binary);
        let found = again(binary.clone());
        assert_eq!(found.module, document.module, "{}", path.display());
        assert_eq!(written(&found.module, Target::Carrier, Encoding::Binary).len(), binary.len());
    }
}

#[test]
fn a_small_model_comes_back_as_text() {
    for path in corpus::files("models", &["MNIST_Tutorial_cs_Assets_mnist.onnx"]) {
        check(&opened(&path).module, Target::Onnx);
    }
}

#[test]
fn common_ir_comes_back_from_onnx() {
    let module = graph();
    check(&module, Target::CommonIr);
    check(&module, Target::Carrier);
    check(&module, Target::Onnx);
}

#[test]
fn onnx_sees_its_own_words() {
    let found = written(&graph(), Target::Onnx, Encoding::Json);
    let text = String::from_utf8(found).expect("text");
    for part in [
        "\"irVersion\": \"10\"",
        "\"producerVersion\": \"0.2.0\"",
        "\"domain\": \"com.example.small\"",
        "\"key\": \"model_author\"",
        "\"value\": \"[n,m*]\"",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!text.contains("argCount") && !text.contains("\"dimParam\": \"m*\""), "{text}");
}

fn diagnostics(module: &Module, target: Target) -> Vec<(&'static str, String)> {
    let mut sink = Sink::new();
    let bytes = write(module, &Options::binary(target), &mut sink);
    assert_eq!(bytes.is_none(), sink.has_errors());
    let found = sink.into_diagnostics().into_iter();
    found.map(|diagnostic| (diagnostic.code, diagnostic.path.unwrap_or_default())).collect()
}

#[test]
fn what_has_no_place_is_said() {
    let library = Module::default();
    assert_eq!(diagnostics(&library, Target::Onnx), [("cir-unwritable", String::new())]);
    let mut module = graph();
    module.operators.push(Operator { name: Some("Clip".into()), ..Operator::default() });
    // A call would be undefined without its declaration.
    assert_eq!(diagnostics(&module, Target::Onnx), [("cir-unwritable", String::new())]);
    assert_eq!(diagnostics(&module, Target::Carrier), []);
    module.operators[0].name = Some("Unused".into());
    assert_eq!(diagnostics(&module, Target::Onnx), [("cir-lost", String::new())]);
    let graph = module.graph.as_mut().expect("a graph");
    let optional = Type::Optional(Some(Box::new(Type::unranked(ElementType::Float))));
    graph.inputs[0].ty = Some(optional);
    graph.initializers[0].element = ElementType::Bfloat16;
    let expected =
        ["graph.initializer[0]", "graph.input[0]"].map(|path| ("cir-unwritable", path.into()));
    assert_eq!(diagnostics(&module, Target::CommonIr), expected);
}

#[test]
fn handles_and_tuples_are_carried() {
    let mut module = graph();
    let inner = vec![Type::Handle, Type::unranked(ElementType::Int8)];
    let ty = Type::Sequence(Some(Box::new(Type::Tuple(inner))));
    let shape = Some(Shape::new(["k"]));
    let value = Value { shape, ..Value::new("x", ty) };
    module.graph.as_mut().expect("a graph").inputs[0] = value;
    check(&module, Target::CommonIr);
    check(&module, Target::Carrier);
    assert_eq!(diagnostics(&module, Target::Onnx).len(), 1);
}

#[test]
fn omitted_inputs_of_onnx_are_counted() {
    let node = Node::new("Clip", ["x", "", "h"], ["y"]);
    let graph = Graph { nodes: vec![node], ..Graph::default() };
    let module = Module { schema: Schema::Onnx, graph: Some(graph), ..Module::default() };
    let found = again(written(&module, Target::CommonIr, Encoding::Binary)).module;
    let node = &found.graph.as_ref().expect("a graph").nodes[0];
    assert_eq!(
        (&node.inputs[..], &node.arg_counts[..]),
        (&["x".into(), "h".into()][..], &[1, 0, 1][..])
    );
}

/// The files of this crate, each with its module.
fn carried() -> Vec<(&'static str, Module, Target, Encoding)> {
    let mut carried = vec![("library.pb", library(), Target::CommonIr, Encoding::Binary)];
    let targets = [
        ("small.pb", Target::CommonIr, Encoding::Binary),
        ("small.json", Target::CommonIr, Encoding::Json),
        ("small.pbtxt", Target::CommonIr, Encoding::Text),
        ("carrier.onnx", Target::Carrier, Encoding::Binary),
        ("small.onnx", Target::Onnx, Encoding::Binary),
        ("small.onnx.json", Target::Onnx, Encoding::Json),
    ];
    carried.extend(targets.map(|(name, target, encoding)| (name, graph(), target, encoding)));
    carried
}

/// With `IRC_BLESS` set the files are written instead.
#[test]
fn files_of_this_crate_are_exact() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for (name, module, target, encoding) in carried() {
        let (path, bytes) = (folder.join(name), written(&module, target, encoding));
        if std::env::var_os("IRC_BLESS").is_some() {
            std::fs::write(&path, &bytes).expect("a file");
        }
        assert!(std::fs::read(&path).expect("a file") == bytes, "{name} is not what is written");
        assert_eq!(opened(&path).module, module, "{name}");
    }
}

#[test]
fn a_library_comes_back() {
    check(&library(), Target::CommonIr);
}

#[test]
fn writing_is_deterministic() {
    let options = write::Options::binary(Target::Carrier);
    let once = || write(&graph(), &options, &mut Sink::new());
    assert_eq!(once(), once());
}
