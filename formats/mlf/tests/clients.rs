//! Archives on third-party clients, by `tests/clients/check_archive.py`, which lists them.
//!
//! The archives are those of the corpus, if present, and one that is built here from `data/network.c`.

use crate::support;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::float32;
use bytes::Bytes;
use irc_mlf::params::Param;
use irc_mlf::{Contents, Shared, TestVector, Version, build};

const SOURCE: &str = include_str!("data/network.c");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Python and the folder of clients; `None`, with a message, if one is missing.
fn clients() -> Option<(PathBuf, PathBuf)> {
    let or = |name: &str, default: &str| {
        env::var_os(name).map_or_else(|| root().join(default), PathBuf::from)
    };
    let python = or("IRC_PYTHON", "target/venv/bin/python");
    let clients = or("IRC_CLIENTS", "target/clients");
    for path in [&python, &clients.join("libdlr.so")] {
        if !path.exists() {
            println!("skipped: there is no {}; ./irc-dev clients gets it", path.display());
            return None;
        }
    }
    Some((python, clients))
}

/// Whether all requests to the clients succeed, and their output; `None` without clients.
fn check(archive: &Path, arguments: &[&str]) -> Option<(bool, String)> {
    let (python, clients) = clients()?;
    let output = Command::new(python)
        .arg(root().join("tests/clients/check_archive.py"))
        .arg(archive)
        .arg("--clients")
        .arg(clients)
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("python runs");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout) + &text(&output.stderr);
    println!("{}\n{said}", archive.display());
    Some((output.status.success(), said))
}

fn succeeds(archive: &Path, arguments: &[&str]) {
    if let Some((success, said)) = check(archive, arguments) {
        assert!(success, "{said}");
    }
}

/// A folder of the corpus; `None`, with a message, if it is absent.
fn corpus(name: &str) -> Option<PathBuf> {
    let default = || root().join("../shared/corpus");
    let corpus = env::var_os("IRC_CORPUS").map_or_else(default, PathBuf::from).join("mlf");
    let folder = corpus.join(name);
    if !folder.is_dir() {
        println!("skipped: there is no folder {}", folder.display());
        return None;
    }
    Some(folder)
}

/// An archive of the corpus with its inputs and outputs.
fn succeeds_of_corpus(folder: &str, archive: &str, flags: &[&str]) {
    let Some(folder) = corpus(folder) else { return };
    let beside = folder.to_string_lossy();
    let arguments = [&["--inputs", &*beside, "--outputs", &*beside], flags].concat();
    succeeds(&folder.join(archive), &arguments);
}

#[test]
fn clients_take_objects_of_tvm() {
    for name in ["mlp", "cnn", "multi"] {
        succeeds_of_corpus(name, &format!("{name}.v5.llvm.tar"), &[]);
    }
}

#[test]
fn clients_take_sources_of_tvm() {
    for name in ["mlp", "multi"] {
        succeeds_of_corpus(name, &format!("{name}.v5.c_crt.tar"), &[]);
    }
    succeeds_of_corpus("cnn", "cnn.v5.c_crt.tar", &["--with-runtime"]);
}

#[test]
fn clients_take_what_was_made_by_hand() {
    succeeds_of_corpus("handmade", "handmade_mlp.tar", &[]);
}

fn tensor(name: &str, shape: &[i64], values: &[f32]) -> Param {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Param { name: name.into(), ty: float32(shape), data: data.into() }
}

/// Numbers between -1 and 1.
fn numbers(count: usize, step: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * step + 3) % 17) as f32 / 8.0 - 1.0).collect()
}

/// The small archive with code, and the expected results of its graph.
fn network(version: Version, code: &str, bytes: Vec<u8>) -> Contents {
    let (x, w, b) = (numbers(8, 5), numbers(128, 7), numbers(16, 11));
    let dense = w.chunks(8).zip(&b).map(|(row, bias)| {
        row.iter().zip(&x).fold(*bias, |sum, (weight, x)| sum + weight * (0.5 * x))
    });
    let y: Vec<f32> = dense.map(|sum| sum.max(0.0)).collect();
    let mut contents = support::contents(version, code, bytes);
    contents.shared = None;
    let model = &mut contents.models[0];
    model.params = vec![tensor("b", &[16], &b), tensor("w", &[16, 8], &w)];
    let workspace = |name: &&str| (name.to_string(), if name.ends_with("dense") { 32 } else { 0 });
    model.workspaces = support::FUNCTIONS.iter().map(workspace).collect();
    let outputs = vec![tensor("0", &[1, 4], &y[..4]), tensor("1", &[1, 12], &y[4..])];
    model.vectors = vec![TestVector { inputs: vec![tensor("data", &[1, 8], &x)], outputs }];
    contents
}

/// Writes an archive to the folder of tests.
fn written(name: &str, contents: &Contents) -> PathBuf {
    let package = build(name, contents).unwrap_or_else(|report| panic!("{report:#?}"));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, support::tar(&package)).expect("a file");
    path
}

fn source(version: Version) -> String {
    match version {
        Version::V5 => SOURCE.to_owned(),
        Version::V7 => format!("#define REGISTRY_U16\n{SOURCE}"),
    }
}

#[test]
fn clients_take_sources_that_are_built_here() {
    for (name, version) in [("source.v5.tar", Version::V5), ("source.v7.tar", Version::V7)] {
        let contents = network(version, "src/default_lib0.c", source(version).into());
        succeeds(&written(name, &contents), &[]);
    }
}

/// An object compiled by the C compiler of this machine.
fn compiled(name: &str, source: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (from, to) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.o")));
    fs::write(&from, source).expect("a file");
    let status = Command::new("cc").args(["-c", "-O2", "-fPIC", "-o"]).args([&to, &from]).status();
    assert!(status.expect("cc runs").success());
    fs::read(to).expect("an object")
}

#[test]
fn clients_take_objects_that_are_built_here() {
    if clients().is_none() {
        return;
    }
    for (name, version) in [("object.v5", Version::V5), ("object.v7", Version::V7)] {
        let object = compiled(name, &source(version));
        let contents = network(version, "lib/default_lib0.o", object);
        succeeds(&written(&format!("{name}.tar"), &contents), &[]);
    }
}

/// A step, a change of the source, and the expected output of the step.
const FAULTS: [(&str, &str, &str, &str); 8] = [
    ("symbols", "return 0.5f", "float nobody(void); return nobody()", "nobody defines ['nobody']"),
    ("dlr", "return 0.5f", "return 0.6f", "of 4 differ"),
    ("dlr", "for (int i = 0; i < 16", "static int runs; for (int i = runs++ > 1; i < 16", "leaves"),
    ("packed", "codes[i] != 13", "codes[i] != 12", "gives -1 with type code 13: scale takes two"),
    ("packed", "return __TVMBackendFreeWorkspace(1, 0, products)", "return 0", "not given back"),
    ("ffi", "__tvm_ffi_tvmgen_default_relu", "elsewhere", "not exported"),
    ("host", "high[i] = x", "high[12] = high[i] = x", "written outside of storages"),
    ("host", "#define COUNT \"\\4\"", "#define COUNT \"\\4\\0\"", "counts in 16 bits"),
];

#[test]
fn faults_are_found_by_the_step_that_is_for_them() {
    for (index, (step, from, to, message)) in FAULTS.into_iter().enumerate() {
        assert!(SOURCE.contains(from), "{from}");
        let source = SOURCE.replace(from, to);
        let contents = network(Version::V5, "src/default_lib0.c", source.into());
        let archive = written(&format!("error{index}.tar"), &contents);
        let Some((success, said)) = check(&archive, &["--skip", "reject"]) else { return };
        let line = said.lines().find(|line| line.starts_with(&format!("failed  {step}:")));
        assert!(!success && line.is_some_and(|line| line.contains(message)), "{step}: {said}");
    }
}

/// The small archive with members changed after it is built.
fn altered(name: &str, change: impl FnOnce(&mut BTreeMap<String, Bytes>)) -> PathBuf {
    let contents = network(Version::V5, "src/default_lib0.c", SOURCE.into());
    let package = build(name, &contents).expect("sound");
    let mut members = package.archive.members().clone().into_iter().collect();
    change(&mut members);
    let mut bytes = vec![];
    irc_mlf::Archive::new(name, members).write(0, &mut bytes).expect("memory");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).expect("a file");
    path
}

/// Runs some steps only.
fn check_steps(archive: &Path, steps: &[&str]) -> Option<(bool, String)> {
    let all =
        ["form", "params", "symbols", "link", "dlr", "shared", "reject", "packed", "ffi", "host"];
    let others = all.iter().filter(|step| !steps.contains(step));
    let skipped: Vec<&str> = others.flat_map(|step| ["--skip", step]).collect();
    check(archive, &skipped)
}

#[test]
fn another_member_is_found_by_its_hash() {
    let path = altered("hash.tar", |members| {
        members.insert("src/model.mlir".into(), Bytes::from_static(b"module { }\n"));
    });
    let Some((success, said)) = check_steps(&path, &["form"]) else { return };
    assert!(!success && said.contains("failed  form: src/model.mlir has the hash"), "{said}");
}

/// Code as a shared library.
fn shared(name: &str, source: &str) -> Shared {
    compiled(name, source);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (from, to) = (folder.join(format!("{name}.o")), folder.join(format!("{name}.so")));
    let status = Command::new("cc").args(["-shared", "-o"]).args([&to, &from]).status();
    assert!(status.expect("cc runs").success());
    Shared { bytes: fs::read(to).expect("a library").into(), requires: vec![] }
}

#[test]
fn clients_take_the_shared_library() {
    if clients().is_none() {
        return;
    }
    let wrong = SOURCE.replace("return 0.5f", "return 0.6f");
    for (name, source, verdict) in
        [("shared", SOURCE, "ok      shared"), ("other", &*wrong, "failed  shared")]
    {
        let mut contents = network(Version::V5, "src/default_lib0.c", SOURCE.into());
        contents.shared = Some(shared(name, source));
        let steps = ["form", "symbols", "link", "dlr", "shared"];
        let path = written(&format!("{name}.tar"), &contents);
        let Some((success, said)) = check_steps(&path, &steps) else { return };
        assert!(said.contains("ok      form") && said.contains(verdict), "{said}");
        assert_eq!(success, verdict.starts_with("ok"), "{said}");
    }
}
