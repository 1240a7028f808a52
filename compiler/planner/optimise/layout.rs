//! Which buffers a plan must keep, and where the executor puts them.
//!
//! The executor lays buffers back to back by id. Those that are kept have their ids; those that are
//! pooled come after them under new ids, so where the kept ones lie does not depend on how the pool
//! is used.
use irc_ark_format::model::{Buffer, Op, OpKind, Region, Tensor, buffer_bytes};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that every buffer starts at a multiple of.
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
        let hidden = hidden(ops);
        let mut pooled = buffer_bytes(local);
        pooled.retain(|id, _| hidden.contains(id));
        Self { pooled, first_id }
    }
}

/// What is known of a buffer so far.
#[derive(Default)]
struct BufferUses {
    writes: Vec<(Region, bool)>,
    is_visible: bool,
}

/// Buffers whose every byte is written before it is read and read after it is last written, and
/// that no `Noop` keeps and no other rank sees: whoever runs the plan cannot tell where they are.
fn hidden(ops: &[(usize, Op)]) -> BTreeSet<u64> {
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
            // What is overwritten whole is seen by nobody later.
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

/// Whether computation may touch more than the elements.
fn pads(tensor: &Tensor) -> bool {
    tensor.padded_shape != tensor.shape
}
