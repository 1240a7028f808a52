//! A small archive, made by the crate `irc-mlf` from code in C; a linker; numpy's files.
#![allow(dead_code)]

use bytes::Bytes;
use irc_mlf::{
    Archive, Code, Contents, DataType, Package, Shared, Type, Version,
    graph::{Call, Edge, Entry, Graph, Node},
    params::Param,
};
use irc_runtime::{Context, ContextOptions, Model, OpenOptions};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

/// The small model's code.
pub const SOURCE: &str = include_str!("../data/small.c");

/// A float tensor type.
pub fn float32(shape: &[i64]) -> Type {
    Type { dtype: DataType::scalar(Code::Float, 32), shape: shape.to_vec() }
}

/// The bytes of numbers.
pub fn bytes_of(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The numbers of bytes.
pub fn floats(bytes: &[u8]) -> Vec<f32> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    assert!(rest.is_empty());
    numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// `count` numbers that are all different.
pub fn ramp(count: usize, step: f32) -> Vec<f32> {
    (0..count).map(|at| (at as f32 - count as f32 / 2.0) * step).collect()
}

fn weights() -> (Vec<f32>, Vec<f32>) {
    (ramp(32, 0.125), ramp(4, 0.5))
}

/// What the small model makes of 16 numbers.
pub fn expected(x: &[f32]) -> [Vec<f32>; 2] {
    let (w, b) = weights();
    let mut outputs = [vec![], vec![]];
    for row in 0..2 {
        for j in 0..4 {
            let products = (0..8).map(|k| 2.0 * x[row * 8 + k] * w[j * 8 + k]);
            outputs[j / 2].push((products.sum::<f32>() + b[j]).max(0.0));
        }
    }
    outputs
}

fn call(function: &str, inputs: &[usize], outputs: usize) -> Node {
    let inputs = inputs.iter().map(|node| Edge { node: *node, output: 0 }).collect();
    let function = format!("tvmgen_default_{function}");
    let call = Call { function, inputs, outputs, flatten: false, attributes: BTreeMap::new() };
    Node { name: call.function.clone(), call: Some(call) }
}

/// `x` scaled, through a layer, then split in two.
pub fn graph() -> Graph {
    let input = |name: &str| Node { name: name.into(), call: None };
    let entry =
        |storage: i64, shape: &[i64]| Entry { ty: float32(shape), storage, device: Some(1) };
    Graph {
        nodes: vec![
            input("x"),
            input("w"),
            input("b"),
            call("scale", &[0], 1),
            call("dense", &[3, 1, 2], 1),
            call("relu", &[4], 1),
            call("split", &[5], 2),
        ],
        inputs: vec![0, 1, 2],
        outputs: vec![Edge { node: 6, output: 0 }, Edge { node: 6, output: 1 }],
        entries: vec![
            entry(0, &[2, 8]),
            entry(1, &[4, 8]),
            entry(2, &[4]),
            entry(3, &[2, 8]),
            entry(4, &[2, 4]),
            entry(3, &[2, 4]),
            entry(5, &[2, 2]),
            entry(6, &[2, 2]),
        ],
    }
}

/// What the small archive is made of, without a library.
pub fn contents() -> Contents {
    let (w, b) = weights();
    let param = |name: &str, shape: &[i64], values: &[f32]| Param {
        name: name.into(),
        ty: float32(shape),
        data: bytes_of(values).into(),
    };
    let workspaces = [("scale", 64), ("dense", 16), ("relu", 0), ("split", 0)];
    let workspaces = workspaces.map(|(name, bytes)| (format!("tvmgen_default_{name}"), bytes));
    Contents {
        version: Version::V5,
        time: 1_700_000_000,
        models: vec![irc_mlf::Model {
            name: "default".into(),
            target: "c -keys=cpu".into(),
            device: 1,
            graph: graph(),
            params: vec![param("w", &[4, 8], &w), param("b", &[4], &b)],
            workspaces: workspaces.into(),
            with_weights: true,
            outputs: vec!["left".into(), "right".into()],
            vectors: vec![],
        }],
        code: BTreeMap::from([(
            "src/default_lib0.c".into(),
            Bytes::from_static(SOURCE.as_bytes()),
        )]),
        shared: None,
        sources: BTreeMap::new(),
    }
}

/// An archive as a file.
pub fn tar(package: &Package) -> Bytes {
    let mut bytes = vec![];
    package.archive.write(1_700_000_000, &mut bytes).expect("memory");
    bytes.into()
}

/// Contents as an archive.
pub fn package(contents: &Contents) -> Package {
    irc_mlf::build("small.tar", contents).unwrap_or_else(|report| panic!("{report:#?}"))
}

/// The small archive with its code linked, changed in the sources by `edit`.
pub fn linked(name: &str, edit: impl Fn(&str) -> String) -> Package {
    let source = scratch(name).with_extension("c");
    std::fs::write(&source, edit(SOURCE)).expect("a file");
    let library = link(name, &[source], &[]);
    let bytes: Bytes = std::fs::read(library).expect("a library").into();
    let mut contents = contents();
    contents.shared = Some(Shared { bytes, requires: vec![] });
    package(&contents)
}

/// The small model, loaded from its library.
pub fn model(name: &str) -> Arc<Model> {
    let package = linked(name, str::to_owned);
    Arc::new(Model::from_package(&package, OpenOptions::default()).expect("sound"))
}

/// A context as most callers make it.
pub fn context(model: &Arc<Model>) -> Context {
    Context::new(model, &ContextOptions::default()).expect("memory")
}

/// Runs the small model on numbers.
pub fn run(context: &mut Context, x: &[f32]) -> [Vec<f32>; 2] {
    context.set_input(0, &bytes_of(x)).expect("an input");
    context.run().expect("a run");
    [0, 1].map(|output| floats(context.output(output).expect("an output")))
}

/// A path of this name where tests may write.
pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("runtime");
    std::fs::create_dir_all(&folder).expect("a folder");
    folder.join(name)
}

/// Makes a shared library of objects and sources.
pub fn link(name: &str, files: &[PathBuf], flags: &[&str]) -> PathBuf {
    let library = scratch(name).with_extension("so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-w", "-o"])
        .arg(&library)
        .args(flags)
        .args(files)
        .arg("-lm");
    let output = cc.output().expect("a C compiler named cc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

/// Members of an archive with some of them changed.
pub fn changed(package: &Package, edit: impl FnOnce(&mut BTreeMap<String, Bytes>)) -> Bytes {
    let mut members = package.archive.members().clone().into_iter().collect();
    edit(&mut members);
    let mut bytes = vec![];
    Archive::new("small.tar", members).write(0, &mut bytes).expect("memory");
    bytes.into()
}

/// The archives of the corpus; none, and a line that says so, when it is absent.
pub fn corpus() -> Vec<PathBuf> {
    let root = std::env::var_os("IRC_CORPUS").map(PathBuf::from);
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let folder = root.unwrap_or_else(default).join("mlf");
    let folders = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let files = folders.flat_map(|each| std::fs::read_dir(each.path()).into_iter().flatten());
    let mut paths: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ext| ext == "tar"));
    paths.sort();
    if paths.is_empty() {
        println!("skipped: no corpus at {}", folder.display());
    }
    paths
}

/// Links the code of an archive of TVM.
pub fn link_archive(path: &Path, package: &Package) -> PathBuf {
    let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
    let folder = scratch(&format!("{stem}.code"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let code = ["codegen/host/lib/", "codegen/host/src/"];
    let members = code.into_iter().flat_map(|folder| package.archive.within(folder));
    let mut files = vec![];
    for (member, bytes) in members {
        let file = folder.join(Path::new(member).file_name().expect("a name"));
        std::fs::write(&file, bytes).expect("a file");
        files.push(file);
    }
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    files.push(include.join("loader.c"));
    link(&stem, &files, &[&format!("-I{}", include.display())])
}

/// Element type and bytes of a numpy file.
pub fn npy(path: &Path) -> (String, Vec<u8>) {
    let file = std::fs::read(path).expect("a file of numpy");
    assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
    let end = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
    let header = String::from_utf8_lossy(&file[10..end]).into_owned();
    assert!(header.contains("'fortran_order': False"));
    let dtype = header.split('\'').nth(3).expect("a type").to_owned();
    (dtype, file[end..].to_vec())
}
