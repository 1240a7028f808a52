//! Quantised graphs against the graphs that they were.

use irc_quantise::{Granularity, Method, Observer, Plan, Quantisation, Scope};
use irc_tensor::TensorType;
use irc_tl::{
    Binary, Builder, Comparison, Compute, Conv, DType, Dim, Graph, NodeKind, Op, Reduction, Scalar,
    Tensor, Type, Unary, ValueId,
};
use std::collections::BTreeMap;

fn random(shape: &[i64], seed: u64) -> Tensor {
    Tensor::random(TensorType::new(DType::F32, shape), seed).expect("a tensor")
}

/// Convolution, bias, ReLU; a second one added to the first; mean; product with a matrix.
fn network() -> Graph {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [1, 4, 8, 8].map(Into::into)));
    let conv = || Conv {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        pads: vec![[1, 1]; 2],
        groups: 1,
        outside: 0,
    };
    let layer = |b: &mut Builder, x, seed| {
        let width = b.dims(x)[1].known().expect("known");
        let w = b.tensor(&random(&[8, width, 3, 3], seed));
        let bias = b.tensor(&random(&[1, 8, 1, 1], seed + 1));
        let y = b.conv(conv(), x, w).expect("shapes");
        b.binary(Binary::Add, y, bias).expect("shapes")
    };
    let first = layer(&mut b, x, 1);
    let first = b.unary(Unary::Relu, first).expect("numbers");
    let second = layer(&mut b, first, 3);
    let sum = b.binary(Binary::Add, second, first).expect("shapes");
    let sum = b.unary(Unary::Relu, sum).expect("numbers");
    let mean = b.reduce(Reduction::Mean, sum, &[2, 3], false).expect("axes");
    let w = b.tensor(&random(&[8, 5], 9));
    let y = b.matmul(mean, w).expect("shapes");
    b.output("y", y);
    b.finish()
}

fn quantised(graph: &Graph, scope: Scope, granularity: Granularity) -> Graph {
    let plan = Plan::new(graph, scope);
    let observed: Vec<_> = plan.observed().into_iter().collect();
    let names = observed.iter().map(|value| (format!("{}", value.0), *value)).collect();
    let wide = Graph { outputs: names, ..graph.clone() };
    let mut observers = vec![Observer::default(); observed.len()];
    for seed in 0..8 {
        let given = BTreeMap::from([("x".to_owned(), random(&[1, 4, 8, 8], 100 + seed))]);
        for (observer, tensor) in observers.iter_mut().zip(wide.eval(&given).expect("values")) {
            observer.extend(&tensor.to_f32()).expect("finite numbers");
        }
    }
    let ranges = observed.into_iter().zip(&observers);
    let ranges = ranges.map(|(value, own)| (value, own.range(Method::MinMax).expect("elements")));
    let by = Quantisation { scope, granularity, ranges: ranges.collect() };
    plan.quantise(graph, &by).expect("a graph")
}

fn run(graph: &Graph, seed: u64) -> Vec<f64> {
    let given = BTreeMap::from([("x".to_owned(), random(&[1, 4, 8, 8], seed))]);
    graph.eval(&given).expect("values")[0].to_f64()
}

fn worst(one: &[f64], other: &[f64]) -> f64 {
    let largest = one.iter().fold(0.0, |most: f64, own| most.max(own.abs()));
    let pairs = one.iter().zip(other).map(|(one, other)| (one - other).abs());
    pairs.fold(0.0, f64::max) / largest
}

/// The element types of the operands of products.
fn operands(graph: &Graph) -> Vec<DType> {
    let is_product =
        |kind: &NodeKind| matches!(kind, NodeKind::Op(Op::Conv(_) | Op::Matmul { .. }));
    let products = graph.nodes.iter().filter(|node| is_product(&node.kind));
    products.map(|node| graph.ty(node.operands[0]).dtype).collect()
}

#[test]
fn products_are_of_bytes_and_results_close() {
    let graph = network();
    for scope in [Scope::WhereRead, Scope::Everywhere] {
        let made = quantised(&graph, scope, Granularity::Channel);
        assert_eq!(operands(&made), [DType::U8; 3]);
        let wrong = worst(&run(&graph, 105), &run(&made, 105));
        assert!(wrong > 0.0 && wrong < 0.05, "{scope:?}: {wrong}");
    }
}

#[test]
fn scales_of_channels_are_at_least_as_close_as_one() {
    let graph = network();
    let sum = |granularity| -> f64 {
        let made = quantised(&graph, Scope::WhereRead, granularity);
        (100..108).map(|seed| worst(&run(&graph, seed), &run(&made, seed))).sum()
    };
    assert!(sum(Granularity::Channel) < sum(Granularity::Tensor) * 1.1);
}

#[test]
fn the_last_product_stays_a_float_unless_all_is_bytes() {
    let graph = network();
    let rounds = |scope| {
        let made = quantised(&graph, scope, Granularity::Channel);
        let is_round = |kind: &NodeKind| matches!(kind, NodeKind::Op(Op::Unary(Unary::Round)));
        made.nodes.iter().filter(|node| is_round(&node.kind)).count()
    };
    // The input, both layers, the sum, the mean; and the result.
    assert_eq!([rounds(Scope::WhereRead), rounds(Scope::Everywhere)], [5, 6]);
}

#[test]
fn a_graph_without_constant_weights_has_nothing_to_quantise() {
    let mut b = Builder::new();
    let [x, y] =
        ["x", "y"].map(|name| b.input(name, Type::new(DType::F32, [4, 4].map(Into::into))));
    let z = b.matmul(x, y).expect("shapes");
    b.output("z", z);
    assert!(Plan::new(&b.finish(), Scope::Everywhere).is_empty());
}

#[test]
fn biases_of_weights_near_zero_fit_the_sums() {
    for factor in [1.0, 1e-6, 1e-12, 0.0] {
        let mut b = Builder::new();
        let x = b.input("x", Type::new(DType::F32, [1, 4, 8, 8].map(Into::into)));
        let mut weights = random(&[8, 4, 1, 1], 1).to_f64();
        weights[..4].iter_mut().for_each(|weight| *weight *= factor);
        let weights = Tensor::from_f64(TensorType::new(DType::F32, [8, 4, 1, 1]), &weights);
        let w = b.tensor(&weights.expect("numbers"));
        let bias = Tensor::from_f64(TensorType::new(DType::F32, [1, 8, 1, 1]), &[1.0; 8]);
        let bias = b.tensor(&bias.expect("numbers"));
        let conv = Conv {
            strides: vec![1, 1],
            dilations: vec![1, 1],
            pads: vec![[0, 0]; 2],
            groups: 1,
            outside: 0,
        };
        let y = b.conv(conv, x, w).expect("shapes");
        let y = b.binary(Binary::Add, y, bias).expect("shapes");
        b.output("y", y);
        let graph = b.finish();
        for granularity in [Granularity::Channel, Granularity::Tensor] {
            let made = quantised(&graph, Scope::Everywhere, granularity);
            let wrong = worst(&run(&graph, 105), &run(&made, 105));
            assert!(wrong < 0.03, "{factor} {granularity:?}: {wrong}");
        }
    }
}

/// The element types of what some ops read.
fn dtypes(graph: &Graph, is_it: impl Fn(&Op) -> bool) -> Vec<DType> {
    let found = graph.nodes.iter().filter(|node| match &node.kind {
        NodeKind::Op(op) => is_it(op),
        _ => false,
    });
    found.map(|node| graph.ty(node.operands[0]).dtype).collect()
}

/// A convolution of single elements to 4 channels.
fn pointwise(b: &mut Builder, x: ValueId, seed: u64) -> ValueId {
    let width = b.dims(x)[1].known().expect("known");
    let w = b.tensor(&random(&[4, width, 1, 1], seed));
    let (strides, dilations, pads) = (vec![1, 1], vec![1, 1], vec![[0, 0]; 2]);
    b.conv(Conv { strides, dilations, pads, groups: 1, outside: 0 }, x, w).expect("shapes")
}

/// The 4 channels of one value, then those of another.
fn joined(b: &mut Builder, values: [ValueId; 2]) -> ValueId {
    let load = |operand, channel| {
        Scalar::load(operand, [Scalar::Loop(0), channel, Scalar::Loop(2), Scalar::Loop(3)])
    };
    let is_first = Scalar::Loop(1).compare(Comparison::Lt, Scalar::index(4));
    let [yes, no] = [load(0, Scalar::Loop(1)), load(1, Scalar::Loop(1) - Scalar::index(4))];
    let dims = [1, 8, 8, 8].map(Dim::from).to_vec();
    b.compute(Compute::map(dims, is_first.select(yes, no)), &values).expect("shapes")
}

#[test]
fn concatenations_functions_and_products_of_two_are_of_bytes() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [1, 4, 8, 8].map(Into::into)));
    let (first, second) = (pointwise(&mut b, x, 1), pointwise(&mut b, x, 2));
    let gate = b.unary(Unary::Sigmoid, first).expect("numbers");
    let swish = b.binary(Binary::Mul, first, gate).expect("shapes");
    let product = b.binary(Binary::Mul, swish, second).expect("shapes");
    let both = joined(&mut b, [swish, product]);
    let y = pointwise(&mut b, both, 3);
    b.output("y", y);
    let graph = b.finish();
    let made = quantised(&graph, Scope::Everywhere, Granularity::Channel);
    let joins = dtypes(&made, |op| matches!(op, Op::Compute(_)));
    assert_eq!(joins, [DType::U8]);
    assert_eq!(dtypes(&made, |op| matches!(op, Op::Conv(_))), [DType::U8; 3]);
    let wrong = worst(&run(&graph, 105), &run(&made, 105));
    assert!(wrong > 0.0 && wrong < 0.1, "{wrong}");
}

/// A maximum over axes is of bytes with the scale of its operand, unless it is subtracted from it: that of a softmax stays in
/// `f32`, where the softmax is computed.
#[test]
fn maxima_are_of_bytes_but_not_those_of_a_softmax() {
    let largest = |is_softmax: bool| {
        let mut b = Builder::new();
        let x = b.input("x", Type::new(DType::F32, [1, 4, 8, 8].map(Into::into)));
        let x = pointwise(&mut b, x, 1);
        let mut y = b.reduce(Reduction::Max, x, &[3], true).expect("axes");
        if is_softmax {
            y = b.binary(Binary::Sub, x, y).expect("shapes");
            y = b.unary(Unary::Exp, y).expect("numbers");
        }
        let y = pointwise(&mut b, y, 2);
        b.output("y", y);
        let graph = b.finish();
        let made = quantised(&graph, Scope::Everywhere, Granularity::Channel);
        let wrong = worst(&run(&graph, 105), &run(&made, 105));
        assert!(wrong > 0.0 && wrong < 0.05, "{wrong}");
        dtypes(&made, |op| matches!(op, Op::Reduce { kind: Reduction::Max, .. }))
    };
    assert_eq!(largest(false), [DType::U8]);
    assert_eq!(largest(true), [DType::F32]);
}

/// A ReLU and a limit hold if what they are concatenated with, which has the same scale, exceeds them.
#[test]
fn limits_are_those_of_a_value_not_of_its_scale() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [1, 4, 8, 8].map(Into::into)));
    let first = pointwise(&mut b, x, 1);
    let first = b.unary(Unary::Relu, first).expect("numbers");
    let most = b.scalar(0.5, DType::F32).expect("a number");
    let first = b.binary(Binary::Min, first, most).expect("shapes");
    let second = pointwise(&mut b, x, 2);
    let both = joined(&mut b, [first, second]);
    b.output("y", both);
    let graph = b.finish();
    let made = quantised(&graph, Scope::Everywhere, Granularity::Channel);
    let (expected, found) = (run(&graph, 105), run(&made, 105));
    let of_first = &found[..4 * 64];
    assert!(of_first.iter().all(|own| (0.0..=0.54).contains(own)), "{of_first:?}");
    assert!(found[4 * 64..].iter().any(|own| *own < -0.5), "negative numbers beside them");
    let wrong = worst(&expected, &found);
    assert!(wrong > 0.0 && wrong < 0.02, "{wrong}");
}
