//! Kernels that move several elements at once find them aligned, and within a row.

use crate::support::{read_model, root};
use irc_ark_format::{
    model::{Arg, Buffer, DataType, Float, Model, Node, Op, OpKind, Tensor, buffer_bytes},
    plan::{self, Architecture, Plan, PlanOp},
};
use irc_diag::{Sink, Source};
use irc_planner::{Options, Planned, Target, rules};
use std::collections::BTreeMap;

fn op(kind: OpKind, reads: &[&Tensor], output: &Tensor) -> Op {
    let factor = ("Factor".to_owned(), Arg::Float(Float(2.0)));
    Op {
        kind,
        name: "op".to_owned(),
        is_virtual: false,
        reads: reads.iter().map(|tensor| (*tensor).clone()).collect(),
        writes: vec![output.clone()],
        results: vec![Tensor { id: output.id + 100, ..output.clone() }],
        args: BTreeMap::from_iter((kind == OpKind::ScalarMul).then_some(factor)),
    }
}

fn model(ops: Vec<Op>) -> Model {
    let node = |(id, op)| Node { id: id as u64, producers: vec![], consumers: vec![], op };
    Model { rank: 0, world_size: 1, nodes: ops.into_iter().enumerate().map(node).collect() }
}

fn dense(id: u64, dtype: DataType, shape: &[i64]) -> Tensor {
    Tensor::dense(id, dtype, shape, Buffer::local(id))
}

/// A box in a larger view.
fn boxed(id: u64, shape: &[i64], strides: &[i64]) -> Tensor {
    Tensor { strides: strides.to_vec(), ..dense(id, DataType::Fp16, shape) }
}

/// A plan that is valid, and computes what the model says.
fn planned(model: &Model) -> Planned {
    let target = Target::new(Architecture::Cuda80, None).expect("a target");
    let planned = irc_planner::plan(model, &Options::new(target)).expect("a plan");
    let found = [plan::check(&planned.plan), plan::check_model(&planned.plan, model)].concat();
    assert!(found.iter().all(|diagnostic| !diagnostic.is_error()), "{found:?}");
    planned
}

fn ops(plan: &Plan, kind: OpKind) -> Vec<&PlanOp> {
    let all = plan.task_infos.iter().flat_map(|info| &info.ops);
    all.filter(|op| op.op.kind == kind).collect()
}

/// Where each buffer starts.
fn starts(plan: &Plan) -> Vec<u64> {
    let tensors = plan.task_infos.iter().flat_map(|info| &info.ops).flat_map(|op| op.op.tensors());
    let mut end = 0;
    let start = |bytes: u64| {
        end += bytes;
        end - bytes
    };
    buffer_bytes(tensors).into_values().map(start).collect()
}

/// The extents of the last dimension and of the tile of the only `Cast` of a model.
fn cast(input: &Tensor, output: &Tensor) -> (i64, Vec<i64>) {
    let planned = planned(&model(vec![op(OpKind::Cast, &[input], output)]));
    assert_eq!(planned.warnings, []);
    let found = ops(&planned.plan, OpKind::Cast);
    let [cast] = found[..] else { panic!("{} casts", found.len()) };
    let width = cast.op.results[0].shape.last().copied().expect("a dimension");
    (width, cast.config.ints("Tile").expect("a tile").to_vec())
}

#[test]
fn even_rows_are_cast_by_pairs() {
    let of =
        |shape: &[i64]| cast(&dense(0, DataType::Fp32, shape), &dense(1, DataType::Fp16, shape));
    for shape in [&[512, 128][..], &[3, 66], &[2], &[4, 4, 4, 10]] {
        let (width, tile) = of(shape);
        assert_eq!((width, tile[1] % 2), (shape[shape.len() - 1], 0), "{shape:?}: {tile:?}");
    }
}

#[test]
fn odd_rows_are_cast_one_by_one() {
    let of =
        |shape: &[i64]| cast(&dense(0, DataType::Fp32, shape), &dense(1, DataType::Fp16, shape));
    for shape in [&[17, 3][..], &[1], &[5], &[12, 1], &[2, 3, 5], &[2, 3, 4, 5], &[2, 1, 4, 1]] {
        let (width, tile) = of(shape);
        assert_eq!((width, tile[1]), (1, 2), "{shape:?}: {tile:?}");
    }
}

#[test]
fn rows_that_split_pairs_are_cast_one_by_one() {
    let output = dense(1, DataType::Fp32, &[8, 6]);
    assert_eq!(cast(&boxed(0, &[8, 6], &[8, 7]), &output).0, 1);
    assert_eq!(cast(&boxed(0, &[8, 6], &[8, 8]), &output).0, 6);
    let shifted = Tensor { offsets: vec![0, 1], ..boxed(0, &[8, 6], &[8, 8]) };
    assert_eq!(cast(&shifted, &output).0, 1);
    // One element for a whole row is half a pair.
    let stretched = dense(0, DataType::Fp16, &[8, 1]);
    assert_eq!(cast(&stretched, &output).0, 1);
}

#[test]
fn odd_rows_of_four_strided_dimensions_are_rejected() {
    let input = boxed(0, &[2, 3, 4, 5], &[2, 4, 5, 6]);
    let output = dense(1, DataType::Fp32, &[2, 3, 4, 5]);
    let cast = op(OpKind::Cast, &[&input], &output);
    let target = Target::new(Architecture::Cuda80, None).expect("a target");
    let rejected = irc_planner::plan(&model(vec![cast]), &Options::new(target));
    let diagnostics = rejected.expect_err("a rejection");
    let [diagnostic] = &diagnostics[..] else { panic!("{diagnostics:?}") };
    assert_eq!(diagnostic.node, Some(0));
    assert!(diagnostic.message.ends_with("1 past the end of rows of 5"), "{}", diagnostic.message);
}

#[test]
fn buffers_start_aligned() {
    let x = dense(0, DataType::Uint8, &[3]);
    let y = dense(1, DataType::Uint8, &[3]);
    let (a, b) = (dense(2, DataType::Fp32, &[64]), dense(3, DataType::Fp32, &[64]));
    let last = dense(4, DataType::Fp16, &[5]);
    let scaled = |x: &Tensor, y: &Tensor| op(OpKind::ScalarMul, &[x], y);
    let planned = planned(&model(vec![
        scaled(&x, &y),
        scaled(&a, &b),
        op(OpKind::Copy, &[&last], &Tensor { id: 5, ..last.clone() }),
    ]));
    assert_eq!(starts(&planned.plan), [0, 16, 32, 288, 544]);
    assert_eq!(ops(&planned.plan, OpKind::Noop).len(), 2);
    assert_eq!(planned.warnings, []);
    let tile = ops(&planned.plan, OpKind::ScalarMul)[1].config.ints("Tile");
    assert_eq!(tile, Some(&[1, 64][..]));
}

#[test]
fn what_is_aligned_is_left_alone() {
    let (a, b) = (dense(0, DataType::Fp32, &[64]), dense(1, DataType::Fp32, &[63]));
    let half = Tensor { shape: vec![63], padded_shape: vec![63], ..a };
    let planned = planned(&model(vec![op(OpKind::ScalarMul, &[&half], &b)]));
    assert_eq!(ops(&planned.plan, OpKind::Noop).len(), 0);
}

#[test]
fn pinned_ranges_leave_barriers_over_all_before() {
    // ARK's table of barriers confuses a range that lies within another.
    let text = r#"[{"Match": {"Type": "ReduceMax"}, "ProcessorRange": [0, 36]},
                   {"Match": {"Type": "Sub"}, "ProcessorRange": [36, 72]},
                   {"Match": {"Type": "Exp"}, "ProcessorRange": [72, 108]}]"#;
    let rules = rules::read(&Source::new("rules.json", text), &mut Sink::new()).expect("rules");
    let target = Target::new(Architecture::Cuda80, None).expect("a target");
    let softmax = read_model(&root().join("examples/softmax.model.json"));
    let planned = irc_planner::plan(&softmax, &Options { rules, ..Options::new(target) });
    let groups = planned.expect("a plan").plan.processor_groups;
    assert!(groups.len() > 3);
    assert!(groups.iter().all(|group| group.processor_range.begin == 0));
}
