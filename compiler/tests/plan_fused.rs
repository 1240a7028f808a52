//! A task of several ops computes what its ops compute one after the other, wherever they write.

use crate::gpu_plans;
use irc::{CompiledPlan, Session, Target};
use irc_ark_format::{
    model::{Arg, Buffer, DataType, Op, OpKind, Tensor},
    plan::{
        self, Architecture, Config, ConfigValue, Plan, PlanOp, ProcessorGroup, Range,
        ResourceGroup, TaskGroup, TaskInfo, num_tasks,
    },
};
use irc_executor::{Kernels, Options, Rank, code::Step};
use irc_tensor::{Tensor as Value, Tolerance, compare, seed_for};
use std::collections::BTreeMap;

/// Rows and columns of most tensors here: two full tiles and a part, in both directions.
const SHAPE: [i64; 2] = [5, 40];

/// `shape` on a buffer of rows of 48 elements.
fn tensor(buffer: u64, shape: [i64; 2]) -> Tensor {
    let mut tensor = Tensor::dense(buffer, DataType::Fp32, &shape, Buffer::local(buffer));
    tensor.strides = vec![shape[0], if shape[1] == 1 { 1 } else { 48 }];
    tensor
}

fn op(kind: OpKind, reads: &[Tensor], write: Tensor, tile: [i64; 2]) -> PlanOp {
    let mut args = BTreeMap::new();
    if kind == OpKind::Matmul {
        args.insert("TransposeInput".to_owned(), Arg::Bool(false));
        args.insert("TransposeOther".to_owned(), Arg::Bool(false));
    }
    if kind.is_reduce() {
        args.insert("Axis".to_owned(), Arg::Int(1));
        args.insert("KeepDim".to_owned(), Arg::Bool(true));
    }
    let (writes, results) = (vec![write.clone()], vec![write]);
    let name = kind.name().to_lowercase();
    let op = Op { kind, name, is_virtual: false, reads: reads.to_vec(), writes, results, args };
    let config = Config::default()
        .with("NumWarps", ConfigValue::Int(1))
        .with("SramBytes", ConfigValue::Int(0))
        .with("ImplType", ConfigValue::Text("WarpWise".into()))
        .with("TileShapeMNK", ConfigValue::Ints(vec![tile[0], tile[1], 8]))
        .with("Tile", ConfigValue::Ints(tile.to_vec()));
    PlanOp { op, config }
}

/// A plan whose task infos run one after the other on all of two processors.
fn plan_of(tasks: Vec<Vec<PlanOp>>) -> Plan {
    let group = |(id, ops): (usize, &Vec<PlanOp>)| {
        let all = Range::new(0, 2);
        let tasks = num_tasks(&ops[0]).unwrap();
        let task_range = Range::new(0, tasks);
        let task_groups = vec![TaskGroup { task_id: id as i64, task_range, granularity: 1 }];
        let (warp_range, sram_range) = (Range::new(0, 1), Range::new(0, 0));
        let resource = ResourceGroup { processor_range: all, warp_range, sram_range, task_groups };
        ProcessorGroup { processor_range: all, resource_groups: vec![resource] }
    };
    let processor_groups = tasks.iter().enumerate().map(group).collect();
    let info = |(id, ops)| TaskInfo { id: id as i64, num_warps: 1, sram_bytes: 0, ops };
    Plan {
        rank: 0,
        world_size: 1,
        architecture: Architecture::Any,
        num_processors: 2,
        num_warps_per_processor: 1,
        task_infos: tasks.into_iter().enumerate().map(info).collect(),
        processor_groups,
    }
}

fn compiled(plan: &Plan) -> CompiledPlan {
    let source = irc_diag::Source::new("plan.json", plan::write(plan));
    Session::new().plan(source).compile(&Target::host()).unwrap().as_ref().clone()
}

/// Every buffer after a run from random contents, and how many kernels the first task is.
fn run(plan: &Plan) -> (BTreeMap<String, Value>, usize) {
    let compiled = compiled(plan);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.so");
    std::fs::write(&path, &compiled.library).unwrap();
    let rank = Rank::new(plan.clone(), &compiled.code, Kernels::load(&path).unwrap()).unwrap();
    let inputs = rank.interface().inputs.iter().map(|port| {
        let seed = seed_for(1, &port.name);
        let random = Value::random(port.tensor_type().unwrap(), seed).unwrap();
        (port.name.clone(), random)
    });
    let mut memories = [rank.memory(inputs.collect()).unwrap()];
    irc_executor::run(&[&rank], &mut memories, Options::default()).unwrap();
    let [memory] = memories;
    (rank.outputs(memory), compiled.code.tasks[0].steps.len())
}

/// A plan whose tasks have more warps, and a slot of each so many bytes of SRAM.
fn with_slots(mut plan: Plan, warps: i64, sram: i64) -> Plan {
    plan.num_warps_per_processor = warps;
    for info in &mut plan.task_infos {
        (info.num_warps, info.sram_bytes) = (warps, sram);
    }
    for resource in plan.processor_groups.iter_mut().flat_map(|group| &mut group.resource_groups) {
        (resource.warp_range, resource.sram_range) = (Range::new(0, warps), Range::new(0, sram));
    }
    plan
}

/// Runs ops as one task and as tasks of their own, and in a kernel for GPUs, with scratch in global and in shared memory; the
/// kernels that the one task is.
#[track_caller]
fn assert_as_one_by_one(ops: Vec<PlanOp>) -> usize {
    let (expected, _) = run(&plan_of(ops.iter().map(|op| vec![op.clone()]).collect()));
    let one = plan_of(vec![ops]);
    let (found, kernels) = run(&one);
    assert_same(&expected, &found);
    for (warps, sram) in [(1, 0), (1, 1 << 14), (2, 1 << 14), (4, 1 << 14)] {
        let text = gpu_plans::ptx(&with_slots(one.clone(), warps, sram));
        let found = gpu_plans::run(&text, &irc::gpu::Options::CHECKED).expect("a run").outputs;
        assert_same(&expected, &found);
    }
    kernels
}

#[track_caller]
fn assert_same(expected: &BTreeMap<String, Value>, found: &BTreeMap<String, Value>) {
    assert_eq!(expected.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    for (name, expected) in expected {
        let result = compare(expected, &found[name], Tolerance::of(expected.dtype())).unwrap();
        assert!(result.is_match(), "{name}: {result}");
    }
}

#[test]
fn a_softmax_in_place_is_one_kernel() {
    use OpKind::*;
    let (x, row) = (|| tensor(0, SHAPE), |buffer| tensor(buffer, [5, 1]));
    let kernels = assert_as_one_by_one(vec![
        op(ReduceMax, &[x()], row(1), [1, 1]),
        op(Sub, &[x(), row(1)], x(), [1, 40]),
        op(Exp, &[x()], x(), [1, 40]),
        op(ReduceSum, &[x()], row(2), [1, 1]),
        op(Div, &[x(), row(2)], x(), [1, 40]),
    ]);
    assert_eq!(kernels, 1);
}

#[test]
fn an_operand_may_be_overwritten_before_a_reduction_of_it_is_used() {
    use OpKind::*;
    let (x, y, row) = (|| tensor(0, SHAPE), || tensor(1, SHAPE), || tensor(2, [5, 1]));
    let kernels = assert_as_one_by_one(vec![
        op(ReduceSum, &[x()], row(), [1, 1]),
        op(Mul, &[x(), row()], y(), [1, 40]),
        op(Exp, &[tensor(3, SHAPE)], x(), [1, 40]),
        op(Add, &[y(), x()], y(), [1, 40]),
    ]);
    assert_eq!(kernels, 1);
}

#[test]
fn a_factor_may_be_overwritten_after_its_product() {
    use OpKind::*;
    let square = [16, 16];
    let x = || tensor(0, square);
    let kernels = assert_as_one_by_one(vec![
        op(Matmul, &[x(), tensor(1, square)], tensor(2, square), square),
        op(Exp, &[tensor(3, square)], x(), square),
        op(Matmul, &[x(), tensor(2, square)], tensor(2, square), square),
    ]);
    assert_eq!(kernels, 1);
}

#[test]
fn elementwise_chains_run_in_place_on_cut_tiles() {
    use OpKind::*;
    let (x, y) = (|| tensor(0, SHAPE), || tensor(1, SHAPE));
    let kernels = assert_as_one_by_one(vec![
        op(Exp, &[x()], y(), [2, 16]),
        op(Mul, &[y(), x()], x(), [2, 16]),
        op(Sigmoid, &[x()], y(), [2, 16]),
    ]);
    assert_eq!(kernels, 1);
}

#[test]
fn pairs_are_rotated_in_place() {
    let x = || tensor(0, SHAPE);
    for tile in [[2, 16], [1, 6]] {
        assert_as_one_by_one(vec![
            op(OpKind::Rope, &[x(), tensor(1, SHAPE)], x(), tile),
            op(OpKind::Relu, &[x()], x(), tile),
        ]);
    }
}

#[test]
fn a_window_that_overlaps_another_is_read_from_memory() {
    let mut shifted = tensor(0, [5, 16]);
    shifted.offsets = vec![0, 8];
    let kernels = assert_as_one_by_one(vec![
        op(OpKind::Exp, &[tensor(1, [5, 16])], tensor(0, [5, 16]), [5, 16]),
        op(OpKind::Relu, &[shifted], tensor(2, [5, 16]), [5, 16]),
    ]);
    assert_eq!(kernels, 2);
}

/// Tiles of one column of a product share their packed part of the weights, but not with those of
/// the same product after the weights were written.
#[test]
fn packed_weights_are_those_of_their_group() {
    use OpKind::*;
    let (weights, tile) = (|| tensor(1, [40, 40]), [8, 16]);
    let product = op(Matmul, &[tensor(0, [60, 40]), weights()], tensor(2, [60, 40]), tile);
    let change = op(Exp, &[weights()], weights(), tile);
    let mut plan = plan_of(vec![vec![product.clone()], vec![change.clone()]]);
    plan.processor_groups.push(plan.processor_groups[0].clone());
    let code = compiled(&plan).code;
    let Step::Kernel(kernel) = &code.tasks[0].steps[0] else { panic!("a kernel") };
    assert!(kernel.variants.iter().any(|variant| variant.keeps.is_some()));
    let (found, _) = run(&plan);
    let (expected, _) = run(&plan_of(vec![vec![change], vec![product]]));
    assert_eq!(found["buffer_2"].bytes(), expected["buffer_2"].bytes());
}
