//! How programs and their code grow with their graphs. What is counted is deterministic: kernels, queries and
//! characters of the text after a stage.
use irc::{KernelProgress, Session, Target};
use irc_tl::{Binary, Builder, DType, Dim, Graph, Op, Type, Unary, ValueId};
use std::sync::{Arc, Mutex};

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

/// Characters after a stage.
fn characters(graph: &Graph, stage: &str) -> usize {
    Session::new().import_graph(graph).stage(stage, Target::host()).unwrap().len()
}

/// A graph of a size.
type OfSize = fn(usize) -> Graph;

#[test]
fn text_grows_linearly_at_every_stage() {
    let graphs: [(&str, OfSize); 4] =
        [("chain", chain), ("residual", residual), ("split", split), ("open", open)];
    for (name, graph) in graphs {
        let [small, large] = [graph(40), graph(400)];
        for stage in ["fuse", "memory", "llvm"] {
            let [small, large] = [&small, &large].map(|graph| characters(graph, stage));
            assert!(large <= LINEAR * small, "{name} after '{stage}': {small} and {large}");
        }
    }
}

#[test]
fn equal_kernels_are_compiled_once_however_many_launches_there_are() {
    let kernels = |graph: &Graph| {
        let session = Session::new();
        let seen = Arc::new(Mutex::new(vec![]));
        let record = seen.clone();
        session.observe(move |kernel: KernelProgress<'_>| {
            record.lock().unwrap().push((kernel.name.to_owned(), kernel.number, kernel.count));
        });
        session.import_graph(graph).library(Target::host()).unwrap();
        let mut seen = seen.lock().unwrap().clone();
        seen.sort_by_key(|(_, number, _)| *number);
        for (index, (name, number, count)) in seen.iter().enumerate() {
            assert!(name.starts_with("irc_"), "{name}");
            assert_eq!((*number, *count), (index, seen.len()));
        }
        seen.len()
    };
    assert_eq!(kernels(&residual(3)), kernels(&residual(30)));
    assert_eq!(kernels(&open(3)), kernels(&open(30)));
    assert_eq!(kernels(&split(50)), kernels(&split(500)));
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
