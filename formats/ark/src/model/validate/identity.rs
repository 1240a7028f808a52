//! Checks that ids have the same meaning everywhere.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use irc_diag::{Diagnostic, Sink};

use crate::json::OpPlace;
use crate::model::{Buffer, Op, Tensor};

/// A use of a tensor.
#[derive(Clone, Copy)]
struct TensorUse {
    place: OpPlace,
    key: &'static str,
    index: usize,
}

impl TensorUse {
    /// Path of a key of the tensor, or of the tensor itself if `tail` is empty.
    fn path(self, tail: &str) -> String {
        let at = self.place.at();
        let at = at.key(self.key);
        format!("{}{tail}", at.index(self.index))
    }
}

/// All uses of tensors, in the order of the file.
fn mentions<'a>(ops: &'a [(OpPlace, &'a Op)]) -> impl Iterator<Item = (TensorUse, &'a Tensor)> {
    ops.iter().flat_map(|&(place, op)| {
        let lists = [
            ("ReadTensors", &op.reads),
            ("WriteTensors", &op.writes),
            ("ResultTensors", &op.results),
        ];
        lists.into_iter().flat_map(move |(key, tensors)| {
            let mention = move |(index, tensor)| (TensorUse { place, key, index }, tensor);
            tensors.iter().enumerate().map(mention)
        })
    })
}

/// Checks that every tensor id has one definition, and every buffer id one rank and set of tags.
pub(super) fn check(ops: &[(OpPlace, &Op)], sink: &mut Sink) {
    let mut tensors: BTreeMap<u64, (TensorUse, &Tensor)> = BTreeMap::new();
    let mut buffers: BTreeMap<u64, (TensorUse, &Buffer)> = BTreeMap::new();
    for (mention, tensor) in mentions(ops) {
        match tensors.entry(tensor.id) {
            Entry::Vacant(entry) => drop(entry.insert((mention, tensor))),
            Entry::Occupied(entry) => compare_tensors(*entry.get(), (mention, tensor), sink),
        }
        match buffers.entry(tensor.buffer.id) {
            Entry::Vacant(entry) => drop(entry.insert((mention, &tensor.buffer))),
            Entry::Occupied(entry) => {
                compare_buffers(*entry.get(), (mention, &tensor.buffer), sink)
            }
        }
    }
}

fn compare_tensors(first: (TensorUse, &Tensor), second: (TensorUse, &Tensor), sink: &mut Sink) {
    let (a, b) = (first.1, second.1);
    let differs = [
        ("DataType", a.dtype != b.dtype),
        ("Shape", a.shape != b.shape),
        ("Strides", a.strides != b.strides),
        ("Offsets", a.offsets != b.offsets),
        ("PaddedShape", a.padded_shape != b.padded_shape),
        ("Buffer", a.buffer.id != b.buffer.id),
    ];
    for (key, _) in differs.into_iter().filter(|(_, differs)| *differs) {
        let tail = format!(".{key}");
        let message = format!("`{key}` of tensor {} differs from an earlier use", b.id);
        let diagnostic = Diagnostic::error("ark-tensor-redefined", message)
            .path(second.0.path(&tail))
            .related(first.0.path(&tail), "first defined here");
        sink.push(diagnostic);
    }
}

fn compare_buffers(first: (TensorUse, &Buffer), second: (TensorUse, &Buffer), sink: &mut Sink) {
    let (a, b) = (first.1, second.1);
    let differs = [
        ("Rank", "ark-buffer-rank", a.rank != b.rank),
        ("SendTags", "ark-buffer-tags", a.send_tags != b.send_tags),
        ("RecvTags", "ark-buffer-tags", a.recv_tags != b.recv_tags),
    ];
    for (key, code, _) in differs.into_iter().filter(|(_, _, differs)| *differs) {
        let tail = format!(".Buffer.{key}");
        let message = format!("`{key}` of buffer {} differs from an earlier use", b.id);
        let diagnostic = Diagnostic::error(code, message)
            .path(second.0.path(&tail))
            .related(first.0.path(&tail), "first described here");
        sink.push(diagnostic);
    }
}

/// Checks that no tensor is used before the op that produces it.
pub(super) fn check_order(ops: &[(OpPlace, &Op)], sink: &mut Sink) {
    let mut made_at: BTreeMap<u64, (usize, OpPlace)> = BTreeMap::new();
    for (position, &(place, op)) in ops.iter().enumerate() {
        for result in &op.results {
            made_at.entry(result.id).or_insert((position, place));
        }
    }
    for (position, &(place, op)) in ops.iter().enumerate() {
        let lists = [("ReadTensors", &op.reads), ("WriteTensors", &op.writes)];
        for (key, tensors) in lists {
            for (index, tensor) in tensors.iter().enumerate() {
                let Some(&(made, producer)) = made_at.get(&tensor.id) else { continue };
                if made > position {
                    let message = format!("tensor {} is used before it is computed", tensor.id);
                    let mention = TensorUse { place, key, index };
                    let producer = producer.at();
                    let diagnostic = Diagnostic::error("ark-use-before-result", message)
                        .path(mention.path(".Id"))
                        .related(producer.key("ResultTensors").to_string(), "it is made here");
                    sink.push(diagnostic);
                }
            }
        }
    }
}
