//! Laws of fusion, on random programs: same results bit for bit, everything in a group, the same
//! output every time.
use irc::{eval::evaluate, fusion};
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    Block, BlockLike, Context, Location, Module, OpSpec, OperationLike, OperationRef, Type, Value,
    function, read, to_text, walk_collect,
};
use irc_tensor::{DType, Tensor, TensorType};
use irc_tl::{Binary, Op, Reduction, Rounding, Unary};

const PROGRAMS: u64 = 300;

#[test]
fn fusion_keeps_every_bit() {
    for seed in 0..PROGRAMS {
        let program = Program::random(seed);
        let context = context();
        let module = program.module(&context);
        let inputs = program.inputs();
        let expected = evaluate(func(&module), &inputs).expect("the program evaluates");
        let before = to_text(&module.as_operation(), false);
        fusion::fuse_function(func(&module)).expect("the program fuses");
        let after = to_text(&module.as_operation(), false);
        assert!(module.as_operation().verify(), "seed {seed} breaks the IR:\n{before}\n{after}");
        let found = evaluate(func(&module), &inputs).expect("the groups evaluate");
        assert_eq!(expected, found, "seed {seed} changes results:\n{before}\n{after}");
        only_views_stay_outside(func(&module), seed);
    }
}

#[test]
fn simplification_keeps_every_bit() {
    for seed in 0..PROGRAMS {
        let program = Program::random(seed);
        let context = context();
        let module = program.module(&context);
        let inputs = program.inputs();
        let expected = evaluate(func(&module), &inputs).expect("the program evaluates");
        let before = to_text(&module.as_operation(), false);
        let count = read::body_ops(func(&module)).len();
        let applied = fusion::simplify_function(func(&module)).expect("the program simplifies");
        let after = to_text(&module.as_operation(), false);
        assert!(module.as_operation().verify(), "seed {seed} breaks the IR:\n{before}\n{after}");
        let found = evaluate(func(&module), &inputs).expect("the result evaluates");
        assert_eq!(expected, found, "seed {seed}: {applied:?}:\n{before}\n{after}");
        assert!(read::body_ops(func(&module)).len() <= count, "seed {seed} grows");
    }
}

#[test]
fn fusion_is_deterministic() {
    for seed in 0..40 {
        let texts = [(); 2].map(|()| {
            let context = context();
            let module = Program::random(seed).module(&context);
            let report = fusion::explain(func(&module), fusion::fuse_segment, &|_, _| None)
                .expect("the program is explained");
            fusion::fuse_function(func(&module)).expect("the program fuses");
            format!("{report}\n{}", to_text(&module.as_operation(), true))
        });
        assert_eq!(texts[0], texts[1], "seed {seed}");
    }
}

#[test]
fn every_fusion_rule_is_used() {
    let mut unused: Vec<_> = fusion::RULES.iter().map(|rule| rule.name).collect();
    for seed in 0..PROGRAMS {
        let context = context();
        let module = Program::random(seed).module(&context);
        let report = fusion::explain(func(&module), fusion::fuse_segment, &|_, _| None)
            .expect("the program is explained");
        for step in report.groups.iter().flat_map(|group| &group.steps) {
            unused.retain(|name| *name != step.rule);
            assert!(!step.rule.is_empty(), "seed {seed}: {step} names no rule");
        }
    }
    assert_eq!(unused, Vec::<&str>::new());
}

#[test]
fn a_report_reads_back() {
    let context = context();
    let module = Program::random(3).module(&context);
    let report = fusion::explain(func(&module), fusion::fuse_segment, &|_, _| None)
        .expect("the program is explained");
    let json = serde_json::to_string(&report).expect("it is data");
    assert_eq!(report, serde_json::from_str(&json).expect("it reads back"));
}

#[test]
fn a_long_chain_is_one_kernel() {
    let context = context();
    let ty = TensorType::new(DType::F32, [64, 64]);
    let chain = |at: usize| match at % 3 {
        0 => (Op::Unary(Unary::Exp), vec![at]),
        1 => (Op::Unary(Unary::Relu), vec![at]),
        _ => (Op::Binary(Binary::Mul), vec![at, at - 1]),
    };
    let program = Program {
        inputs: vec![ty.clone()],
        steps: (0..200).map(chain).collect(),
        types: vec![ty; 201],
        results: vec![200],
    };
    let module = program.module(&context);
    let report = fusion::explain(func(&module), fusion::fuse_segment, &|_, _| None)
        .expect("the program is explained");
    assert_eq!((report.before.kernels, report.after.kernels), (200, 1));
}

/// Kernels hold so many ops and no more, however long the chain is.
#[test]
fn a_chain_of_ten_thousand_ops_is_kernels_of_bounded_size() {
    let context = context();
    let ty = TensorType::new(DType::F32, [64]);
    let chain = |at: usize| match at % 2 {
        0 => (Op::Unary(Unary::Exp), vec![at]),
        _ => (Op::Unary(Unary::Neg), vec![at]),
    };
    let program = Program {
        inputs: vec![ty.clone()],
        steps: (0..10_000).map(chain).collect(),
        types: vec![ty; 10_001],
        results: vec![10_000],
    };
    let module = program.module(&context);
    fusion::fuse_function(func(&module)).expect("the program fuses");
    let groups = walk_collect(module.as_operation(), |op| read::op_name(&op) == "tl.group");
    let sizes: Vec<usize> = groups.iter().map(|group| read::body_ops(*group).len() - 1).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 10_000);
    assert_eq!(sizes.len(), 10_000_usize.div_ceil(fusion::MAX_NODES), "{sizes:?}");
}

/// Longer than what is simplified together, with equal ops and values that are read from afar.
#[test]
fn a_long_function_keeps_every_bit() {
    let ty = TensorType::new(DType::F32, [8]);
    let step = |at: usize| match at % 6 {
        _ if at > 700 && at.is_multiple_of(97) => (Op::Binary(Binary::Max), vec![at, at - 700]),
        0 => (Op::Unary(Unary::Sigmoid), vec![at]),
        1 => (Op::Binary(Binary::Sub), vec![at, at - 1]),
        2 => (Op::Unary(Unary::Relu), vec![at]),
        // Equal to the last one.
        3 => (Op::Unary(Unary::Relu), vec![at - 1]),
        4 => (Op::Binary(Binary::Add), vec![at, at - 1]),
        _ => (Op::Binary(Binary::Max), vec![at, at / 2]),
    };
    let program = Program {
        inputs: vec![ty.clone()],
        steps: (0..3000).map(step).collect(),
        types: vec![ty; 3001],
        results: vec![3000, 1500, 2],
    };
    let context = context();
    let module = program.module(&context);
    let inputs = program.inputs();
    let expected = evaluate(func(&module), &inputs).expect("the program evaluates");
    fusion::simplify_function(func(&module)).expect("the program simplifies");
    assert!(read::body_ops(func(&module)).len() < 2600, "equal ops are one");
    assert_eq!(expected, evaluate(func(&module), &inputs).expect("the result evaluates"));
    fusion::fuse_function(func(&module)).expect("the program fuses");
    assert!(module.as_operation().verify());
    assert_eq!(expected, evaluate(func(&module), &inputs).expect("the groups evaluate"));
}

/// A network as deep as the largest models: the search must end in time.
#[test]
fn a_deep_residual_network_fuses() {
    let context = context();
    let ty = TensorType::new(DType::F32, [64, 64]);
    let layer = |at: usize| match at % 2 {
        0 => (Op::Unary(Unary::Exp), vec![at]),
        _ => (Op::Binary(Binary::Add), vec![at, at - 1]),
    };
    let program = Program {
        inputs: vec![ty.clone()],
        steps: (0..1000).map(layer).collect(),
        types: vec![ty; 1001],
        results: vec![1000, 501],
    };
    let module = program.module(&context);
    fusion::fuse_function(func(&module)).expect("the program fuses");
    let groups = walk_collect(module.as_operation(), |op| read::op_name(&op) == "tl.group");
    assert_eq!(groups.len(), 1000_usize.div_ceil(fusion::MAX_NODES), "as few as there can be");
}

#[test]
fn fusing_again_changes_nothing() {
    let context = context();
    let module = Program::random(7).module(&context);
    fusion::fuse_function(func(&module)).expect("the program fuses");
    let once = to_text(&module.as_operation(), false);
    fusion::fuse_function(func(&module)).expect("the groups fuse");
    assert_eq!(once, to_text(&module.as_operation(), false));
}

#[test]
fn fusion_never_costs_more() {
    for seed in 0..PROGRAMS {
        let context = context();
        let module = Program::random(seed).module(&context);
        let report = fusion::explain(func(&module), fusion::fuse_segment, &|_, _| None)
            .expect("the program is explained");
        let (before, after) = (report.before.total(), report.after.total());
        assert!(after <= before, "seed {seed}: {before} -> {after}");
    }
}

fn context() -> Context {
    let context = irc_dialects::new_context();
    for dialect in ["func", "tl"] {
        context.get_or_load_dialect(dialect);
    }
    context
}

fn only_views_stay_outside(func: OperationRef<'_, '_>, seed: u64) {
    for op in read::body_ops(func) {
        let name = read::op_name(&op);
        let allowed = ["tl.group", "tl.reshape", "tl.bitcast", func::RETURN];
        assert!(allowed.contains(&name.as_str()), "seed {seed}: {name} is outside groups");
        if name == tl::GROUP {
            kinds_hold_what_they_say(op, seed);
        }
    }
}

fn kinds_hold_what_they_say(group: OperationRef<'_, '_>, seed: u64) {
    let names: Vec<_> = read::body_ops(group).iter().map(read::op_name).collect();
    let count = |prefix: &str| names.iter().filter(|name| name.starts_with(prefix)).count();
    let (matmuls, reduces, updates) = (count("tl.matmul"), count("tl.reduce"), count("tl.update"));
    let sequential = count("tl.sequential_sum");
    let holds = match read::string(&group, "kind").as_deref() {
        Some("contraction") => matmuls == 1 && reduces + updates == 0,
        Some("rows") => reduces >= 1 && matmuls + updates == 0,
        Some("reduction") if sequential == 1 => names.len() == 2,
        Some("reduction") => reduces == 1 && matmuls + updates == 0,
        Some("copy") => updates == 1 && matmuls + reduces == 0,
        Some("elementwise") => matmuls + reduces + updates == 0,
        _ => false,
    };
    assert!(holds, "seed {seed}: {group}");
}

fn func<'c, 'a>(module: &'a Module<'c>) -> OperationRef<'c, 'a> {
    walk_collect(module.as_operation(), |op| read::op_name(&op) == func::FUNC)[0]
}

/// A straight-line program: inputs first, then one value per step.
struct Program {
    inputs: Vec<TensorType>,
    steps: Vec<(Op, Vec<usize>)>,
    types: Vec<TensorType>,
    results: Vec<usize>,
}

impl Program {
    fn random(seed: u64) -> Self {
        let mut random = Random(seed);
        let shapes: [&[i64]; 6] = [&[4, 8], &[4, 8], &[8], &[4, 1], &[8, 8], &[2, 4, 8]];
        let inputs: Vec<_> =
            shapes.iter().map(|shape| TensorType::new(DType::F32, *shape)).collect();
        let (steps, types) = (Vec::new(), inputs.clone());
        let mut program = Self { inputs, steps, types, results: Vec::new() };
        for _ in 0..4 + random.below(30) {
            program.step(&mut random);
        }
        let used =
            |value: usize| program.steps.iter().any(|(_, operands)| operands.contains(&value));
        let values = program.inputs.len()..program.types.len();
        program.results = values
            .filter(|value| !used(*value) && random.below(6) > 0 || random.below(12) == 0)
            .collect();
        program
    }

    /// Adds a random op that its operands allow.
    fn step(&mut self, random: &mut Random) {
        for _ in 0..200 {
            // Recent values are likelier, for depth.
            let pick = |random: &mut Random| {
                let count = self.types.len();
                if random.below(3) > 0 {
                    count - 1 - random.below(count.min(4))
                } else {
                    random.below(count)
                }
            };
            let first = pick(random);
            let op = random_op(random, &self.types[first]);
            let mut operands = vec![first];
            let arity = op.arity().expect("no op here takes any number of operands");
            operands.extend((1..arity).map(|_| pick(random)));
            operands.truncate(arity);
            let types: Vec<_> = operands.iter().map(|value| self.types[*value].clone()).collect();
            if let Ok(ty) = op.infer(&types) {
                self.steps.push((op, operands));
                self.types.push(ty);
                return;
            }
        }
    }

    fn module<'c>(&self, context: &'c Context) -> Module<'c> {
        let location = Location::unknown(context);
        let module = Module::new(location);
        let mlir = |ty: &TensorType| tl::tensor_type_to_mlir(context, ty);
        let inputs: Vec<Type> = self.inputs.iter().map(mlir).collect();
        let arguments: Vec<_> = inputs.iter().map(|ty| (*ty, location)).collect();
        let block = Block::new(&arguments);
        let mut values: Vec<Value> =
            (0..inputs.len()).map(|at| block.argument(at).expect("an argument").into()).collect();
        for (op, operands) in &self.steps {
            let operands: Vec<_> = operands.iter().map(|operand| values[*operand]).collect();
            let built = tl::build(context, op, &operands, location).expect("the op builds");
            values.push(block.append_operation(built).result(0).expect("a result").into());
        }
        let returned: Vec<_> = self.results.iter().map(|result| values[*result]).collect();
        let results: Vec<_> =
            self.results.iter().map(|result| mlir(&self.types[*result])).collect();
        OpSpec::new(context, func::RETURN, location).operands(&returned).append(&block);
        let func = function(context, "f", &inputs, &results, block, location).build();
        module.body().append_operation(func);
        module
    }

    fn inputs(&self) -> Vec<Tensor> {
        let input = |(seed, ty): (usize, &TensorType)| Tensor::random(ty.clone(), seed as u64);
        self.inputs.iter().enumerate().map(|at| input(at).expect("a tensor")).collect()
    }
}

fn random_op(random: &mut Random, operand: &TensorType) -> Op {
    let rank = operand.rank();
    let axis = random.below(rank.max(1));
    let last = rank.max(1) - 1;
    let keep_dims = random.below(4) > 0;
    let slice = || Op::Slice {
        offsets: operand.shape.iter().map(|dim| dim / 2).collect(),
        sizes: operand.shape.iter().map(|dim| dim - dim / 2).collect(),
    };
    match random.below(32) {
        0 | 1 => Op::Unary(Unary::Exp),
        2 => Op::Unary(Unary::Relu),
        3 => Op::Unary(Unary::Gelu),
        4 => Op::Unary(Unary::Sigmoid),
        5..=7 => Op::Binary(Binary::Add),
        8 | 9 => Op::Binary(Binary::Sub),
        10..=12 => Op::Binary(Binary::Mul),
        13 => Op::Binary(Binary::Max),
        14 => Op::Cast { to: DType::F16, rounding: Rounding::NearestEven },
        15 => Op::Cast { to: DType::F32, rounding: Rounding::NearestEven },
        16 => Op::fill(0.5, operand.shape.clone(), operand.dtype),
        17 => Op::Broadcast { shape: [&[2], operand.shape.as_slice()].concat() },
        18 | 19 => Op::Reduce { kind: Reduction::Sum, axes: vec![last], keep_dims },
        20 => Op::Reduce { kind: Reduction::Max, axes: vec![last], keep_dims },
        21 => Op::Reduce { kind: Reduction::Mean, axes: vec![last], keep_dims },
        22 => Op::Reduce { kind: Reduction::Sum, axes: vec![axis], keep_dims },
        23..=25 => {
            Op::Matmul { transpose_lhs: random.below(4) == 0, transpose_rhs: random.below(2) == 0 }
        }
        26 => Op::Transpose { permutation: (0..rank).rev().collect() },
        27 => Op::Reshape { shape: vec![operand.shape.iter().product()] },
        28 => slice(),
        29 => Op::SequentialSum { axis },
        30 => Op::Unary(Unary::RoundTf32),
        _ => Op::Update { offsets: vec![0; rank] },
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}
