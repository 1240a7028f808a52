//! Evaluates ONNX test cases with the reference evaluator: folders with `model.onnx` and
//! `test_data_set_N`.
//!
//! `cargo run -p irc-onnx-ops --example evaluate -- DIR... [--only PART] [--quiet]`: every folder
//! below a DIR that holds a model is a case. Prints a line per case and the sum.

use irc_common_format::{Options, model, open, read_data};
use irc_diag::Sink;
use irc_onnx_ops::{FindingKind, ImportOptions, import, tensor_of};
use irc_tensor::{Tensor, TensorType};
use irc_tl::{Constant, DType};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut roots, mut only, mut quiet) = (vec![], String::new(), false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => only = arguments.next().unwrap_or_default(),
            "--quiet" => quiet = true,
            _ => roots.push(PathBuf::from(argument)),
        }
    }
    let mut cases = vec![];
    roots.iter().for_each(|root| find(root, &mut cases));
    cases.retain(|case| case.to_string_lossy().contains(&only));
    cases.sort();
    let (mut passed, total) = (0, cases.len());
    for case in cases {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let result = std::panic::catch_unwind(|| run(&case));
        let result = result.unwrap_or_else(|_| Err("PANIC".into()));
        match result {
            Ok(()) => {
                passed += 1;
                if !quiet {
                    println!("ok   {name}");
                }
            }
            Err(message) => println!("FAIL {name}: {}", message.replace('\n', " ")),
        }
    }
    println!("{passed} of {total}");
}

fn find(folder: &Path, cases: &mut Vec<PathBuf>) {
    if folder.join("model.onnx").is_file() {
        cases.push(folder.to_owned());
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            find(&entry.path(), cases);
        }
    }
}

fn run(case: &Path) -> Result<(), String> {
    let mut sink = Sink::new();
    let document = open(&case.join("model.onnx"), &Options::default(), &mut sink);
    let Some(document) = document else { return Err("cannot be read".into()) };
    let graph = document.module.graph.as_ref().ok_or("no graph")?;
    let sets = (0..).map(|set| case.join(format!("test_data_set_{set}")));
    for set in sets.take_while(|set| set.is_dir()) {
        let inputs = values(&set, "input", &graph.inputs)?;
        let expected = values(&set, "output", &graph.outputs)?;
        let found = evaluate(&document.module, &inputs)?;
        for (name, expected) in expected {
            let found = found.get(&name).ok_or_else(|| format!("no output '{name}'"))?;
            compare(&name, &expected, found)?;
        }
    }
    Ok(())
}

fn evaluate(
    module: &model::Module,
    inputs: &BTreeMap<String, Constant>,
) -> Result<BTreeMap<String, Tensor>, String> {
    let mut options = ImportOptions::default();
    for (name, value) in inputs {
        options.shapes.insert(name.clone(), value.ty.shape.clone());
    }
    let first = import(module, &options);
    // What the program's structure depends on is given; everything else stays open.
    let imported = first.or_else(|findings| {
        for finding in &findings {
            let FindingKind::NeedsValue(names) = &finding.kind else { return Err(findings) };
            for name in names {
                let Some(value) = inputs.get(name) else { continue };
                options.values.insert(name.clone(), value.clone());
            }
        }
        import(module, &options)
    });
    let imported = imported.map_err(|findings| {
        findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    })?;
    let mut given = BTreeMap::new();
    for (name, value) in inputs {
        given.insert(name.clone(), value.tensor().map_err(|error| error.to_string())?);
    }
    let results = imported.graph.eval(&given).map_err(|error| error.to_string())?;
    let names = imported.graph.outputs.iter().map(|(name, _)| name.clone());
    Ok(names.zip(results).collect())
}

fn values(
    set: &Path,
    kind: &str,
    ports: &[model::Value],
) -> Result<BTreeMap<String, Constant>, String> {
    let mut values = BTreeMap::new();
    for (index, port) in ports.iter().enumerate() {
        let path = set.join(format!("{kind}_{index}.pb"));
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let ty = port.ty.clone().ok_or("an untyped value")?;
        let mut sink = Sink::new();
        match read_data(bytes.into(), &ty, &mut sink) {
            Some(model::Data::Tensor(tensor)) => {
                values.insert(port.name().to_owned(), tensor_of(&tensor)?);
            }
            _ => return Err(format!("{kind} {index} is no tensor")),
        }
    }
    Ok(values)
}

/// The official runner's tolerance: 1e-3 relative, 1e-7 absolute; types are equal.
fn compare(name: &str, expected: &Constant, found: &Tensor) -> Result<(), String> {
    let expected = expected.tensor().map_err(|error| error.to_string())?;
    let (wanted, got): (&TensorType, &TensorType) = (expected.ty(), found.ty());
    if wanted != got {
        return Err(format!("{name}: expected {wanted}, found {got}"));
    }
    if !wanted.dtype.is_float() {
        let equal = expected.bytes() == found.bytes();
        let say = || format!("{name}: expected {:?}, found {:?}", head(&expected), head(found));
        return if equal { Ok(()) } else { Err(say()) };
    }
    let relative =
        if wanted.dtype == DType::F32 || wanted.dtype == DType::F64 { 1e-3 } else { 1e-2 };
    for (index, (want, have)) in expected.to_f64().into_iter().zip(found.to_f64()).enumerate() {
        let close = want == have
            || want.is_nan() && have.is_nan()
            || (want - have).abs() <= 1e-7 + relative * want.abs();
        if !close {
            return Err(format!("{name}[{index}]: expected {want}, found {have}"));
        }
    }
    Ok(())
}

fn head(tensor: &Tensor) -> Vec<f64> {
    tensor.to_f64().into_iter().take(8).collect()
}
