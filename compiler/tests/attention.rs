//! Attention is one kernel in blocks of rows, with the same bits for any number of threads.
use crate::support::graphs::{evaluate, read_back, run, same_as};
use crate::support::levels::widths;
use crate::support::pools::pools;
use irc::{Place, Session};
use irc_tensor::{Tensor, TensorType};
use irc_tl::{
    Binary, Builder, Comparison, Compute, DType, Dim, Graph, Op, Reduction, Scalar, Type, Unary,
    ValueId,
};
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

/// The sizes that depend on symbols.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    None,
    Batch,
    /// And the numbers of queries and keys.
    Lengths,
}

/// Attention over operands `[batch, length, heads, depth]`, as models write it, with a mask for each batch and one for all.
fn attention(sizes: Sizes, open: Open, dtype: DType) -> (Graph, Vec<(&'static str, Tensor)>) {
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
        if open != Open::None && ty.rank() == 4 {
            ty.dims[0] = Dim::symbol("N");
        }
        let lengths: &[(usize, &str)] = match *name {
            "q" => &[(1, "Q")],
            "k" | "v" => &[(1, "K")],
            "mask" => &[(3, "K")],
            _ => &[(0, "Q"), (1, "K")],
        };
        for (dim, symbol) in lengths.iter().filter(|_| open == Open::Lengths) {
            ty.dims[*dim] = Dim::symbol(symbol);
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

fn check(sizes: Sizes, open: Open) {
    let (graph, inputs) = attention(sizes, open, DType::F32);
    check_graph(&graph, &[inputs]);
}

/// Compiles a graph once for each processor, and runs it on each of several sets of inputs.
fn check_graph(graph: &Graph, sets: &[Vec<(&'static str, Tensor)>]) {
    let read = read_back(graph);
    let expected: Vec<_> = sets.iter().map(|inputs| evaluate(graph, inputs)).collect();
    for target in widths() {
        let compiled =
            Session::new().import_graph(&read).library_with(target, Place::Given).unwrap();
        for (inputs, expected) in sets.iter().zip(&expected) {
            let found = run(&compiled, inputs).unwrap();
            same_as(expected, &found);
            for pool in pools([2, 7]) {
                let threads = pool.threads();
                let mut runner = compiled.runner().unwrap();
                runner.set_pool(&pool).unwrap();
                let named = inputs.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
                let parallel = runner.run(named.collect::<BTreeMap<_, _>>()).unwrap();
                assert_eq!(parallel, found, "{threads} threads");
            }
        }
    }
}

/// As [`check_graph`], of inputs of several sizes for the same graph.
fn check_open(cases: impl IntoIterator<Item = (Graph, Vec<(&'static str, Tensor)>)>) {
    let (mut graphs, sets): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    graphs.dedup();
    let [graph] = &graphs[..] else { panic!("{} graphs", graphs.len()) };
    check_graph(graph, &sets);
}

#[test]
fn blocks_of_rows_that_share_rows() {
    // Two blocks of 66 rows.
    check(Sizes { batch: 2, heads: 3, queries: 131, keys: 75, depth: 20 }, Open::Batch);
}

#[test]
fn one_block_and_one_row() {
    check(Sizes { batch: 1, heads: 2, queries: 9, keys: 33, depth: 16 }, Open::None);
    check(Sizes { batch: 1, heads: 4, queries: 1, keys: 129, depth: 16 }, Open::Batch);
}

#[test]
fn more_keys_than_a_block_of_depth() {
    check(Sizes { batch: 1, heads: 1, queries: 67, keys: 2100, depth: 8 }, Open::None);
}

#[test]
fn any_number_of_queries_and_keys() {
    // One row and column, parts of tiles and vectors, whole ones, several blocks, and several calls of a block.
    let lengths = [(1, 1), (3, 40), (64, 32), (129, 75), (70, 1008), (9, 2050)];
    check_open(lengths.map(|(queries, keys)| {
        let sizes = Sizes { batch: 2, heads: 3, queries, keys, depth: 20 };
        attention(sizes, Open::Lengths, DType::F32)
    }));
}

/// Causal attention as the importer of `Attention` writes it.
fn causal(sizes: Sizes, is_open: bool) -> (Graph, Vec<(&'static str, Tensor)>) {
    let Sizes { batch, heads, queries, keys, depth } = sizes;
    let floats = |length, seed| {
        let ty = TensorType::new(DType::F32, [batch, heads, length, depth]);
        Tensor::random(ty, seed).unwrap()
    };
    // Its extent is the number of keys before those of the queries.
    let past = Tensor::random(TensorType::new(DType::F32, [keys - queries]), 4).unwrap();
    let (k, v) = (floats(keys, 2), floats(keys, 3));
    let inputs = vec![("q", floats(queries, 1)), ("k", k), ("v", v), ("past", past)];
    let mut b = Builder::new();
    let given = inputs.iter().map(|(name, x)| {
        let mut ty = Type::from(x.ty().clone());
        let [queries, past] = ["Q", "P"].map(Dim::symbol);
        match *name {
            "past" if is_open => ty.dims[0] = past,
            _ if !is_open => {}
            _ => {
                ty.dims[0] = Dim::symbol("N");
                ty.dims[2] = if *name == "q" { queries } else { queries + past };
            }
        }
        b.input(*name, ty)
    });
    let [q, k, v, _] = given.collect::<Vec<_>>()[..] else { unreachable!() };
    let op = Op::Matmul { transpose_lhs: false, transpose_rhs: true };
    let scores = b.op(op, &[q, k]).unwrap();
    let dims = b.ty(scores).dims.clone();
    let past = match is_open {
        true => Scalar::Size(Dim::symbol("P")),
        false => Scalar::index(keys - queries),
    };
    let seen = Scalar::Compare(
        Comparison::Le,
        Arc::new(Scalar::Loop(3)),
        Arc::new(Scalar::Loop(2) + past),
    );
    let own = Scalar::load(0, (0..4).map(Scalar::Loop).collect::<Vec<_>>());
    let low = Scalar::float(f64::NEG_INFINITY, DType::F32);
    let body = Scalar::Select([seen, own, low].into());
    let mask = Op::compute(Compute { dims, reduction: None, body });
    let scores = b.op(mask, &[scores]).unwrap();
    let mixed = softmax(&mut b, scores);
    let mixed = b.matmul(mixed, v).unwrap();
    b.output("mixed", mixed);
    (b.finish(), inputs)
}

#[test]
fn columns_after_a_query_are_skipped() {
    // Whole blocks and parts of them, and several calls of some blocks of a head but one of others.
    let sizes = |(queries, keys)| {
        let (batch, heads, depth) = if keys > 1000 { (1, 1, 8) } else { (2, 3, 20) };
        Sizes { batch, heads, queries, keys, depth }
    };
    let lengths = [(1, 1), (1, 70), (65, 65), (200, 330), (120, 1060)].map(sizes);
    for sizes in lengths {
        let (graph, inputs) = causal(sizes, false);
        check_graph(&graph, &[inputs]);
    }
    for cases in lengths.chunk_by(|one, other| one.depth == other.depth) {
        check_open(cases.iter().map(|sizes| causal(*sizes, true)));
    }
}

#[test]
fn columns_that_are_all_masked() {
    // All of the first call, and half of a row of the second one.
    let sizes = Sizes { batch: 1, heads: 2, queries: 5, keys: 1100, depth: 16 };
    let (graph, mut inputs) = attention(sizes, Open::Lengths, DType::F32);
    let mut mask = vec![f64::NEG_INFINITY; 1100];
    mask[1050..].fill(0.0);
    inputs[3].1 = Tensor::from_f64(inputs[3].1.ty().clone(), &mask).unwrap();
    let shown = vec![1.0; 5 * 1100];
    inputs[4].1 = Tensor::from_f64(inputs[4].1.ty().clone(), &shown).unwrap();
    check_graph(&graph, &[inputs]);
}

#[test]
fn halves_are_rounded_once() {
    let sizes = Sizes { batch: 2, heads: 3, queries: 40, keys: 75, depth: 20 };
    let types = [(DType::F16, 2f64.powi(-11)), (DType::BF16, 2f64.powi(-8))];
    let all = types.into_iter().flat_map(|ty| [Open::Batch, Open::Lengths].map(|open| (ty, open)));
    for ((dtype, ulp), open) in all {
        let (graph, inputs) = attention(sizes, open, dtype);
        let session = Session::new();
        let model = session.import_graph(&read_back(&graph));
        let compiled = model.library_with(irc::Target::host(), Place::Given).unwrap();
        let found = run(&compiled, &inputs).unwrap()["mixed"].to_f64();
        // The same in single precision.
        let (wide, _) = attention(sizes, Open::None, DType::F32);
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

/// Attention of halves that are converted before it, and whose result is converted, with a causal mask or without.
fn widened(sizes: Sizes, is_causal: bool) -> (Graph, Vec<(&'static str, Tensor)>) {
    let Sizes { batch, heads, queries, keys, depth } = sizes;
    let mut b = Builder::new();
    let mut inputs = vec![];
    let mut wide = vec![];
    for (name, length, seed) in [("q", queries, 1), ("k", keys, 2), ("v", keys, 3)] {
        let ty = TensorType::new(DType::F16, [batch, heads, length, depth]);
        let value = b.input(name, Type::from(ty.clone()));
        wide.push(b.cast(value, DType::F32).unwrap());
        inputs.push((name, Tensor::random(ty, seed).unwrap()));
    }
    let product = Op::Matmul { transpose_lhs: false, transpose_rhs: true };
    let mut scores = b.op(product, &wide[..2]).unwrap();
    if is_causal {
        let [query, key] = [2, 3].map(Scalar::Loop);
        let shown = key.compare(Comparison::Le, query + Scalar::index(keys - queries));
        let hidden = Scalar::float(f64::NEG_INFINITY, DType::F32);
        let own = Scalar::load(0, (0..4).map(Scalar::Loop).collect::<Vec<_>>());
        let body = shown.select(own, hidden);
        let dims = b.dims(scores);
        scores = b.compute(Compute::map(dims, body), &[scores]).unwrap();
    }
    let mixed = softmax(&mut b, scores);
    let mixed = b.matmul(mixed, wide[2]).unwrap();
    let mixed = b.cast(mixed, DType::F16).unwrap();
    let mixed = b.op(Op::Transpose { permutation: vec![0, 2, 1, 3] }, &[mixed]).unwrap();
    b.output("mixed", mixed);
    (b.finish(), inputs)
}

#[test]
fn halves_may_be_widened_before() {
    for is_causal in [false, true] {
        let sizes = Sizes { batch: 2, heads: 3, queries: 70, keys: 150, depth: 20 };
        let (graph, inputs) = widened(sizes, is_causal);
        check_graph(&graph, &[inputs]);
    }
}
