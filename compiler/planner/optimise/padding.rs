//! Aligns the start of every buffer to the widest vector access.
//!
//! The executor places buffers one after another by id, and a kernel faults on a device where a vector
//! access is not aligned to its size. The size of a buffer is that of its largest view, whether or not
//! anything runs on it: so a `Noop` on a longer view, in a task that no group runs, moves all buffers
//! after it and costs nothing else.
use super::layout::ALIGNMENT;
use irc_ark_format::{
    model::{Op, OpKind, Tensor, buffer_bytes},
    plan::{Config, ConfigValue, Plan, PlanOp, TaskInfo},
};
use std::collections::BTreeMap;

/// Lengthens buffers where the next would not start aligned. The node of an added op is one that uses
/// the buffer.
pub fn pad(plan: &mut Plan, nodes: &mut Vec<Vec<usize>>) {
    let tensors =
        || plan.task_infos.iter().flat_map(|info| &info.ops).flat_map(|op| op.op.tensors());
    let is_local = |tensor: &&Tensor| tensor.buffer.rank < 0 || tensor.buffer.rank == plan.rank;
    let sizes = buffer_bytes(tensors().filter(is_local));
    let last = sizes.keys().next_back().copied();
    let views: BTreeMap<u64, &Tensor> =
        tensors().filter(is_local).map(|tensor| (tensor.buffer.id, tensor)).collect();
    let mut next_id = tensors().map(|tensor| tensor.id + 1).max().unwrap_or(0);
    let mut users: BTreeMap<u64, usize> = BTreeMap::new();
    for (op, node) in plan.task_infos.iter().flat_map(|info| &info.ops).zip(nodes.iter().flatten())
    {
        for tensor in op.op.tensors() {
            users.entry(tensor.buffer.id).or_insert(*node);
        }
    }
    let mut ops = vec![];
    let mut added = vec![];
    for (id, bytes) in &sizes {
        if bytes % ALIGNMENT != 0 && Some(*id) != last {
            ops.push(longer(views[id], bytes.next_multiple_of(ALIGNMENT), next_id));
            next_id += 1;
            added.push(users[id]);
        }
    }
    if !ops.is_empty() {
        let id = plan.task_infos.len() as i64;
        plan.task_infos.push(TaskInfo { id, num_warps: 1, sram_bytes: 0, ops });
        nodes.push(added);
    }
}

/// A `Noop` on a view of so many bytes of a tensor's buffer.
fn longer(tensor: &Tensor, bytes: u64, id: u64) -> PlanOp {
    let view = Tensor {
        id,
        shape: vec![1],
        strides: vec![(bytes / tensor.dtype.bytes()).cast_signed()],
        offsets: vec![0],
        padded_shape: vec![1],
        ..tensor.clone()
    };
    let op = Op {
        kind: OpKind::Noop,
        name: "padding".to_owned(),
        is_virtual: false,
        reads: vec![view],
        writes: vec![],
        results: vec![],
        args: BTreeMap::new(),
    };
    let config = Config::default()
        .with("NumWarps", ConfigValue::Int(1))
        .with("SramBytes", ConfigValue::Int(0))
        .with("NumTasks", ConfigValue::Int(0));
    PlanOp { op, config }
}
