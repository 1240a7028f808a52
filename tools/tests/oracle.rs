//! `irc run` compared with numpy's evaluation of the same models, including every buffer.
//!
//! `tests/oracle/check_models.py` generates the inputs, runs both and compares. Models that are slow in a
//! debug build run only with `IRC_LARGE=1`, preferably in a release build.
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// Python with numpy; `None`, after a message, if there is none.
fn python() -> Option<PathBuf> {
    let python = root().join("target/venv/bin/python");
    let python = env::var_os("IRC_PYTHON").map_or(python, PathBuf::from);
    if !python.exists() {
        println!("skipped: no Python at {}; ./irc-dev setup makes one", python.display());
        return None;
    }
    Some(python)
}

/// Runs a script of `tests/oracle/` and asserts that it succeeds.
fn run(script: &str, arguments: &[&str]) {
    let Some(python) = python() else { return };
    let output = Command::new(python)
        .arg(root().join("tests/oracle").join(script))
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output();
    let output = output.expect("python runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{text}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
}

fn check_models(folder: &Path, flags: &[&str]) {
    let folder = folder.to_string_lossy();
    let mut arguments = vec!["--irc", env!("CARGO_BIN_EXE_irc"), &*folder];
    arguments.extend(env::var_os("IRC_LARGE").is_some().then_some("--large"));
    arguments.extend(flags);
    run("check_models.py", &arguments);
}

#[test]
fn examples_agree_with_numpy() {
    check_models(&root().join("examples"), &[]);
}

/// What ONNX Runtime runs, irc runs with the same outputs; `irc check` warns of what ONNX Runtime rejects.
#[test]
fn odd_files_are_read_as_onnx_runtime_reads_them() {
    run("check_files.py", &["--irc", env!("CARGO_BIN_EXE_irc")]);
}

#[test]
fn the_table_of_operators_is_that_of_onnx() {
    run("onnx_schemas.py", &["--check"]);
}

#[test]
fn small_models_agree_with_numpy() {
    check_models(&root().join("tests/models"), &[]);
}

/// Order and precision of every sum are defined, so that 16-bit results are equal bit for bit.
#[test]
fn ark_accumulation_is_numpys() {
    let model = |name: &str| root().join(format!("tests/models/{name}.model.json"));
    for name in ["accumulation", "reduce_axes", "matmul_padded"] {
        check_models(&model(name), &["--exact", "FP16", "--", "--ark-accumulate"]);
    }
    for name in ["matmul_forms", "in_place_views"] {
        check_models(&model(name), &["--", "--ark-accumulate"]);
    }
}

#[test]
fn seeded_inputs_are_numpys() {
    for name in ["windows", "in_place_views", "virtual_nodes", "embedding_rows"] {
        let model = root().join(format!("tests/models/{name}.model.json"));
        check_models(&model, &["--seed", "7"]);
    }
}

/// The corpus of ARK files: `IRC_CORPUS`, or a folder beside the repository.
fn corpus() -> Option<PathBuf> {
    let default = root().join("../shared/corpus");
    let corpus = env::var_os("IRC_CORPUS").map_or(default, PathBuf::from).join("ark");
    if !corpus.is_dir() {
        println!("skipped: no folder {}", corpus.display());
        return None;
    }
    Some(corpus)
}

#[test]
fn corpus_agrees_with_numpy() {
    if let Some(corpus) = corpus() {
        check_models(&corpus, &[]);
    }
}

fn check_plans(folder: &Path, flags: &[&str]) {
    let folder = folder.to_string_lossy();
    let mut arguments = vec!["--irc", env!("CARGO_BIN_EXE_irc"), &*folder];
    arguments.extend(flags);
    arguments.extend(env::var_os("IRC_LARGE").is_some().then_some("--large"));
    run("check_plans.py", &arguments);
}

#[test]
fn plans_of_several_ranks_agree_with_numpy() {
    check_plans(&root().join("tests/models/ranks"), &[]);
}

#[test]
fn kernels_of_several_ranks_agree_with_numpy() {
    check_plans(&root().join("tests/models/ranks"), &["--kernels"]);
}

#[test]
fn plans_of_the_corpus_agree_with_numpy() {
    if let Some(corpus) = corpus() {
        check_plans(&corpus, &[]);
    }
}

/// Tests the oracle itself: the results of several ranks are the exact sums.
#[test]
fn ranks_compute_their_sums() {
    let ranks = root().join("tests/models/ranks");
    let folders: Vec<_> = [Some(ranks), corpus()].into_iter().flatten().collect();
    let folders: Vec<_> = folders.iter().map(|folder| folder.to_string_lossy()).collect();
    run("check_ranks.py", &folders.iter().map(|folder| &**folder).collect::<Vec<_>>());
}
