//! Storages: their entries, and their live ranges.

use std::collections::BTreeMap;

use irc_diag::{Diagnostic, Sink};

use super::{Graph, NOP};
use irc_diag::clip;

/// After the last node, when outputs are read.
const END: usize = usize::MAX;

/// Bytes of each storage: those of its largest entry; for a graph without errors.
pub fn storages(graph: &Graph) -> BTreeMap<i64, u64> {
    largest(graph, &|_| true)
}

/// Bytes of the storages of some entries: those of the largest of these entries in it.
pub(crate) fn largest(graph: &Graph, counts: &dyn Fn(usize) -> bool) -> BTreeMap<i64, u64> {
    let mut sizes = BTreeMap::new();
    for (_, entry) in graph.entries.iter().enumerate().filter(|(index, _)| counts(*index)) {
        let bytes = entry.ty.bytes().unwrap_or_default();
        let largest = sizes.entry(entry.storage).or_insert(bytes);
        *largest = bytes.max(*largest);
    }
    sizes
}

/// For each entry, whether it is neither an input nor an output; for a graph without errors.
pub fn is_temporary(graph: &Graph) -> Vec<bool> {
    let mut temporary = vec![true; graph.entries.len()];
    let inputs = graph.named_inputs().into_iter().map(|(_, entry)| entry);
    for entry in inputs.chain(graph.output_entries()) {
        if let Some(temporary) = temporary.get_mut(entry) {
            *temporary = false;
        }
    }
    temporary
}

/// The live range of an entry in a storage.
#[derive(Clone, Copy)]
struct LiveRange {
    /// First node of the range.
    begin: usize,
    /// Last node of the range.
    end: usize,
    /// The entry.
    entry: usize,
}

/// Reports storages with overlapping live ranges.
pub(super) fn check(graph: &Graph, sink: &mut Sink) {
    let first = graph.first_entries();
    let lives = lives(graph);
    let storage = |life: &LiveRange| graph.entries[life.entry].storage;
    let key = |life: &LiveRange| (storage(life), life.begin);
    let lives = irc_diag::sorted(lives, |a, b| key(a).cmp(&key(b)));
    for lives in lives.chunk_by(|a, b| storage(a) == storage(b)) {
        devices(graph, lives, sink);
        let mut longest: Option<LiveRange> = None;
        for &life in lives {
            if let Some(other) = longest.filter(|other| other.end >= life.begin) {
                sink.push(overlap(graph, &first, other, life));
            }
            longest = longest.filter(|other| other.end >= life.end).or(Some(life));
        }
    }
}

fn overlap(graph: &Graph, first: &[usize], old: LiveRange, new: LiveRange) -> Diagnostic {
    let producer = |life: LiveRange| {
        let node = first.partition_point(|first| *first <= life.entry) - 1;
        format!("`{}` (entry {})", clip(&graph.nodes[node].name), life.entry)
    };
    let storage = graph.entries[new.entry].storage;
    let (makes, made) = (producer(new), producer(old));
    let message = format!("{makes} is written to storage {storage}, where {made} is still live");
    Diagnostic::error("mlf-graph-overlap", message)
        .path(format!("$.attrs.storage_id[1][{}]", new.entry))
        .related(format!("$.attrs.storage_id[1][{}]", old.entry), "still live")
}

/// All entries of a storage are on one device.
fn devices(graph: &Graph, lives: &[LiveRange], sink: &mut Sink) {
    let device = |life: &LiveRange| graph.entries[life.entry].device;
    for pair in lives.windows(2).filter(|pair| device(&pair[0]) != device(&pair[1])) {
        let message = "entries of two devices share a storage";
        let path = format!("$.attrs.device_index[1][{}]", pair[1].entry);
        sink.push(Diagnostic::error("mlf-graph-device", message).path(path));
    }
}

/// The live range of each tensor. Inputs and parameters are live from one run to the next. The result
/// of [`NOP`] is its input under another name.
fn lives(graph: &Graph) -> Vec<LiveRange> {
    let first = graph.first_entries();
    let mut lives: Vec<LiveRange> = vec![];
    // The tensor of each entry.
    let mut named: Vec<usize> = vec![];
    for (index, node) in graph.nodes.iter().enumerate() {
        let Some(call) = &node.call else {
            named.push(lives.len());
            lives.push(LiveRange { begin: 0, end: END, entry: first[index] });
            continue;
        };
        let operands: Vec<usize> =
            call.inputs.iter().map(|edge| first[edge.node] + edge.output).collect();
        for &operand in &operands {
            let end = &mut lives[named[operand]].end;
            *end = (*end).max(index);
        }
        for output in 0..call.outputs {
            let entry = first[index] + output;
            let storage = |entry: usize| graph.entries[entry].storage;
            let same = operands.first().filter(|_| call.function == NOP);
            match same.filter(|operand| storage(**operand) == storage(entry)) {
                Some(&operand) => named.push(named[operand]),
                None => {
                    named.push(lives.len());
                    lives.push(LiveRange { begin: index, end: index, entry });
                }
            }
        }
    }
    for entry in graph.output_entries() {
        lives[named[entry]].end = END;
    }
    lives
}
