//! Archives written by this crate.

use crate::support;
use std::path::Path;

use crate::support::{c_source, contents, diagnostics, package, tar};
use irc_diag::Sink;
use irc_mlf::metadata::ALIGNMENT;
use irc_mlf::{Version, build, metadata, read};

#[test]
fn what_is_built_has_no_diagnostics() {
    for version in [Version::V5, Version::V7] {
        assert_eq!(diagnostics(&tar(&package(version))), []);
        let of_c = contents(version, "src/default_lib0.c", c_source().into());
        assert_eq!(diagnostics(&tar(&build("test.tar", &of_c).expect("sound"))), []);
    }
}

#[test]
fn what_is_built_reads_back() {
    for version in [Version::V5, Version::V7] {
        let package = package(version);
        let (read, _) = read("test.tar", &tar(&package));
        assert_eq!(read, Some(package));
    }
}

/// The stored files are reproduced: bytes depend only on contents.
///
/// With `IRC_BLESS` set the files are written instead.
#[test]
fn files_of_this_crate_are_exact() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let package = package(Version::V5);
    let member = |path: &str| package.archive.get(path).expect("the member").clone();
    let files = [
        ("small.v5.tar", tar(&package)),
        ("small.v7.tar", tar(&support::package(Version::V7))),
        ("small.graph.json", member("executor-config/graph/graph.json")),
        ("small.params", member("parameters/default.params")),
    ];
    for (name, built) in files {
        let path = folder.join(name);
        if std::env::var_os("IRC_BLESS").is_some() {
            std::fs::write(&path, &built).expect("a file");
        }
        assert!(std::fs::read(&path).expect("a file") == built, "{name} is not what is built");
    }
}

#[test]
fn weights_are_aligned_within_the_file() {
    let bytes = tar(&package(Version::V5));
    let (package, _) = read("test.tar", &bytes);
    let package = package.expect("sound");
    let content = package.archive.get("parameters/default.weights").expect("weights");
    let place = content.as_ptr().addr() - bytes.as_ptr().addr();
    assert_eq!(place % ALIGNMENT, 0);
}

#[test]
fn sizes_are_those_of_the_graph() {
    let package = package(Version::V5);
    let metadata::Memory::Model(memory) = &package.metadata.modules[0].memory else {
        panic!("a model");
    };
    let main = &memory.main[0];
    // data 8, outputs 4 and 12 floats; w 128, b 16; storages 3 and 4 of 16 floats each.
    assert_eq!((main.io, main.constants, main.workspace), (24 * 4, 144 * 4, 32 * 4 + 16));
}

#[test]
fn metadata_is_laid_out_as_python_does() {
    let package = package(Version::V5);
    let text = package.archive.get(metadata::PATH).expect("metadata");
    let text = std::str::from_utf8(text).expect("text");
    let start = "{\n  \"executors\": [\n    \"graph\"\n  ],\n  \"export_datetime\": \"2023-11-14 22:13:20Z\",\n  \"irc\": {";
    assert!(text.starts_with(start), "{text}");
    assert!(text.ends_with("  },\n  \"version\": 5\n}"), "{text}");
}

#[test]
fn what_some_client_does_not_accept_is_rejected() {
    let rejected = |change: &dyn Fn(&mut irc_mlf::Contents)| {
        let mut contents = contents(Version::V5, "src/default_lib0.c", c_source().into());
        change(&mut contents);
        let report = build("test.tar", &contents).expect_err("rejected");
        report.all().map(|diagnostic| diagnostic.code).collect::<Vec<_>>()
    };
    let found = rejected(&|contents| contents.models[0].graph.inputs = vec![1, 0, 2]);
    assert_eq!(found, ["mlf-subset-first-input"]);
    let found = rejected(&|contents| contents.models[0].name = "mine".into());
    assert_eq!(found, ["mlf-subset-model-name"]);
    let found = rejected(&|contents| contents.models[0].graph.entries[6].storage = 9);
    assert_eq!(found, ["mlf-subset-gap"]);
    let found = rejected(&|contents| contents.models.clear());
    assert_eq!(found, ["mlf-version"]);
    let source = || "../x".to_owned();
    let found =
        rejected(&|contents| drop(contents.sources.insert(source(), b"".as_slice().into())));
    assert_eq!(found, ["mlf-path"]);
}

#[test]
fn every_cut_is_rejected() {
    let bytes = tar(&package(Version::V5));
    let (package, _) = read("test.tar", &bytes);
    let members = package.expect("sound").archive.members().len();
    assert!(members > 5);
    // Beyond the end mark only the padding of the last record is missing.
    let end = bytes.len() - bytes.iter().rev().take_while(|byte| **byte == 0).count();
    for length in (0..end.next_multiple_of(512) + 1024).step_by(61) {
        let mut sink = Sink::new();
        assert_eq!(irc_mlf::Archive::read("x", &bytes.slice(..length), &mut sink), None);
        assert!(sink.has_errors(), "cut at {length}");
    }
}
