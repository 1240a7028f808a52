//! The subset of graphs that every client accepts: TVM's C++ runtimes, the DLR runtime, TVM's C runtime.
//!
//! The limits are those of the C runtime, whose buffers have fixed sizes: beyond them it hangs or fails.

use irc_diag::{Diagnostic, Sink};

use super::{Call, Graph, NOP};
use crate::graph::COPY;
use irc_diag::clip;

/// Maximum number of arguments of a function.
const MAX_ARGUMENTS: usize = 9;

/// Maximum lengths of names of inputs and of functions, and of keys and values of attributes, in bytes.
const MAX_INPUT_NAME: usize = 79;
const MAX_FUNCTION_NAME: usize = 119;
const MAX_KEY: usize = 19;
const MAX_VALUE: usize = 119;

/// Reasons why some client rejects a graph without errors: warnings with paths, but no
/// spans.
pub fn outside_subset(graph: &Graph) -> Vec<Diagnostic> {
    let mut sink = Sink::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let path = || format!("$.nodes[{index}].name");
        let longest = if node.call.is_some() { MAX_FUNCTION_NAME } else { MAX_INPUT_NAME };
        name(&node.name, longest, path(), &mut sink);
        if let Some(call) = &node.call {
            of_call(index, call, &mut sink);
        }
    }
    for (index, entry) in graph.entries.iter().enumerate() {
        if !(1..=6).contains(&entry.ty.shape.len()) {
            let message = format!("TVM's C runtime does not support rank {}", entry.ty.shape.len());
            let path = format!("$.attrs.shape[1][{index}]");
            warn(&mut sink, "mlf-subset-rank", message, path);
        }
    }
    gap(graph, &mut sink);
    sink.into_diagnostics()
}

fn warn(sink: &mut Sink, code: &'static str, message: String, path: String) {
    sink.push(Diagnostic::warning(code, message).path(path));
}

fn name(name: &str, longest: usize, path: String, sink: &mut Sink) {
    if name.len() > longest || name.is_empty() || !name.bytes().all(is_plain) {
        let message = format!("`{}` is not a plain name of at most {longest} bytes", clip(name));
        warn(sink, "mlf-subset-name", message, path);
    }
}

/// Printable ASCII that needs no escape in JSON.
fn is_plain(byte: u8) -> bool {
    (byte.is_ascii_graphic() || byte == b' ') && byte != b'"' && byte != b'\\'
}

fn of_call(index: usize, call: &Call, sink: &mut Sink) {
    let place = format!("$.nodes[{index}].attrs");
    let function = format!("{place}.func_name");
    name(&call.function, MAX_FUNCTION_NAME, function.clone(), sink);
    if [NOP, COPY].contains(&call.function.as_str()) {
        let message = format!("`{}` is not supported by every runtime", call.function);
        warn(sink, "mlf-subset-builtin", message, function);
    }
    let arguments = call.inputs.len() + call.outputs;
    if arguments > MAX_ARGUMENTS {
        let message = format!(
            "expected at most {MAX_ARGUMENTS} arguments for TVM's C runtime, found {arguments}"
        );
        warn(sink, "mlf-subset-arguments", message, format!("$.nodes[{index}].inputs"));
    }
    if call.flatten {
        let message = "tensors are passed flattened, which no current compiler requests".into();
        warn(sink, "mlf-subset-flatten", message, format!("{place}.flatten_data"));
    }
    for (key, value) in call.attributes.iter() {
        let is_plain = key.bytes().chain(value.bytes()).all(is_plain);
        if key.len() > MAX_KEY || value.len() > MAX_VALUE || !is_plain {
            let message = format!("TVM's C runtime hangs on attribute `{}`", clip(key));
            warn(sink, "mlf-subset-attribute", message, format!("{place}[{key:?}]"));
        }
    }
}

/// Checks that storages are numbered without gaps.
fn gap(graph: &Graph, sink: &mut Sink) {
    let storages = super::storages(graph);
    let gap = storages.keys().zip(0..).find(|(storage, expected)| *storage != expected);
    if let Some((_, missing)) = gap {
        let message = format!("there is no storage {missing}: TVM's C runtime fails");
        warn(sink, "mlf-subset-gap", message, "$.attrs.storage_id".into());
    }
}
