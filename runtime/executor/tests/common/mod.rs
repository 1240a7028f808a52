//! Small hand-written plans, with kernels in Rust.
#![allow(dead_code)]

pub mod ranks;

use std::collections::BTreeMap;
use std::ffi::c_void;

use irc_ark_format::model::{Arg, Buffer, DataType, Op, OpKind, Tensor};
use irc_ark_format::plan::tiling::grid;
use irc_ark_format::plan::{
    Architecture, Config, ConfigValue, Plan, PlanOp, ProcessorGroup, Range, ResourceGroup,
    TaskGroup, TaskInfo,
};
use irc_executor::code::{Entry, Kernel, Operand, PlanCode, Step, TaskCode, Variant};
use irc_executor::{Error, Kernels, Memory, Options, Rank, run};

/// Number of elements of a tile of these kernels.
pub const TILE: i64 = 4;

/// Sets the tile to the operand plus one.
unsafe extern "C" fn add_one(operands: *const *mut c_void, _: *mut c_void) -> i32 {
    // Safety: the plans pass two tiles of floats.
    unsafe {
        let (input, output) = ((*operands).cast::<f32>(), (*operands.add(1)).cast::<f32>());
        for index in 0..TILE as usize {
            *output.add(index) = *input.add(index) + 1.0;
        }
    }
    0
}

/// Sets the tile to the shared value, which is the operand plus one.
unsafe extern "C" fn add_one_to_shared(operands: *const *mut c_void, _: *mut c_void) -> i32 {
    // Safety: as for `add_one`, and the code specifies the size of the shared value.
    unsafe {
        let (input, output) = ((*operands).cast::<f32>(), (*operands.add(1)).cast::<f32>());
        let shared = (*operands.add(2)).cast::<u64>();
        let tile = shared.add(8).cast::<f32>();
        if *shared == 0 {
            FILLED.with(|filled| filled.set(filled.get() + 1));
            tile.copy_from(input, TILE as usize);
        }
        for index in 0..TILE as usize {
            *output.add(index) = *tile.add(index) + 1.0;
        }
    }
    0
}

thread_local! {
    /// Number of times that a task on this thread has filled its shared value.
    pub static FILLED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

unsafe extern "C" fn fail(_: *const *mut c_void, _: *mut c_void) -> i32 {
    7
}

unsafe extern "C" fn nothing(_: *const *mut c_void, _: *mut c_void) -> i32 {
    0
}

unsafe extern "C" fn die(_: *const *mut c_void, _: *mut c_void) -> i32 {
    std::process::abort()
}

/// The kernels of all plans in the tests.
pub fn kernels() -> Kernels {
    let entries: [(&str, Entry); 5] = [
        ("add_one", add_one),
        ("add_one_to_shared", add_one_to_shared),
        ("nothing", nothing),
        ("fail", fail),
        ("die", die),
    ];
    let named = entries.into_iter().map(|(name, entry)| (name.to_owned(), entry));
    // Safety: `code` describes what they access.
    unsafe { Kernels::from_entries(named.collect()) }
}

/// A float vector that fills a buffer of this rank.
pub fn vector(buffer: u64, len: i64) -> Tensor {
    Tensor::dense(buffer, DataType::Fp32, &[len], Buffer::local(buffer))
}

/// An op of one tile per task that sets `to` to `from` plus one.
pub fn add_op(from: &Tensor, to: &Tensor) -> PlanOp {
    let factor = Arg::Float(irc_ark_format::model::Float(1.0));
    let op = Op {
        kind: OpKind::ScalarAdd,
        name: format!("add_{}_{}", from.buffer.id, to.buffer.id),
        is_virtual: false,
        reads: vec![from.clone()],
        writes: vec![to.clone()],
        results: vec![to.clone()],
        args: BTreeMap::from([("Factor".to_owned(), factor)]),
    };
    let config = Config::default()
        .with("NumWarps", ConfigValue::Int(1))
        .with("Tile", ConfigValue::Ints(vec![1, TILE]));
    PlanOp { op, config }
}

/// A task info with one warp.
pub fn task(id: i64, ops: Vec<PlanOp>) -> TaskInfo {
    TaskInfo { id, num_warps: 1, sram_bytes: 0, ops }
}

/// A processor group with one resource group of one warp.
pub fn group(processors: (i64, i64), tasks: &[(i64, (i64, i64), i64)]) -> ProcessorGroup {
    wide_group(processors, 1, tasks)
}

/// A processor group with one resource group of several warps; tasks are id, range, granularity.
pub fn wide_group(
    (begin, end): (i64, i64),
    warps: i64,
    tasks: &[(i64, (i64, i64), i64)],
) -> ProcessorGroup {
    let processors = Range::new(begin, end);
    let task = |&(task_id, (begin, end), granularity): &(i64, (i64, i64), i64)| TaskGroup {
        task_id,
        task_range: Range::new(begin, end),
        granularity,
    };
    ProcessorGroup {
        processor_range: processors,
        resource_groups: vec![ResourceGroup {
            processor_range: processors,
            warp_range: Range::new(0, warps),
            sram_range: Range::new(0, 0),
            task_groups: tasks.iter().map(task).collect(),
        }],
    }
}

/// A plan of rank 0 of 1.
pub fn plan(processors: i64, tasks: Vec<TaskInfo>, groups: Vec<ProcessorGroup>) -> Plan {
    Plan {
        rank: 0,
        world_size: 1,
        architecture: Architecture::Any,
        num_processors: processors,
        num_warps_per_processor: 1,
        task_infos: tasks,
        processor_groups: groups,
    }
}

/// The code of a plan of [`add_op`] and communication ops.
pub fn code(plan: &Plan) -> PlanCode {
    let step = |(index, op): (usize, &PlanOp)| match op.op.kind.is_communication() {
        true => Step::Communicate(index),
        false => Step::Kernel(kernel(index, op)),
    };
    let task =
        |info: &TaskInfo| TaskCode { steps: info.ops.iter().enumerate().map(step).collect() };
    let tasks = plan.task_infos.iter().map(task).collect();
    PlanCode { tasks, scratch_bytes: 0, requires: vec![] }
}

fn kernel(index: usize, op: &PlanOp) -> Kernel {
    let operand = |tensor: &Tensor| Operand {
        buffer: tensor.buffer.id,
        offset: tensor.offsets[0].cast_unsigned() * 4,
        steps: [0, 0, 0, TILE.cast_unsigned() * 4],
    };
    let counts = grid(op).expect("tiled").counts;
    Kernel {
        ops: vec![index],
        counts,
        operands: vec![operand(&op.op.reads[0]), operand(&op.op.writes[0])],
        variants: vec![Variant { last: [false; 4], symbol: "add_one".into(), keeps: None }],
    }
}

/// A plan with its code.
pub fn rank(plan: Plan) -> Result<Rank, Error> {
    let code = code(&plan);
    Rank::new(plan, &code, kernels())
}

/// Floats under the name of a buffer.
pub fn floats(buffer: u64, values: &[f32]) -> (String, irc_tensor::Tensor) {
    let tensor = irc_tensor::Tensor::from_values([values.len() as i64], values);
    (format!("buffer_{buffer}"), tensor.expect("a tensor"))
}

/// The outputs of a run of one rank.
pub type Outputs = BTreeMap<String, irc_tensor::Tensor>;

/// Runs all ranks on zeros.
pub fn run_all(ranks: &[Rank], options: Options) -> Result<Vec<Outputs>, Error> {
    run_on(ranks, vec![BTreeMap::new(); ranks.len()], options)
}

/// Runs all ranks on these buffers.
pub fn run_on(
    ranks: &[Rank],
    inputs: Vec<Outputs>,
    options: Options,
) -> Result<Vec<Outputs>, Error> {
    let mut memories: Vec<Memory> = ranks
        .iter()
        .zip(inputs)
        .map(|(rank, given)| rank.memory(given))
        .collect::<Result<_, _>>()?;
    let all: Vec<&Rank> = ranks.iter().collect();
    run(&all, &mut memories, options)?;
    Ok(ranks.iter().zip(memories).map(|(rank, memory)| rank.outputs(memory)).collect())
}

/// A plan whose ops run in sequence on processor 0, except for those with several tasks.
pub fn sequence(rank: i64, world: i64, processors: i64, ops: Vec<(PlanOp, i64)>) -> Plan {
    let groups = ops.iter().enumerate().map(|(id, (_, tasks))| {
        let range = if *tasks == 1 { (0, 1) } else { (0, processors) };
        group(range, &[(id as i64, (0, *tasks), 1)])
    });
    let groups = groups.collect();
    let infos = ops.into_iter().enumerate().map(|(id, (op, _))| task(id as i64, vec![op]));
    Plan { rank, world_size: world, ..plan(processors, infos.collect(), groups) }
}

/// The floats of an output buffer.
pub fn values(outputs: &Outputs, buffer: u64) -> Vec<f32> {
    outputs[&format!("buffer_{buffer}")].to_f32()
}
