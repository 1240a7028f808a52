//! How programs and their code grow with their graphs. What is counted is deterministic: kernels, queries and
//! characters of the text after a stage.
use irc::{Backend, KernelProgress, Session, Target};
use irc_tensor::Tensor;
use irc_tl::{Binary, Builder, DType, Dim, Graph, Op, Reduction, Type, Unary, ValueId};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Largest growth of a graph ten times as large.
const LINEAR: usize = 12;

fn rows(b: &mut Builder, name: &str, extent: Dim) -> ValueId {
    b.input(name, Type::new(DType::F32, [extent, 4.into()]))
}

/// A chain of elementwise ops.
fn chain(length: usize) -> Graph {
    let mut b = Builder::new();
    let mut x = rows(&mut b, "x", 4.into());
    for index in 0..length {
        x = b.unary([Unary::Relu, Unary::Sigmoid, Unary::Tanh][index % 3], x).unwrap();
    }
    b.output("y", x);
    b.finish()
}

/// Blocks of a product and the sum with their input.
fn residual(blocks: usize) -> Graph {
    let mut b = Builder::new();
    let mut x = rows(&mut b, "x", 4.into());
    let w = rows(&mut b, "w", 4.into());
    for _ in 0..blocks {
        let product = b.matmul(x, w).unwrap();
        x = b.binary(Binary::Add, product, x).unwrap();
    }
    b.output("y", x);
    b.finish()
}

/// Many results, each a part of the input.
fn split(parts: usize) -> Graph {
    let mut b = Builder::new();
    let x = rows(&mut b, "x", (parts as i64).into());
    for part in 0..parts {
        let op = Op::Slice { offsets: vec![part as i64, 0], sizes: vec![1, 4] };
        let slice = b.op(op, &[x]).unwrap();
        b.output(format!("y{part}"), slice);
    }
    b.finish()
}

/// Many inputs and results, each with a size of its own.
fn open(inputs: usize) -> Graph {
    let mut b = Builder::new();
    for input in 0..inputs {
        let x = rows(&mut b, &format!("x{input}"), Dim::symbol(&format!("N{input}")));
        let y = b.unary(Unary::Relu, x).unwrap();
        b.output(format!("y{input}"), y);
    }
    b.finish()
}

/// A layer of a transformer with weights of its own: attention and two products, each after a normalisation.
fn layer(b: &mut Builder, number: usize, x: ValueId) -> ValueId {
    let weight = |b: &mut Builder, part: usize| {
        let values = [0.1, 0.2, 0.3, 0.4].repeat(4);
        let first = (number * 5 + part) as f32;
        let values: Vec<f32> = [first].into_iter().chain(values).take(16).collect();
        b.tensor(&Tensor::from_values([4, 4], &values).unwrap())
    };
    let y = normalised(b, x);
    let [query, key, value] = [0, 1, 2].map(|part| {
        let weight = weight(b, part);
        b.matmul(y, weight).unwrap()
    });
    let key = b.transpose(key, &[0, 2, 1]).unwrap();
    let scores = b.matmul(query, key).unwrap();
    let weights = softmax(b, scores);
    let mixed = b.matmul(weights, value).unwrap();
    let x = b.binary(Binary::Add, x, mixed).unwrap();
    let y = normalised(b, x);
    let [wide, narrow] = [3, 4].map(|part| weight(b, part));
    let wide = b.matmul(y, wide).unwrap();
    let wide = b.unary(Unary::Relu, wide).unwrap();
    let narrow = b.matmul(wide, narrow).unwrap();
    b.binary(Binary::Add, x, narrow).unwrap()
}

/// An operand combined with its reduction along the last axis.
fn with_reduced(b: &mut Builder, function: Binary, kind: Reduction, x: ValueId) -> ValueId {
    let reduced = b.reduce(kind, x, &[2], true).unwrap();
    let dims = b.ty(x).dims.clone();
    let reduced = b.broadcast(reduced, &dims).unwrap();
    b.binary(function, x, reduced).unwrap()
}

fn normalised(b: &mut Builder, x: ValueId) -> ValueId {
    with_reduced(b, Binary::Sub, Reduction::Mean, x)
}

fn softmax(b: &mut Builder, x: ValueId) -> ValueId {
    let below = with_reduced(b, Binary::Sub, Reduction::Max, x);
    let powers = b.unary(Unary::Exp, below).unwrap();
    with_reduced(b, Binary::Div, Reduction::Sum, powers)
}

/// Layers on sequences of an open number and length.
fn transformer(layers: usize) -> Graph {
    let mut b = Builder::new();
    let dims = [Dim::symbol("B"), Dim::symbol("S"), 4.into()];
    let x = b.input("x", Type::new(DType::F32, dims));
    let y = (0..layers).fold(x, |x, number| layer(&mut b, number, x));
    b.output("y", y);
    b.finish()
}

/// Characters after a stage.
fn characters(graph: &Graph, stage: &str) -> usize {
    Session::new().import_graph(graph).stage(stage, Target::host()).unwrap().len()
}

/// A graph of a size.
type OfSize = fn(usize) -> Graph;

#[test]
fn text_grows_linearly_at_every_stage() {
    let graphs: [(&str, OfSize); 5] = [
        ("chain", chain),
        ("residual", residual),
        ("split", split),
        ("open", open),
        ("transformer", |size| transformer(size / 10)),
    ];
    for (name, graph) in graphs {
        let [small, large] = [graph(40), graph(400)];
        for stage in ["fuse", "memory", "llvm"] {
            let [small, large] = [&small, &large].map(|graph| characters(graph, stage));
            assert!(large <= LINEAR * small, "{name} after '{stage}': {small} and {large}");
        }
    }
}

/// The number of kernels that are compiled for a library, and the time.
fn compiled(graph: &Graph, target: Target) -> (usize, Duration) {
    let session = Session::new();
    let seen = Arc::new(Mutex::new(vec![]));
    let record = seen.clone();
    session.observe(move |kernel: KernelProgress<'_>| {
        record.lock().unwrap().push((kernel.name.to_owned(), kernel.number, kernel.count));
    });
    let start = Instant::now();
    session.import_graph(graph).library(target).unwrap();
    let time = start.elapsed();
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_by_key(|(_, number, _)| *number);
    for (index, (name, number, count)) in seen.iter().enumerate() {
        assert!(name.starts_with("irc_"), "{name}");
        assert_eq!((*number, *count), (index, seen.len()));
    }
    (seen.len(), time)
}

#[test]
fn equal_kernels_are_compiled_once_however_many_launches_there_are() {
    let kernels = |graph: &Graph| compiled(graph, Target::host()).0;
    assert_eq!(kernels(&residual(3)), kernels(&residual(30)));
    assert_eq!(kernels(&open(3)), kernels(&open(30)));
    assert_eq!(kernels(&split(50)), kernels(&split(500)));
}

/// Ten times as many layers take less than thirty times as long; with a pass of quadratic time, a hundred times.
#[test]
fn transformers_compile_in_linear_time() {
    let quick = || Target::host().with_backend(Backend::QUICK);
    let [small, middle, large] =
        [10, 100, 1000].map(|layers| compiled(&transformer(layers), quick()));
    assert_eq!((small.0, middle.0), (middle.0, large.0), "kernels");
    assert!(middle.1 < 30 * small.1, "{small:?} and {middle:?}");
    assert!(large.1 < 30 * middle.1, "{middle:?} and {large:?}");
}

/// Sums of elements with the maximum of their row, each of the one before: they join in groups of limited depth.
fn readers(count: usize) -> Graph {
    let mut b = Builder::new();
    let dims = [Dim::symbol("N"), Dim::symbol("M")];
    let x = b.input("x", Type::new(DType::F32, dims.clone()));
    let highest = b.reduce(Reduction::Max, x, &[1], true).unwrap();
    let highest = b.broadcast(highest, &dims).unwrap();
    let y = (0..count).fold(x, |y, _| b.binary(Binary::Add, y, highest).unwrap());
    b.output("y", y);
    b.finish()
}

#[test]
fn long_chains_over_rows_compile_in_linear_time() {
    let [small, large] = [100, 1000].map(|count| compiled(&readers(count), Target::host()).1);
    assert!(large < 30 * small, "{small:?} and {large:?}");
}

/// LLVM's register allocation and scheduling take more than linear time in the length of a function.
#[test]
fn long_programs_are_not_optimised_as_a_whole() {
    let is_limited = |graph: &Graph| {
        let text = Session::new().import_graph(graph).stage("llvm", Target::host()).unwrap();
        let main = text.lines().find(|line| line.contains("llvm.func @irc_main(")).unwrap();
        main.contains("optimize_none") && main.contains("no_inline")
    };
    assert!(!is_limited(&residual(3)));
    assert!(is_limited(&residual(1500)));
}

/// LLVM takes more than linear time in the number of arguments of a call.
#[test]
fn programs_take_one_array_of_all_their_buffers() {
    for parts in [1, 400] {
        let text =
            Session::new().import_graph(&split(parts)).stage("llvm", Target::host()).unwrap();
        let main = text.lines().find(|line| line.contains("llvm.func @irc_main(")).unwrap();
        assert_eq!(main.matches("%arg").count(), 3, "{main}");
    }
}
