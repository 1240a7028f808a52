//! Graphs compiled and run, against their evaluation.
use crate::support;
use crate::support::graphs::{agree, compile, compile_for, f32s, i64s, run, truth};
use irc::{Session, Target};
use irc_tl::{Binary, Builder, Comparison, Compute, Constant, DType, Dim, NodeKind, Reduction};
use irc_tl::{Graph, Relation, Scalar, TensorType, Type, Unary, ValueId};
use std::sync::Arc;

fn matrix(dims: [i64; 2]) -> Type {
    TensorType::new(DType::F32, dims).into()
}

fn scalar(dtype: DType) -> Type {
    Type::new(dtype, [])
}

#[test]
fn ops_in_a_row() {
    let mut b = Builder::new();
    let x = b.input("x", matrix([4, 8]));
    let w = b.tensor(&f32s([8, 8], 3));
    let product = b.matmul(x, w).unwrap();
    let y = b.unary(Unary::Relu, product).unwrap();
    let sum = b.reduce(Reduction::Sum, y, &[1], true).unwrap();
    let z = b.binary(Binary::Div, y, sum).unwrap();
    b.output("z", z);
    b.output("sum", sum);
    agree(&b.finish(), &[("x", f32s([4, 8], 1))]);
}

/// A library requires what its code uses of the target, whatever machine this is.
#[test]
fn libraries_require_the_features_that_their_code_uses() {
    let wide = || Target::from_name("x86-64-v4");
    let requires = |graph: &Graph, target| compile_for(graph, target).interface.requires.clone();
    let mut b = Builder::new();
    let [x, y] = ["x", "y"].map(|name| b.input(name, scalar(DType::I64)));
    let sum = b.binary(Binary::Add, x, y).unwrap();
    b.output("sum", sum);
    let sum = b.finish();
    assert_eq!(requires(&sum, wide()), Vec::<String>::new());
    let mut b = Builder::new();
    let x = b.input("x", matrix([64, 64]));
    let w = b.tensor(&f32s([64, 64], 3));
    let product = b.matmul(x, w).unwrap();
    b.output("y", product);
    let product = b.finish();
    let found = requires(&product, wide());
    assert!(found.iter().any(|name| name == "avx512f"), "{found:?}");
    assert!(!found.iter().any(|name| name == "avx512cd" || name == "movbe"), "{found:?}");
    assert_eq!(requires(&product, Target::from_name("x86-64")), Vec::<String>::new());
}

/// What takes time quadratic in the number of nodes does not end here.
#[test]
fn thousands_of_nodes_compile() {
    let mut b = Builder::new();
    let x = b.input("x", matrix([1, 16]));
    let w = b.tensor(&f32s([1, 16], 3));
    let mut y = x;
    for at in 0..5000 {
        y = match at % 2 {
            0 => b.binary(Binary::Add, y, w).unwrap(),
            _ => b.unary(Unary::Relu, y).unwrap(),
        };
    }
    b.output("y", y);
    let graph = b.finish();
    let inputs = [("x", f32s([1, 16], 1))];
    let expected = graph.eval(&[("x".into(), inputs[0].1.clone())].into()).unwrap();
    assert_eq!(run(&compile(&graph), &inputs).unwrap()["y"], expected[0]);
}

/// More operands than a mask of fused operands has bits.
#[test]
fn an_op_of_many_operands() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [Dim::Known(4)]));
    let values: Vec<ValueId> = (0..40)
        .map(|at| {
            let by = b.scalar(f64::from(at), DType::F32).unwrap();
            b.binary(Binary::Mul, x, by).unwrap()
        })
        .collect();
    let load = |operand| Scalar::load(operand, [Scalar::Loop(0)]);
    let sum = (0..40).map(load).reduce(|sum, next| sum + next).unwrap();
    let y = b.compute(Compute::map([Dim::Known(4)], sum), &values).unwrap();
    b.output("y", y);
    agree(&b.finish(), &[("x", f32s([4], 1))]);
}

#[test]
fn a_large_constant_is_not_in_the_library() {
    let mut b = Builder::new();
    let x = b.input("x", matrix([2, 64]));
    let w = b.tensor(&f32s([64, 64], 3));
    let y = b.matmul(x, w).unwrap();
    b.output("y", y);
    let graph = b.finish();
    assert_eq!(compile(&graph).constants.len(), 1);
    agree(&graph, &[("x", f32s([2, 64], 1))]);
}

#[test]
fn a_whole_library_holds_its_constants() {
    let mut b = Builder::new();
    let x = b.input("x", matrix([2, 64]));
    let w = b.tensor(&f32s([64, 64], 3));
    let v = b.tensor(&f32s([64, 32], 4));
    let y = b.matmul(x, w).and_then(|y| b.matmul(y, v)).unwrap();
    b.output("y", y);
    let graph = b.finish();
    let whole = Session::new().import_graph(&graph).library(Target::host()).unwrap();
    let inputs: Vec<&str> = whole.interface.inputs.iter().map(|port| &*port.name).collect();
    assert_eq!(inputs, ["x"]);
    let given = [("x", f32s([2, 64], 1))];
    let found = whole.runner().unwrap().run([("x".into(), given[0].1.clone())].into());
    assert_eq!(found.unwrap(), run(&compile(&graph), &given).unwrap());
}

#[test]
fn outputs_may_be_inputs_constants_and_each_other() {
    let mut b = Builder::new();
    let x = b.input("x", matrix([2, 3]));
    b.input("unused", matrix([5, 5]));
    let c = b.tensor(&f32s([3], 5));
    let y = b.binary(Binary::Add, x, c).unwrap();
    let large = b.tensor(&f32s([32, 32], 7));
    for (name, value) in [("x again", x), ("c", c), ("y", y), ("y again", y), ("large", large)] {
        b.output(name, value);
    }
    agree(&b.finish(), &[("x", f32s([2, 3], 1)), ("unused", f32s([5, 5], 2))]);
}

#[test]
fn scalars_and_nothing() {
    let mut b = Builder::new();
    let x = b.input("x", scalar(DType::F32));
    let empty = b.input("empty", TensorType::new(DType::F32, [0, 3]).into());
    let y = b.unary(Unary::Exp, x).unwrap();
    let sum = b.reduce(Reduction::Sum, empty, &[0], false).unwrap();
    let none = b.unary(Unary::Relu, empty).unwrap();
    b.output("y", y);
    b.output("sum", sum);
    b.output("none", none);
    agree(&b.finish(), &[("x", f32s([], 1)), ("empty", f32s([0, 3], 2))]);
}

/// A choice between `x + 1` and `x * x`, both of which write their result in place.
fn choice(builder: &mut Builder, condition: ValueId, x: ValueId) -> ValueId {
    let ty = builder.ty(x).clone();
    let side = |function: Binary, prefix: &str| {
        let mut b = Builder::nested(prefix);
        let x = b.input("x", ty.clone());
        let other = if function == Binary::Add { b.scalar(1.0, DType::F32).unwrap() } else { x };
        let y = b.binary(function, x, other).unwrap();
        b.output("y", y);
        Box::new(b.finish())
    };
    let kind = NodeKind::If { then: side(Binary::Add, "t"), otherwise: side(Binary::Mul, "e") };
    builder.region(kind, &[condition, x], [ty.clone()]).unwrap()[0]
}

#[test]
fn a_choice() {
    let mut b = Builder::new();
    let condition = b.input("c", scalar(DType::Bool));
    let x = b.input("x", matrix([3, 5]));
    let y = choice(&mut b, condition, x);
    let z = b.unary(Unary::Neg, y).unwrap();
    b.output("y", y);
    b.output("z", z);
    let graph = b.finish();
    for side in [true, false] {
        agree(&graph, &[("c", truth(side)), ("x", f32s([3, 5], 1))]);
    }
}

#[test]
fn calls_of_one_function() {
    let body = {
        let mut b = Builder::nested("f");
        let x = b.input("x", matrix([3, 5]));
        let w = b.input("w", matrix([5, 5]));
        let y = b.matmul(x, w).unwrap();
        let y = b.unary(Unary::Tanh, y).unwrap();
        b.output("y", y);
        Arc::new(b.finish())
    };
    let mut b = Builder::new();
    let x = b.input("x", matrix([3, 5]));
    let w = b.input("w", matrix([5, 5]));
    let mut y = x;
    for _ in 0..3 {
        let kind = NodeKind::Call { name: "layer".into(), body: body.clone() };
        y = b.region(kind, &[y, w], [matrix([3, 5])]).unwrap()[0];
    }
    b.output("y", y);
    let graph = b.finish();
    agree(&graph, &[("x", f32s([3, 5], 1)), ("w", f32s([5, 5], 2))]);
    let text = Session::new().import_graph(&graph).stage("tensor", Target::host()).unwrap();
    assert_eq!(text.matches("tl.call").count(), 3, "{text}");
    assert_eq!(text.matches("func.func").count(), 2, "{text}");
}

#[test]
fn a_value_after_others() {
    let mut b = Builder::new();
    let x = b.input("x", matrix([3, 5]));
    let unused = b.unary(Unary::Exp, x).unwrap();
    let y = b.after(x, &[unused]);
    let y = b.unary(Unary::Neg, y).unwrap();
    b.output("y", y);
    agree(&b.finish(), &[("x", f32s([3, 5], 1))]);
}

/// A loop over a state: `s = choice(i < 2, tanh(s)) + w`, which also collects the states.
fn recurrence(trips: Option<i64>) -> Graph {
    let state = matrix([2, 4]);
    let mut body = Builder::nested("l");
    let index = body.input("i", scalar(DType::I64));
    let s = body.input("s", state.clone());
    let w = body.input("w", state.clone());
    let two = body.scalar(2.0, DType::I64).unwrap();
    let early = body.compare(Comparison::Lt, index, two).unwrap();
    let t = body.unary(Unary::Tanh, s).unwrap();
    let t = choice(&mut body, early, t);
    let next = body.binary(Binary::Add, t, w).unwrap();
    let go_on = body.fill(1.0, &[], DType::Bool).unwrap();
    body.output("go on", go_on);
    body.output("s", next);
    body.output("trace", next);
    let kind = NodeKind::Loop { body: Box::new(body.finish()), carried: 1 };
    let mut b = Builder::new();
    let count = match trips {
        Some(trips) => b.scalar(trips as f64, DType::I64).unwrap(),
        None => b.input("trips", scalar(DType::I64)),
    };
    let start = b.fill(1.0, &[], DType::Bool).unwrap();
    let s = b.input("s", state.clone());
    let w = b.input("w", state.clone());
    let length = trips.map_or_else(|| Dim::symbol("length"), Dim::Known);
    let sequence = Type::new(DType::F32, [length, 2.into(), 4.into()]);
    let results = b.region(kind, &[count, start, s, w], [state, sequence]).unwrap();
    b.output("last", results[0]);
    b.output("trace", results[1]);
    b.finish()
}

#[test]
fn a_loop_of_known_length() {
    for trips in [0, 1, 2, 5] {
        let graph = recurrence(Some(trips));
        agree(&graph, &[("s", f32s([2, 4], 1)), ("w", f32s([2, 4], 2))]);
    }
}

#[test]
fn a_loop_whose_length_is_an_input() {
    let graph = recurrence(None);
    for trips in [0, 1, 2, 3, 9] {
        let inputs =
            [("trips", i64s([], &[trips])), ("s", f32s([2, 4], 1)), ("w", f32s([2, 4], 2))];
        agree(&graph, &inputs);
    }
}

#[test]
fn sizes_that_are_symbols() {
    let n = || Dim::symbol("N");
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [n(), 4.into()]));
    let y = b.input("y", Type::new(DType::F32, [n(), 4.into()]));
    let sum = b.binary(Binary::Add, x, y).unwrap();
    let w = b.tensor(&f32s([4, 6], 3));
    let product = b.matmul(sum, w).unwrap();
    let total = b.reduce(Reduction::Sum, product, &[0], false).unwrap();
    let flat = b.reshape(product, &[n() * 6.into()]).unwrap();
    b.output("product", product);
    b.output("total", total);
    b.output("flat", flat);
    let graph = b.finish();
    for size in [1, 3, 17, 0] {
        agree(&graph, &[("x", f32s([size, 4], 1)), ("y", f32s([size, 4], 2))]);
    }
}

#[test]
fn a_check_that_fails_says_both_sizes() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [Dim::symbol("N")]));
    let y = b.input("y", Type::new(DType::F32, [Dim::symbol("M")]));
    b.require(&Dim::symbol("N"), Relation::AtMost, &Dim::symbol("M"), "expected few").unwrap();
    let x = b.unary(Unary::Neg, x).unwrap();
    b.output("x", x);
    b.output("y", y);
    let graph = b.finish();
    agree(&graph, &[("x", f32s([2], 1)), ("y", f32s([3], 2))]);
    let compiled = compile(&graph);
    let error = support::graphs::run(&compiled, &[("x", f32s([4], 1)), ("y", f32s([3], 2))]);
    assert_eq!(error.unwrap_err().to_string(), "expected few: found 4 and 3");
}

#[test]
fn an_input_of_another_size_is_rejected() {
    let mut b = Builder::new();
    let ty = || Type::new(DType::F32, [Dim::symbol("N")]);
    let (x, y) = (b.input("x", ty()), b.input("y", ty()));
    let sum = b.binary(Binary::Add, x, y).unwrap();
    b.output("sum", sum);
    let compiled = compile(&b.finish());
    let error = support::graphs::run(&compiled, &[("x", f32s([2], 1)), ("y", f32s([3], 2))]);
    let expected =
        "input 'y': expected N = 2 along dimension 0, as dimension 0 of input 'x' is N; found 3";
    assert_eq!(error.unwrap_err().to_string(), expected);
}

#[test]
fn sizes_that_depend_on_data() {
    let mut b = Builder::new();
    let shape = b.input("shape", TensorType::new(DType::I64, [2]).into());
    let x = b.input("x", TensorType::new(DType::F32, [1]).into());
    let dims = b.elements_or_symbols(shape).unwrap();
    let wide = b.broadcast(x, &dims).unwrap();
    let y = b.unary(Unary::Exp, wide).unwrap();
    b.output("y", y);
    let graph = b.finish();
    for shape in [[2, 3], [1, 1], [0, 4], [7, 9]] {
        agree(&graph, &[("shape", i64s([2], &shape)), ("x", f32s([1], 1))]);
    }
}

/// A loop whose state grows: it is joined with itself.
#[test]
fn a_carried_value_may_grow() {
    let mut body = Builder::nested("l");
    body.input("i", scalar(DType::I64));
    let n = Dim::symbol("lN");
    let s = body.input("s", Type::new(DType::F32, [n.clone()]));
    let twice = body.broadcast(s, &[2.into(), n.clone()]).unwrap();
    let flat = body.reshape(twice, &[n * 2.into()]).unwrap();
    let next = body.unary(Unary::Neg, flat).unwrap();
    let go_on = body.fill(1.0, &[], DType::Bool).unwrap();
    body.output("go on", go_on);
    body.output("s", next);
    let kind = NodeKind::Loop { body: Box::new(body.finish()), carried: 1 };
    let mut b = Builder::new();
    let trips = b.input("trips", scalar(DType::I64));
    let start = b.fill(1.0, &[], DType::Bool).unwrap();
    let s = b.input("s", TensorType::new(DType::F32, [3]).into());
    let results =
        b.region(kind, &[trips, start, s], [Type::new(DType::F32, [Dim::symbol("M")])]).unwrap();
    b.output("s", results[0]);
    let graph = b.finish();
    for trips in [0, 1, 4] {
        agree(&graph, &[("trips", i64s([], &[trips])), ("s", f32s([3], 1))]);
    }
}

#[test]
fn a_constant_in_a_branch() {
    let mut b = Builder::new();
    let condition = b.input("c", scalar(DType::Bool));
    let side = |seed| {
        let mut b = Builder::nested("t");
        let large = b.constant(Constant::of(&f32s([32, 32], seed)));
        b.output("y", large);
        Box::new(b.finish())
    };
    let kind = NodeKind::If { then: side(1), otherwise: side(2) };
    let y = b.region(kind, &[condition], [matrix([32, 32])]).unwrap()[0];
    b.output("y", y);
    let graph = b.finish();
    for side in [true, false] {
        agree(&graph, &[("c", truth(side))]);
    }
}

#[test]
fn many_graphs_in_one_library() {
    let small = |function| {
        let mut b = Builder::new();
        let x = b.input("x", matrix([2, 3]));
        let y = b.unary(function, x).unwrap();
        b.output("y", y);
        b.finish()
    };
    let functions = [Unary::Exp, Unary::Relu, Unary::Exp, Unary::Neg];
    let graphs: Vec<Graph> = functions.into_iter().map(small).collect();
    support::graphs::agree_together(&graphs, &[("x", f32s([2, 3], 1))]);
}

/// Editing a node compiles the kernel it is in, and the function that calls the kernels.
#[test]
fn equal_kernels_of_another_graph_are_remembered() {
    let chain = |function| {
        let mut b = Builder::new();
        let x = b.input("x", matrix([4, 8]));
        let w = b.tensor(&f32s([8, 8], 3));
        let product = b.matmul(x, w).unwrap();
        let y = b.transpose(product, &[1, 0]).unwrap();
        let y = b.reduce(Reduction::Sum, y, &[1], false).unwrap();
        let z = b.unary(function, x).unwrap();
        b.output("y", y);
        b.output("z", z);
        b.finish()
    };
    let session = irc::Session::new();
    let options = irc::CompileOptions::default();
    let kernels = || {
        let executed = session.take_executed();
        executed.iter().filter(|query| *query == "kernel_object").count()
    };
    session.import_graph(&chain(Unary::Exp)).library(&options).unwrap();
    assert!(kernels() >= 2);
    session.import_graph(&chain(Unary::Neg)).library(&options).unwrap();
    assert_eq!(kernels(), 1);
    session.import_graph(&chain(Unary::Exp)).library(&options).unwrap();
    assert_eq!(kernels(), 0);
}

#[test]
fn a_graph_is_the_same_library_each_time() {
    let library = || compile(&recurrence(None)).library.clone();
    assert!(library() == library());
}

#[test]
fn every_stage_can_be_seen() {
    let session = irc::Session::new();
    let options = irc::CompileOptions::default();
    let graph = recurrence(None);
    let expected = [
        ("import", "tl.loop"),
        ("fuse", "tl.group"),
        ("kernels", "tl.launch"),
        ("memory", "scf.while"),
        ("llvm", "llvm.func @irc_run_sized"),
    ];
    for (stage, op) in expected {
        let text = session.import_graph(&graph).stage(stage, &options).unwrap();
        assert!(text.contains(op), "{stage}: {text}");
    }
    let object = session.import_graph(&graph).emit(irc::codegen::Output::Object, &options).unwrap();
    assert!(object.starts_with(b"\x7fELF"));
}

#[test]
fn nodes_keep_what_they_stand_for() {
    let mut b = Builder::new();
    let x = b.input("x", matrix([2, 3]));
    b.set_origin(Some("graph.node[7] 'scale'".into()));
    let y = b.unary(Unary::Exp, x).unwrap();
    b.output("y", y);
    let options = irc::CompileOptions::default();
    let text = irc::Session::new().import_graph(&b.finish()).stage("kernels", &options).unwrap();
    assert!(text.contains("loc(\"graph.node[7] 'scale'\")"), "{text}");
}

#[test]
fn a_runner_takes_tensors_in_order() {
    let mut b = Builder::new();
    let x = b.input("x", matrix([2, 3]));
    let w = b.tensor(&f32s([32, 32], 3));
    let y = b.unary(Unary::Exp, x).unwrap();
    b.output("w", w);
    b.output("y", y);
    let mut runner = compile(&b.finish()).runner().unwrap();
    let names: Vec<_> = runner.inputs().map(|port| port.name.clone()).collect();
    assert_eq!(names, ["x"]);
    let x = f32s([2, 3], 1);
    let mut outputs = vec![f32s([32, 32], 0), f32s([2, 3], 0)];
    let places: Vec<_> = outputs.iter().map(|tensor| tensor.bytes().as_ptr()).collect();
    runner.run_with(&[&x], &mut outputs).unwrap();
    assert_eq!(outputs[0].to_f64(), f32s([32, 32], 3).to_f64());
    assert_eq!(outputs.iter().map(|tensor| tensor.bytes().as_ptr()).collect::<Vec<_>>(), places);
}
