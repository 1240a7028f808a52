//! The buffers of a plan on its own rank: sizes, types, and which of them are inputs and outputs.

use std::collections::{BTreeMap, BTreeSet};

use irc_ark_format::model::{DataType, Op, OpKind, Region, Tensor, buffer_bytes};
use irc_ark_format::plan::{Plan, PlanOp, TaskGroup};
use irc_runtime::{Interface, Port};
use irc_tensor::DType;

use crate::Error;

/// Maximum extent of a tile: larger than any tensor, and small enough to add to an extent.
const MAX_TILE: u64 = 1 << 57;

/// A buffer that this rank allocates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its id in the plan.
    pub id: u64,
    /// Its size.
    pub bytes: u64,
    /// Type of the first tensor on it.
    pub dtype: DataType,
}

/// The buffers of one rank, in order of their ids.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The buffers.
    pub buffers: Vec<Buffer>,
    slots: BTreeMap<u64, usize>,
    /// The inputs and outputs, named `buffer_<Id>`.
    pub interface: Interface,
}

/// Whether a tensor is on this rank; otherwise it is a stand-in for one on another rank.
pub(crate) fn is_local(plan: &Plan, tensor: &Tensor) -> bool {
    tensor.buffer.rank == -1 || tensor.buffer.rank == plan.rank
}

/// The name of a buffer in `.npz` files.
pub(crate) fn buffer_name(id: u64) -> String {
    format!("buffer_{id}")
}

impl Layout {
    /// The buffers of a plan.
    ///
    /// # Errors
    /// If a buffer does not have a whole number of elements of its type.
    pub fn of(plan: &Plan) -> Result<Self, Error> {
        // A `Noop` that never runs extends a buffer only to align the next one on a
        // device; here each buffer is aligned by itself.
        let runs: BTreeSet<usize> = tasks_in_order(plan).into_iter().collect();
        let tensors = || {
            let infos = plan.task_infos.iter().enumerate();
            let ops = infos.flat_map(|(task, info)| info.ops.iter().map(move |op| (task, &op.op)));
            let real = ops
                .filter(|(task, op)| op.kind != OpKind::Noop || runs.contains(task))
                .map(|(_, op)| op)
                .filter(|op| !op.is_virtual);
            real.flat_map(Op::tensors).filter(|tensor| is_local(plan, tensor))
        };
        check_tensors(plan)?;
        let mut types = BTreeMap::new();
        for tensor in tensors() {
            types.entry(tensor.buffer.id).or_insert(tensor.dtype);
        }
        let sizes = buffer_bytes(tensors());
        let of = |(&id, &bytes): (&u64, &u64)| Buffer { id, bytes, dtype: types[&id] };
        let buffers: Vec<Buffer> = sizes.iter().map(of).collect();
        let odd = buffers.iter().find(|buffer| buffer.bytes % buffer.dtype.bytes() != 0);
        if let Some(Buffer { id, bytes, dtype }) = odd {
            let reason = format!(
                "expected a whole number of elements of its first tensor's type {dtype}, found \
                 {bytes} bytes"
            );
            let place = format!("rank {}, buffer {id}", plan.rank);
            return Err(Error::Plan { place, reason });
        }
        let slots = buffers.iter().enumerate().map(|(slot, buffer)| (buffer.id, slot)).collect();
        let mut layout = Self { buffers, slots, interface: no_ports() };
        layout.interface = interface(plan, &layout);
        Ok(layout)
    }

    /// The index of a buffer among those of the rank.
    pub fn slot(&self, id: u64) -> Option<usize> {
        self.slots.get(&id).copied()
    }

    /// The name of a buffer in `.npz` files.
    pub fn name(&self, slot: usize) -> String {
        buffer_name(self.buffers[slot].id)
    }

    /// The buffer as a port.
    pub(crate) fn port(&self, slot: usize) -> Port {
        let Buffer { id, bytes, dtype } = &self.buffers[slot];
        let count = (bytes / dtype.bytes()).cast_signed();
        Port {
            name: buffer_name(*id),
            dtype: host_type(*dtype).name().to_owned(),
            shape: vec![count],
            preserved: false,
            ..Port::default()
        }
    }
}

/// Checks that tensors are boxes in their views, that sizes of views do not overflow, and that tiles
/// are valid.
fn check_tensors(plan: &Plan) -> Result<(), Error> {
    for (task, info) in plan.task_infos.iter().enumerate() {
        for (index, op) in info.ops.iter().enumerate() {
            if let Some(tensor) = op.op.tensors().find(|tensor| !is_box(tensor)) {
                let place = format!("rank {}, $.TaskInfos[{task}].Ops[{index}]", plan.rank);
                let reason = format!("tensor {} is no box inside its view", tensor.id);
                return Err(Error::Plan { place, reason });
            }
            if let Some(tile) = wrong_tile(op) {
                let place = format!("rank {}, $.TaskInfos[{task}].Ops[{index}].Config", plan.rank);
                let reason = format!("{tile} is no extent of a tile");
                return Err(Error::Plan { place, reason });
            }
        }
    }
    Ok(())
}

/// An invalid extent of a tile; a negative one means the whole dimension.
fn wrong_tile(op: &PlanOp) -> Option<i64> {
    let tiles = ["Tile", "TileShapeMNK"].into_iter().filter_map(|key| op.config.ints(key));
    tiles.flatten().copied().find(|tile| *tile == 0 || tile.unsigned_abs() > MAX_TILE)
}

fn is_box(tensor: &Tensor) -> bool {
    let rank = tensor.rank();
    let same = [tensor.strides.len(), tensor.offsets.len(), tensor.padded_shape.len()] == [rank; 3];
    let inside = |dim: usize| {
        let (shape, padded) = (tensor.shape[dim], tensor.padded_shape[dim]);
        let end = tensor.offsets[dim].checked_add(padded);
        let fits = end.is_some_and(|end| end <= tensor.strides[dim]);
        1 <= shape && shape <= padded && 0 <= tensor.offsets[dim] && fits
    };
    // Leaves enough range to count in bits.
    let bytes = || tensor.strides.iter().try_fold(64i64, |product, &n| product.checked_mul(n));
    (1..=4).contains(&rank) && same && (0..rank).all(inside) && bytes().is_some()
}

fn no_ports() -> Interface {
    Interface::default()
}

/// The host type of an element type.
pub(crate) fn host_type(dtype: DataType) -> DType {
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

/// What an op reads from local memory that no peer writes.
fn given<'a>(plan: &'a Plan, op: &'a Op) -> impl Iterator<Item = &'a Tensor> {
    let arriving: &[usize] = match op.kind {
        OpKind::Recv | OpKind::SendDone | OpKind::DeviceSync => &[0],
        OpKind::RecvPacket => &[0, 1],
        OpKind::RecvReduceSend | OpKind::RecvReduceSendPacket => &[1],
        _ => &[],
    };
    let own = move |&(index, tensor): &(usize, &Tensor)| {
        !arriving.contains(&index) && is_local(plan, tensor)
    };
    op.reads.iter().enumerate().filter(own).map(|(_, tensor)| tensor)
}

/// What an op writes to local memory. A synchronisation repeats its operand as a result and
/// writes nothing.
fn written<'a>(plan: &'a Plan, op: &'a Op) -> impl Iterator<Item = &'a Tensor> {
    let writes = op.kind != OpKind::DeviceSync;
    op.writes.iter().filter(move |tensor| writes && is_local(plan, tensor))
}

/// Whether the op computes on padding.
fn region(op: &Op, tensor: &Tensor) -> Region {
    match op.kind {
        OpKind::Matmul => Region::padded(tensor),
        _ => Region::of(tensor),
    }
}

/// Inputs are buffers whose initial contents matter, preserved if no op reads them before the first
/// write; outputs are all buffers that are written.
fn interface(plan: &Plan, layout: &Layout) -> Interface {
    let count = layout.buffers.len();
    let (mut is_input, mut is_output) = (vec![false; count], vec![false; count]);
    let (mut is_complete, mut is_read_first) = (vec![false; count], vec![false; count]);
    let ops = tasks_in_order(plan).into_iter().flat_map(|index| &plan.task_infos[index].ops);
    let acts = |op: &&Op| !op.is_virtual && op.kind != OpKind::Noop;
    for op in ops.map(|op| &op.op).filter(acts) {
        for slot in given(plan, op).filter_map(|tensor| layout.slot(tensor.buffer.id)) {
            is_input[slot] |= !is_complete[slot];
            is_read_first[slot] |= !is_output[slot];
        }
        for tensor in written(plan, op) {
            let Some(slot) = layout.slot(tensor.buffer.id) else { continue };
            let is_whole = region(op, tensor).bytes() == layout.buffers[slot].bytes;
            // Data that arrives from a peer is not an input.
            let arrives = op.kind == OpKind::Recv;
            is_input[slot] |= !is_complete[slot] && !is_whole && !arrives;
            is_complete[slot] |= is_whole;
            is_output[slot] = true;
        }
    }
    let input = |slot: usize| Port { preserved: !is_read_first[slot], ..layout.port(slot) };
    let inputs = (0..count).filter(|&slot| is_input[slot]).map(input).collect();
    let outputs =
        (0..count).filter(|&slot| is_output[slot]).map(|slot| layout.port(slot)).collect();
    Interface { inputs, outputs, ..no_ports() }
}

/// Indices of the task infos that run, in the order in which they first run.
fn tasks_in_order(plan: &Plan) -> Vec<usize> {
    let resources = plan.processor_groups.iter().flat_map(|group| &group.resource_groups);
    let groups = resources.flat_map(|resource| &resource.task_groups);
    let mut seen = vec![false; plan.task_infos.len()];
    let new = |group: &TaskGroup| {
        let index = usize::try_from(group.task_id).ok()?;
        let first = !std::mem::replace(seen.get_mut(index)?, true);
        first.then_some(index)
    };
    groups.filter_map(new).collect()
}
