//! Memory sizes of a model, and those that TVM writes.

use super::{FunctionUsage, Tensor, Usage};
use crate::graph::{Graph, is_temporary, largest};
use crate::params::{Param, by_name};

/// Bytes of all parameters.
pub fn constants_bytes(params: &[Param]) -> u64 {
    params.iter().map(|param| param.data.len() as u64).sum()
}

/// Bytes of the inputs that are not parameters, and of the outputs; for a graph without errors.
pub fn io_bytes(graph: &Graph, params: &[Param]) -> u64 {
    input_bytes(graph, params) + output_bytes(graph)
}

/// TVM's value of the same: it counts all outputs once for each of them.
pub fn tvm_io_bytes(graph: &Graph, params: &[Param]) -> u64 {
    let outputs = output_bytes(graph).saturating_mul(graph.outputs.len() as u64);
    input_bytes(graph, params).saturating_add(outputs)
}

fn input_bytes(graph: &Graph, params: &[Param]) -> u64 {
    let params = by_name(params);
    let inputs = graph.named_inputs().into_iter().filter(|(name, _)| !params.contains_key(name));
    inputs.map(|(_, entry)| bytes(graph, entry)).sum()
}

fn output_bytes(graph: &Graph) -> u64 {
    let mut is_output = vec![false; graph.entries.len()];
    for entry in graph.output_entries() {
        if let Some(is_output) = is_output.get_mut(entry) {
            *is_output = true;
        }
    }
    let outputs = is_output.iter().enumerate().filter(|(_, is_output)| **is_output);
    outputs.map(|(entry, _)| bytes(graph, entry)).sum()
}

fn bytes(graph: &Graph, entry: usize) -> u64 {
    graph.entries.get(entry).and_then(|entry| entry.ty.bytes()).unwrap_or_default()
}

/// Bytes that a run needs except inputs, parameters and outputs, for a graph without errors: each
/// storage of its largest intermediate entry, and the maximum workspace of a function.
pub fn workspace_bytes(graph: &Graph, functions: &[FunctionUsage]) -> u64 {
    let is_temporary = is_temporary(graph);
    let storages = largest(graph, &|entry| is_temporary[entry]);
    let of_function = |usage: &FunctionUsage| usage.workspace.iter().map(|(_, bytes)| *bytes).max();
    let most = functions.iter().filter_map(of_function).max();
    storages.values().sum::<u64>().saturating_add(most.unwrap_or_default())
}

/// TVM's size of a storage: the bytes of the entry whose index is the storage's number.
pub fn tvm_storage_bytes(graph: &Graph, storage: i64) -> Option<u64> {
    graph.entries.get(usize::try_from(storage).ok()?)?.ty.bytes()
}

/// The exact memory of a model on one device, for metadata.
pub fn usage(graph: &Graph, params: &[Param], functions: &[FunctionUsage], device: i64) -> Usage {
    let names = by_name(params);
    let tensor =
        |entry: usize| Tensor { bytes: bytes(graph, entry), dtype: graph.entries[entry].ty.dtype };
    let inputs = graph.named_inputs().into_iter().filter(|(name, _)| !names.contains_key(name));
    let outputs = graph.output_entries().into_iter().enumerate();
    // TVM's names of unnamed outputs.
    let is_single = graph.outputs.len() == 1;
    let name = |index: usize| if is_single { "output".into() } else { format!("output{index}") };
    Usage {
        device,
        constants: constants_bytes(params),
        io: io_bytes(graph, params),
        workspace: workspace_bytes(graph, functions),
        inputs: inputs.map(|(name, entry)| (name.to_owned(), tensor(entry))).collect(),
        outputs: outputs.map(|(index, entry)| (name(index), tensor(entry))).collect(),
    }
}
