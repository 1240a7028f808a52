//! Measured choices of schedules.

use crate::support::graphs::{evaluate, f32s, same_as};
use irc::{
    CompileOptions, Place, Session, Source, Target,
    attributes::{Algorithm, Schedule},
    session::tuning::Tuning,
};
use irc_tl::{Builder, Constant, Conv, Graph, Op, Type, Unary};
use std::sync::Arc;

/// A convolution and a product of its result.
fn graph() -> Graph {
    let mut b = Builder::new();
    let x = b.input("x", Type::from(f32s([1, 16, 20, 24], 1).ty().clone()));
    let w = b.constant(Constant::of(&f32s([24, 16, 3, 3], 2)));
    let pads = vec![[1, 1]; 2];
    let conv = Conv { strides: vec![1, 1], dilations: vec![1, 1], pads, groups: 1, outside: 0 };
    let y = b.op(Op::Conv(conv), &[x, w]).unwrap();
    let y = b.unary(Unary::Relu, y).unwrap();
    let v = b.constant(Constant::of(&f32s([24, 130], 3)));
    let z = b.matmul(y, v).unwrap();
    b.output("z", z);
    b.finish()
}

fn with(kernels: impl IntoIterator<Item = (String, Schedule)>) -> CompileOptions {
    let target = Target::host();
    let kernels = kernels.into_iter().collect();
    let tuning = Arc::new(Tuning { processor: target.cpu.clone(), kernels });
    CompileOptions { tuning, ..target.into() }
}

#[test]
fn every_choice_gives_the_results_of_the_graph() {
    let (session, graph) = (Session::new(), graph());
    let model = session.import_graph(&graph);
    let tunables = model.tunables(Target::host()).unwrap();
    assert_eq!(tunables.len(), 2);
    let default = model.library(Target::host()).unwrap();
    let inputs = [("x", f32s([1, 16, 20, 24], 7))];
    let expected = evaluate(&graph, &inputs);
    let mut differing = 0;
    for kernel in &tunables {
        for schedule in kernel.candidates() {
            let options = with([(kernel.key.clone(), schedule)]);
            assert_eq!(model.tuned(&options).unwrap(), 1);
            let compiled = model.library_with(&options, Place::Given).unwrap();
            let given = inputs.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone()));
            let found = compiled.runner().unwrap().run(given.collect()).unwrap();
            same_as(&expected, &found);
            differing += usize::from(compiled.library.len() != default.library.len());
        }
    }
    assert!(differing > 10, "{differing} libraries have another size");
}

#[test]
fn a_kernel_alone_is_the_kernel_of_the_program() {
    let session = Session::new();
    for kernel in session.import_graph(&graph()).tunables(Target::host()).unwrap() {
        let alone = session.import_graph(&kernel.graph);
        let options = with([(kernel.key.clone(), Schedule::default())]);
        assert_eq!(alone.tuned(&options).unwrap(), 1, "{}", kernel.key);
    }
}

#[test]
fn a_kernel_of_another_program_is_not_met() {
    let session = Session::new();
    let options = with([("irc_matmul_1x1_0".to_owned(), Schedule::default())]);
    assert_eq!(session.import_graph(&graph()).tuned(&options).unwrap(), 0);
}

#[test]
fn files_are_read_as_they_are_written() {
    let schedule =
        Schedule { algorithm: Some(Algorithm::Product), rows: Some(7), depth: Some(512) };
    let tuning = Tuning {
        processor: "znver4".to_owned(),
        kernels: [("a".to_owned(), schedule), ("b".to_owned(), Schedule::default())].into(),
    };
    let read = |text: &str| Tuning::from_json(&Source::new("tune.json", text));
    assert_eq!(read(&tuning.to_json()).unwrap(), tuning);
    for (change, expected) in [
        (("\"version\": 1", "\"version\": 2"), "expected version 1"),
        (("irc-tuning", "other"), "expected \"irc-tuning\""),
        (("\"product\"", "\"fast\""), "expected one of direct, product, winograd"),
        (("\"rows\": 7", "\"rows\": 0"), "expected at least 1"),
        (("\"rows\": 7", "\"rows\": []"), "expected a number"),
        (("\"processor\"", "\"cpu\""), "missing key `processor`"),
        (("}\n", ""), ""),
    ] {
        let text = tuning.to_json().replace(change.0, change.1);
        let found = read(&text).unwrap_err();
        assert!(found[0].message.contains(expected), "{}: {text}", found[0].message);
        assert!(!found[0].labels.is_empty(), "{}", found[0].message);
    }
}
