//! One compiled program serves every number of rows, with the same bits for any number of threads.
use crate::support::graphs::{evaluate, f32s, read_back, run, same_as};
use crate::support::levels::widths;
use crate::support::pools::pools;
use irc::{Place, Session, Target};
use irc_tensor::Tensor;
use irc_tl::{
    Binary, Builder, Comparison, Conv, DType, Dim, Graph, Op, Reduction, Type, Unary, ValueId,
};
use std::collections::BTreeMap;

/// Around the sizes of tiles and blocks.
const ROWS: [i64; 14] = [0, 1, 2, 3, 5, 7, 8, 9, 31, 64, 250, 251, 252, 600];

fn n() -> Dim {
    Dim::symbol("N")
}

fn f32_of(dims: impl Into<Vec<Dim>>) -> Type {
    Type::new(DType::F32, dims)
}

/// As [`serves_on`], for each width of vectors.
pub fn serves(graph: &Graph, inputs: &dyn Fn(i64) -> Vec<(&'static str, Tensor)>, sizes: &[i64]) {
    serves_on(graph, inputs, sizes, widths());
}

/// Compiles a graph once for each of some processors, and runs it on inputs of each of some sizes, on 1 to 7 threads.
pub fn serves_on(
    graph: &Graph,
    inputs: &dyn Fn(i64) -> Vec<(&'static str, Tensor)>,
    sizes: &[i64],
    targets: Vec<Target>,
) {
    let read = read_back(graph);
    let pools = pools([2, 3, 7]);
    let sets: Vec<_> = sizes.iter().map(|size| (*size, inputs(*size))).collect();
    let expected: Vec<_> = sets.iter().map(|(_, inputs)| evaluate(graph, inputs)).collect();
    for target in targets {
        let compiled =
            Session::new().import_graph(&read).library_with(target, Place::Given).unwrap();
        for ((size, inputs), expected) in sets.iter().zip(&expected) {
            let found = run(&compiled, inputs).unwrap();
            same_as(expected, &found);
            for pool in &pools {
                let mut runner = compiled.runner().unwrap();
                runner.set_pool(pool).unwrap();
                let named = inputs.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
                let parallel = runner.run(named.collect::<BTreeMap<_, _>>()).unwrap();
                assert_eq!(parallel, found, "{size} rows on {} threads", pool.threads());
            }
        }
    }
}

fn weights(b: &mut Builder, shape: impl Into<Vec<i64>>, seed: u64) -> ValueId {
    b.tensor(&f32s(shape, seed))
}

fn softmax(b: &mut Builder, x: ValueId, axis: usize) -> ValueId {
    let most = b.reduce(Reduction::Max, x, &[axis], true).unwrap();
    let below = b.binary(Binary::Sub, x, most).unwrap();
    let powers = b.unary(Unary::Exp, below).unwrap();
    let sum = b.reduce(Reduction::Sum, powers, &[axis], true).unwrap();
    b.binary(Binary::Div, powers, sum).unwrap()
}

#[test]
fn products_with_what_follows() {
    let mut b = Builder::new();
    let x = b.input("x", f32_of([n(), 300.into()]));
    let (w, bias) = (weights(&mut b, [300, 270], 1), weights(&mut b, [270], 2));
    let y = b.matmul(x, w).unwrap();
    let y = b.binary(Binary::Add, y, bias).unwrap();
    let y = b.unary(Unary::Relu, y).unwrap();
    let w = weights(&mut b, [270, 11], 3);
    let y = b.matmul(y, w).unwrap();
    let y = softmax(&mut b, y, 1);
    b.output("y", y);
    serves(&b.finish(), &|rows| vec![("x", f32s([rows, 300], 4))], &ROWS);
}

#[test]
fn a_long_product_is_summed_in_blocks_of_depth() {
    let mut b = Builder::new();
    let x = b.input("x", f32_of([n(), 2100.into()]));
    let w = weights(&mut b, [2100, 40], 1);
    let y = b.matmul(x, w).unwrap();
    let y = b.unary(Unary::Gelu, y).unwrap();
    b.output("y", y);
    let inputs = |rows| vec![("x", f32s([rows, 2100], 4))];
    serves_on(&b.finish(), &inputs, &[1, 9, 300], vec![Target::host()]);
}

#[test]
fn rows_of_several_dimensions() {
    let s = || Dim::symbol("S");
    let mut b = Builder::new();
    let x = b.input("x", f32_of([n(), s(), 36.into()]));
    let (scale, shift) = (weights(&mut b, [1, 1, 36], 1), weights(&mut b, [36], 2));
    let mean = b.reduce(Reduction::Mean, x, &[2], true).unwrap();
    let centred = b.binary(Binary::Sub, x, mean).unwrap();
    let squares = b.binary(Binary::Mul, centred, centred).unwrap();
    let variance = b.reduce(Reduction::Mean, squares, &[2], true).unwrap();
    let spread = b.unary(Unary::Sqrt, variance).unwrap();
    let y = b.binary(Binary::Div, centred, spread).unwrap();
    let y = b.binary(Binary::Mul, y, scale).unwrap();
    let y = b.binary(Binary::Add, y, shift).unwrap();
    let w = weights(&mut b, [36, 20], 3);
    let product = b.matmul(y, w).unwrap();
    b.output("y", y);
    b.output("mean", mean);
    b.output("product", product);
    let graph = b.finish();
    for length in [1, 5, 130] {
        let inputs = |rows| vec![("x", f32s([rows, length, 36], 4))];
        serves_on(&graph, &inputs, &[0, 1, 3, 4], vec![Target::host()]);
    }
}

#[test]
fn small_rows_and_moves_inside_of_them() {
    let mut b = Builder::new();
    let x = b.input("x", f32_of([n(), 3.into(), 5.into(), 4.into()]));
    let column = b.input("column", f32_of([n(), 1.into(), 1.into(), 1.into()]));
    let moved = b.transpose(x, &[0, 2, 1, 3]).unwrap();
    let sum = b.binary(Binary::Add, moved, column).unwrap();
    let columns = b.reduce(Reduction::Sum, sum, &[1], false).unwrap();
    let largest = b.reduce(Reduction::Max, sum, &[1, 2, 3], true).unwrap();
    let is_small = b.compare(Comparison::Lt, sum, largest).unwrap();
    let zero = b.fill(0.0, &[], DType::F32).unwrap();
    let chosen = b.op(Op::Select, &[is_small, sum, zero]).unwrap();
    let twice = b.unary(Unary::Exp, column).unwrap();
    for (name, value) in [("sum", sum), ("columns", columns), ("chosen", chosen), ("twice", twice)]
    {
        b.output(name, value);
    }
    let inputs = |rows| vec![("x", f32s([rows, 3, 5, 4], 1)), ("column", f32s([rows, 1, 1, 1], 2))];
    serves(&b.finish(), &inputs, &[0, 1, 2, 7, 40, 5000]);
}

#[test]
fn heads_of_attention() {
    let mut b = Builder::new();
    let of = |rows: i64, columns: i64| f32_of([n(), 2.into(), rows.into(), columns.into()]);
    let (q, k) = (b.input("q", of(9, 16)), b.input("k", of(16, 9)));
    let (v, mask) =
        (b.input("v", of(9, 16)), b.input("mask", f32_of([n(), 1.into(), 1.into(), 9.into()])));
    let scores = b.matmul(q, k).unwrap();
    let scores = b.binary(Binary::Add, scores, mask).unwrap();
    let scores = softmax(&mut b, scores, 3);
    let mixed = b.matmul(scores, v).unwrap();
    b.output("mixed", mixed);
    let inputs = |rows| {
        vec![
            ("q", f32s([rows, 2, 9, 16], 1)),
            ("k", f32s([rows, 2, 16, 9], 2)),
            ("v", f32s([rows, 2, 9, 16], 3)),
            ("mask", f32s([rows, 1, 1, 9], 4)),
        ]
    };
    serves(&b.finish(), &inputs, &[0, 1, 3]);
}

#[test]
fn images() {
    let mut b = Builder::new();
    let x = b.input("x", f32_of([n(), 8.into(), 14.into(), 14.into()]));
    let conv = |b: &mut Builder, x: ValueId, filters: [i64; 4], groups: i64, seed: u64| {
        let pads = vec![[filters[2] / 2; 2]; 2];
        let conv = Conv { strides: vec![1, 1], dilations: vec![1, 1], pads, groups, outside: 0 };
        let (w, bias) = (weights(b, filters, seed), weights(b, [filters[0], 1, 1], seed + 1));
        let y = b.op(Op::Conv(conv), &[x, w]).unwrap();
        let y = b.binary(Binary::Add, y, bias).unwrap();
        b.unary(Unary::Relu, y).unwrap()
    };
    let y = conv(&mut b, x, [16, 8, 1, 1], 1, 1);
    let y = conv(&mut b, y, [16, 1, 3, 3], 16, 3);
    let y = conv(&mut b, y, [8, 16, 3, 3], 1, 5);
    let y = b.binary(Binary::Add, y, x).unwrap();
    let pooled = b.reduce(Reduction::Mean, y, &[2, 3], false).unwrap();
    b.output("y", y);
    b.output("pooled", pooled);
    serves(&b.finish(), &|rows| vec![("x", f32s([rows, 8, 14, 14], 9))], &[0, 1, 2, 5]);
}

#[test]
fn numbers_of_rows_that_are_computed() {
    let mut b = Builder::new();
    let x = b.input("x", f32_of([n(), 6.into(), 10.into()]));
    let y = b.reshape(x, &[n() * 6.into(), 10.into()]).unwrap();
    let w = weights(&mut b, [10, 33], 1);
    let y = b.matmul(y, w).unwrap();
    let y = b.unary(Unary::Tanh, y).unwrap();
    b.output("y", y);
    let inputs = |rows| vec![("x", f32s([rows, 6, 10], 2))];
    serves_on(&b.finish(), &inputs, &[0, 1, 2, 50], vec![Target::host()]);
}
