//! Which buffers a plan must preserve, and where the executor places them.
//!
//! The executor places buffers one after another by id. Preserved buffers keep their ids; pooled
//! buffers come after them under new ids, so the places of the preserved ones do not depend on how the
//! pool is used.
use irc_ark_format::model::{Buffer, Op, OpKind, Region, Tensor, buffer_bytes};
use std::collections::{BTreeMap, BTreeSet};

/// Alignment of every buffer in bytes.
pub const ALIGNMENT: u64 = 16;

/// Buffers and their places.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Bytes of each buffer that may share memory with others.
    pub pooled: BTreeMap<u64, u64>,
    /// The first id of the pool.
    pub first_id: u64,
}

impl Layout {
    /// The layout of ops in the order of the file.
    pub fn of(ops: &[(usize, Op)]) -> Self {
        let tensors = || ops.iter().flat_map(|(_, op)| op.tensors());
        let first_id = tensors().map(|tensor| tensor.buffer.id + 1).max().unwrap_or(0);
        let local = tensors().filter(|tensor| tensor.buffer.rank < 0);
        let hidden = hidden_buffers(ops);
        let mut pooled = buffer_bytes(local);
        pooled.retain(|id, _| hidden.contains(id));
        Self { pooled, first_id }
    }
}

/// The uses of a buffer so far.
#[derive(Default)]
struct BufferUses {
    writes: Vec<(Region, bool)>,
    is_visible: bool,
}

/// Buffers whose every byte is written before it is read and read after it is last written, and
/// that no `Noop` preserves and no other rank sees: the user of the plan cannot observe where they are.
fn hidden_buffers(ops: &[(usize, Op)]) -> BTreeSet<u64> {
    let mut seen: BTreeMap<u64, BufferUses> = BTreeMap::new();
    for (_, op) in ops {
        for tensor in op.tensors() {
            let seen = seen.entry(tensor.buffer.id).or_default();
            seen.is_visible |= is_shared(&tensor.buffer) || op.kind == OpKind::Noop;
        }
        for tensor in &op.reads {
            let region = Region::padded(tensor);
            let seen = seen.entry(tensor.buffer.id).or_default();
            seen.is_visible |= !seen.writes.iter().any(|(write, _)| write.covers(&region));
            for (write, is_read) in &mut seen.writes {
                *is_read |= region.covers(write);
            }
        }
        for tensor in &op.writes {
            let region = Region::of(tensor);
            let seen = seen.entry(tensor.buffer.id).or_default();
            seen.is_visible |= pads(tensor);
            // Nothing reads a region later that is overwritten as a whole.
            seen.writes.retain(|(write, is_read)| !*is_read || !region.covers(write));
            seen.writes.push((region, false));
        }
    }
    let is_hidden =
        |seen: &BufferUses| !seen.is_visible && seen.writes.iter().all(|(_, is_read)| *is_read);
    seen.iter().filter(|(_, seen)| is_hidden(seen)).map(|(id, _)| *id).collect()
}

fn is_shared(buffer: &Buffer) -> bool {
    buffer.rank >= 0 || !buffer.send_tags.is_empty() || !buffer.recv_tags.is_empty()
}

/// Whether computation may access more than the elements.
fn pads(tensor: &Tensor) -> bool {
    tensor.padded_shape != tensor.shape
}
