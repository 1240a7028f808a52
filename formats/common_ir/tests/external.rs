//! External data: mapped, confined, checked.

use std::os::unix::fs::symlink;
use std::path::Path;

use irc_common_format::model::{ElementType, External, Graph, Module, Schema, Tensor, TensorData};
use irc_common_format::write::{self, Target, write};
use irc_common_format::{Document, Options, open};
use irc_diag::{Diagnostic, Sink};
use tempfile::TempDir;

fn tensor(name: &str, location: &str, offset: u64, length: Option<u64>, count: i64) -> Tensor {
    let external = External { location: location.into(), offset, length, ..External::default() };
    Tensor {
        name: Some(name.into()),
        element: ElementType::Float,
        dims: vec![count],
        data: TensorData::External(external),
        ..Tensor::default()
    }
}

/// Writes a model of these tensors into the folder and opens it.
fn opened(folder: &Path, initializers: Vec<Tensor>) -> (Document, Vec<Diagnostic>) {
    let graph = Graph { initializers, ..Graph::default() };
    let module = Module { schema: Schema::Onnx, graph: Some(graph), ..Module::default() };
    let path = folder.join("model.onnx");
    let bytes = write(&module, &write::Options::binary(Target::Onnx), &mut Sink::new());
    std::fs::write(&path, bytes.expect("a model")).expect("a file");
    let mut sink = Sink::new();
    let document = open(&path, &Options::default(), &mut sink).expect("a module");
    (document, sink.into_diagnostics())
}

/// The one diagnostic about one tensor: its code and message.
fn rejected(folder: &Path, tensor: Tensor) -> (&'static str, String) {
    let (document, found) = opened(folder, vec![tensor]);
    let [diagnostic] = &found[..] else { panic!("{found:?}") };
    assert_eq!(diagnostic.path.as_deref(), Some("graph.initializer[0]"));
    assert!(diagnostic.notes.iter().any(|note| note.starts_with("at byte ")), "{diagnostic:?}");
    let tensor = &document.module.graph.as_ref().expect("a graph").initializers[0];
    assert!(tensor.elements().is_err());
    (diagnostic.code, diagnostic.message.clone())
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("data.bin"), (0..64).collect::<Vec<u8>>()).expect("a file");
    folder
}

#[test]
fn a_tensor_is_a_part_of_the_file() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("in")).expect("a folder");
    symlink("../data.bin", folder.path().join("in/link.bin")).expect("a link");
    let tensors = vec![
        tensor("a", "data.bin", 4, Some(8), 2),
        tensor("rest", "./data.bin", 60, None, 1),
        tensor("shared", "data.bin", 4, Some(8), 2),
        tensor("linked", "in/link.bin", 0, Some(4), 1),
    ];
    let (document, found) = opened(folder.path(), tensors);
    assert!(found.is_empty(), "{found:?}");
    let graph = document.module.graph.as_ref().expect("a graph");
    let elements = |index: usize| graph.initializers[index].elements().expect("elements");
    assert_eq!(elements(0), [4, 5, 6, 7, 8, 9, 10, 11].as_slice());
    assert_eq!(elements(1), [60, 61, 62, 63].as_slice());
    assert_eq!(elements(2), elements(0));
    assert_eq!(elements(3), [0, 1, 2, 3].as_slice());
    // The data are not copied.
    assert_eq!(elements(2).as_ptr(), elements(0).as_ptr());
}

#[test]
fn paths_stay_in_the_folder() {
    let outer = folder();
    let inner = outer.path().join("model");
    std::fs::create_dir(&inner).expect("a folder");
    let outside = outer.path().join("data.bin");
    symlink(&outside, inner.join("link.bin")).expect("a link");
    symlink(outer.path(), inner.join("up")).expect("a link");
    std::fs::hard_link(&outside, inner.join("second.bin")).expect("a link");
    std::fs::create_dir(inner.join("sub")).expect("a folder");
    let absolute = outside.to_string_lossy().into_owned();
    let places = [
        "../data.bin",
        "sub/../../data.bin",
        absolute.as_str(),
        "..\\data.bin",
        "link.bin",
        "up/data.bin",
        "second.bin",
        "sub",
        "a\0b",
    ];
    for place in places {
        let (code, message) = rejected(&inner, tensor("w", place, 0, Some(4), 1));
        assert_eq!(code, "cir-external-path", "{place}: {message}");
        assert!(message.starts_with("external data of tensor `w`: "), "{message}");
    }
    let (code, _) = rejected(&inner, tensor("w", "missing.bin", 0, Some(4), 1));
    assert_eq!(code, "cir-external");
}

#[test]
fn a_pipe_is_no_file() {
    let folder = folder();
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
    assert!(made.expect("mkfifo").success());
    assert_eq!(rejected(folder.path(), tensor("w", "pipe", 0, None, 1)).0, "cir-external-path");
}

#[test]
fn ranges_lie_in_the_file() {
    let folder = folder();
    let said = |offset, length, count| {
        let (code, message) =
            rejected(folder.path(), tensor("w", "data.bin", offset, length, count));
        assert_eq!(code, "cir-external");
        message
    };
    assert!(said(61, Some(4), 1).ends_with("4 bytes at offset 61 exceed `data.bin`, which has 64"));
    assert!(said(u64::MAX, Some(4), 1).contains("exceed"));
    assert!(said(65, None, i64::MAX).contains("exceed"));
    assert!(said(0, Some(7), 2).ends_with("`length` is 7, but its sizes need 8 bytes"));
}

/// The output of `sha1sum` for the bytes 0 to 63.
const DIGEST: &str = "c6138d514ffa2135bfce0ed0b8fac65669917ec7";

#[test]
fn a_stated_digest_is_that_of_the_file() {
    let folder = folder();
    let stating = |digest: &str| {
        let mut tensor = tensor("w", "data.bin", 4, Some(4), 1);
        let TensorData::External(external) = &mut tensor.data else { unreachable!() };
        external.others = vec![("checksum".to_owned(), digest.to_owned())];
        tensor
    };
    let sound = vec![stating(DIGEST), stating(&DIGEST.to_uppercase())];
    assert_eq!(opened(folder.path(), sound).1, []);
    for wrong in [&DIGEST.replace('c', "d"), "", "sha1"] {
        let (code, message) = rejected(folder.path(), stating(wrong));
        assert_eq!(code, "cir-external-checksum");
        assert!(
            message.ends_with(&format!("the SHA1 digest of `data.bin` is {DIGEST}")),
            "{message}"
        );
    }
}

#[test]
fn ranges_do_not_overlap() {
    let folder = folder();
    let tensors = vec![
        tensor("a", "data.bin", 0, Some(8), 2),
        tensor("b", "data.bin", 8, Some(8), 2),
        tensor("c", "data.bin", 12, Some(8), 2),
    ];
    let (_, found) = opened(folder.path(), tensors);
    let [diagnostic] = &found[..] else { panic!("{found:?}") };
    assert_eq!(
        (diagnostic.code, diagnostic.path.as_deref()),
        ("cir-external-overlap", Some("graph.initializer[2]"))
    );
    assert!(
        diagnostic.message.contains("overlap those of tensor `b`, 8 to 16"),
        "{}",
        diagnostic.message
    );
}

#[test]
fn data_can_be_written_into_the_model() {
    let folder = folder();
    let (document, _) = opened(folder.path(), vec![tensor("w", "data.bin", 4, Some(4), 1)]);
    let options = write::Options { inline: true, ..write::Options::binary(Target::Onnx) };
    let bytes = write(&document.module, &options, &mut Sink::new()).expect("a model");
    let found = irc_common_format::read("m", bytes.into(), &Options::default(), &mut Sink::new());
    let graph = found.expect("a module").module.graph.expect("a graph");
    assert_eq!(graph.initializers[0].data, TensorData::Raw(vec![4, 5, 6, 7].into()));
}
