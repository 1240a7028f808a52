//! Every op on every element type: what is compiled against what it means.

use irc::codegen::{Output, Target, compile, link_library};
use irc::pipeline::{HOST_CPU, Settings};
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    Block, BlockLike, Context, Location, Module, OpSpec, OperationLike, Type, Value, ValueLike,
    function, read, walk_collect,
};
use irc_runtime::{Library, Runner};
use irc_tensor::{DType, SmallFloat, Tensor, TensorType, Tolerance, compare};
use irc_tl::{
    Algorithm, Binary, Combine, Comparison, Compute, Conv, Dim, Op, Reduction, Rounding, Scalar,
    Unary,
};
use std::collections::BTreeMap;

/// What one kernel computes.
#[derive(Clone, Debug)]
enum Work {
    Op(Op),
    Algorithm(Algorithm),
}

/// One kernel and its operands.
#[derive(Clone)]
struct Case {
    work: Work,
    operands: Vec<Tensor>,
    /// Units in the last place by which a float may differ.
    ulp: f64,
}

fn case(op: Op, operands: &[&Tensor]) -> Case {
    Case { work: Work::Op(op), operands: operands.iter().map(|x| (*x).clone()).collect(), ulp: 0.5 }
}

impl Case {
    fn within(self, ulp: f64) -> Self {
        Self { ulp, ..self }
    }

    fn expected(&self) -> Vec<Tensor> {
        let operands: Vec<_> = self.operands.iter().collect();
        match &self.work {
            Work::Op(op) => vec![op.eval(&operands).unwrap_or_else(|e| panic!("{op:?}: {e}"))],
            Work::Algorithm(algorithm) => algorithm.eval(&operands).unwrap(),
        }
    }
}

/// A program of all cases, each on inputs of its own.
fn module<'c>(context: &'c Context, cases: &[Case]) -> Module<'c> {
    let location = Location::unknown(context);
    let module = Module::new(location);
    let operands = || cases.iter().flat_map(|case| &case.operands);
    let inputs: Vec<Type> =
        operands().map(|tensor| tl::tensor_type_to_mlir(context, tensor.ty())).collect();
    let arguments: Vec<_> = inputs.iter().map(|ty| (*ty, location)).collect();
    let block = Block::new(&arguments);
    let (mut returned, mut next) = (vec![], 0);
    for case in cases {
        let operands: Vec<Value> =
            (0..case.operands.len()).map(|i| block.argument(next + i).unwrap().into()).collect();
        next += operands.len();
        let built = match &case.work {
            Work::Op(op) => tl::build(context, op, &operands, location),
            Work::Algorithm(work) => tl::build_algorithm(context, work, &operands, location),
        };
        let built =
            block.append_operation(built.unwrap_or_else(|e| panic!("{:?}: {e}", case.work)));
        returned.extend(built.results().map(Value::from));
    }
    let results: Vec<Type> = returned.iter().map(ValueLike::r#type).collect();
    OpSpec::new(context, func::RETURN, location).operands(&returned).append(&block);
    let main = function(context, "main", &inputs, &results, block, location).build();
    module.body().append_operation(main);
    module
}

/// Compiles all cases and runs them.
fn run(cases: &[Case]) -> Vec<Tensor> {
    let context = irc_dialects::new_context();
    let mut module = module(&context, cases);
    let inputs = cases.iter().flat_map(|case| case.operands.clone()).collect();
    run_module(&context, &mut module, inputs)
}

/// Compiles a program and runs it.
fn run_module(context: &Context, module: &mut Module<'_>, inputs: Vec<Tensor>) -> Vec<Tensor> {
    irc::passes::register_all();
    let target = Target::host();
    let passes = HOST_CPU.text(&Settings::of(&target), Some("tensor"), Some("llvm")).unwrap();
    let capture = irc_mlir::Capture::new(context);
    let lowered = irc_mlir::run_pipeline(context, module, &passes);
    assert!(lowered.is_ok(), "{:?}", capture.take());
    let object = compile(module, &target, Output::Object).unwrap();
    let library = link_library([("kernels".to_owned(), &object[..])], &[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernels.so");
    std::fs::write(&path, library).unwrap();
    let inputs: BTreeMap<_, _> = inputs
        .into_iter()
        .enumerate()
        .map(|(at, tensor)| (format!("input_{at}"), tensor))
        .collect();
    let library = Library::load(&path).unwrap();
    let mut outputs = Runner::new(library.into(), &[]).unwrap().run(inputs).unwrap();
    (0..outputs.len()).map(|at| outputs.remove(&format!("output_{at}")).unwrap()).collect()
}

/// Units in the last place of `expected`'s type between it and what was found.
fn distance(found: f64, expected: f64, dtype: DType) -> f64 {
    if found == expected || found.is_nan() && expected.is_nan() {
        return 0.0;
    }
    if !found.is_finite() || !expected.is_finite() {
        return f64::INFINITY;
    }
    let (digits, least) = match dtype {
        DType::F64 => (52, -1022),
        DType::F32 => (23, -126),
        DType::F16 => (10, -14),
        DType::BF16 => (7, -126),
        DType::F8E8M0 => (0, -127),
        small => match SmallFloat::of(small) {
            Some(format) => (format.mantissa as i32, format.least() + format.mantissa as i32),
            None => return f64::INFINITY,
        },
    };
    let exponent = (expected.abs().log2().floor() as i32).max(least);
    (found - expected).abs() / 2f64.powi(exponent - digits)
}

/// Compiles and runs all cases; every element must be what it means.
fn check(cases: &[Case]) {
    let mut found = run(cases).into_iter();
    let mut wrong = vec![];
    for case in cases {
        for (number, expected) in case.expected().into_iter().enumerate() {
            let found = found.next().unwrap();
            assert_eq!(found.ty(), expected.ty(), "{:?}", case.work);
            if let Some(message) = difference(&found, &expected, case.ulp) {
                let types: Vec<_> = case.operands.iter().map(|x| x.ty().to_string()).collect();
                wrong.push(format!("{:?} of {types:?}, result {number}: {message}", case.work));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn difference(found: &Tensor, expected: &Tensor, ulp: f64) -> Option<String> {
    if !expected.dtype().is_float() {
        let (found, expected) = (found.to_i128()?, expected.to_i128()?);
        let at = found.iter().zip(&expected).position(|(found, expected)| found != expected)?;
        return Some(format!("element {at}: {} instead of {}", found[at], expected[at]));
    }
    let (dtype, found, expected) = (expected.dtype(), found.to_f64(), expected.to_f64());
    let apart = |at: &usize| distance(found[*at], expected[*at], dtype);
    let worst = (0..found.len()).max_by(|a, b| apart(a).total_cmp(&apart(b)))?;
    // Whatever is near in an `f32` is the same in a small type, or its neighbour.
    let ulp = if dtype.is_small() { ulp.min(1.0) } else { ulp };
    (apart(&worst) > ulp).then(|| {
        let (found, expected) = (found[worst], expected[worst]);
        format!("element {worst}: {found:e} instead of {expected:e}: {} ulp", apart(&worst))
    })
}

/// Pseudo-random numbers, with what is special of the type among them.
fn numbers(dtype: DType, shape: &[i64], seed: u64) -> Tensor {
    let mut tensor = Tensor::random(TensorType::new(dtype, shape), seed).unwrap();
    if dtype.is_float() {
        for at in 0..tensor.elements() {
            tensor.set_f64(at, tensor.get_f64(at) * 3.0);
        }
        let special = [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 2.5, -0.5];
        let count = tensor.elements();
        for (at, value) in special.into_iter().enumerate().take(count / 2) {
            tensor.set_f64((at * 5 + seed as usize) % count, value);
        }
        return tensor;
    }
    if dtype == DType::Bool {
        return tensor;
    }
    let (Ok(low), Ok(high)) = (bound(Combine::Max, dtype), bound(Combine::Min, dtype)) else {
        unreachable!("integers have bounds");
    };
    let special = [0, 1, -1, low, high, 7, -7, 63, 64, 3];
    let count = tensor.elements();
    for (at, value) in special.into_iter().enumerate().take(count / 2) {
        set_integer(&mut tensor, (at * 3 + seed as usize) % count, value);
    }
    tensor
}

fn bound(combine: Combine, dtype: DType) -> Result<i128, ()> {
    match combine.neutral(dtype) {
        irc_tl::Number::Int(value) => Ok(value),
        irc_tl::Number::Float(_) => Err(()),
    }
}

fn set_integer(tensor: &mut Tensor, at: usize, value: i128) {
    let width = tensor.dtype().size();
    tensor.bytes_mut()[at * width..][..width].copy_from_slice(&value.to_ne_bytes()[..width]);
}

/// By which a function may differ from its correctly rounded value.
fn tolerance(op: &Op, dtype: DType) -> f64 {
    let loose = match op {
        Op::Unary(
            Unary::Neg
            | Unary::Abs
            | Unary::Sign
            | Unary::Sqrt
            | Unary::Floor
            | Unary::Ceil
            | Unary::Round
            | Unary::Relu
            | Unary::RoundTf32,
        ) => 0.0,
        Op::Unary(_) | Op::Binary(Binary::Pow) => 4.0,
        // Small errors of a difference.
        Op::Binary(Binary::Mod) => 0.6,
        _ => 0.0,
    };
    match dtype {
        // The step in between is exact to a hundredth of a unit.
        DType::F16 | DType::BF16 if loose > 0.0 => 1.0,
        // The exponential's argument is rounded before it, and its size counts.
        DType::F32 | DType::F64 if matches!(op, Op::Unary(Unary::Gelu | Unary::Sigmoid)) => 128.0,
        _ => loose,
    }
}

fn pointwise(dtype: DType, shape: &[i64]) -> Vec<Case> {
    let (x, y) = (numbers(dtype, shape, 3), numbers(dtype, shape, 4));
    let flags = numbers(DType::Bool, shape, 5);
    let mut cases = vec![];
    let mut push = |op: Op, operands: &[&Tensor]| {
        let ulp = tolerance(&op, dtype);
        cases.push(case(op, operands).within(ulp));
    };
    Unary::ALL.into_iter().filter(|f| f.takes(dtype)).for_each(|f| push(Op::Unary(f), &[&x]));
    let binary = Binary::ALL.into_iter().filter(|f| f.takes(dtype));
    binary.for_each(|f| push(Op::Binary(f), &[&x, &y]));
    Comparison::ALL.into_iter().for_each(|f| push(Op::Compare(f), &[&x, &y]));
    push(Op::Select, &[&flags, &x, &y]);
    for to in DType::ALL {
        push(Op::Cast { to, rounding: Rounding::TowardZero }, &[&x]);
    }
    push(Op::Cast { to: DType::I32, rounding: Rounding::NearestEven }, &[&x]);
    cases
}

fn reductions(dtype: DType, shape: &[i64]) -> Vec<Case> {
    let x = numbers(dtype, shape, 6);
    let mut cases = vec![];
    let axes: &[&[usize]] = match shape.len() {
        0 => &[&[]],
        1 => &[&[0]],
        _ => &[&[0], &[1], &[0, 1]],
    };
    for kind in Reduction::ALL {
        for (axes, keep_dims) in axes.iter().flat_map(|axes| [(axes, false), (axes, true)]) {
            let op = Op::Reduce { kind, axes: axes.to_vec(), keep_dims };
            // The sum below a mean wraps around at 64 bits, which the reference's does not.
            let small = Tensor::random(x.ty().clone(), 6).unwrap();
            let x = if kind == Reduction::Mean { &small } else { &x };
            if op.infer(&[x.ty().clone()]).is_ok() {
                cases.push(case(op, &[&calm(x)]).within(64.0));
            }
        }
    }
    cases
}

/// A maximum over what lies above, for more columns than are accumulated together.
fn columns(dtype: DType) -> Case {
    let x = numbers(if dtype == DType::Bool { DType::I8 } else { dtype }, &[3, 600], 14);
    let load = Scalar::load(0, [Scalar::Loop(1), Scalar::Loop(0)]);
    let most = Compute::reduce([Dim::Known(600)], Combine::Max, [Dim::Known(3)], load);
    case(Op::compute(most), &[&x])
}

/// The numbers without infinities and NaN, around 1, so that sums do not cancel.
fn calm(tensor: &Tensor) -> Tensor {
    let mut calm = tensor.clone();
    if tensor.dtype().is_float() {
        for at in 0..calm.elements() {
            let value = calm.get_f64(at);
            calm.set_f64(at, if value.is_finite() { 1.0 + value.abs() / 4.0 } else { 1.5 });
        }
    }
    calm
}

fn moves(dtype: DType) -> Vec<Case> {
    let x = numbers(dtype, &[4, 6], 7);
    let row = numbers(dtype, &[6], 8);
    let index = Tensor::from_values([3], &[0i32, -1, 2]).unwrap();
    let mut cases = vec![
        case(Op::Transpose { permutation: vec![1, 0] }, &[&x]),
        case(Op::Broadcast { shape: vec![3, 4, 6] }, &[&x]),
        case(Op::Slice { offsets: vec![1, 2], sizes: vec![2, 3] }, &[&x]),
        case(Op::Update { offsets: vec![1, 0] }, &[&x, &numbers(dtype, &[2, 6], 9)]),
        case(Op::Gather, &[&x, &index]),
        case(Op::Reshape { shape: vec![3, 8] }, &[&x]),
        case(Op::fill(3.0, [2, 5], dtype), &[]),
        case(Op::Select, &[&numbers(DType::Bool, &[4, 1], 2), &x, &row]),
        case(Op::Compare(Comparison::Lt), &[&x, &row]),
    ];
    if dtype != DType::Bool {
        let y = numbers(dtype, &[6, 5], 10);
        let product = Op::Matmul { transpose_lhs: false, transpose_rhs: false };
        cases.push(case(product, &[&calm(&x), &calm(&y)]).within(8.0));
        let turned = Op::Matmul { transpose_lhs: true, transpose_rhs: true };
        let z = numbers(dtype, &[5, 4], 10);
        cases.push(case(turned, &[&calm(&x), &calm(&z)]).within(8.0));
    }
    cases
}

fn general(dtype: DType) -> Vec<Case> {
    let conv = |pads: [i64; 2], stride, groups| {
        Op::Conv(Conv {
            strides: vec![stride; 2],
            dilations: vec![1, 1],
            pads: vec![pads; 2],
            groups,
        })
    };
    let (x, w) = (numbers(dtype, &[2, 4, 5, 6], 11), numbers(dtype, &[6, 2, 3, 3], 12));
    let pointwise = numbers(dtype, &[3, 4, 1, 1], 12);
    // Enough filters for a product of matrices.
    let (many, one) = (numbers(dtype, &[18, 4, 3, 3], 12), numbers(dtype, &[5, 4, 1, 1], 12));
    let grouped = numbers(dtype, &[8, 2, 3, 2], 12);
    let mut cases = vec![];
    for axis in 0..2 {
        for largest in [false, true] {
            let work = Algorithm::TopK { axis, k: Dim::Known(3), largest };
            cases.push(Case {
                work: Work::Algorithm(work),
                operands: vec![numbers(dtype, &[4, 9], 13)],
                ulp: 0.0,
            });
        }
    }
    if dtype == DType::Bool {
        cases.clear();
    } else {
        cases.extend([
            case(conv([0, 0], 1, 2), &[&calm(&x), &calm(&w)]).within(64.0),
            case(conv([1, 2], 2, 2), &[&calm(&x), &calm(&w)]).within(64.0),
            case(conv([0, 0], 1, 1), &[&calm(&x), &calm(&pointwise)]).within(64.0),
            case(conv([1, 2], 2, 1), &[&calm(&x), &calm(&many)]).within(64.0),
            case(conv([1, 1], 1, 1), &[&calm(&x), &calm(&many)]).within(64.0),
            case(conv([0, 0], 1, 1), &[&calm(&x), &calm(&one)]).within(64.0),
            case(conv([1, 1], 1, 2), &[&calm(&x), &calm(&grouped)]).within(64.0),
        ]);
    }
    let guard = Scalar::Loop(1).ge(Scalar::index(2));
    let shifted = Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1) - Scalar::index(2)]);
    let body = guard.select(shifted, Scalar::number(1, dtype));
    let padded = Compute::map([Dim::Known(4), Dim::Known(11)], body);
    cases.push(case(Op::compute(padded), &[&numbers(dtype, &[4, 9], 13)]));
    cases.push(Case {
        work: Work::Algorithm(Algorithm::NonZero),
        operands: vec![numbers(dtype, &[4, 9], 13)],
        ulp: 0.0,
    });
    cases
}

fn all_types(cases: impl Fn(DType) -> Vec<Case>) {
    for dtype in DType::ALL {
        println!("{dtype}");
        check(&cases(dtype));
    }
}

#[test]
fn what_follows_a_convolution_joins_it() {
    let conv =
        Conv { strides: vec![1, 1], dilations: vec![1, 1], pads: vec![[1, 1]; 2], groups: 1 };
    let text = r#"
        func.func @main(%x: tensor<2x3x7x9xf32>, %w: tensor<20x3x3x3xf32>, %b: tensor<20x1x1xf32>) -> tensor<2x20x7x9xf32> {
          %c = tl.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, groups = 1 : i64} : (tensor<2x3x7x9xf32>, tensor<20x3x3x3xf32>) -> tensor<2x20x7x9xf32>
          %d = tl.add %c, %b : (tensor<2x20x7x9xf32>, tensor<20x1x1xf32>) -> tensor<2x20x7x9xf32>
          %e = tl.relu %d : tensor<2x20x7x9xf32>
          return %e : tensor<2x20x7x9xf32>
        }"#;
    let context = irc_dialects::new_context();
    let mut module = irc_mlir::parse_module(&context, text).unwrap();
    let [x, w, b] = [&[2, 3, 7, 9][..], &[20, 3, 3, 3], &[20, 1, 1]]
        .map(|shape| Tensor::random(TensorType::new(DType::F32, shape), 3).unwrap());
    let product = Op::Conv(conv).eval(&[&x, &w]).unwrap();
    let sum = Op::Binary(Binary::Add).eval(&[&product, &b]).unwrap();
    let expected = Op::Unary(Unary::Relu).eval(&[&sum]).unwrap();
    let found = run_module(&context, &mut module, vec![x, w, b]);
    let tolerance = irc_tensor::Tolerance::of(DType::F32);
    assert!(irc_tensor::compare(&expected, &found[0], tolerance).unwrap().is_match());
}

#[test]
fn pointwise_ops_mean_what_they_mean_on_every_type() {
    all_types(|dtype| pointwise(dtype, &[3, 13]));
}

#[test]
fn empty_and_single_elements_are_shapes_too() {
    for dtype in [DType::F32, DType::BF16, DType::I8, DType::U64, DType::Bool, DType::U4] {
        for shape in [&[][..], &[1], &[0], &[2, 0], &[1, 17]] {
            println!("{dtype} {shape:?}");
            let mut cases = pointwise(dtype, shape);
            cases.extend(reductions(dtype, shape));
            check(&cases);
        }
    }
}

#[test]
fn reductions_mean_what_they_mean_on_every_type() {
    all_types(|dtype| {
        let mut cases = reductions(dtype, &[5, 7]);
        cases.extend(reductions(dtype, &[3, 40]));
        cases.push(columns(dtype));
        cases
    });
}

#[test]
fn what_moves_and_multiplies_does_so_on_every_type() {
    all_types(moves);
}

#[test]
fn general_ops_and_algorithms_run_as_loops_on_every_type() {
    all_types(general);
}

/// Boxes of which many overlap, with scores of which many are equal.
fn suppression(dtype: DType, limit: Tensor, by_center: bool) -> Case {
    let mut random = Random(u64::from(by_center) + 5);
    let mut numbers = |shape: &[i64], from: i64, count: i64, step: f64| {
        let elements: i64 = shape.iter().product();
        let values: Vec<_> =
            (0..elements).map(|_| (from + random.below(count)) as f64 * step).collect();
        Tensor::from_f64(TensorType::new(dtype, shape), &values).unwrap()
    };
    let boxes = numbers(&[2, 41, 4], -3, 9, 0.5);
    let scores = numbers(&[2, 3, 41], -2, 12, 0.125);
    let scalar = |value: f64| Tensor::from_f64(TensorType::new(dtype, []), &[value]).unwrap();
    let work = Work::Algorithm(Algorithm::NonMaxSuppression { by_center });
    Case { work, operands: vec![boxes, scores, limit, scalar(0.25), scalar(0.125)], ulp: 0.0 }
}

#[test]
fn boxes_that_overlap_are_dropped() {
    let mut cases = vec![];
    for by_center in [false, true] {
        for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
            for limit in [-1i64, 0, 2, 1000] {
                let limit = Tensor::from_values([], &[limit]).unwrap();
                cases.push(suppression(dtype, limit, by_center));
            }
            let all = Tensor::from_values([], &[u64::MAX]).unwrap();
            cases.push(suppression(dtype, all, by_center));
        }
    }
    check(&cases);
}

/// Random expressions in a small grammar, whose every function is exact.
struct Grammar {
    state: u64,
    dtype: DType,
    shapes: Vec<Vec<i64>>,
    loops: usize,
}

impl Grammar {
    fn below(&mut self, count: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 33) as usize % count
    }

    /// An index expression, and the same within an extent.
    fn index(&mut self, depth: usize) -> Scalar {
        match self.below(if depth == 0 { 2 } else { 5 }) {
            0 if self.loops > 0 => Scalar::Loop(self.below(self.loops)),
            0 | 1 => Scalar::index(self.below(5) as i64 - 1),
            2 => self.index(depth - 1) + self.index(depth - 1),
            3 => self.index(depth - 1) * Scalar::index(2),
            _ => self.index(depth - 1) - self.index(depth - 1),
        }
    }

    fn load(&mut self) -> Scalar {
        let operand = self.below(self.shapes.len());
        let shape = self.shapes[operand].clone();
        let plain: Vec<_> = shape.iter().map(|_| self.index(2)).collect();
        let guarded = self.below(2) == 0;
        if !guarded {
            let wrap = |(index, extent): (&Scalar, &i64)| {
                index.clone().binary(Binary::Mod, Scalar::index(*extent))
            };
            let at: Vec<_> = plain.iter().zip(&shape).map(wrap).collect();
            return Scalar::load(operand, at);
        }
        let inside = plain.iter().zip(&shape).map(|(index, extent)| {
            let low = index.clone().ge(Scalar::index(0));
            low.and(index.clone().lt(Scalar::index(*extent)))
        });
        let inside = inside.reduce(Scalar::and);
        let load = Scalar::load(operand, plain);
        inside.map_or(load.clone(), |inside| inside.select(load, Scalar::number(2, self.dtype)))
    }

    fn value(&mut self, depth: usize) -> Scalar {
        if depth == 0 {
            return match self.below(4) {
                0 => Scalar::number(self.below(7) as i64 - 3, self.dtype),
                _ => self.load(),
            };
        }
        let dtype = self.dtype;
        match self.below(6) {
            0 => {
                let exact = [Unary::Neg, Unary::Abs, Unary::Sign, Unary::Relu];
                let function = exact[self.below(4)];
                self.value(depth - 1).unary(function)
            }
            1 | 2 => {
                let takes: Vec<_> = Binary::ALL
                    .into_iter()
                    .filter(|f| f.takes(dtype) && *f != Binary::Pow)
                    .collect();
                let function = takes[self.below(takes.len())];
                let exact = !(dtype.is_float() && function == Binary::Mod);
                let function = if exact { function } else { Binary::Rem };
                self.value(depth - 1).binary(function, self.value(depth - 1))
            }
            3 => {
                let comparison = Comparison::ALL[self.below(6)];
                let condition = self.value(depth - 1).compare(comparison, self.value(depth - 1));
                condition.select(self.value(depth - 1), self.value(depth - 1))
            }
            4 => {
                let through = DType::ALL[self.below(DType::ALL.len())];
                self.value(depth - 1).cast(through).cast(dtype)
            }
            _ => self.load(),
        }
    }
}

/// A random op around a random expression, and its operands.
fn random_compute(seed: u64) -> Case {
    let mut grammar = Grammar { state: seed, dtype: DType::F32, shapes: vec![], loops: 0 };
    let numeric: Vec<_> = DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bool).collect();
    (0..8).for_each(|_| _ = grammar.below(2));
    grammar.dtype = numeric[grammar.below(numeric.len())];
    for _ in 0..=grammar.below(3) {
        let rank = grammar.below(4);
        let shape = (0..rank).map(|_| grammar.below(5) as i64 + 1).collect();
        grammar.shapes.push(shape);
    }
    let rank = grammar.below(4);
    let extents = [0, 1, 2, 3, 5, 9, 21];
    let dims: Vec<_> =
        (0..rank).map(|_| Dim::Known(extents[grammar.below(extents.len())])).collect();
    let over: Vec<_> = (0..grammar.below(3)).map(|_| Dim::Known(grammar.below(5) as i64)).collect();
    grammar.loops = dims.len() + over.len();
    let body = grammar.value(4);
    let combine = match grammar.below(4) {
        // Other orders of floats round otherwise.
        0 if !grammar.dtype.is_float() => Combine::Sum,
        1 if !grammar.dtype.is_float() => Combine::Product,
        0 | 2 => Combine::Min,
        _ => Combine::Max,
    };
    let compute = if over.is_empty() {
        Compute::map(dims, body)
    } else {
        Compute::reduce(dims, combine, over, body)
    };
    let operands: Vec<_> =
        grammar.shapes.iter().map(|shape| numbers(grammar.dtype, shape, seed)).collect();
    case(Op::compute(compute), &operands.iter().collect::<Vec<_>>()).within(0.0)
}

#[test]
fn random_expressions_mean_what_they_mean() {
    let cases: Vec<_> = (0..120).map(|seed| random_compute(seed * 7919 + 1)).collect();
    check(&cases);
}

/// A number sequence of its own for each test.
struct Random(u64);

impl Random {
    fn below(&mut self, count: i64) -> i64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i64 % count
    }

    fn shape(&mut self, rank: i64, most: i64) -> Vec<i64> {
        (0..rank).map(|_| 1 + self.below(most)).collect()
    }
}

fn random_conv(random: &mut Random) -> Case {
    let spatial = 1 + random.below(3);
    let groups = 1 + random.below(3);
    let (channels, filters) = (1 + random.below(3), 1 + random.below(7));
    let taps = random.shape(spatial, 3);
    let mut each =
        |least: i64, most: i64| (0..spatial).map(|_| least + random.below(most)).collect();
    let (strides, dilations): (Vec<i64>, Vec<i64>) = (each(1, 3), each(1, 2));
    let (before, after): (Vec<i64>, Vec<i64>) = (each(0, 3), each(-1, 4));
    let pads = before.into_iter().zip(after).map(|(before, after)| [before, after]).collect();
    let mut x = vec![1 + random.below(2), channels * groups];
    x.extend(random.shape(spatial, 9));
    let w = [vec![filters * groups, channels], taps].concat();
    let conv = Op::Conv(Conv { strides, dilations, pads, groups });
    let dtype = [DType::F32, DType::F16, DType::F64, DType::I32][random.below(4) as usize];
    let (x, w) = (calm(&numbers(dtype, &x, 1)), calm(&numbers(dtype, &w, 2)));
    case(conv, &[&x, &w]).within(64.0)
}

#[test]
fn convolutions_of_any_rank_and_step() {
    let mut random = Random(1);
    let cases: Vec<_> = (0..60).map(|_| random_conv(&mut random)).collect();
    check(&cases);
}

fn random_matmul(random: &mut Random, dtype: DType) -> Case {
    let [m, n, k] = [1, 2, 3].map(|_| [1, 2, 5, 17][random.below(4) as usize]);
    let rank = random.below(3);
    let batch = random.shape(rank, 3);
    let [transpose_lhs, transpose_rhs] = [1, 2].map(|_| random.below(2) == 1);
    let mut side = |transposed: bool, [rows, columns]: [i64; 2]| {
        let from = random.below(batch.len() as i64 + 1) as usize;
        let thin = |extent: &i64| if random.below(3) == 0 { 1 } else { *extent };
        let mut shape: Vec<_> = batch[from..].iter().map(thin).collect();
        shape.extend(if transposed { [columns, rows] } else { [rows, columns] });
        calm(&numbers(dtype, &shape, 5))
    };
    let (lhs, rhs) = (side(transpose_lhs, [m, k]), side(transpose_rhs, [k, n]));
    case(Op::Matmul { transpose_lhs, transpose_rhs }, &[&lhs, &rhs]).within(16.0)
}

fn random_move(random: &mut Random, dtype: DType) -> Case {
    let rank = random.below(5);
    let shape = random.shape(rank, 5);
    let x = numbers(dtype, &shape, 8);
    match random.below(6) {
        0 => {
            let mut permutation: Vec<usize> = (0..shape.len()).collect();
            (1..shape.len())
                .for_each(|at| permutation.swap(at, random.below(at as i64 + 1) as usize));
            case(Op::Transpose { permutation }, &[&x])
        }
        1 => {
            let wide = shape.iter().map(|dim| if *dim == 1 { 1 + random.below(4) } else { *dim });
            let wide: Vec<_> = wide.collect();
            let new = random.below(2);
            let shape = [random.shape(new, 3), wide].concat();
            case(Op::Broadcast { shape }, &[&x])
        }
        2 => {
            let sizes: Vec<_> = shape.iter().map(|dim| 1 + random.below(*dim)).collect();
            let room = shape.iter().zip(&sizes).map(|(dim, size)| dim - size);
            let offsets: Vec<_> = room.map(|room| random.below(room + 1)).collect();
            if random.below(2) == 0 {
                return case(Op::Slice { offsets, sizes }, &[&x]);
            }
            case(Op::Update { offsets }, &[&x, &numbers(dtype, &sizes, 9)])
        }
        3 => {
            let thin = |dim: &i64| if random.below(2) == 0 { 1 } else { *dim };
            let other: Vec<_> = shape.iter().map(thin).collect();
            let from = random.below(other.len() as i64 + 1) as usize;
            case(Op::Compare(Comparison::Le), &[&x, &numbers(dtype, &other[from..], 9)])
        }
        4 => {
            let axes: Vec<_> = (0..shape.len()).filter(|_| random.below(2) == 0).collect();
            let kind = [Reduction::Max, Reduction::Min, Reduction::Sum][random.below(3) as usize];
            let keep_dims = random.below(2) == 0;
            case(Op::Reduce { kind, axes, keep_dims }, &[&calm(&x)]).within(16.0)
        }
        _ => {
            let rank = random.below(3);
            let mut index =
                Tensor::zeros(TensorType::new(DType::I32, random.shape(rank, 4))).unwrap();
            let table = numbers(dtype, &[1 + random.below(5), 1 + random.below(9)], 3);
            let rows = table.shape()[0];
            for at in 0..index.elements() {
                set_integer(&mut index, at, i128::from(random.below(2 * rows) - rows));
            }
            case(Op::Gather, &[&table, &index])
        }
    }
}

#[test]
fn random_shapes_move_and_multiply() {
    for (seed, dtype) in [DType::F32, DType::BF16, DType::I64, DType::U8].into_iter().enumerate() {
        let mut random = Random(seed as u64 + 17);
        let mut cases: Vec<_> = (0..25).map(|_| random_matmul(&mut random, dtype)).collect();
        cases.extend((0..60).map(|_| random_move(&mut random, dtype)));
        check(&cases);
    }
}

#[test]
fn general_ops_written_into_each_other_keep_every_bit() {
    let text = r#"
        func.func @main(%x: tensor<6x9xf16>, %y: tensor<9xf16>) -> (tensor<9x6xf16>, tensor<6xf16>) {
          %a = tl.compute(%x, %y) "%0[i0, i1] * %1[i1] + 0.3 : f16" : (tensor<6x9xf16>, tensor<9xf16>) -> tensor<6x9xf16>
          %b = tl.compute(%a) "select(i0 > 2, %0[i1, i0] / 3.0 : f16, %0[i1, i0])" : (tensor<6x9xf16>) -> tensor<9x6xf16>
          %c = tl.compute(%b, %x, %b) "max(%0[i0, i1], %1[i1, i0]) - %2[i0, i1]" : (tensor<9x6xf16>, tensor<6x9xf16>, tensor<9x6xf16>) -> tensor<9x6xf16>
          %d = tl.compute(%x, %y) "abs(%0[i0, i1]) + %1[i1]" : (tensor<6x9xf16>, tensor<9xf16>) -> tensor<6x9xf16>
          %e = tl.compute(%d) "%0[i0, 8 - i1]" combine "max" over ["9"] : (tensor<6x9xf16>) -> tensor<6xf16>
          %f = tl.compute(%e) "%0[i0] * %0[i0]" : (tensor<6xf16>) -> tensor<6xf16>
          return %c, %f : tensor<9x6xf16>, tensor<6xf16>
        }"#;
    let context = irc_dialects::new_context();
    let mut module = irc_mlir::parse_module(&context, text).unwrap();
    let inputs = vec![numbers(DType::F16, &[6, 9], 1), numbers(DType::F16, &[9], 2)];
    let functions = irc_mlir::walk_collect(module.as_operation(), |op| {
        irc_mlir::read::op_name(&op) == func::FUNC
    });
    let expected = irc::eval::evaluate(functions[0], &inputs).unwrap();
    let found = run_module(&context, &mut module, inputs);
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(difference(found, expected, 0.0), None);
    }
}

/// The value of an operand of a row's example: small integers are indices too.
fn operand(ty: &TensorType, seed: u64) -> Tensor {
    if ty.dtype.is_float() {
        return Tensor::random(ty.clone(), seed).unwrap();
    }
    let values: Vec<f64> = (0..ty.elements().unwrap()).map(|at| (at % 3) as f64).collect();
    Tensor::from_f64(ty.clone(), &values).unwrap()
}

#[test]
fn every_row_is_defined_converted_and_compiled() {
    let examples = Op::rows().map(|row| {
        let (op, types) = row.example();
        assert_eq!(op.name(), row.name);
        let operands: Vec<_> = types.iter().zip(1..).map(|(ty, seed)| operand(ty, seed)).collect();
        case(op, &operands.iter().collect::<Vec<_>>())
    });
    let cases: Vec<Case> = examples.collect();
    let context = irc_dialects::new_context();
    let written = module(&context, &cases);
    assert!(written.as_operation().verify(), "{}", written.as_operation());
    let text = written.as_operation().to_string();
    let parsed = irc_mlir::parse_module(&context, &text).expect("what is printed parses");
    let ops = walk_collect(parsed.as_operation(), |op| read::op_name(&op).starts_with("tl."));
    assert_eq!(ops.len(), cases.len());
    for (op, case) in ops.into_iter().zip(&cases) {
        let Work::Op(expected) = &case.work else { unreachable!("rows are of ops") };
        assert!(context.is_registered_operation(&read::op_name(&op)), "{op}");
        assert_eq!(tl::op_of(op).as_ref(), Ok(expected));
    }
    for (found, case) in run(&cases).into_iter().zip(&cases) {
        let expected = case.expected().remove(0);
        let result = compare(&expected, &found, Tolerance::of(expected.dtype())).unwrap();
        assert!(result.is_match(), "{:?}: {result}", case.work);
    }
}
