//! Levels, other formats, and libraries, on whole files.

use crate::support::corpus;
use std::collections::BTreeMap;
use std::path;

use irc_common_format::library::{LoadOptions, Symbol, load, standard};
use irc_common_format::model::*;
use irc_common_format::validate::{Level, Rule, ValidateOptions, data_error, validate};
use irc_common_format::write::{self, Target, write};
use irc_common_format::{Document, Encoding, Format, Options, open, read};
use irc_diag::{Diagnostic, Severity, Sink};

fn check(path: &path::Path, level: Level, implicit_std: bool) -> (Document, Vec<Diagnostic>) {
    let mut sink = Sink::with_limit(100_000);
    let document = open(path, &Options::default(), &mut sink).expect("a module");
    let libraries = load(&document.module, &LoadOptions::beside(path), &mut sink);
    let options = ValidateOptions { level, implicit_std, ..ValidateOptions::default() };
    validate(&document.module, &libraries, &options, &mut sink);
    (document, sink.into_diagnostics())
}

fn tally(diagnostics: &[Diagnostic]) -> BTreeMap<(&str, Severity), usize> {
    let mut tally = BTreeMap::new();
    for diagnostic in diagnostics {
        *tally.entry((diagnostic.code, diagnostic.severity)).or_insert(0) += 1;
    }
    tally
}

#[test]
fn the_file_of_the_era_is_sound_but_for_warnings() {
    for path in corpus::files("era", &["d2ed4e2e.pb"]) {
        let (_, strict) = check(&path, Level::Strict, true);
        let (_, compat) = check(&path, Level::Compat, true);
        println!("{:?}\n{:?}", tally(&strict), tally(&compat));
        assert!(strict.iter().any(Diagnostic::is_error));
        let errors: Vec<&Diagnostic> = compat.iter().filter(|found| found.is_error()).collect();
        assert!(errors.is_empty() && !compat.is_empty(), "{errors:#?}");
    }
}

#[test]
fn models_of_today_are_sound() {
    for path in corpus::files("models", &[".onnx"]) {
        let (_, diagnostics) = check(&path, Level::Strict, false);
        println!("{}: {:?}", path.display(), tally(&diagnostics));
        let errors: Vec<&Diagnostic> =
            diagnostics.iter().filter(|found| found.is_error()).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
    }
}

#[test]
fn samples_and_their_library_are_sound() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("libs")).expect("a folder");
    let samples = corpus::files("samples", &[".pb"]);
    for path in &samples {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let to = if name.starts_with("mlp") { "libs/mlp.pb".into() } else { name };
        std::fs::copy(path, folder.path().join(to.as_ref())).expect("a copy");
    }
    if samples.is_empty() {
        return;
    }
    let path = folder.path().join("classifier_graph.pb");
    let (document, diagnostics) = check(&path, Level::Strict, false);
    let tally = tally(&diagnostics);
    // An implied control edge, control inputs at all, and an attribute whose shape is unspecified.
    let known = ["cir-r50", "cir-r51"];
    assert!(tally.keys().all(|(code, _)| known.contains(code)), "{diagnostics:#?}");
    let libraries = load(&document.module, &LoadOptions::beside(&path), &mut Sink::new());
    let found = libraries.resolve("com.example.nn.mlp", "Linear");
    assert!(matches!(found, Some(Symbol::Function(function)) if function.nodes.len() == 2));
}

#[test]
fn the_standard_library_is_a_sound_document() {
    let library = standard();
    let mut sink = Sink::new();
    validate(library, &Default::default(), &ValidateOptions::default(), &mut sink);
    let outside =
        |found: &&Diagnostic| found.code != "cir-r80" || found.severity == Severity::Error;
    let found: Vec<&Diagnostic> = sink.diagnostics().iter().filter(outside).collect();
    assert!(found.is_empty(), "{found:#?}");
    for encoding in Encoding::ALL {
        let options = write::Options { encoding, ..write::Options::binary(Target::CommonIr) };
        let bytes = write(library, &options, &mut Sink::new()).expect("a file");
        let format = Format::from_name("common-ir-library").expect("a form");
        let options = Options { format, ..Options::default() };
        let again = read("standard", bytes.into(), &options, &mut Sink::new()).expect("a module");
        assert!(again.module == *library);
    }
}

/// Nodes, operators and functions of a module.
fn module(nodes: Vec<Node>, operators: Vec<Operator>, functions: Vec<Function>) -> Module {
    let value = |name| Value::tensor(name, ElementType::Float, ["N"]);
    let inputs = vec![value("v0")];
    let outputs = vec![value("v1")];
    let graph = Graph { inputs, outputs, nodes, ..Graph::default() };
    Module { operators, functions, graph: Some(graph), ..Module::default() }
}

fn operator(name: &str, input: &[&str], output: &[&str]) -> Operator {
    let value = |name, dims: &[&str]| Value::tensor(name, ElementType::Float, dims.iter().copied());
    let signature = Signature {
        inputs: vec![value("X", input)],
        outputs: vec![value("Y", output)],
        ..Signature::default()
    };
    Operator { name: Some(name.into()), signatures: vec![signature], ..Operator::default() }
}

fn codes(module: &Module) -> BTreeMap<&'static str, usize> {
    let mut sink = Sink::with_limit(1_000_000);
    let options = ValidateOptions { implicit_std: true, ..ValidateOptions::default() };
    validate(module, &Default::default(), &options, &mut sink);
    let mut codes = BTreeMap::new();
    for diagnostic in sink.diagnostics() {
        *codes.entry(diagnostic.code).or_insert(0) += 1;
    }
    codes
}

#[test]
fn hostile_modules_take_no_longer() {
    let count = 20_000;
    let call = |op: &str, from: usize, to: usize| Node {
        arg_counts: vec![1],
        ..Node::new(op, [format!("v{from}")], [format!("v{to}")])
    };
    let chain = |op: &str| (0..count).map(|index| call(op, index, index + 1)).collect();
    // Shapes that would double with each call.
    let double = operator("Double", &["m*"], &["m*", "m*"]);
    assert_eq!(codes(&module(chain("Double"), vec![double], vec![])).get("cir-r74"), None);
    // Undefined names among many that are defined.
    let many = (0..2000).map(|index| operator(&format!("Op{index}"), &["*"], &["*"])).collect();
    assert_eq!(codes(&module(chain("Opp"), many, vec![]))["cir-r70"], count);
    // Cycles of two.
    let rings = (0..count).map(|index| call("Relu", index ^ 1, index + count));
    let rings = rings.map(|node| Node { inputs: vec![ring_of(&node, count)], ..node }).collect();
    assert_eq!(codes(&module(rings, vec![], vec![]))["cir-r01"], count / 2);
    // One cycle of all.
    let ring = (0..count).map(|index| call("Relu", count + (index + 1) % count, count + index));
    assert_eq!(codes(&module(ring.collect(), vec![], vec![]))["cir-r01"], 1);
    // Many inputs and control inputs of one node.
    let mut nodes: Vec<Node> =
        (0..count).map(|index| call("Relu", 0, index + 1).named(format!("n{index}"))).collect();
    let names = |prefix: &str| (0..count).map(|index| format!("{prefix}{index}")).collect();
    nodes.push(Node {
        control_inputs: names("n"),
        inputs: names("v"),
        ..Node::new("Sum", ["v1"], ["z"])
    });
    assert_eq!(codes(&module(nodes, vec![], vec![]))["cir-r50"], count - 1);
    // Functions that call each other in cycles.
    let function = |index: usize| Function {
        name: Some(format!("f{index}")),
        nodes: vec![Node::new(format!("f{}", index ^ 1), ["a"], ["b"])],
        ..Function::default()
    };
    let functions = (0..count).map(function).collect();
    assert_eq!(codes(&module(vec![], vec![], functions))["cir-r35"], count / 2);
}

/// The input of the other node of a cycle of two.
fn ring_of(node: &Node, count: usize) -> String {
    let other: usize = node.inputs[0][1..].parse().expect("a number");
    format!("v{}", other + count)
}

#[test]
fn maps_and_lists_of_values_are_checked() {
    let tensor = |element| Data::Tensor(Box::new(Tensor { element, ..Tensor::default() }));
    let float = || tensor(ElementType::Float);
    let twice = Data::IntMap(vec![(1, float()), (1, float())]);
    assert_eq!(data_error(&twice).map(|error| error.0), Some(Rule::R89));
    let mixed = Data::Sequence(vec![float(), tensor(ElementType::Int64)]);
    assert_eq!(data_error(&mixed).map(|error| error.0), Some(Rule::R82));
    assert_eq!(data_error(&Data::Optional(Some(Box::new(mixed.clone())))), data_error(&mixed));
    assert_eq!(data_error(&Data::Sequence(vec![float(); 2])), None);
}
