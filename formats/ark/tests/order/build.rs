//! Small hand-written plans.

use std::collections::BTreeMap;

use irc_ark_format::model::{Buffer, DataType, Op, OpKind, Tensor};
use irc_ark_format::plan::{
    Architecture, Config, ConfigValue, Plan, PlanOp, ProcessorGroup, Range, ResourceGroup,
    TaskGroup, TaskInfo,
};

/// A tensor of `[256, 256]` 16-bit floats that fills a buffer; its id is that of the buffer.
fn square(buffer: u64) -> Tensor {
    Tensor::dense(buffer, DataType::Fp16, &[256, 256], Buffer::local(buffer))
}

/// An op whose result has an id of its own.
pub fn op(kind: OpKind, reads: Vec<Tensor>, writes: Vec<Tensor>) -> Op {
    let results = writes.iter().take(1).map(|w| Tensor { id: w.id + 1000, ..w.clone() }).collect();
    let (name, args) = (String::new(), BTreeMap::new());
    Op { kind, name, is_virtual: false, reads, writes, results, args }
}

/// A task of one op on one warp.
pub fn task(op: Op, config: Config) -> TaskInfo {
    TaskInfo { id: 0, num_warps: 1, sram_bytes: 0, ops: vec![PlanOp { op, config }] }
}

/// The keys of most configs.
pub fn config(tasks: i64) -> Config {
    Config::default()
        .with("NumWarps", ConfigValue::Int(1))
        .with("SramBytes", ConfigValue::Int(0))
        .with("NumTasks", ConfigValue::Int(tasks))
}

fn tiled(from: Tensor, to: Tensor, tasks: i64) -> TaskInfo {
    // The result of an earlier op is referred to by the id of that result.
    let from = Tensor { id: if from.buffer.id == 0 { 0 } else { from.id + 1000 }, ..from };
    let config = config(tasks).with("Tile", ConfigValue::Ints(vec![1, 64]));
    task(op(OpKind::Relu, vec![from], vec![to]), config)
}

/// `to = relu(from)` in 1024 tiles of a quarter of a row.
pub fn relu(from: u64, to: u64) -> TaskInfo {
    tiled(square(from), square(to), 1024)
}

/// The same, in `tasks` tiles.
pub fn wide_relu(from: u64, to: u64, tasks: i64) -> TaskInfo {
    let wide = |id| Tensor::dense(id, DataType::Fp16, &[tasks / 4, 256], Buffer::local(id));
    tiled(wide(from), wide(to), tasks)
}

/// Tasks `[begin, end)` on a range of processors.
pub fn group(task_id: i64, on: Range, begin: i64, end: i64) -> ProcessorGroup {
    let tasks = TaskGroup { task_id, task_range: Range::new(begin, end), granularity: 1 };
    let resource = ResourceGroup {
        processor_range: on,
        warp_range: Range::new(0, 1),
        sram_range: Range::new(0, 0),
        task_groups: vec![tasks],
    };
    ProcessorGroup { processor_range: on, resource_groups: vec![resource] }
}

/// A plan of one rank.
pub fn plan(tasks: Vec<TaskInfo>, processor_groups: Vec<ProcessorGroup>) -> Plan {
    let tasks = tasks.into_iter().enumerate();
    Plan {
        rank: 0,
        world_size: 1,
        architecture: Architecture::Cuda80,
        num_processors: 108,
        num_warps_per_processor: 1,
        task_infos: tasks.map(|(id, task)| TaskInfo { id: id as i64, ..task }).collect(),
        processor_groups,
    }
}

/// The indices below `total`, divided into `parts` ranges.
pub fn split(total: i64, parts: i64) -> impl Iterator<Item = (i64, i64)> {
    (0..parts).map(move |part| (part * total / parts, (part + 1) * total / parts))
}
