//! Programs of the tensor level in MLIR are graphs.
use crate::support::graphs::read_back;
use irc::lowering::tl_to_graph::tl_to_graph;
use irc_common_format::{Options, open};
use irc_diag::Sink;
use irc_mlir::{Capture, parse_module};
use irc_onnx_ops::{
    ImportOptions,
    cases::{Values, import_for},
};
use irc_tensor::{Tensor, read_npz_file};
use irc_tl::{Binary, Builder, Comparison, Constant, DType, Graph, NodeKind, TensorType, Type};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The graph of a text, or all that keeps it from being one.
fn graph(text: &str) -> Result<Graph, Vec<String>> {
    let context = irc_dialects::new_context();
    let capture = Capture::new(&context);
    let module = parse_module(&context, text).unwrap_or_else(|| panic!("{:?}", capture.take()));
    tl_to_graph(module.as_operation(), &[])
        .map_err(|_| capture.take().into_iter().map(|diagnostic| diagnostic.message).collect())
}

#[test]
fn names_and_constants_stand_beside_arguments() {
    let graph = graph(
        r#"func.func @main(%x: tensor<2xf32>, %w: tensor<2xf32> {tl.value = dense<[1.0, 2.0]> : tensor<2xf32>})
               -> (tensor<2xf32>, tensor<2xf32> {tl.name = "y"}) {
             %y = tl.add %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
             return %w, %y : tensor<2xf32>, tensor<2xf32>
           }"#,
    );
    let graph = graph.unwrap();
    let x = Tensor::from_values([2], &[10.0_f32, 20.0]).unwrap();
    let results = graph.eval(&[("arg0".to_owned(), x)].into()).unwrap();
    assert_eq!(results.iter().map(Tensor::to_f64).collect::<Vec<_>>(), [[1.0, 2.0], [11.0, 22.0]]);
    let names: Vec<&str> = graph.outputs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["result0", "y"]);
}

#[test]
fn sizes_of_a_text_are_symbols() {
    let graph = graph(
        r#"func.func @main(%x: tensor<?x4xf32, #tl.dims<"N", "4">>) -> tensor<?xf32, #tl.dims<"4*N">> {
             tl.check {left = "1", relation = "at_most", right = "N", message = "expected a row"}
             %y = tl.reshape %x : (tensor<?x4xf32, #tl.dims<"N", "4">>) -> tensor<?xf32, #tl.dims<"4*N">>
             return %y : tensor<?xf32, #tl.dims<"4*N">>
           }"#,
    );
    let graph = graph.unwrap();
    let run = |rows: i64| {
        let x = Tensor::random(TensorType::new(DType::F32, [rows, 4]), 1).unwrap();
        graph.eval(&[("arg0".to_owned(), x.clone())].into()).map(|found| (x, found))
    };
    let (x, found) = run(3).unwrap();
    assert_eq!((found[0].shape(), found[0].to_f64()), (&[12][..], x.to_f64()));
    assert_eq!(run(0).unwrap_err().to_string(), "expected a row: found 1 and 0");
}

#[test]
fn all_that_has_no_place_in_a_graph_is_reported() {
    let errors = graph(
        r#"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
             %y = tl.group "elementwise"(%x) : (tensor<2xf32>) -> tensor<2xf32> {
             ^bb0(%a: tensor<2xf32>):
               %b = tl.relu %a : tensor<2xf32>
               tl.yield %b : tensor<2xf32>
             }
             %z = arith.addf %y, %x : tensor<2xf32>
             %v = tl.relu %z : tensor<2xf32>
             %u = tl.call (%v) {callee = @other} : (tensor<2xf32>) -> tensor<2xf32>
             return %u : tensor<2xf32>
           }
           func.func private @again(%x: tensor<2xf32>) -> tensor<2xf32> {
             %u = tl.call (%x) {callee = @again} : (tensor<2xf32>) -> tensor<2xf32>
             return %u : tensor<2xf32>
           }"#,
    );
    let errors = errors.unwrap_err();
    let expected = [
        "a graph is read before 'fuse', which made 'tl.group'",
        "expected an op of tl, found 'arith.addf'",
        "no function is named @other",
    ];
    assert_eq!(errors.len(), expected.len(), "{errors:?}");
    for (expected, found) in expected.iter().zip(&errors) {
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn a_function_that_runs_itself_is_rejected() {
    let errors = graph(
        r#"func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
             %u = tl.call (%x) {callee = @main} : (tensor<2xf32>) -> tensor<2xf32>
             %v = tl.call (%u) {callee = @again} : (tensor<2xf32>) -> tensor<2xf32>
             return %v : tensor<2xf32>
           }
           func.func private @again(%x: tensor<2xf32>) -> tensor<2xf32> {
             %u = tl.call (%x) {callee = @again} : (tensor<2xf32>) -> tensor<2xf32>
             return %u : tensor<2xf32>
           }"#,
    );
    let errors = errors.unwrap_err();
    assert!(errors.iter().any(|error| error.contains("@main runs itself")), "{errors:?}");
    assert!(errors.iter().any(|error| error.contains("@again runs itself")), "{errors:?}");
}

/// Constants keep their numbers, wherever they are read: here, in a body alone, in both.
#[test]
fn constants_of_bodies_are_read_back() {
    let ty = || TensorType::new(DType::F32, [40, 40]);
    let large = |seed: u64| Constant::of(&Tensor::random(ty(), seed).unwrap());
    let (mine, shared, inner) = (large(1), large(2), large(3));
    let body = |constants: [&Constant; 2]| {
        let mut b = Builder::nested("body");
        let step = b.input("step", Type::new(DType::I64, []));
        let state = b.input("state", ty().into());
        let mut sum = state;
        for constant in constants {
            let constant = b.constant(constant.clone());
            sum = b.binary(Binary::Add, sum, constant).unwrap();
        }
        let limit = b.scalar(9.0, DType::I64).unwrap();
        let go_on = b.compare(Comparison::Lt, step, limit).unwrap();
        b.output("go_on", go_on);
        b.output("next", sum);
        Box::new(b.finish())
    };
    let mut b = Builder::new();
    let x = b.input("x", ty().into());
    let early = b.constant(mine);
    let trips = b.scalar(2.0, DType::I64).unwrap();
    let start = b.scalar(1.0, DType::Bool).unwrap();
    let kind = NodeKind::Loop { body: body([&inner, &shared]), carried: 1 };
    let y = b.region(kind, &[trips, start, x], [ty().into()]).unwrap()[0];
    let kind = NodeKind::Loop { body: body([&shared, &inner]), carried: 1 };
    let y = b.region(kind, &[trips, start, y], [ty().into()]).unwrap()[0];
    let late = b.constant(shared.clone());
    let y = b.binary(Binary::Mul, y, late).unwrap();
    let y = b.binary(Binary::Mul, y, early).unwrap();
    b.output("y", y);
    let graph = b.finish();
    let inputs = [("x".to_owned(), Tensor::random(ty(), 4).unwrap())].into();
    assert_eq!(read_back(&graph).eval(&inputs).unwrap(), graph.eval(&inputs).unwrap());
}

/// The ONNX models of the corpus; none, with a line that says so, when it is absent.
fn models() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let root = std::env::var_os("IRC_CORPUS").map_or(root, PathBuf::from).join("common_ir");
    let Ok(entries) = std::fs::read_dir(root.join("models")) else {
        println!("skipped: no corpus at {}", root.display());
        return vec![];
    };
    let mut models: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    models.retain(|path| path.extension().is_some_and(|end| end == "onnx"));
    models.sort();
    models
}

#[test]
fn models_of_the_corpus_are_read_back() {
    let models = models();
    let mut wrong = vec![];
    for path in &models {
        let module = open(path, &Options::default(), &mut Sink::new()).unwrap().module;
        // Inputs and outputs of a run: `in_NAME`, `out_NUMBER`.
        let mut tensors = BTreeMap::new();
        for (name, tensor) in read_npz_file(&path.with_extension("npz")).unwrap() {
            if let Some(name) = name.strip_prefix("in_") {
                tensors.insert(name.to_owned(), Constant::of(&tensor));
            }
        }
        let inputs = Values { tensors, ..Values::default() };
        match import_for(&module, &inputs, ImportOptions::default()) {
            Ok(imported) => drop(read_back(&imported.graph)),
            Err(diagnostics) => wrong.push(format!("{}: {diagnostics:?}", path.display())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
