//! Runs archives of `irc compile` on real clients: libdlr, apache-tvm's reader of parameters, tvm-ffi, the
//! packed C interface, a C program.
//!
//! `tests/clients/models.py` makes nine models with inputs and expected outputs, and
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

/// The model whose dimensions have no sizes, and their bounds.
const OPEN: (&str, &[&str]) = ("open_sizes", &["--shape", "N=1..3", "--shape", "S=1..8"]);

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
    let mut trials: Vec<Trial> = ways.flat_map(of_way).collect();
    trials.push(trial(OPEN.0, ("bounded", OPEN.1, &["reject"])));
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
    match flags {
        _ if name == OPEN.0 => accept_all_sizes(archive.path(), &file("onnx"))?,
        ["--codegen", "c"] => {}
        _ => stay_inside(archive.path())?,
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

/// Runs an archive with open sizes at sizes within its bounds, with the results of the model at these sizes, and at others.
fn accept_all_sizes(archive: &Path, onnx: &Path) -> Result<(), Failed> {
    let model = Arc::new(Model::open(archive, OpenOptions::default())?);
    let mut context = Context::new(&model, &ContextOptions::default())?;
    for shape in [[1, 1, 24], [2, 5, 24], [3, 8, 24], [1, 8, 24]] {
        let values = (0..shape.iter().product::<i64>()).map(|it| (it % 17) as f32 / 8.0 - 1.0);
        let input: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
        context.set_input_shaped(0, &shape, &input)?;
        context.run()?;
        let fixed = fixed(onnx, shape)?;
        let mut expected = Context::new(&fixed, &ContextOptions::default())?;
        expected.set_input(0, &input)?;
        expected.run()?;
        for output in 0..2 {
            let sizes = &fixed.interface().outputs[output].shape;
            let [found, expected] = [context.output(output)?, expected.output(output)?].map(floats);
            let is_close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-6;
            let agrees = found.len() == expected.len() && found.iter().zip(&expected).all(is_close);
            if context.output_shape(output)? != sizes.as_slice() || !agrees {
                return Err(format!("output {output} at {shape:?}: {found:?}, {expected:?}").into());
            }
        }
    }
    for (shape, name) in [([4, 1, 24], "N"), ([1, 9, 24], "S")] {
        let bytes = shape.iter().product::<i64>() as usize * 4;
        context.set_input_shaped(0, &shape, &vec![0; bytes])?;
        let message = context.run().err().map(|error| error.to_string()).unwrap_or_default();
        if !message.contains(&format!("input 'x': expected {name} between 1 and")) {
            return Err(format!("{shape:?}: {message}").into());
        }
    }
    Ok(())
}

/// The library of a model at a shape of its input.
fn fixed(onnx: &Path, shape: [i64; 3]) -> Result<Arc<Model>, Failed> {
    let library = tempfile::Builder::new().suffix(".so").tempfile()?;
    let shape = shape.map(|extent| extent.to_string()).join("x");
    let mut compile = Command::new(env!("CARGO_BIN_EXE_irc"));
    compile.arg("compile").arg(onnx).arg("-o").arg(library.path());
    succeed(compile.arg("--shape").arg(format!("x={shape}")))?;
    Ok(Arc::new(Model::open(library.path(), OpenOptions::default())?))
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
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
