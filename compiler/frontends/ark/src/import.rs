//! Imports a model as a graph.

use crate::Accumulate;
use crate::access::{Access, Buffers, is_idle};
use crate::meaning::{NO_COMMUNICATION, evaluate};
use crate::memory::Memory;
use irc_ark_format::model::{Model, Node, Op};
use irc_diag::Diagnostic;
use irc_tl::{Builder, Built, Graph, Results};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of buffer names in a message.
const MAX_LISTED: usize = 16;

/// Options of the import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ImportOptions {
    /// Which of the written buffers are outputs. For all and outputs, they are in ascending order of
    /// ids; an output is a buffer that no node reads after its last write.
    pub results: Results,
    /// How sums and products accumulate.
    pub accumulate: Accumulate,
}

/// The name of the input and output of a buffer.
pub fn buffer_name(id: u64) -> String {
    format!("buffer_{id}")
}

/// Imports a valid model as a graph of the tensor level.
///
/// The origin of each node is the path of its op in the model, `$.Nodes[3].Op`: see
/// [`Document::source_path`](irc_ark_format::model::Document::source_path) for its path in the file.
/// [`Graph::preserved`] has the buffers that no node reads before they are at least partly written.
///
/// # Errors
/// All errors, in order: buffers whose size is not a whole number of elements, names of results
/// that are not written, then every node that communicates or cannot be imported. The paths are those
/// of the model.
pub fn import(model: &Model, options: &ImportOptions) -> Result<Graph, Vec<Diagnostic>> {
    let buffers = Buffers::of(model)?;
    let mut diagnostics = vec![];
    let returned = returned(&buffers, &options.results, &mut diagnostics);
    let mut builder = Builder::new();
    let mut inputs = vec![];
    for id in buffers.arguments() {
        inputs.push((id, builder.input(buffer_name(id), buffers.ty(id).into())));
    }
    let mut memory = Memory::new(&buffers, inputs.iter().copied());
    for (index, node) in model.nodes.iter().enumerate().filter(|(_, node)| !is_idle(&node.op)) {
        let path = format!("$.Nodes[{index}].Op");
        builder.set_origin(Some(path.as_str().into()));
        let Err(wrong) = lower(&mut builder, &mut memory, node, options.accumulate) else {
            continue;
        };
        diagnostics.push(wrong.path(path));
        for tensor in &node.op.writes {
            // An error here is repeated where the buffer is read.
            let _ = memory.replace(&mut builder, tensor.buffer.id);
        }
    }
    for id in returned {
        match memory.result(&mut builder, id) {
            Ok(value) => builder.output(buffer_name(id), value),
            Err(error) => diagnostics.push(Diagnostic::error("ark-unsupported", error.to_string())),
        }
    }
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let mut graph = builder.finish();
    let preserved = inputs.iter().filter(|(id, _)| buffers.is_written_first(*id));
    graph.preserved = preserved.map(|(_, value)| *value).collect::<BTreeSet<_>>();
    Ok(graph)
}

/// Reads the op's tensors from memory, computes, writes.
fn lower(
    builder: &mut Builder,
    memory: &mut Memory<'_>,
    node: &Node,
    mode: Accumulate,
) -> Result<(), Diagnostic> {
    let Node { id, op, .. } = node;
    if op.kind.is_communication() {
        let message = format!("{} '{}' of node {id}: {NO_COMMUNICATION}", op.kind, op.name);
        return Err(Diagnostic::error("ark-communication", message)
            .help("plans of ARK run it: compile the model of each rank to a plan"));
    }
    write(builder, memory, op, mode)
        .map_err(|error| Diagnostic::error("ark-unsupported", error.to_string()))
}

fn write(builder: &mut Builder, memory: &mut Memory<'_>, op: &Op, mode: Accumulate) -> Built<()> {
    let mut reads = vec![];
    for access in Access::reads(op) {
        reads.push(memory.read(builder, access)?);
    }
    let mut writes = Access::writes(op);
    let (Some(output), None) = (writes.next(), writes.next()) else {
        return Err(format!("{}: expected one tensor written", op.kind).into());
    };
    let value = evaluate(builder, op, &reads, output.shape, mode)?;
    memory.write(builder, output, value)
}

/// The requested buffers.
fn returned(buffers: &Buffers, results: &Results, diagnostics: &mut Vec<Diagnostic>) -> Vec<u64> {
    match results {
        Results::All => buffers.written(),
        Results::Outputs => buffers.outputs(),
        Results::Named(names) => {
            let written = buffers.written();
            let by_name: BTreeMap<String, u64> =
                written.iter().map(|id| (buffer_name(*id), *id)).collect();
            let (mut ids, mut taken) = (vec![], BTreeSet::new());
            for name in names {
                match by_name.get(name) {
                    Some(id) => ids.extend(taken.insert(*id).then_some(*id)),
                    None => diagnostics.push(unknown(name, &written)),
                }
            }
            ids
        }
    }
}

fn unknown(name: &str, written: &[u64]) -> Diagnostic {
    let listed: Vec<String> = written.iter().take(MAX_LISTED).map(|id| buffer_name(*id)).collect();
    let more = written.len().saturating_sub(MAX_LISTED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Diagnostic::error("ark-unknown-result", format!("no node writes '{name}'"))
        .help(format!("the model writes {}{more}", listed.join(", ")))
}
