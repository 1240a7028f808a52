//! Compares compiled code with the reference evaluator.

pub mod files;
pub mod graphs;
pub mod levels;
pub mod pools;

use irc::{ImportOptions, Results, Session, Target};
use irc_tensor::{Tensor, Tolerance, compare, seed_for};
use std::collections::BTreeMap;

/// Why there is no agreement. The texts are for whoever reads the test's output.
#[derive(Debug)]
#[allow(dead_code)]
pub enum Disagreement {
    /// Not compared: the model communicates, or is too large for the reference.
    Left(String),
    /// The results differ, or the model does not compile.
    Wrong(String),
}

/// Compiles a model, runs it on random inputs, and compares every written buffer.
pub fn agreement(text: &str, flops_limit: u64) -> Result<(), Disagreement> {
    let wrong = |why: String| Disagreement::Wrong(why);
    let (options, session) = (ImportOptions::default().results(Results::All), Session::new());
    let model = session.parse("model.json", text.to_owned().into(), &options);
    let model = model.map_err(|error| wrong(error.to_string()))?;
    let report = model.explain_fusion(Target::host()).map_err(|error| {
        let messages: Vec<_> =
            error.diagnostics.iter().map(|found| found.message.clone()).collect();
        let communicates = messages.iter().all(|message| message.contains("communication"));
        let text = messages.join("; ");
        if communicates { Disagreement::Left(text) } else { Disagreement::Wrong(text) }
    })?;
    if report.before.work > flops_limit {
        return Err(Disagreement::Left("too large for the reference".to_owned()));
    }
    let compiled = model.library(Target::host()).map_err(|f| wrong(format!("{f:?}")))?;
    let mut runner = compiled.runner().map_err(|e| wrong(e.to_string()))?;
    let mut inputs: BTreeMap<String, Tensor> = BTreeMap::new();
    for port in &compiled.interface.inputs {
        let ty = port.tensor_type().ok_or_else(|| wrong("unknown type".to_owned()))?;
        let seed = seed_for(1, &port.name);
        let tensor = Tensor::random(ty, seed).map_err(|e| wrong(e.to_string()))?;
        inputs.insert(port.name.clone(), shrink(tensor));
    }
    let expected = model.evaluate(inputs.clone());
    let expected = expected.map_err(|error| wrong(format!("{error:?}")))?;
    let actual = runner.run(inputs).map_err(|e| wrong(e.to_string()))?;
    for (buffer, expected) in &expected {
        let actual = actual.get(buffer).ok_or_else(|| wrong(format!("{buffer} is missing")))?;
        let result = compare(expected, actual, Tolerance::of(expected.dtype())).map_err(wrong)?;
        if !result.is_match() {
            return Err(wrong(format!("{buffer}: {result}")));
        }
    }
    Ok(())
}

/// Keeps long chains of half-precision products away from overflow, where rounding decides
/// between a number and infinity.
fn shrink(mut tensor: Tensor) -> Tensor {
    if tensor.dtype().is_float() {
        for index in 0..tensor.elements() {
            tensor.set_f64(index, tensor.get_f64(index) / 8.0);
        }
    }
    tensor
}
