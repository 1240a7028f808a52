//! Checks random results by their distribution: the expected ones are one draw of another generator.

use irc_common_format::model::{Graph, Module};
use irc_onnx_ops::cases::Values;
use irc_tensor::Tensor;
use std::collections::BTreeMap;

/// Largest distance of a count from its mean, in standard deviations: exceeded once in two million draws.
const DEVIATIONS: f64 = 5.0;

/// Whether the results of a case with a random operator are a possible draw; `None` if there is none. The other
/// properties hold exactly: types, shapes, which values occur, and that masks agree.
pub fn check(
    module: &Module,
    inputs: &Values,
    expected: &Values,
    found: &BTreeMap<String, Tensor>,
) -> Option<Result<(), String>> {
    let graph = module.graph.as_ref()?;
    let inputs = inputs.to_tensors().ok()?;
    let numbers = |index: usize| inputs.get(graph.inputs.get(index)?.name()).map(Tensor::to_f64);
    let results: Option<Vec<&Tensor>> =
        graph.outputs.iter().map(|output| found.get(output.name())).collect();
    let results = results?;
    let x = numbers(0)?;
    let verdict = if has(graph, "Dropout") {
        let ratio = numbers(1)?.first().copied()?;
        dropped(&x, ratio, &results)
    } else if has(graph, "Bernoulli") {
        truths(&results[0].to_f64(), x.iter().copied())
    } else if has(graph, "RandomUniformLike") && has(graph, "Greater") {
        // The function body of Bernoulli: 1 where a uniform number is greater than the input.
        truths(&results[0].to_f64(), x.iter().map(|p| 1.0 - p))
    } else {
        return None;
    };
    Some(same_types(graph, expected, found).and(verdict))
}

fn has(graph: &Graph, op: &str) -> bool {
    graph.nodes.iter().any(|node| node.op == op)
}

fn same_types(
    graph: &Graph,
    expected: &Values,
    found: &BTreeMap<String, Tensor>,
) -> Result<(), String> {
    let expected = expected.to_tensors()?;
    for output in &graph.outputs {
        let (expected, found) = (&expected[output.name()], &found[output.name()]);
        if expected.ty() != found.ty() {
            return Err(format!("expected {}, found {}", expected.ty(), found.ty()));
        }
    }
    Ok(())
}

/// Zeros and ones, each 1 with a probability.
fn truths(found: &[f64], probabilities: impl Iterator<Item = f64>) -> Result<(), String> {
    if let Some(other) = found.iter().find(|value| **value != 0.0 && **value != 1.0) {
        return Err(format!("expected 0 or 1, found {other}"));
    }
    plausible(found.iter().sum(), probabilities)
}

/// Whether a number of successes is near its mean.
fn plausible(count: f64, probabilities: impl Iterator<Item = f64>) -> Result<(), String> {
    let (mut mean, mut variance) = (0.0, 0.0);
    for p in probabilities {
        mean += p;
        variance += p * (1.0 - p);
    }
    if (count - mean).abs() <= DEVIATIONS * variance.sqrt() {
        return Ok(());
    }
    Err(format!("{count} successes are improbable, the mean is {mean}"))
}

/// Elements are kept and scaled, or 0; the mask says which are kept.
fn dropped(x: &[f64], ratio: f64, results: &[&Tensor]) -> Result<(), String> {
    let y = results[0].to_f64();
    let kept = |index: usize| (y[index] - x[index] / (1.0 - ratio)).abs() <= 1e-5 * x[index].abs();
    if let Some(index) = (0..x.len()).find(|index| y[*index] != 0.0 && !kept(*index)) {
        return Err(format!("element {index}: {} is neither kept nor dropped", y[index]));
    }
    if let Some(mask) = results.get(1) {
        let mask = mask.to_f64();
        let agrees = |index: usize| x[index] == 0.0 || (mask[index] != 0.0) == (y[index] != 0.0);
        if let Some(index) = (0..x.len()).find(|index| !agrees(*index)) {
            return Err(format!("element {index}: the mask differs from the result"));
        }
    }
    let count = y.iter().filter(|value| **value != 0.0).count();
    plausible(count as f64, x.iter().filter(|value| **value != 0.0).map(|_| 1.0 - ratio))
}
