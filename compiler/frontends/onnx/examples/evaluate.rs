//! Evaluates ONNX test cases with the reference evaluator: folders with `model.onnx` and
//! `test_data_set_N`.
//!
//! `cargo run -p irc-onnx-ops --example evaluate -- DIR... [--only PART] [--quiet] [--open]`: every
//! folder below a DIR that holds a model is a case. Prints a line per case and the totals. With `--open`
//! the importer does not know the sizes of inputs.

use irc_onnx_ops::ImportOptions;
use irc_onnx_ops::cases::{self, Case, import_for, import_open};
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

fn run(folder: &Path, open: bool) -> Result<(), String> {
    let case = Case::read(folder)?;
    let import = |module: &_, inputs: &_| match open {
        true => import_open(module, inputs),
        false => import_for(module, inputs, ImportOptions::default()),
    };
    for (inputs, expected) in &case.sets {
        let imported = import(&case.module, inputs).map_err(|diagnostics| {
            diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        })?;
        let given = inputs.to_tensors()?;
        let results = imported.graph.eval(&given).map_err(|error| error.to_string())?;
        let names = imported.graph.outputs.iter().map(|(name, _)| name.clone());
        expected.compare(&names.zip(results).collect(), &imported.structures)?;
    }
    Ok(())
}
