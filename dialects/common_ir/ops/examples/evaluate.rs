//! Evaluates ONNX test cases with the reference evaluator: folders with `model.onnx` and
//! `test_data_set_N`.
//!
//! `cargo run -p irc-onnx-ops --example evaluate -- DIR... [--only PART] [--quiet] [--open]`: every
//! folder below a DIR that holds a model is a case. Prints a line per case and the sum. With `--open`
//! the models forget the sizes of their values, which are then given as far as they are asked for.

use irc_common_format::{Options, model, open, read_data};
use irc_diag::Sink;
use irc_onnx_ops::{FindingKind, ImportOptions, Structure, import, tensor_of};
use irc_tensor::{Tensor, TensorType};
use irc_tl::{Constant, DType};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut roots, mut only, mut quiet, mut open) = (vec![], String::new(), false, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => only = arguments.next().unwrap_or_default(),
            "--quiet" => quiet = true,
            "--open" => open = true,
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
        let result = std::panic::catch_unwind(|| run(&case, open));
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

fn run(case: &Path, forget: bool) -> Result<(), String> {
    let mut sink = Sink::new();
    let document = open(&case.join("model.onnx"), &Options::default(), &mut sink);
    let Some(mut document) = document else { return Err("cannot be read".into()) };
    if let Some(graph) = document.module.graph.as_mut().filter(|_| forget) {
        graph.values.clear();
        graph.inputs.iter_mut().chain(&mut graph.outputs).for_each(forget_sizes);
    }
    let graph = document.module.graph.as_ref().ok_or("no graph")?;
    let sets = (0..).map(|set| case.join(format!("test_data_set_{set}")));
    for set in sets.take_while(|set| set.is_dir()) {
        let inputs = values(&set, "input", &graph.inputs)?;
        let expected = values(&set, "output", &graph.outputs)?;
        let (found, structures) = evaluate(&document.module, &inputs, forget)?;
        for (name, expected) in &expected.structures {
            let found = structures.get(name).ok_or_else(|| format!("'{name}' is a tensor"))?;
            if !alike(expected, found) {
                return Err(format!("{name}: expected {expected:?}, found {found:?}"));
            }
        }
        for (name, expected) in expected.tensors {
            let found = found.get(&name).ok_or_else(|| format!("no output '{name}'"))?;
            compare(&name, &expected, found)?;
        }
    }
    Ok(())
}

/// Tensors by name; those of sequences and optionals by the names of their parts.
struct Values {
    tensors: BTreeMap<String, Constant>,
    structures: BTreeMap<String, Structure>,
}

/// The results by name, and the structures of those that are no tensors.
type Results = (BTreeMap<String, Tensor>, BTreeMap<String, Structure>);

fn forget_sizes(value: &mut model::Value) {
    if let Some(model::Type::Tensor(tensor)) = &mut value.ty {
        let dims = tensor.shape.iter_mut().flat_map(|shape| &mut shape.dims);
        dims.for_each(|dim| *dim = model::Dim::Unknown);
    }
}

fn evaluate(module: &model::Module, inputs: &Values, open: bool) -> Result<Results, String> {
    let mut options = ImportOptions { structures: inputs.structures.clone(), ..Default::default() };
    for (name, value) in inputs.tensors.iter().filter(|_| !open) {
        options.shapes.insert(name.clone(), value.ty.shape.clone());
    }
    // What the program's structure depends on is given; everything else stays open.
    let imported = loop {
        let findings = match import(module, &options) {
            Ok(imported) => break imported,
            Err(findings) => findings,
        };
        let before = options.values.len() + options.shapes.len();
        for finding in &findings {
            for (name, value) in &inputs.tensors {
                match &finding.kind {
                    FindingKind::NeedsValue(names) if names.contains(name) => {
                        options.values.insert(name.clone(), value.clone());
                    }
                    FindingKind::NeedsShape(names) if names.contains(name) => {
                        options.shapes.insert(name.clone(), value.ty.shape.clone());
                    }
                    _ => {}
                }
            }
        }
        if options.values.len() + options.shapes.len() == before {
            let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
            return Err(findings.join("; "));
        }
    };
    let mut given = BTreeMap::new();
    for (name, value) in &inputs.tensors {
        given.insert(name.clone(), value.tensor().map_err(|error| error.to_string())?);
    }
    let results = imported.graph.eval(&given).map_err(|error| error.to_string())?;
    let names = imported.graph.outputs.iter().map(|(name, _)| name.clone());
    Ok((names.zip(results).collect(), imported.structures))
}

fn values(set: &Path, kind: &str, ports: &[model::Value]) -> Result<Values, String> {
    let mut values = Values { tensors: BTreeMap::new(), structures: BTreeMap::new() };
    for (index, port) in ports.iter().enumerate() {
        let path = set.join(format!("{kind}_{index}.pb"));
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let ty = port.ty.clone().ok_or("an untyped value")?;
        let mut sink = Sink::new();
        let data = read_data(bytes.into(), &ty, &mut sink);
        let data = data.ok_or_else(|| format!("{kind} {index} cannot be read"))?;
        let structure = take(port.name(), &data, &mut values.tensors)?;
        if !matches!(structure, Structure::Tensor(_)) {
            values.structures.insert(port.name().to_owned(), structure);
        }
    }
    Ok(values)
}

/// The structure of a value, whose tensors are put under the names of its parts.
fn take(
    name: &str,
    data: &model::Data,
    tensors: &mut BTreeMap<String, Constant>,
) -> Result<Structure, String> {
    Ok(match data {
        model::Data::Tensor(tensor) => {
            let constant = tensor_of(tensor)?;
            let ty = constant.ty.clone().into();
            tensors.insert(name.to_owned(), constant);
            Structure::Tensor(ty)
        }
        model::Data::Sequence(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(index, item)| take(&format!("{name}[{index}]"), item, tensors));
            Structure::Sequence(items.collect::<Result<_, _>>()?)
        }
        model::Data::Optional(item) => {
            let item = item.as_ref().map(|item| take(name, item, tensors)).transpose()?;
            Structure::Optional(item.map(Box::new))
        }
        _ => return Err(format!("{name}: values of this kind are not supported")),
    })
}

/// Whether two structures are alike; what is inside an optional is as good as the optional.
fn alike(expected: &Structure, found: &Structure) -> bool {
    match (expected, found) {
        (Structure::Sequence(expected), Structure::Sequence(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(expected, found)| alike(expected, found))
        }
        (Structure::Optional(None), Structure::Optional(None)) => true,
        (Structure::Optional(Some(expected)), found) => alike(expected, found),
        (expected, Structure::Optional(Some(found))) => alike(expected, found),
        (Structure::Tensor(_), Structure::Tensor(_)) => true,
        _ => false,
    }
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
