//! Every plan is valid by the checks of the plan format, and computes what the model computes.

use crate::support::{corpus, files, name, read_model, root};
use irc_ark_format::{
    model::{Hazard, Model, Op, OpKind, Options as Reading, Region, Tensor, buffer_bytes, hazards},
    plan::{self, Architecture, Plan},
};
use irc_diag::{Sink, Source};
use irc_planner::{NodeDiagnostic, Options, Planned, Target};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

fn models() -> Vec<PathBuf> {
    let mut paths = files(&root().join("examples"), ".model.json");
    paths.extend(corpus(".model.json"));
    paths
}

/// The plan of a model; `None` after a rejection, which must be of a matrix product.
fn planned(model: &Model, architecture: Architecture, processors: Option<i64>) -> Option<Planned> {
    let target = Target::new(architecture, processors).expect("a target");
    match irc_planner::plan(model, &Options::new(target)) {
        Ok(planned) => Some(planned),
        Err(diagnostics) => {
            diagnostics
                .iter()
                .for_each(|diagnostic| assert_rejection(model, architecture, diagnostic));
            None
        }
    }
}

/// A rejection names a matrix product, and states that there is no kernel or that ARK's would be wrong.
fn assert_rejection(model: &Model, architecture: Architecture, diagnostic: &NodeDiagnostic) {
    let NodeDiagnostic { node, message } = diagnostic;
    let kind = node.map(|node| model.nodes[node].op.kind);
    assert_eq!(kind, Some(OpKind::Matmul), "{architecture:?}: {message}");
    let is_known = ["has no known kernel", "tile for Matmul", "are stepped as if"];
    assert!(is_known.iter().any(|known| message.contains(known)), "{architecture:?}: {message}");
    let without = [Architecture::Rocm90a];
    if without.contains(&architecture) {
        assert!(message.contains(architecture.name()), "{message}");
        assert!(message.contains("ARK has them for CUDA_80 and ROCM_942"), "{message}");
    }
}

/// By node, the step of its task and its place in it.
fn places(planned: &Planned) -> BTreeMap<usize, (usize, usize, usize)> {
    let mut places = BTreeMap::new();
    for (step, group) in planned.plan.processor_groups.iter().enumerate() {
        for tasks in group.resource_groups.iter().flat_map(|resources| &resources.task_groups) {
            let task = tasks.task_id as usize;
            for (index, node) in planned.nodes[task].iter().enumerate() {
                assert_eq!(
                    places.insert(*node, (step, task, index)),
                    None,
                    "node {node} runs twice"
                );
            }
        }
    }
    places
}

/// Every op runs once, after all that it waits for.
fn assert_order(path: &Path, model: &Model, planned: &Planned) {
    let places = places(planned);
    for (index, node) in model.nodes.iter().enumerate() {
        assert_eq!(places.contains_key(&index), !node.op.is_virtual, "{}: {index}", path.display());
    }
    let is_real =
        |hazard: &&Hazard| [hazard.from, hazard.to].iter().all(|node| places.contains_key(node));
    for hazard in hazards(model).iter().filter(is_real) {
        let (from, to) = (places[&hazard.from], places[&hazard.to]);
        let is_ordered = from.0 < to.0 || (from.0 == to.0 && from.1 == to.1 && from.2 < to.2);
        assert!(is_ordered, "{}: {hazard:?}: {from:?} {to:?}", path.display());
    }
}

/// Nodes whose work a read sees; those of `writes` in order, the last write of a byte winning.
fn seen(writes: &[(usize, Region)], tensor: &Tensor) -> BTreeSet<Option<usize>> {
    let region = Region::of(tensor);
    let mut seen = BTreeSet::new();
    for (node, write) in writes.iter().rev() {
        if write.overlaps(&region) {
            seen.insert(Some(*node));
        }
        if write.covers(&region) {
            return seen;
        }
    }
    // Not every byte was written: the rest is as it was when the plan started.
    seen.insert(None);
    seen
}

/// What every read sees when ops run in an order.
fn reads<'a>(
    ops: impl Iterator<Item = (usize, &'a Op)>,
) -> BTreeMap<usize, Vec<BTreeSet<Option<usize>>>> {
    let mut writes: BTreeMap<u64, Vec<(usize, Region)>> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for (node, op) in ops {
        let of = |tensor: &Tensor| {
            seen(writes.get(&tensor.buffer.id).map_or(&[], Vec::as_slice), tensor)
        };
        found.insert(node, op.reads.iter().map(of).collect());
        for tensor in &op.writes {
            writes.entry(tensor.buffer.id).or_default().push((node, Region::of(tensor)));
        }
    }
    found
}

fn ops_in_order(planned: &Planned, is_reversed: bool) -> Vec<(usize, &Op)> {
    let mut ops = vec![];
    for group in &planned.plan.processor_groups {
        let mut tasks: Vec<usize> = group
            .resource_groups
            .iter()
            .flat_map(|resources| &resources.task_groups)
            .map(|tasks| tasks.task_id as usize)
            .collect();
        if is_reversed {
            tasks.reverse();
        }
        for task in tasks {
            let info = &planned.plan.task_infos[task];
            ops.extend(planned.nodes[task].iter().copied().zip(info.ops.iter().map(|op| &op.op)));
        }
    }
    ops
}

/// Every read sees what it sees in the model, whichever task of a step is the first.
fn assert_meaning(path: &Path, model: &Model, planned: &Planned) {
    let real = model.nodes.iter().enumerate().filter(|(_, node)| !node.op.is_virtual);
    let expected = reads(real.map(|(index, node)| (index, &node.op)));
    for is_reversed in [false, true] {
        let found = reads(ops_in_order(planned, is_reversed).into_iter());
        assert_eq!(found, expected, "{}", path.display());
    }
}

/// The plan contains nothing that the executor ignores.
fn assert_heard(path: &Path, plan: &Plan) {
    for group in &plan.processor_groups {
        assert_eq!((group.processor_range.begin, group.processor_range.step), (0, None));
        for resources in &group.resource_groups {
            for range in [resources.warp_range, resources.sram_range] {
                assert_eq!((range.begin, range.step), (0, None), "{}", path.display());
            }
        }
    }
    let text = plan::write(plan);
    let source = Source::new("plan", &text);
    let mut sink = Sink::new();
    let read = plan::parse(&source, &Reading { strict: true, validate: true }, &mut sink);
    assert_eq!(read.as_ref(), Some(plan), "{}", path.display());
}

/// Tasks that run in turn on one processor without a barrier split its warps in one way: named
/// barriers count warps, and on-chip memory is shared out by them.
fn assert_split(path: &Path, plan: &Plan) {
    for group in &plan.processor_groups {
        let mut splits = BTreeSet::new();
        for resources in &group.resource_groups {
            for tasks in &resources.task_groups {
                let info = &plan.task_infos[tasks.task_id as usize];
                let warps = |op: &plan::PlanOp| op.config.int("NumWarps");
                assert!(info.ops.iter().all(|op| warps(op) == Some(info.num_warps)));
                if info.num_warps > 1 || info.sram_bytes > 0 {
                    splits.insert((info.num_warps, info.sram_bytes, resources.sram_range.len()));
                }
            }
        }
        assert!(splits.len() <= 1, "{}: {splits:?}", path.display());
    }
}

/// Buffers start aligned, and kernels that go by pairs get tiles of even width.
fn assert_vectors(path: &Path, plan: &Plan) {
    let ops = || plan.task_infos.iter().flat_map(|info| &info.ops);
    let is_local = |tensor: &&Tensor| tensor.buffer.rank < 0 || tensor.buffer.rank == plan.rank;
    let mut start = 0;
    for bytes in buffer_bytes(ops().flat_map(|op| op.op.tensors()).filter(is_local)).into_values() {
        assert_eq!(start % 16, 0, "{}", path.display());
        start += bytes;
    }
    for op in ops().filter(|op| matches!(op.op.kind, OpKind::Cast | OpKind::Rope)) {
        let tile = op.config.ints("Tile").expect("a tile");
        assert_eq!(tile[1] % 2, 0, "{}: {tile:?}", path.display());
    }
}

/// The user's buffers exist in the plan, at their places.
fn assert_interface(path: &Path, model: &Model, plan: &Plan) {
    let ops = || model.nodes.iter().map(|node| &node.op).filter(|op| !op.is_virtual);
    let read: BTreeSet<u64> =
        ops().flat_map(|op| &op.reads).map(|tensor| tensor.buffer.id).collect();
    let written: BTreeSet<u64> =
        ops().flat_map(|op| &op.writes).map(|tensor| tensor.buffer.id).collect();
    let visible = |tensor: &&Tensor| {
        let id = tensor.buffer.id;
        !(read.contains(&id) && written.contains(&id))
    };
    let planned: BTreeSet<(u64, Vec<i64>, Vec<i64>)> = plan
        .task_infos
        .iter()
        .flat_map(|info| &info.ops)
        .flat_map(|op| op.op.tensors())
        .map(|tensor| (tensor.buffer.id, tensor.strides.clone(), tensor.offsets.clone()))
        .collect();
    // A reduction may see its result with one more dimension.
    let squeezed = |list: &[i64], one: i64| -> Vec<i64> {
        list.iter().copied().filter(|extent| *extent != one).collect()
    };
    for tensor in ops().flat_map(Op::tensors).filter(visible) {
        let is_same = |(id, strides, offsets): &(u64, Vec<i64>, Vec<i64>)| {
            *id == tensor.buffer.id
                && squeezed(strides, 1) == squeezed(&tensor.strides, 1)
                && squeezed(offsets, 0) == squeezed(&tensor.offsets, 0)
        };
        assert!(planned.iter().any(is_same), "{}: {tensor:?}", path.display());
    }
}

fn assert_valid(path: &Path, model: &Model, planned: &Planned) {
    let found = plan::check(&planned.plan);
    assert!(found.iter().all(|diagnostic| !diagnostic.is_error()), "{}: {found:?}", path.display());
    let found = plan::check_model(&planned.plan, model);
    assert!(found.iter().all(|diagnostic| !diagnostic.is_error()), "{}: {found:?}", path.display());
    assert_order(path, model, planned);
    assert_meaning(path, model, planned);
    assert_heard(path, &planned.plan);
    assert_split(path, &planned.plan);
    assert_vectors(path, &planned.plan);
    assert_interface(path, model, &planned.plan);
}

#[test]
fn plans_for_every_architecture() {
    for path in models() {
        let model = read_model(&path);
        for architecture in Architecture::ALL {
            if let Some(planned) = planned(&model, architecture, None) {
                assert_valid(&path, &model, &planned);
            }
        }
    }
}

#[test]
fn plans_for_any_number_of_processors() {
    for path in models().into_iter().filter(|path| !name(path).contains(".virtual.")) {
        let model = read_model(&path);
        for processors in [1, 2, 7, 64, 107] {
            if let Some(planned) = planned(&model, Architecture::Cuda80, Some(processors)) {
                assert!(planned.plan.num_processors <= processors);
                assert_valid(&path, &model, &planned);
            }
        }
    }
}

#[test]
fn the_same_model_gives_the_same_plan() {
    for path in models() {
        let plan = || planned(&read_model(&path), Architecture::Cuda80, None);
        assert_eq!(plan(), plan(), "{}", path.display());
    }
}

#[test]
fn virtual_nodes_change_nothing() {
    for path in corpus(".virtual.model.json") {
        let compressed = path.with_file_name(name(&path).replace(".virtual.", "."));
        let of = |path: &Path| planned(&read_model(path), Architecture::Cuda80, None);
        let plans = [of(&path), of(&compressed)].map(|planned| planned.map(|planned| planned.plan));
        assert_eq!(plans[0], plans[1], "{}", path.display());
    }
}

#[test]
fn no_processors_and_too_many_are_rejected() {
    for processors in [0, -1, 109, 4096] {
        let found = Target::new(Architecture::Cuda80, Some(processors)).expect_err("a rejection");
        assert!(found.contains("expected 1 to 108 processors on CUDA_80"), "{found}");
    }
    assert!(Target::new(Architecture::Any, Some(4096)).is_ok());
    assert!(Target::new(Architecture::Any, Some(4097)).is_err());
}

#[test]
fn plans_of_all_ranks_agree() {
    for first in corpus(".model.json").iter().filter(|path| name(path).contains("_rank0of")) {
        if name(first).contains(".virtual.") {
            continue;
        }
        let world = read_model(first).world_size;
        let plan_of = |rank: i64| {
            let file = name(first).replace("_rank0of", &format!("_rank{rank}of"));
            let model = read_model(&first.with_file_name(file));
            planned(&model, Architecture::Cuda80, None).expect("a plan").plan
        };
        let plans: Vec<Plan> = (0..world).map(plan_of).collect();
        let found = plan::check_ranks(&plans);
        assert!(
            found.iter().all(|(_, diagnostic)| !diagnostic.is_error()),
            "{}: {found:?}",
            name(first)
        );
    }
}

#[test]
fn what_lines_up_shares_a_task() {
    use OpKind::*;
    let tasks = |file: &str| -> Vec<Vec<OpKind>> {
        let model = read_model(&root().join("examples").join(file));
        let planned = planned(&model, Architecture::Cuda80, None).expect("a plan");
        let kinds = |ops: &[plan::PlanOp]| ops.iter().map(|op| op.op.kind).collect();
        planned.plan.task_infos.iter().map(|info| kinds(&info.ops)).collect()
    };
    assert_eq!(tasks("softmax.model.json"), [[ReduceMax, Sub, Exp, ReduceSum, Div]]);
    assert_eq!(tasks("layernorm.model.json").len(), 1);
    assert_eq!(tasks("rmsnorm.model.json").len(), 1);
    // Both products have one grid, and what is between them works on their tiles.
    assert_eq!(
        tasks("swiglu_ffn_f16.model.json"),
        [vec![Matmul, Sigmoid, Mul, Matmul, Mul], vec![Matmul]]
    );
}
