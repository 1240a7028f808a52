//! Every op on every element type: what is compiled against what it means.

mod case;
mod random;

use case::*;
use irc_dialects::tl;
use irc_mlir::{OperationLike, read, walk_collect};
use irc_tensor::{DType, Tensor, TensorType, Tolerance, compare};
use irc_tl::{
    Algorithm, Binary, Combine, Comparison, Compute, Conv, Dim, Op, Reduction, Rounding, Scalar,
    Unary, tree_node_words,
};
use random::Random;

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
    for to in DType::NUMBERS.iter().copied() {
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
    // In tiles, some of which overlap; with few rows or columns, whose elements are interleaved.
    for shape in [[2, 37, 70], [2, 3, 50], [2, 50, 4], [3, 9, 5]] {
        let turned = Op::Transpose { permutation: vec![0, 2, 1] };
        cases.push(case(turned, &[&numbers(dtype, &shape, 15)]));
    }
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
            outside: 0,
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
    for (axis, reverse, exclusive) in
        [(0, false, false), (1, false, true), (1, true, false), (1, true, true), (2, true, true)]
    {
        let work = Algorithm::Scan { axis, combine: Combine::Sum, reverse, exclusive };
        cases.push(Case {
            work: Work::Algorithm(work),
            operands: vec![calm(&numbers(dtype, &[19, 5, 1], 13))],
            ulp: 4.0,
        });
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
    for dtype in DType::NUMBERS.iter().copied() {
        println!("{dtype}");
        check(&cases(dtype));
    }
}

#[test]
fn what_follows_a_convolution_joins_it() {
    let conv = Conv {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        pads: vec![[1, 1]; 2],
        groups: 1,
        outside: 0,
    };
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

/// Complete trees of random decisions on 3 features, with one weight per leaf and target, or one per leaf.
fn trees(dtype: DType, rows: i64, count: i32, is_sparse: bool, combine: Combine) -> Case {
    const DEPTH: u32 = 4;
    let (inner, all) = ((1i32 << DEPTH) - 1, (1i32 << (DEPTH + 1)) - 1);
    let words = tree_node_words(dtype) as i32;
    let mut random = Random(rows.cast_unsigned() + 7);
    let (mut nodes, mut leaves) = (vec![], 0);
    for node in 0..count * all {
        let (first, within) = (node - node % all, node % all);
        let is_leaf = within >= inner;
        let number = (random.below(9) - 4) as f64 / 2.0;
        let threshold = if is_leaf { f64::NAN } else { number };
        if dtype == DType::F64 {
            let bits = threshold.to_bits();
            nodes.extend([bits as u32, (bits >> 32) as u32].map(u32::cast_signed));
        } else {
            nodes.push((threshold as f32).to_bits().cast_signed());
        }
        nodes.push(if is_leaf { 0 } else { random.below(3) as i32 });
        let child = |step: i32| (first + 2 * within + step) * words;
        nodes.extend(if is_leaf { [node * words, leaves] } else { [child(1), child(2)] });
        leaves += i32::from(is_leaf);
    }
    let list = |values: &[i32]| Tensor::from_values([values.len() as i64], values).unwrap();
    let roots: Vec<i32> = (0..count).map(|tree| tree * all * words).collect();
    let targets = 2;
    let starts: Vec<i32> = if is_sparse { (0..=leaves).collect() } else { vec![] };
    let of_weight: Vec<i32> = (0..starts.len() as i32).map(|leaf| leaf % targets).collect();
    let count = if is_sparse { leaves } else { leaves * targets };
    let mut draw = |shape: &[i64]| {
        let elements: i64 = shape.iter().product();
        let values: Vec<f64> = (0..elements).map(|_| (random.below(17) - 8) as f64 / 4.0).collect();
        Tensor::from_f64(TensorType::new(dtype, shape), &values).unwrap()
    };
    let (x, weights) = (draw(&[rows, 3]), draw(&[i64::from(count)]));
    let operands = vec![x, list(&nodes), list(&roots), list(&starts), list(&of_weight), weights];
    let (targets, comparison) = (i64::from(targets).into(), Comparison::Le);
    let work = Work::Algorithm(Algorithm::TreeEnsemble { targets, combine, comparison });
    Case { work, operands, ulp: 0.0 }
}

#[test]
fn trees_are_descended_in_groups_of_rows_and_of_trees() {
    let mut cases = vec![];
    for dtype in [DType::F32, DType::F64] {
        for combine in [Combine::Sum, Combine::Min, Combine::Max] {
            // Single rows, groups, and more than a block.
            for (rows, count) in [(1, 1), (1, 19), (8, 3), (147, 9)] {
                cases.push(trees(dtype, rows, count, false, combine));
                cases.push(trees(dtype, rows, count, true, combine));
            }
        }
    }
    check(&cases);
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
