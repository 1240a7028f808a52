//! Results do not depend on the number of threads.

use crate::support::{
    graphs::{compile_for, f32s},
    levels::levels,
};
use irc::{Target, codegen::Backend};
use irc_runtime::{Inline, Pool, ThreadPool};
use irc_tensor::{DType, Tensor, Tolerance, compare};
use irc_tl::{Binary, Builder, Constant, Conv, Dim, Graph, Op, Reduction, Type, Unary, ValueId};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// A pool that counts the calls with several tasks, and runs them from the last to the first.
struct Backwards {
    threads: usize,
    calls: AtomicUsize,
}

impl Backwards {
    fn new(threads: usize) -> Arc<Self> {
        Arc::new(Self { threads, calls: AtomicUsize::new(0) })
    }
}

impl Pool for Backwards {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        self.calls.fetch_add(usize::from(tasks > 1), Ordering::Relaxed);
        (0..tasks).rev().for_each(task);
    }
}

/// A graph of one operand, and its operand.
fn graph(x: &Tensor, body: impl FnOnce(&mut Builder, ValueId) -> ValueId) -> (Graph, Tensor) {
    let mut b = Builder::new();
    let operand = b.input("x", Type::from(x.ty().clone()));
    let y = body(&mut b, operand);
    b.output("y", y);
    (b.finish(), x.clone())
}

fn weights(b: &mut Builder, shape: impl Into<Vec<i64>>) -> ValueId {
    b.constant(Constant::of(&f32s(shape, 9)))
}

fn conv(
    b: &mut Builder,
    x: ValueId,
    (filters, channels, kernel): (i64, i64, i64),
    (stride, groups): (i64, i64),
) -> ValueId {
    let w = weights(b, [filters, channels / groups, kernel, kernel]);
    let pads = vec![[kernel / 2, kernel / 2]; 2];
    let conv = Conv { strides: vec![stride; 2], dilations: vec![1, 1], pads, groups, outside: 0 };
    b.op(Op::Conv(conv), &[x, w]).unwrap()
}

fn layer_norm(b: &mut Builder, x: ValueId, axis: usize) -> ValueId {
    let sum = b.reduce(Reduction::Mean, x, &[axis], true).unwrap();
    let centred = b.binary(Binary::Sub, x, sum).unwrap();
    let square = b.binary(Binary::Mul, centred, centred).unwrap();
    let variance = b.reduce(Reduction::Mean, square, &[axis], true).unwrap();
    let factor = b.unary(Unary::Rsqrt, variance).unwrap();
    b.binary(Binary::Mul, centred, factor).unwrap()
}

/// Graphs whose kernels have phases of every kind, with numbers of units that no number of threads divides.
fn graphs() -> Vec<(&'static str, (Graph, Tensor))> {
    let dims = |sizes: &[i64]| sizes.iter().map(|size| Dim::from(*size)).collect::<Vec<_>>();
    vec![
        (
            "elements",
            graph(&f32s([300_007], 1), |b, x| {
                let y = b.unary(Unary::Tanh, x).unwrap();
                b.binary(Binary::Add, x, y).unwrap()
            }),
        ),
        (
            "a product",
            graph(&f32s([131, 67], 1), |b, x| {
                let w = weights(b, [67, 301]);
                b.matmul(x, w).unwrap()
            }),
        ),
        (
            "products of a batch, then a function",
            graph(&f32s([13, 65, 33], 1), |b, x| {
                let across = b.transpose(x, &[0, 2, 1]).unwrap();
                let y = b.matmul(x, across).unwrap();
                b.unary(Unary::Relu, y).unwrap()
            }),
        ),
        (
            "one row times a matrix",
            graph(&f32s([1, 701], 1), |b, x| {
                let w = weights(b, [701, 1003]);
                b.matmul(x, w).unwrap()
            }),
        ),
        (
            "rows after a product",
            graph(&f32s([129, 96], 1), |b, x| {
                let w = weights(b, [96, 200]);
                let y = b.matmul(x, w).unwrap();
                layer_norm(b, y, 1)
            }),
        ),
        ("rows", graph(&f32s([513, 257], 1), |b, x| layer_norm(b, x, 1))),
        ("columns", graph(&f32s([257, 513], 1), |b, x| layer_norm(b, x, 0))),
        (
            "a sum of everything",
            graph(&f32s([700, 900], 1), |b, x| {
                let sum = b.reduce(Reduction::Sum, x, &[0, 1], true).unwrap();
                b.binary(Binary::Mul, x, sum).unwrap()
            }),
        ),
        ("a transpose", graph(&f32s([611, 707], 1), |b, x| b.transpose(x, &[1, 0]).unwrap())),
        ("a convolution", graph(&f32s([1, 5, 61, 59], 1), |b, x| conv(b, x, (35, 5, 5), (2, 1)))),
        (
            "a convolution of 3 by 3",
            graph(&f32s([2, 17, 29, 31], 1), |b, x| conv(b, x, (37, 17, 3), (1, 1))),
        ),
        (
            "a convolution of 1 by 1",
            graph(&f32s([1, 67, 19, 23], 1), |b, x| conv(b, x, (71, 67, 1), (1, 1))),
        ),
        (
            "one filter for each channel",
            graph(&f32s([1, 37, 61, 63], 1), |b, x| conv(b, x, (37, 37, 3), (1, 37))),
        ),
        (
            "two convolutions",
            graph(&f32s([1, 16, 33, 35], 1), |b, x| {
                let y = conv(b, x, (16, 16, 3), (1, 1));
                let y = b.unary(Unary::Relu, y).unwrap();
                let y = conv(b, y, (24, 16, 1), (1, 1));
                let mean = b.reduce(Reduction::Mean, y, &[2, 3], true).unwrap();
                b.broadcast(mean, &dims(&[1, 24, 33, 35])).unwrap()
            }),
        ),
        (
            "half precision",
            graph(&f32s([190, 310], 1), |b, x| {
                let x = b.cast(x, DType::F16).unwrap();
                let w = weights(b, [310, 130]);
                let w = b.cast(w, DType::F16).unwrap();
                b.matmul(x, w).unwrap()
            }),
        ),
    ]
}

/// Compares the results of a graph with its evaluation, and bit by bit on several pools.
fn check(
    name: &str,
    (graph, x): &(Graph, Tensor),
    expected: &Tensor,
    (target, pools): (Target, &[Arc<dyn Pool>]),
) {
    let compiled = compile_for(graph, target);
    let mut runner = compiled.runner().unwrap();
    let inputs = BTreeMap::from([("x".to_owned(), x.clone())]);
    let alone = runner.run(inputs.clone()).unwrap();
    let result = compare(expected, &alone["y"], Tolerance::of(expected.dtype())).unwrap();
    assert!(result.is_match(), "{name}: {result}");
    for pool in pools {
        runner.set_pool(pool).unwrap();
        // Twice: memory of the first run is used again.
        for _ in 0..2 {
            let found = runner.run(inputs.clone()).unwrap();
            assert!(found["y"].bytes() == alone["y"].bytes(), "{name}: {} threads", pool.threads());
        }
    }
}

#[test]
fn have_the_same_bits_on_any_number_of_threads() {
    let targets = levels().into_iter().chain([Target::host().with_backend(Backend::QUICK)]);
    let targets: Vec<Target> = targets.collect();
    for (name, graph) in &graphs() {
        let expected = graph.0.eval(&BTreeMap::from([("x".to_owned(), graph.1.clone())])).unwrap();
        for target in &targets {
            let counted = [2, 3, 7, 64].map(Backwards::new);
            let mut pools: Vec<Arc<dyn Pool>> = vec![];
            for pool in &counted {
                pools.push(pool.clone());
            }
            pools.push(Arc::new(ThreadPool::new(3).unwrap()));
            pools.push(Arc::new(Inline));
            check(name, graph, &expected[0], (target.clone(), &pools));
            for pool in counted {
                let calls = pool.calls.load(Ordering::Relaxed);
                assert!(calls > 0, "{name}: not divided into {} parts", pool.threads());
            }
        }
    }
}

#[test]
fn small_kernels_are_not_divided() {
    let graph = graph(&f32s([40, 40], 1), |b, x| b.unary(Unary::Exp, x).unwrap());
    let counted = Backwards::new(3);
    let expected = graph.0.eval(&BTreeMap::from([("x".to_owned(), graph.1.clone())])).unwrap();
    check("small", &graph, &expected[0], (Target::host(), &[counted.clone() as Arc<dyn Pool>]));
    assert_eq!(counted.calls.load(Ordering::Relaxed), 0);
}
