//! How the nodes of a model access its buffers.

use irc_ark_format::model::{DataType, Family, Model, Op, Region, Tensor, buffer_bytes};
use irc_diag::Diagnostic;
use irc_tl::{DType, TensorType};
use std::collections::BTreeMap;

/// A box of a buffer that an op reads or writes: a tensor and the accessed extents.
#[derive(Clone, Copy)]
pub(crate) struct Access<'m> {
    /// The tensor.
    pub tensor: &'m Tensor,
    /// Its padded shape for matmuls, which compute on padding; otherwise its shape.
    pub shape: &'m [i64],
}

impl<'m> Access<'m> {
    fn of(op: &Op, tensor: &'m Tensor) -> Self {
        let shape =
            if op.kind.family() == Family::Product { &tensor.padded_shape } else { &tensor.shape };
        Self { tensor, shape }
    }

    /// The reads of an op.
    pub fn reads(op: &'m Op) -> impl Iterator<Item = Self> {
        op.reads.iter().map(move |tensor| Self::of(op, tensor))
    }

    /// The writes of an op.
    pub fn writes(op: &'m Op) -> impl Iterator<Item = Self> {
        op.writes.iter().map(move |tensor| Self::of(op, tensor))
    }

    /// The accessed bytes.
    pub fn region(&self) -> Region {
        if self.shape == self.tensor.padded_shape {
            Region::padded(self.tensor)
        } else {
            Region::of(self.tensor)
        }
    }
}

/// Whether an op does not access memory.
pub(crate) fn is_idle(op: &Op) -> bool {
    op.is_virtual || op.kind.family() == Family::Idle
}

/// The element type used for a data type: `u8` for `BYTE`.
pub fn element_type(dtype: DataType) -> DType {
    match dtype {
        DataType::Fp32 => DType::F32,
        DataType::Fp16 => DType::F16,
        DataType::Bf16 => DType::BF16,
        DataType::Int32 => DType::I32,
        DataType::Uint32 => DType::U32,
        DataType::Int8 => DType::I8,
        DataType::Uint8 | DataType::Byte => DType::U8,
    }
}

/// One buffer over the whole model.
struct Buffer {
    bytes: u64,
    dtype: DataType,
    /// Index of the first node that uses it.
    node: usize,
    is_argument: bool,
    is_read_first: bool,
    is_written: bool,
    is_read_after_write: bool,
}

/// The buffers of a model, by id.
pub(crate) struct Buffers(BTreeMap<u64, Buffer>);

impl Buffers {
    /// Determines the size, type and use of every buffer. Virtual ops are ignored, so that a model
    /// means the same with and without them.
    ///
    /// # Errors
    /// All buffers whose size is not a whole number of elements.
    pub fn of(model: &Model) -> Result<Self, Vec<Diagnostic>> {
        let mut buffers = Self::declared(model)?;
        let mut complete: BTreeMap<u64, bool> = BTreeMap::new();
        for op in model.nodes.iter().map(|node| &node.op).filter(|op| !is_idle(op)) {
            for access in Access::reads(op) {
                let id = access.tensor.buffer.id;
                let is_complete = complete.get(&id).copied().unwrap_or_default();
                let Some(buffer) = buffers.0.get_mut(&id) else { continue };
                buffer.is_argument |= !is_complete;
                buffer.is_read_first |= !buffer.is_written;
                buffer.is_read_after_write = true;
            }
            for access in Access::writes(op) {
                let id = access.tensor.buffer.id;
                let is_complete = complete.entry(id).or_default();
                let Some(buffer) = buffers.0.get_mut(&id) else { continue };
                let is_whole = access.region().bytes() == buffer.bytes;
                buffer.is_argument |= !*is_complete && !is_whole;
                *is_complete |= is_whole;
                buffer.is_written = true;
                buffer.is_read_after_write = false;
            }
        }
        Ok(buffers)
    }

    fn declared(model: &Model) -> Result<Self, Vec<Diagnostic>> {
        let tensors = || {
            let ops = model.nodes.iter().map(|node| &node.op).enumerate();
            let ops = ops.filter(|(_, op)| !op.is_virtual);
            ops.flat_map(|(node, op)| op.tensors().map(move |tensor| (node, tensor)))
        };
        let sizes = buffer_bytes(tensors().map(|(_, tensor)| tensor));
        let mut buffers = BTreeMap::new();
        for (node, tensor) in tensors() {
            let (id, dtype) = (tensor.buffer.id, tensor.dtype);
            buffers.entry(id).or_insert_with(|| Buffer {
                bytes: sizes[&id],
                dtype,
                node,
                is_argument: false,
                is_read_first: false,
                is_written: false,
                is_read_after_write: false,
            });
        }
        let partial = buffers.iter().filter(|(_, buffer)| buffer.bytes % buffer.dtype.bytes() != 0);
        let wrong: Vec<_> = partial
            .map(|(id, Buffer { bytes, dtype, node, .. })| {
                let message = format!(
                    "buffer {id}: expected a whole number of elements of its first tensor's type \
                     {dtype}, found {bytes} bytes"
                );
                Diagnostic::error("ark-partial-element", message)
                    .path(format!("$.Nodes[{node}].Op"))
            })
            .collect();
        if wrong.is_empty() { Ok(Self(buffers)) } else { Err(wrong) }
    }

    /// The type of a whole buffer: 1-D.
    pub fn ty(&self, id: u64) -> TensorType {
        let Buffer { bytes, dtype, .. } = &self.0[&id];
        TensorType::new(element_type(*dtype), [(bytes / dtype.bytes()).cast_signed()])
    }

    /// Whether a region is its entire buffer.
    pub fn is_whole(&self, region: &Region) -> bool {
        region.bytes() == self.0[&region.buffer].bytes
    }

    /// Buffers whose initial contents matter.
    pub fn arguments(&self) -> Vec<u64> {
        self.having(|buffer| buffer.is_argument)
    }

    /// Whether a buffer is at least partly written before it is first read.
    pub fn is_written_first(&self, id: u64) -> bool {
        !self.0[&id].is_read_first
    }

    /// Buffers that are written.
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
