//! Which ops become one kernel, on examples; `tests/plan_fused.rs` runs them.
use super::{TaskStep, segment::Origin, steps, variants};
use irc_ark_format::{
    model::{Buffer, DataType, Op, OpKind, Tensor},
    plan::{Config, ConfigValue, PlanOp, TaskInfo},
};

fn op(kind: OpKind, reads: &[u64], write: u64, shape: [i64; 2], tile: [i64; 2]) -> PlanOp {
    let on = |buffer: &u64| Tensor::dense(0, DataType::Fp32, &shape, Buffer::local(*buffer));
    let op = Op {
        kind,
        name: String::new(),
        is_virtual: false,
        reads: reads.iter().map(on).collect(),
        writes: vec![on(&write)],
        results: vec![on(&write)],
        args: Default::default(),
    };
    PlanOp { op, config: Config::default().with("Tile", ConfigValue::Ints(tile.to_vec())) }
}

fn task(ops: Vec<PlanOp>) -> TaskInfo {
    TaskInfo { id: 0, num_warps: 1, sram_bytes: 0, ops }
}

fn segments(task: &TaskInfo) -> Vec<super::Segment> {
    let steps = steps(task).expect("known tiles").into_iter();
    let segment = |step| match step {
        TaskStep::Kernel(segment) => Some(segment),
        TaskStep::Communicate(_) => None,
    };
    steps.filter_map(segment).collect()
}

#[test]
fn equal_tiles_are_handed_on_as_values() {
    let (shape, tile) = ([8, 64], [2, 64]);
    let exp = op(OpKind::Exp, &[0], 1, shape, tile);
    let task = task(vec![exp, op(OpKind::Add, &[1, 0], 2, shape, tile)]);
    let [segment] = &segments(&task)[..] else { panic!("not one kernel") };
    assert_eq!(segment.reads, [vec![Origin::Load(0)], vec![Origin::Value(0), Origin::Load(0)]]);
    assert_eq!((segment.loads.len(), segment.stores.len()), (1, 2));
}

#[test]
fn only_the_last_value_of_a_window_is_stored() {
    let (shape, tile) = ([8, 64], [2, 64]);
    let exp = op(OpKind::Exp, &[0], 1, shape, tile);
    let task = task(vec![exp, op(OpKind::Relu, &[1], 1, shape, tile)]);
    let [segment] = &segments(&task)[..] else { panic!("not one kernel") };
    assert_eq!(segment.stores.iter().map(|store| store.op).collect::<Vec<_>>(), [1]);
}

#[test]
fn other_tiles_are_another_kernel() {
    let exp = op(OpKind::Exp, &[0], 1, [8, 64], [2, 64]);
    let task = task(vec![exp, op(OpKind::Relu, &[1], 2, [8, 64], [8, 16])]);
    assert_eq!(segments(&task).len(), 2);
}

#[test]
fn what_is_read_elsewhere_is_overwritten_last() {
    let (shape, tile) = ([8, 64], [2, 64]);
    let overwrites = |kind, reads: &[u64]| {
        segments(&task(vec![op(kind, reads, 0, shape, tile)]))[0].stores[0].overwrites
    };
    assert!(!overwrites(OpKind::Add, &[0, 1]), "each element is read before it is written");
    assert!(overwrites(OpKind::Rope, &[0, 1]), "a pair is read twice");
}

#[test]
fn each_way_to_cut_a_tile_is_a_variant() {
    let of = |shape| {
        let task = task(vec![op(OpKind::Exp, &[0], 1, shape, [4, 64])]);
        variants(&segments(&task)[0])
    };
    let (inner, right) = ([false; 4], [false, false, false, true]);
    let (bottom, corner) = ([false, false, true, false], [false, false, true, true]);
    assert_eq!(of([8, 128]), [inner]);
    assert_eq!(of([8, 100]), [right, inner]);
    assert_eq!(of([3, 50]), [inner], "the only tile is the first");
    let all = of([9, 100]);
    assert_eq!((all[0], all[3], all.len()), (corner, inner, 4));
    assert!(all.contains(&right) && all.contains(&bottom));
}
