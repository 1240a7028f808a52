//! Measured choices of schedules.

use crate::support::graphs::{evaluate, f32s, same_as};
use irc::{
    CompileOptions, Place, Session, Source, Target,
    attributes::{Algorithm, Schedule},
    session::tuning::Tuning,
};
use irc_tensor::{DType, Tensor};
use irc_tl::{Builder, Constant, Conv, Dim, Graph, Op, Type, Unary};
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
    assert_eq!(tunables.kernels.len(), 2);
    assert!(tunables.open.is_empty());
    let default = model.library(Target::host()).unwrap();
    let inputs = [("x", f32s([1, 16, 20, 24], 7))];
    let expected = evaluate(&graph, &inputs);
    let mut differing = 0;
    for kernel in &tunables.kernels {
        for schedule in kernel.candidates() {
            let options = with([(kernel.symbol.clone(), schedule)]);
            assert_eq!(model.tuned(&options).unwrap().kernels.len(), 1);
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
fn a_kernel_alone_has_the_code_of_the_program() {
    let session = Session::new();
    let model = session.import_graph(&graph());
    let whole = model.library(Target::host()).unwrap();
    for kernel in model.tunables(Target::host()).unwrap().kernels {
        let alone = model.compile_tunable(&kernel, Schedule::default(), Target::host()).unwrap();
        let symbol = kernel.symbol.as_bytes();
        for library in [&whole.library, &alone.library] {
            let has_symbol = library.windows(symbol.len()).any(|bytes| bytes == symbol);
            assert!(has_symbol, "{}", kernel.symbol);
        }
        let mut runner = alone.runner().unwrap();
        let inputs = runner.inputs().map(|port| {
            let zeros = Tensor::zeros(port.tensor_type().unwrap()).unwrap();
            (port.name.clone(), zeros)
        });
        let inputs = inputs.collect();
        assert_eq!(runner.run(inputs).unwrap().len(), 1);
    }
}

/// A product of bytes is prepared before it is fused: alone, its kernel must not be prepared again.
#[test]
fn kernels_of_a_quantised_model_can_be_measured() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::U8, [Dim::Known(4), Dim::Known(6)]));
    let values: Vec<i8> = (0..18).map(|index| index * 3 - 20).collect();
    let w = b.constant(Constant::of(&Tensor::from_values([6, 3], &values).unwrap()));
    let sum = b.matmul(x, w).unwrap();
    b.output("y", sum);
    let session = Session::new();
    let graph = b.finish();
    let model = session.import_graph(&graph);
    let tunables = model.tunables(Target::host()).unwrap();
    assert_eq!(tunables.kernels.len(), 1);
    let kernel = &tunables.kernels[0];
    for schedule in kernel.candidates() {
        model.compile_tunable(kernel, schedule, Target::host()).unwrap();
    }
}

#[test]
fn kernels_of_open_sizes_are_listed() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [Dim::symbol("N"), Dim::Known(64)]));
    let w = b.constant(Constant::of(&f32s([64, 32], 2)));
    let y = b.matmul(x, w).unwrap();
    b.output("y", y);
    let session = Session::new();
    let graph = b.finish();
    let tunables = session.import_graph(&graph).tunables(Target::host()).unwrap();
    assert_eq!((tunables.kernels.len(), tunables.open.len()), (0, 1));
}

#[test]
fn choices_that_a_program_does_not_have_are_errors_in_the_file() {
    let session = Session::new();
    let graph = graph();
    let model = session.import_graph(&graph);
    let found = |kernels: Vec<(String, Schedule)>| {
        let options = with(kernels);
        let text = options.tuning.to_json();
        let mut found = options.tuning.check(&model.tuned(&options).unwrap());
        Tuning::locate(&Source::new("tune.json", &text), &mut found);
        assert!(found.iter().all(|one| !one.labels.is_empty()), "{found:?}");
        let codes = found.iter().map(|one| (one.code, one.is_error()));
        (codes.collect::<Vec<_>>(), found.into_iter().map(|one| one.message).collect::<String>())
    };
    let other = ("irc_matmul_1x1_0".to_owned(), Schedule::default());
    let (codes, message) = found(vec![other.clone()]);
    assert_eq!(codes, [("tuning-model", true)]);
    assert!(message.contains("has none of its 1 kernels"), "{message}");
    let tunables = model.tunables(Target::host()).unwrap().kernels;
    let winograd = Schedule { algorithm: Some(Algorithm::Winograd), ..Schedule::default() };
    for kernel in tunables {
        let (codes, message) = found(vec![(kernel.symbol.clone(), winograd), other.clone()]);
        match kernel.is_convolution {
            true => assert_eq!(codes, [("tuning-model", false)]),
            false => {
                assert_eq!(codes, [("tuning-model", false), ("tuning", true)]);
                assert!(message.contains("is no convolution"), "{message}");
            }
        }
    }
    let target = Target::from_name("x86-64-v2");
    let tuning = with([other]).tuning;
    assert!(tuning.check_processor(&Target::host()).is_none());
    assert_eq!(tuning.check_processor(&target).unwrap().code, "tuning-processor");
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
        (("\"rows\": 7", "\"rows\": 0"), "expected a whole number from 1 to 14"),
        (("\"rows\": 7", "\"rows\": 999"), "expected a whole number from 1 to 14"),
        (("\"rows\": 7", "\"rows\": []"), "expected a whole number from 1 to 14"),
        (("\"rows\": 7", "\"row\": 7"), "unknown key `row`"),
        (("\"version\": 1", "\"version\": 1, \"date\": 2"), "unknown key `date`"),
        ((",\n  \"processor\": \"znver4\"", ""), "missing key `processor`"),
        (("}\n", ""), ""),
    ] {
        let text = tuning.to_json().replace(change.0, change.1);
        let found = read(&text).unwrap_err();
        assert!(found[0].message.contains(expected), "{}: {text}", found[0].message);
        assert!(!found[0].labels.is_empty(), "{}", found[0].message);
    }
}
