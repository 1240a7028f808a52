//! Archives written by TVM.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use irc_diag::{Severity, Sink, Source, render};
use irc_mlf::{Depth, check, graph, params, read};

/// The archives of the corpus, sorted; empty, with a message, if it is absent.
fn corpus() -> Vec<PathBuf> {
    let root = std::env::var_os("IRC_CORPUS").map(PathBuf::from);
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
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

fn open(path: &Path) -> Bytes {
    std::fs::read(path).expect("a readable file").into()
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

#[test]
fn all_are_read_and_what_tvm_gets_wrong_is_a_warning() {
    let mut found = BTreeMap::new();
    for path in corpus() {
        let (package, report) = read(&stem(&path), &open(&path));
        let package = package.unwrap_or_else(|| panic!("{}: {report:#?}", path.display()));
        assert_eq!(report.all().count(), 0, "{}", path.display());
        let report = check(&package, Depth::Content);
        for file in report.files() {
            println!("{}", render(&file.source, &file.found, false, 100));
        }
        let worse = report.all().find(|diagnostic| diagnostic.severity == Severity::Error);
        assert!(worse.is_none(), "{}: {worse:#?}", path.display());
        let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
        report.all().for_each(|diagnostic| *codes.entry(diagnostic.code).or_default() += 1);
        found.insert(stem(&path), codes.into_iter().collect::<Vec<_>>());
    }
    // Sizes are wrong in all models that reuse storages; `multi` has three outputs.
    for (name, codes) in found {
        let expected: &[(&str, usize)] = match name.as_str() {
            "handmade_mlp" => &[],
            "cnn.v5.llvm" | "cnn.v5.c_crt" => &[("mlf-tvm-size", 6)],
            "mlp.v5.llvm" | "mlp.v5.c_crt" => &[("mlf-tvm-size", 6)],
            "multi.v5.llvm" | "multi.v5.c_crt" => &[("mlf-tvm-size", 2)],
            _ => continue,
        };
        assert_eq!(codes, expected, "{name}");
    }
}

#[test]
fn parameters_are_written_as_tvm_writes_them() {
    for path in corpus() {
        let (package, _) = read(&stem(&path), &open(&path));
        let package = package.expect("sound");
        let written = params::write(&package.parts[0].params);
        assert_eq!(package.archive.get("parameters/default.params"), Some(&written));
    }
}

#[test]
fn graphs_written_are_the_graphs_read() {
    for path in corpus() {
        let (package, _) = read(&stem(&path), &open(&path));
        let graph = package.expect("sound").parts.remove(0).graph.expect("a graph");
        let text = graph::write(&graph).unwrap_or_else(|found| panic!("{found:#?}"));
        let again = graph::read(&Source::new("again", text), &mut Sink::new());
        assert_eq!(again, Some(graph), "{}", path.display());
    }
}

#[test]
fn metadata_are_written_as_tvm_writes_them() {
    for path in corpus() {
        let (package, _) = read(&stem(&path), &open(&path));
        let package = package.expect("sound");
        let text = irc_mlf::metadata::write(&package.metadata).expect("version 5");
        let bytes = package.archive.get(irc_mlf::metadata::PATH).expect("metadata");
        assert_eq!(text.as_bytes(), &bytes[..], "{}", path.display());
    }
}

#[test]
fn archives_written_are_the_archives_read() {
    for path in corpus() {
        let (package, _) = read(&stem(&path), &open(&path));
        let archive = package.expect("sound").archive;
        let mut bytes = vec![];
        archive.write(0, &mut bytes).expect("memory");
        let again = irc_mlf::Archive::read(archive.name(), &bytes.into(), &mut Sink::new());
        assert_eq!(again, Some(archive));
    }
}
