//! Large data are not copied: reading a model allocates memory only for its graph.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use irc_common_format::model::*;
use irc_common_format::write::{self, Target, write};
use irc_common_format::{Document, Options, open};
use irc_diag::Sink;

/// Bytes of the tensor in these models.
const LARGE: u64 = 500_000_000;
/// Limit on anonymous memory for reading; about a hundred times the actual use.
const BOUND: usize = 100_000;

/// Anonymous memory of this process in kilobytes.
fn anonymous() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status of this process");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("RssAnon");
    line.trim().trim_end_matches(" kB").parse().expect("kilobytes")
}

fn bytes(tensor: Tensor) -> Vec<u8> {
    let graph = Graph { initializers: vec![tensor], ..Graph::default() };
    let module = Module { schema: Schema::Onnx, graph: Some(graph), ..Module::default() };
    let options = write::Options::binary(Target::Onnx);
    write(&module, &options, &mut Sink::new()).expect("a model")
}

fn tensor(data: TensorData) -> Tensor {
    let (element, dims) = (ElementType::Float, vec![LARGE as i64 / 4]);
    Tensor { name: Some("w".into()), element, dims, data, ..Tensor::default() }
}

fn read(path: &Path) -> Document {
    let before = anonymous();
    let mut sink = Sink::new();
    let document = open(path, &Options::default(), &mut sink).expect("a module");
    assert_eq!(sink.diagnostics(), []);
    let graph = document.module.graph.as_ref().expect("a graph");
    assert_eq!(graph.initializers[0].elements().expect("elements").len() as u64, LARGE);
    let copy = document.clone();
    let held = anonymous().saturating_sub(before);
    assert!(held < BOUND, "{held} kB for {}", path.display());
    copy
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = vec![];
    while number > 0x7f {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// Key and length of a field.
fn field(number: u8, length: u64) -> Vec<u8> {
    [vec![number << 3 | 2], varint(length)].concat()
}

/// The data are a hole at the end of the file, so that no test writes half a gigabyte.
#[test]
fn raw_data_stays_in_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    // Size, element type and name of the tensor, then the key of its data.
    let size = [vec![0x08], varint(LARGE / 4)].concat();
    let inner = [size, vec![0x10, 1], vec![0x42, 1, b'w'], field(9, LARGE)].concat();
    let tensor = inner.len() as u64 + LARGE;
    let graph = field(5, tensor).len() as u64 + tensor;
    let path = folder.path().join("model.onnx");
    let mut file = File::create(&path).expect("a file");
    let heads = [vec![0x08, 10], field(7, graph), field(5, tensor), inner];
    let head = heads.concat();
    file.write_all(&head).expect("bytes");
    file.set_len(head.len() as u64 + LARGE).expect("a hole");
    read(&path);
}

#[test]
fn external_data_stay_in_their_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = File::create(folder.path().join("data.bin")).expect("a file");
    data.set_len(LARGE).expect("a hole");
    let location = External { location: "data.bin".into(), ..External::default() };
    let path = folder.path().join("model.onnx");
    std::fs::write(&path, bytes(tensor(TensorData::External(location)))).expect("a file");
    read(&path);
}
