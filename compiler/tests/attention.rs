//! Attention is one kernel in blocks of rows, with the same bits for any number of threads.
use crate::support::graphs::{read_back, run, same};
use crate::support::levels::levels;
use irc::{Place, Session};
use irc_runtime::{Pool, ThreadPool};
use irc_tensor::{Tensor, TensorType};
use irc_tl::{Binary, Builder, DType, Dim, Graph, Op, Reduction, Type, Unary, ValueId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The sizes of attention.
#[derive(Clone, Copy)]
struct Sizes {
    batch: i64,
    heads: i64,
    queries: i64,
    keys: i64,
    depth: i64,
}

fn softmax(b: &mut Builder, x: ValueId) -> ValueId {
    let max = b.reduce(Reduction::Max, x, &[3], true).unwrap();
    let x = b.binary(Binary::Sub, x, max).unwrap();
    let x = b.unary(Unary::Exp, x).unwrap();
    let sum = b.reduce(Reduction::Sum, x, &[3], true).unwrap();
    b.binary(Binary::Div, x, sum).unwrap()
}

/// Attention over operands `[batch, length, heads, depth]`, as models write it, with a mask for each batch and one for all.
fn attention(sizes: Sizes, is_open: bool, dtype: DType) -> (Graph, Vec<(&'static str, Tensor)>) {
    let Sizes { batch, heads, queries, keys, depth } = sizes;
    let floats =
        |shape: [i64; 4], seed| Tensor::random(TensorType::new(dtype, shape), seed).unwrap();
    let inputs = vec![
        ("q", floats([batch, queries, heads, depth], 1)),
        ("k", floats([batch, keys, heads, depth], 2)),
        ("v", floats([batch, keys, heads, depth], 3)),
        ("mask", floats([batch, 1, 1, keys], 4)),
        ("shown", Tensor::random(TensorType::new(DType::Bool, [queries, keys]), 5).unwrap()),
    ];
    let mut b = Builder::new();
    let given = inputs.iter().map(|(name, x)| {
        let mut ty = Type::from(x.ty().clone());
        if is_open && ty.rank() == 4 {
            ty.dims[0] = Dim::symbol("N");
        }
        b.input(*name, ty)
    });
    let [q, k, v, mask, shown] = given.collect::<Vec<_>>()[..] else { unreachable!() };
    let mut turn =
        |x, permutation: &[usize]| b.op(Op::Transpose { permutation: permutation.to_vec() }, &[x]);
    let [q, v] = [q, v].map(|x| turn(x, &[0, 2, 1, 3]).unwrap());
    let k = turn(k, &[0, 2, 3, 1]).unwrap();
    let scores = b.matmul(q, k).unwrap();
    let scale = b.fill(0.25, &[], dtype).unwrap();
    let scores = b.binary(Binary::Mul, scores, scale).unwrap();
    let scores = b.binary(Binary::Add, scores, mask).unwrap();
    let low = b.fill(-6e4, &[], dtype).unwrap();
    let scores = b.op(Op::Select, &[shown, scores, low]).unwrap();
    let mixed = softmax(&mut b, scores);
    let mixed = b.matmul(mixed, v).unwrap();
    let mixed = b.op(Op::Transpose { permutation: vec![0, 2, 1, 3] }, &[mixed]).unwrap();
    b.output("mixed", mixed);
    (b.finish(), inputs)
}

fn check(sizes: Sizes, is_open: bool) {
    let (graph, inputs) = attention(sizes, is_open, DType::F32);
    for target in levels() {
        let session = Session::new();
        let compiled =
            session.import_graph(&read_back(&graph)).library_with(target, Place::Given).unwrap();
        let found = run(&compiled, &inputs).unwrap();
        same(&graph, &inputs, &found);
        for threads in [2, 7] {
            let pool: Arc<dyn Pool> = Arc::new(ThreadPool::new(threads).unwrap());
            let mut runner = compiled.runner().unwrap();
            runner.set_pool(&pool).unwrap();
            let named = inputs.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
            let parallel = runner.run(named.collect::<BTreeMap<_, _>>()).unwrap();
            assert_eq!(parallel, found, "{threads} threads");
        }
    }
}

#[test]
fn blocks_of_rows_that_share_rows() {
    // Two blocks of 66 rows.
    check(Sizes { batch: 2, heads: 3, queries: 131, keys: 75, depth: 20 }, true);
}

#[test]
fn one_block_and_one_row() {
    check(Sizes { batch: 1, heads: 2, queries: 9, keys: 33, depth: 16 }, false);
    check(Sizes { batch: 1, heads: 4, queries: 1, keys: 129, depth: 16 }, true);
}

#[test]
fn more_keys_than_a_block_of_depth() {
    check(Sizes { batch: 1, heads: 1, queries: 67, keys: 2100, depth: 8 }, false);
}

#[test]
fn halves_are_rounded_once() {
    let sizes = Sizes { batch: 2, heads: 3, queries: 40, keys: 75, depth: 20 };
    for (dtype, ulp) in [(DType::F16, 2f64.powi(-11)), (DType::BF16, 2f64.powi(-8))] {
        let (graph, inputs) = attention(sizes, true, dtype);
        let session = Session::new();
        let model = session.import_graph(&read_back(&graph));
        let compiled = model.library_with(irc::Target::host(), Place::Given).unwrap();
        let found = run(&compiled, &inputs).unwrap()["mixed"].to_f64();
        // The same in single precision.
        let (wide, _) = attention(sizes, false, DType::F32);
        let widened = inputs.iter().map(|(name, value)| {
            let dtype = if value.dtype().is_float() { DType::F32 } else { value.dtype() };
            let ty = TensorType::new(dtype, value.shape().to_vec());
            ((*name).to_owned(), Tensor::from_f64(ty, &value.to_f64()).unwrap())
        });
        let expected = wide.eval(&widened.collect::<BTreeMap<_, _>>()).unwrap()[0].to_f64();
        for (found, expected) in found.iter().zip(&expected) {
            let allowed = ulp * expected.abs() + 1e-6;
            assert!((found - expected).abs() <= allowed, "{dtype}: {found} {expected}");
        }
    }
}
