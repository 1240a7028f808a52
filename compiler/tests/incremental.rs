//! What an edit makes the session do again, and that sessions do not share anything.
use irc::{CompileOptions, ImportOptions, ModelId, Session};
use std::{collections::BTreeMap, path::Path, process::Command};

/// A chain of alternating matmuls and element-wise ops in ARK's format.
fn chain(nodes: usize) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/make_models.py");
    let folder = tempfile::tempdir().unwrap();
    let nodes = nodes.to_string();
    let status = Command::new("python3")
        .arg(script)
        .arg(folder.path())
        .args(["chain", "--nodes", &nodes])
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    std::fs::read_to_string(file).unwrap()
}

fn open(session: &Session, text: &str) -> ModelId {
    let options = ImportOptions::default();
    session.import_bytes("chain.json", text.to_owned().into(), &options).unwrap().id()
}

fn counts(session: &Session) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for query in session.take_executed() {
        *counts.entry(query).or_insert(0) += 1;
    }
    counts
}

#[test]
fn editing_one_of_200_nodes_compiles_one_kernel() {
    let text = chain(200);
    let options = CompileOptions::default();
    let mut session = Session::new();
    let file = open(&session, &text);
    session.model(file).library(&options).unwrap();
    let first = counts(&session);
    assert_eq!(first["kernel_object"], 3, "equal kernels compile once: {first:?}");

    session.model(file).library(&options).unwrap();
    assert_eq!(counts(&session), BTreeMap::new(), "a compile without a change runs nothing");

    let edited = edit_one_node(&text);
    assert_ne!(edited, text);
    session.edit(file, edited);
    session.model(file).library(&options).unwrap();
    let again = counts(&session);
    let expected: BTreeMap<String, usize> = [
        "parsed",
        "imported",
        "prepared",
        "fused",
        "segment_fusion",
        "kernel_object",
        "glue_object",
        "library",
    ]
    .into_iter()
    .map(|query| (query.to_owned(), 1))
    .collect();
    assert_eq!(again, expected);
}

#[test]
fn explaining_fusion_decides_nothing_again() {
    let options = CompileOptions::default();
    let session = Session::new();
    let file = open(&session, &chain(20));
    session.model(file).library(&options).unwrap();
    assert!(counts(&session).contains_key("segment_fusion"));
    session.model(file).explain_fusion(&options).unwrap();
    assert_eq!(counts(&session), BTreeMap::new());
}

/// Turns one element-wise op in the middle into another of the same form.
fn edit_one_node(text: &str) -> String {
    let middle = text.len() / 2;
    let (head, tail) = text.split_at(middle);
    let kinds =
        ["\"Type\": \"Relu\"", "\"Type\": \"Sigmoid\"", "\"Type\": \"Exp\"", "\"Type\": \"Gelu\""];
    let found = kinds.iter().filter_map(|kind| Some((tail.find(kind)?, *kind))).min();
    let (_, kind) = found.expect("the chain has a unary op in its second half");
    let other = if kind.contains("Sqrt") { "\"Type\": \"Exp\"" } else { "\"Type\": \"Sqrt\"" };
    head.to_owned() + &tail.replacen(kind, other, 1)
}

#[test]
fn a_move_of_lines_compiles_nothing() {
    let text = chain(8);
    let options = CompileOptions::default();
    let mut session = Session::new();
    let file = open(&session, &text);
    session.model(file).library(&options).unwrap();
    session.take_executed();
    session.edit(file, format!("\n\n{text}"));
    session.model(file).library(&options).unwrap();
    assert!(!counts(&session).contains_key("fused"));
}

#[test]
fn sessions_on_two_threads_agree() {
    let compile = || {
        let session = Session::new();
        let file = open(&session, &chain(6));
        session.model(file).library(CompileOptions::default()).unwrap().library.clone()
    };
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(compile);
        let other = scope.spawn(compile);
        (one.join().unwrap(), other.join().unwrap())
    });
    assert!(one == other, "the same input gives the same bytes");
}

#[test]
fn a_cancelled_session_says_so_and_recovers() {
    let session = Session::new();
    let file = open(&session, &chain(6));
    let cancel = session.cancel_token();
    cancel.cancel();
    let failure = session.model(file).library(CompileOptions::default()).unwrap_err();
    assert_eq!(failure.diagnostics[0].code, "cancelled");
    cancel.reset();
    session.model(file).library(CompileOptions::default()).unwrap();
}

/// A chain of 1,000 element-wise nodes that a matrix product ends now and then.
fn onnx_chain(changed: Option<usize>) -> String {
    let mut text =
        String::from("ir_version: 8\nopset_import { version: 17 }\ngraph {\n name: \"g\"\n");
    let value = |kind: &str, name: &str| {
        format!(
            " {kind} {{ name: \"{name}\" type {{ tensor_type {{ elem_type: 1 shape {{ dim {{ \
             dim_value: 4 }} dim {{ dim_value: 4 }} }} }} }} }}\n"
        )
    };
    text += &value("input", "v0");
    for node in 0..1000 {
        let op = match node {
            _ if Some(node) == changed => "Sigmoid",
            _ if node % 10 == 9 => "MatMul",
            _ => "Relu",
        };
        let second = if op == "MatMul" { " input: \"v0\"" } else { "" };
        text += &format!(
            " node {{ input: \"v{node}\"{second} output: \"v{}\" op_type: \"{op}\" }}\n",
            node + 1
        );
    }
    text + &value("output", "v1000") + "}\n"
}

#[test]
fn editing_one_of_1000_onnx_nodes_compiles_one_kernel() {
    let options = CompileOptions::default();
    let mut session = Session::new();
    let imports = ImportOptions::default();
    let model = session.import_bytes("chain.onnx.pbtxt", onnx_chain(None).into(), &imports);
    let file = model.unwrap().id();
    session.model(file).library(&options).unwrap();
    counts(&session);
    session.edit(file, onnx_chain(Some(500)));
    session.model(file).library(&options).unwrap();
    let again = counts(&session);
    let one = |query: &str| again.get(query).copied();
    assert_eq!((one("kernel_object"), one("library")), (Some(1), Some(1)), "{again:?}");
}
