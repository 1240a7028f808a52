//! Operands and outputs of one op that share bytes.

use irc_diag::{Diagnostic, Sink};
use irc_json::At;

use crate::model::{Op, OpKind, Region, Tensor};

/// An op may overwrite an operand only elementwise: its tasks run in any order, and each may
/// write only elements that it alone has read.
pub(super) fn check(op: &Op, at: &At<'_>, sink: &mut Sink) {
    if op.is_virtual || op.kind.is_communication() {
        return;
    }
    for (w, written) in op.writes.iter().enumerate() {
        let region = Region::of(written);
        for (r, read) in op.reads.iter().enumerate() {
            // A reduction onto the tensor that it reads has a separate diagnostic.
            let named = op.kind.is_reduce() && read.id == written.id;
            if named || in_place(op.kind, read, written) {
                continue;
            }
            let Some((first, end)) = Region::of(read).common(&region) else { continue };
            let message = format!("`{}` overwrites elements that it reads elsewhere", op.kind);
            let buffer = written.buffer.id;
            let bytes =
                format!("bytes [{first}, {end}) of buffer {buffer} are read and overwritten");
            let diagnostic = Diagnostic::error("ark-overlap", message)
                .path(at.key("WriteTensors").index(w).to_string())
                .related(at.key("ReadTensors").index(r).to_string(), "read here")
                .with_note(bytes)
                .with_note("its tasks run in any order; only equal boxes may be written in place")
                .help("write to another buffer, and copy from there if it must be here");
            sink.push(diagnostic);
        }
    }
}

/// Whether every element is read only by the task that writes it.
fn in_place(kind: OpKind, read: &Tensor, written: &Tensor) -> bool {
    let same_size = read.dtype.bytes() == written.dtype.bytes();
    kind.is_elementwise() && same_size && Region::of(read) == Region::of(written)
}
