//! Evaluates ONNX test cases with the reference evaluator: folders with `model.onnx` and
//! `test_data_set_N`.
//!
//! `cargo run -p irc-onnx-ops --example evaluate -- DIR... [--only PART] [--quiet] [--open COUNT]`:
//! every folder below a DIR that holds a model is a case. Prints a line per case and the sum. The sizes
//! of the first COUNT inputs stay open.

use irc_common_format::model;
use irc_onnx_ops::cases::{self, Case, import_for};
use std::path::{Path, PathBuf};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut roots, mut only, mut quiet, mut open) = (vec![], String::new(), false, 0);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => only = arguments.next().unwrap_or_default(),
            "--quiet" => quiet = true,
            "--open" => {
                open = arguments.next().and_then(|count| count.parse().ok()).unwrap_or_default();
            }
            _ => roots.push(PathBuf::from(argument)),
        }
    }
    let mut cases: Vec<PathBuf> = roots.iter().flat_map(|root| cases::find(root)).collect();
    cases.retain(|case| case.to_string_lossy().contains(&only));
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

fn run(folder: &Path, open: usize) -> Result<(), String> {
    let mut case = Case::read(folder)?;
    let ports = case.module.graph.iter_mut().flat_map(|graph| &mut graph.inputs).take(open);
    let open: Vec<String> = ports.map(forget_sizes).collect();
    for (inputs, expected) in &case.sets {
        let mut known = inputs.clone();
        open.iter().for_each(|name| drop(known.tensors.remove(name)));
        let imported = import_for(&case.module, &known).map_err(|findings| {
            findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        })?;
        let given = inputs.to_tensors()?;
        let results = imported.graph.eval(&given).map_err(|error| error.to_string())?;
        let names = imported.graph.outputs.iter().map(|(name, _)| name.clone());
        expected.compare(&names.zip(results).collect(), &imported.structures)?;
    }
    Ok(())
}

/// Makes every size of an input unknown: its name.
fn forget_sizes(input: &mut model::Value) -> String {
    if let Some(model::Type::Tensor(tensor)) = &mut input.ty
        && let Some(shape) = &mut tensor.shape
    {
        shape.dims.iter_mut().for_each(|dim| *dim = model::Dim::Unknown);
    }
    input.name().to_owned()
}
