//! Runs archives of `irc compile` on real clients: libdlr, apache-tvm's reader of parameters, tvm-ffi, the
//! packed C interface, a C program.
//!
//! `tests/clients/models.py` makes eight models with inputs and expected outputs, and
//! `tests/clients/check_archive.py` runs an archive on every client.
use irc_runtime::{Context, ContextOptions, Guard, Model, OpenOptions};
use libtest_mimic::{Arguments, Failed, Trial};
use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

const MODELS: [&str; 8] =
    ["mlp", "cnn", "lstm", "attention", "resnet18", "mobilenet", "bert_layer", "ffn"];

/// The models that are tested in version 7 too, which differs only in paths and metadata.
const LAYOUTS: [&str; 2] = ["cnn", "ffn"];

/// Compilation options, and steps of the check that are skipped, as another row covers them.
const WAYS: [(&str, &[&str], &[&str]); 3] = [
    ("object", &[], &[]),
    ("source", &["--codegen", "c"], &["reject", "params"]),
    ("version_7", &["--mlf-version", "7"], &["reject", "params", "ffi", "packed"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn main() {
    let arguments = Arguments::from_args();
    let python = root().join("target/venv/bin/python");
    let clients = root().join("target/clients");
    let missing = [&python, &clients].into_iter().find(|path| !path.exists());
    let Some(models) = missing.map_or_else(
        || made(&python),
        |path| {
            println!("skipped: no {}; ./irc-dev clients makes it", path.display());
            None
        },
    ) else {
        libtest_mimic::run(&arguments, vec![]).exit();
    };
    let trial = |model: &str, (way, flags, skipped): (&str, &'static [&str], &'static [&str])| {
        let (python, folder, name) = (python.clone(), models.path().to_owned(), model.to_owned());
        Trial::test(format!("{model}_{way}"), move || {
            check(&python, &folder, &name, flags, skipped)
        })
    };
    let ways = WAYS.into_iter();
    let of_way = |way: (&'static str, _, _)| {
        let models = if way.0 == "version_7" { &LAYOUTS[..] } else { &MODELS[..] };
        models.iter().map(|model| trial(model, way)).collect::<Vec<_>>()
    };
    let trials = ways.flat_map(of_way).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    drop(models);
    conclusion.exit();
}

/// The models, in a temporary folder.
fn made(python: &Path) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    let script = root().join("tests/clients/models.py");
    succeed(Command::new(python).arg(script).arg(folder.path())).expect("models are made");
    Some(folder)
}

fn check(
    python: &Path,
    folder: &Path,
    name: &str,
    flags: &[&str],
    skipped: &[&str],
) -> Result<(), Failed> {
    let file = |suffix: &str| folder.join(format!("{name}.{suffix}"));
    let onnx = file("onnx");
    // For the ARK model, every buffer is expected.
    let (model, results) = match onnx.exists() {
        true => (onnx, None),
        false => (file("model.json"), Some(["--results", "all"])),
    };
    let archive = tempfile::Builder::new().suffix(".tar").tempfile()?;
    let mut compile = Command::new(env!("CARGO_BIN_EXE_irc"));
    compile.arg("compile").arg(model).arg("-o").arg(archive.path()).args(flags);
    succeed(compile.args(results.into_iter().flatten()))?;
    if !flags.contains(&"c") {
        stay_inside(archive.path())?;
    }
    let mut check = Command::new(python);
    check.arg(root().join("tests/clients/check_archive.py")).arg(archive.path());
    check.arg("--inputs").arg(file("inputs.npz")).arg("--outputs").arg(file("outputs.npz"));
    check.args(skipped.iter().flat_map(|step| ["--skip", step]));
    succeed(&mut check)
}

/// Runs an archive with exactly the memory that it declares, each tensor before an inaccessible page.
fn stay_inside(archive: &Path) -> Result<(), Failed> {
    let model = Arc::new(Model::open(archive, OpenOptions::default())?);
    let options = ContextOptions { guard: Guard::Pages, ..ContextOptions::default() };
    let mut context = Context::new(&model, &options)?;
    // Twice: the second run starts with the memory that the first one left.
    context.run()?;
    Ok(context.run()?)
}

fn succeed(command: &mut Command) -> Result<(), Failed> {
    let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output()?;
    if output.status.success() {
        return Ok(());
    }
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    Err(format!("{command:?}: {}\n{}", output.status, text.concat()).into())
}
