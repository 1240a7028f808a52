//! Real ONNX models of the corpus have the outputs of ONNX Runtime: `model.npz` beside `model.onnx`
//! contains the inputs as `in_<name>` and the outputs as `out_<position>`.

use irc::{Place, Session, Target};
use irc_common_format::{Options, open};
use irc_diag::Sink;
use irc_onnx_ops::ImportOptions;
use irc_onnx_ops::cases::{Values, import_for};
use irc_tensor::{DType, Tensor, read_npz_file};
use irc_tl::Constant;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    std::env::var_os("IRC_CORPUS").map_or_else(beside, PathBuf::from).join("common_ir/models")
}

/// Absolute tolerance of any output, for single-precision errors of numbers around 1.
const ABSOLUTE: f64 = 1e-6;

/// Relative tolerances, to the element and to the maximum of the output.
const fn tolerance(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::F16 | DType::BF16 => (1e-2, 1e-2),
        _ => (1e-3, 1e-4),
    }
}

fn compare(expected: &Tensor, found: &Tensor) -> Result<(), String> {
    if expected.ty() != found.ty() {
        return Err(format!("expected {}, found {}", expected.ty(), found.ty()));
    }
    let (relative, of_largest) = tolerance(expected.dtype());
    let (expected, found) = (expected.to_f64(), found.to_f64());
    let largest = expected.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    for (index, (want, have)) in expected.iter().zip(&found).enumerate() {
        if (want - have).abs() > ABSOLUTE + relative * want.abs() + of_largest * largest {
            return Err(format!("element {index}: expected {want}, found {have}"));
        }
    }
    Ok(())
}

fn run(model: &Path) -> Result<(), String> {
    let given = read_npz_file(&model.with_extension("npz")).map_err(|error| error.to_string())?;
    let document = open(model, &Options::default(), &mut Sink::new()).ok_or("cannot be read")?;
    let mut inputs = Values::default();
    for (name, tensor) in &given {
        if let Some(name) = name.strip_prefix("in_") {
            inputs.tensors.insert(name.to_owned(), Constant::of(tensor));
        }
    }
    let imported = import_for(&document.module, &inputs, ImportOptions::default())
        .map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    let compiled = Session::new()
        .import_graph(&imported.graph)
        .library_with(Target::host(), Place::Given)
        .map_err(|error| format!("{:?}", error.diagnostics))?;
    let mut runner = compiled.runner().map_err(|error| error.to_string())?;
    let tensors: BTreeMap<String, Tensor> = inputs.to_tensors()?;
    let found = runner.run(tensors).map_err(|error| error.to_string())?;
    for (position, (name, _)) in imported.graph.outputs.iter().enumerate() {
        let Some(expected) = given.get(&format!("out_{position}")) else { continue };
        compare(expected, &found[name]).map_err(|message| format!("{name}: {message}"))?;
    }
    Ok(())
}

#[test]
fn models_of_the_corpus_give_the_reference_outputs() {
    let Ok(entries) = std::fs::read_dir(corpus()) else {
        eprintln!("skipped: no folder {}", corpus().display());
        return;
    };
    let mut models: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    models.retain(|path| path.extension().is_some_and(|suffix| suffix == "onnx"));
    models.sort();
    let mut failed = vec![];
    for model in &models {
        let name = model.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let start = std::time::Instant::now();
        match run(model) {
            Ok(()) => eprintln!("ok   {name} ({} s)", start.elapsed().as_secs()),
            Err(message) => failed.push(format!("{name}: {message}")),
        }
    }
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), models.len(), failed.join("\n"));
}
