//! What the nodes of a model do to its buffers.
use irc_ark_format::model::{DataType, Node, Op, OpKind, Region, Tensor, buffer_bytes};
use std::collections::BTreeMap;

/// A box of a buffer that an op reads or writes: a tensor and the extents taken.
#[derive(Clone, Copy)]
pub struct Access<'m> {
    /// The tensor.
    pub tensor: &'m Tensor,
    /// Its padded shape for matmuls, which compute on padding; else its shape.
    pub shape: &'m [i64],
}

impl<'m> Access<'m> {
    fn of(op: &Op, tensor: &'m Tensor) -> Self {
        let shape = if op.kind == OpKind::Matmul { &tensor.padded_shape } else { &tensor.shape };
        Self { tensor, shape }
    }

    /// What an op reads.
    pub fn reads(op: &'m Op) -> impl Iterator<Item = Self> {
        op.reads.iter().map(move |tensor| Self::of(op, tensor))
    }

    /// What an op writes.
    pub fn writes(op: &'m Op) -> impl Iterator<Item = Self> {
        op.writes.iter().map(move |tensor| Self::of(op, tensor))
    }

    /// The bytes touched.
    pub fn region(&self) -> Region {
        if self.shape == self.tensor.padded_shape {
            Region::padded(self.tensor)
        } else {
            Region::of(self.tensor)
        }
    }
}

/// Whether an op does nothing to memory.
pub fn is_idle(op: &Op) -> bool {
    op.is_virtual || op.kind == OpKind::Noop
}

/// Element types are those of the tensor level, where `BYTE` is `UINT8`.
pub fn computed(dtype: DataType) -> DataType {
    if dtype == DataType::Byte { DataType::Uint8 } else { dtype }
}

/// One buffer over the whole model.
struct Buffer {
    bytes: u64,
    dtype: DataType,
    is_argument: bool,
    is_read_first: bool,
    is_written: bool,
    is_read_after_write: bool,
}

/// The buffers of a model, by id.
pub struct Buffers(BTreeMap<u64, Buffer>);

impl Buffers {
    /// Finds out the size, type and use of every buffer. Virtual ops do not count, so that a model
    /// means the same with and without them.
    ///
    /// # Errors
    /// A buffer that is not a whole number of elements.
    pub fn of(nodes: &[&Node]) -> Result<Self, String> {
        let mut buffers = Self::declared(nodes)?;
        let mut complete: BTreeMap<u64, bool> = BTreeMap::new();
        for op in nodes.iter().map(|node| &node.op).filter(|op| !is_idle(op)) {
            for access in Access::reads(op) {
                let id = access.tensor.buffer.id;
                let is_complete = complete.get(&id).copied().unwrap_or_default();
                let buffer = buffers.buffer_mut(id);
                buffer.is_argument |= !is_complete;
                buffer.is_read_first |= !buffer.is_written;
                buffer.is_read_after_write = true;
            }
            for access in Access::writes(op) {
                let id = access.tensor.buffer.id;
                let is_complete = complete.entry(id).or_default();
                let buffer = buffers.buffer_mut(id);
                let is_whole = is_whole(&access.region(), buffer.bytes);
                buffer.is_argument |= !*is_complete && !is_whole;
                *is_complete |= is_whole;
                buffer.is_written = true;
                buffer.is_read_after_write = false;
            }
        }
        Ok(buffers)
    }

    fn declared(nodes: &[&Node]) -> Result<Self, String> {
        let tensors = || {
            let ops = nodes.iter().map(|node| &node.op).filter(|op| !op.is_virtual);
            ops.flat_map(Op::tensors)
        };
        let sizes = buffer_bytes(tensors());
        let mut buffers = BTreeMap::new();
        for tensor in tensors() {
            let (id, dtype) = (tensor.buffer.id, computed(tensor.dtype));
            buffers.entry(id).or_insert_with(|| Buffer {
                bytes: sizes[&id],
                dtype,
                is_argument: false,
                is_read_first: false,
                is_written: false,
                is_read_after_write: false,
            });
        }
        let odd = buffers.iter().find(|(_, buffer)| buffer.bytes % buffer.dtype.bytes() != 0);
        odd.map_or(Ok(()), |(id, Buffer { bytes, dtype, .. })| {
            Err(format!(
                "buffer {id}: expected a whole number of elements of its first tensor's type \
                 {dtype}, found {bytes} bytes"
            ))
        })?;
        Ok(Self(buffers))
    }

    fn buffer_mut(&mut self, id: u64) -> &mut Buffer {
        self.0.get_mut(&id).expect("every tensor's buffer was declared")
    }

    /// Bytes of a buffer.
    pub fn bytes(&self, id: u64) -> u64 {
        self.0[&id].bytes
    }

    /// Element type of a buffer as a whole.
    pub fn dtype(&self, id: u64) -> DataType {
        self.0[&id].dtype
    }

    /// 1-D shape of a buffer as a whole.
    pub fn shape(&self, id: u64) -> Vec<i64> {
        let Buffer { bytes, dtype, .. } = &self.0[&id];
        vec![(bytes / dtype.bytes()).cast_signed()]
    }

    /// Buffers whose first contents matter.
    pub fn arguments(&self) -> Vec<u64> {
        self.having(|buffer| buffer.is_argument)
    }

    /// Whether nothing reads a buffer before some of it is written.
    pub fn is_kept(&self, id: u64) -> bool {
        !self.0[&id].is_read_first
    }

    /// Buffers written.
    pub fn written(&self) -> Vec<u64> {
        self.having(|buffer| buffer.is_written)
    }

    /// Buffers that nothing reads after their last write.
    pub fn outputs(&self) -> Vec<u64> {
        self.having(|buffer| buffer.is_written && !buffer.is_read_after_write)
    }

    fn having(&self, keep: impl Fn(&Buffer) -> bool) -> Vec<u64> {
        self.0.iter().filter(|(_, buffer)| keep(buffer)).map(|(id, _)| *id).collect()
    }
}

/// Whether a region is all of a buffer of that many bytes.
pub fn is_whole(region: &Region, bytes: u64) -> bool {
    region.bytes() == bytes
}
