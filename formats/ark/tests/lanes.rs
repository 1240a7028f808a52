//! Which elements of a tile the lanes of ARK's kernels store, and from where they move them.

use std::collections::BTreeMap;

use irc_ark_format::model::{Arg, Buffer, DataType, Float, Op, OpKind, Tensor};
use irc_ark_format::plan::{
    self, Architecture, Config, ConfigValue, Plan, PlanOp, ProcessorGroup, Range, ResourceGroup,
    TaskGroup, TaskInfo,
};
use irc_diag::Diagnostic;

/// A box `shape` of a view `strides` on the buffer with that number.
fn tensor(buffer: u64, dtype: DataType, shape: &[i64], strides: &[i64]) -> Tensor {
    let dense = Tensor::dense(buffer, dtype, shape, Buffer::local(buffer));
    Tensor { strides: strides.to_vec(), ..dense }
}

/// A plan of one op with tiles of `tile`.
fn plan(kind: OpKind, reads: Vec<Tensor>, write: Tensor, tile: [i64; 2]) -> Plan {
    let result = Tensor { id: 100, ..write.clone() };
    let mut args = BTreeMap::new();
    if kind == OpKind::ScalarAssign {
        args.insert("Value".to_owned(), Arg::Float(Float(1.0)));
    }
    let (name, writes, results) = (String::new(), vec![write], vec![result]);
    let op = Op { kind, name, is_virtual: false, reads, writes, results, args };
    let config = Config::default()
        .with("NumWarps", ConfigValue::Int(1))
        .with("SramBytes", ConfigValue::Int(0))
        .with("Tile", ConfigValue::Ints(tile.to_vec()));
    let plan_op = PlanOp { op, config };
    let tasks = plan::derived_tasks(&plan_op).expect("tiles");
    let range = Range::new(0, 1);
    let resource = ResourceGroup {
        processor_range: range,
        warp_range: range,
        sram_range: Range::new(0, 0),
        task_groups: vec![TaskGroup {
            task_id: 0,
            task_range: Range::new(0, tasks),
            granularity: 1,
        }],
    };
    Plan {
        rank: 0,
        world_size: 1,
        architecture: Architecture::Cuda80,
        num_processors: 1,
        num_warps_per_processor: 1,
        task_infos: vec![TaskInfo { id: 0, num_warps: 1, sram_bytes: 0, ops: vec![plan_op] }],
        processor_groups: vec![ProcessorGroup {
            processor_range: range,
            resource_groups: vec![resource],
        }],
    }
}

/// The diagnostics, errors with an exclamation mark.
fn found(plan: &Plan) -> Vec<String> {
    let show = |f: Diagnostic| format!("{}{}", f.code, if f.is_error() { "!" } else { "" });
    plan::check(plan).into_iter().map(show).collect()
}

/// A cast of a dense tensor of 16-bit floats to one of 32 bits.
fn cast(shape: [i64; 2], tile: [i64; 2]) -> Vec<String> {
    let from = tensor(0, DataType::Fp16, &shape, &shape);
    // The result has the last buffer: there is nothing after it.
    found(&plan(OpKind::Cast, vec![from], tensor(1, DataType::Fp32, &shape, &shape), tile))
}

const NONE: [String; 0] = [];
const MISSED: [&str; 1] = ["plan-tile-width!"];

#[test]
fn pairs_need_even_tiles() {
    assert_eq!(cast([16, 64], [1, 64]), NONE);
    assert_eq!(cast([64, 16], [64, 2]), NONE);
    assert_eq!(cast([64, 16], [64, 1]), MISSED);
    assert_eq!(cast([16, 66], [2, 33]), MISSED);
    // In a single row the lanes are always aligned with it.
    assert_eq!(cast([16, 64], [1, 64]), NONE);
}

#[test]
fn one_column_is_taken_one_by_one() {
    assert_eq!(cast([64, 1], [64, 1]), MISSED);
    assert_eq!(cast([64, 1], [64, 2]), NONE);
    assert_eq!(cast([64, 1], [1, 1]), NONE);
}

#[test]
fn whole_rows_without_gaps_are_one() {
    // A pair that crosses the end of a row starts the next one.
    assert_eq!(cast([64, 3], [64, 3]), NONE);
    // The buffer of an odd number of halves misaligns the next.
    assert_eq!(cast([63, 3], [64, 3]), ["plan-fill-overrun", "plan-alignment"]);
    let odd_rows = ["plan-fill-overrun", "plan-alignment", "plan-alignment"];
    assert_eq!(cast([64, 3], [64, 4]), odd_rows);
}

#[test]
fn turned_pairs_stay_together() {
    let rope = |tile| {
        let x = |buffer| tensor(buffer, DataType::Fp16, &[4, 6], &[4, 6]);
        found(&plan(OpKind::Rope, vec![x(0), x(1)], x(2), tile))
    };
    assert_eq!(rope([1, 2]), NONE);
    assert_eq!(rope([1, 3]), MISSED);
    assert_eq!(rope([4, 1]), MISSED);
}

/// A fill of rows of 32-bit floats.
fn fill(shape: [i64; 2], strides: [i64; 2], tile: [i64; 2]) -> Plan {
    plan(OpKind::ScalarAssign, vec![], tensor(0, DataType::Fp32, &shape, &strides), tile)
}

#[test]
fn fills_end_with_the_row() {
    assert_eq!(found(&fill([4, 64], [4, 64], [1, 64])), NONE);
    // Rows of five are stored element by element.
    assert_eq!(found(&fill([4, 5], [4, 5], [1, 64])), NONE);
    // The last tile of a row has one element, and four are stored; finally into the next row.
    let odd = found(&fill([4, 65], [4, 65], [1, 64]));
    assert_eq!(odd, ["plan-fill-overrun", "plan-alignment"]);
    // Into the gap between the rows.
    assert_eq!(found(&fill([4, 65], [4, 68], [1, 64])), ["plan-fill-overrun"]);
}

#[test]
fn what_is_stored_too_much_must_hit_nobody() {
    let mut plan = fill([4, 65], [4, 68], [1, 64]);
    let gap = Tensor { offsets: vec![0, 66], ..tensor(0, DataType::Fp32, &[4, 2], &[4, 68]) };
    let mut other = plan.task_infos[0].ops[0].clone();
    other.op.kind = OpKind::Noop;
    other.op.args.clear();
    other.op.writes.clear();
    other.op.results.clear();
    other.op.reads = vec![Tensor { id: 7, ..gap }];
    other.config = Config::default().with("NumTasks", ConfigValue::Int(0));
    let noop = TaskInfo { id: 1, num_warps: 1, sram_bytes: 0, ops: vec![other] };
    plan.task_infos.push(noop.clone());
    let overrun = |plan: &Plan| found(plan).into_iter().find(|f| f.starts_with("plan-fill"));
    assert_eq!(overrun(&plan).as_deref(), Some("plan-fill-overrun!"));
    // There is other data only in the next buffer, after the end of the last row.
    plan.task_infos[1].ops[0].op.reads[0].offsets = vec![0, 0];
    plan.task_infos[1].ops[0].op.reads[0].buffer = Buffer::local(1);
    assert_eq!(overrun(&plan).as_deref(), Some("plan-fill-overrun"));
    let mut dense = fill([4, 65], [4, 65], [1, 64]);
    dense.task_infos.push(plan.task_infos[1].clone());
    assert_eq!(overrun(&dense).as_deref(), Some("plan-fill-overrun!"));
}

#[test]
fn a_stretched_operand_does_not_narrow_the_store() {
    let copy = |width: i64| {
        let from = tensor(0, DataType::Fp32, &[4, width], &[4, width]);
        let to = tensor(1, DataType::Fp32, &[4, 66], &[4, 66]);
        found(&plan(OpKind::Copy, vec![from], to, [1, 64]))
    };
    assert_eq!(copy(66), NONE);
    // Two of the last four are the first of the next row, which belongs to another tensor.
    assert_eq!(copy(1), ["plan-fill-overrun!", "plan-alignment"]);
}

#[test]
fn vectors_are_as_wide_as_all_rows_allow() {
    let add = |shape: [i64; 2], strides: [i64; 2]| {
        let x = |buffer| tensor(buffer, DataType::Fp32, &shape, &strides);
        found(&plan(OpKind::Add, vec![x(0), x(1)], x(2), [1, 64]))
    };
    assert_eq!(add([4, 65], [4, 65]), NONE);
    assert_eq!(add([4, 64], [4, 64]), NONE);
    let each = ["plan-alignment"; 3];
    assert_eq!(add([4, 64], [4, 81]), each);
    // A single row has no distance to another.
    assert_eq!(add([1, 64], [1, 84]), NONE);
}

#[test]
fn buffers_lie_back_to_back() {
    let relu = |first: i64| {
        let from = tensor(0, DataType::Fp16, &[1, 64], &[1, first]);
        let to = tensor(1, DataType::Fp16, &[1, 64], &[1, 64]);
        found(&plan(OpKind::Relu, vec![from], to, [1, 64]))
    };
    assert_eq!(relu(64), NONE);
    assert_eq!(relu(72), NONE);
    assert_eq!(relu(65), ["plan-alignment"]);
}
