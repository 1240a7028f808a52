//! Control flow over sizes that depend on symbols, compiled and run, against evaluation.
use crate::support::graphs::{agree, compile, compile_for, f32s, i64s, run, same, truth};
use crate::support::levels::levels;
use irc::{Target, codegen::Backend};
use irc_tl::{
    Algorithm, Binary, Builder, Combine, Comparison, Compute, DType, Dim, Graph, NodeKind,
};
use irc_tl::{Reduction, Relation, Scalar, SymbolSource, TensorType, Type, Unary, ValueId};
use std::sync::Arc;

fn n() -> Dim {
    Dim::symbol("N")
}

fn row(dim: Dim) -> Type {
    Type::new(DType::F32, [dim])
}

fn scalar(dtype: DType) -> Type {
    Type::new(dtype, [])
}

/// A graph of one input that is given to `write` with the builder.
fn nested(
    prefix: &str,
    inputs: &[Type],
    write: impl FnOnce(&mut Builder, &[ValueId]) -> Vec<ValueId>,
) -> Box<Graph> {
    let mut b = Builder::nested(prefix);
    let inputs: Vec<ValueId> = inputs
        .iter()
        .enumerate()
        .map(|(index, ty)| b.input(format!("{prefix}{index}"), ty.clone()))
        .collect();
    for (index, value) in write(&mut b, &inputs).into_iter().enumerate() {
        b.output(format!("{prefix}out{index}"), value);
    }
    Box::new(b.finish())
}

fn yes(b: &mut Builder) -> ValueId {
    b.fill(1.0, &[], DType::Bool).unwrap()
}

/// The first `count` elements.
fn head(b: &mut Builder, x: ValueId, count: Dim) -> ValueId {
    let body = Scalar::load(0, [Scalar::Loop(0)]);
    b.compute(Compute::map([count], body), &[x]).unwrap()
}

#[test]
fn calls_whose_results_have_sizes_of_their_own() {
    let body = nested("f", &[row(n()), scalar(DType::I64)], |b, inputs| {
        let count = b.elements_or_symbols(inputs[1]).unwrap().remove(0);
        let head = head(b, inputs[0], count);
        let twice = b.binary(Binary::Add, inputs[0], inputs[0]).unwrap();
        vec![head, twice]
    });
    let body = Arc::new(*body);
    let mut b = Builder::new();
    let x = b.input("x", row(n()));
    let count = b.input("count", scalar(DType::I64));
    let mut outputs = vec![];
    for _ in 0..2 {
        let kind = NodeKind::Call { name: "head".into(), body: body.clone() };
        let fresh = b.fresh_symbol();
        outputs.extend(b.region(kind, &[x, count], [row(fresh), row(n())]).unwrap());
    }
    for (index, value) in outputs.into_iter().enumerate() {
        b.output(format!("y{index}"), value);
    }
    let graph = b.finish();
    for size in [0, 3, 70] {
        agree(&graph, &[("x", f32s([size], 1)), ("count", i64s([], &[size / 2]))]);
    }
}

#[test]
fn outputs_may_be_inputs_constants_and_each_other() {
    let mut b = Builder::new();
    let x = b.input("x", row(n()));
    let c = b.tensor(&f32s([3], 5));
    let y = b.unary(Unary::Exp, x).unwrap();
    for (name, value) in [("x", x), ("c", c), ("y", y), ("y again", y)] {
        b.output(name, value);
    }
    let graph = b.finish();
    for size in [0, 1, 70] {
        agree(&graph, &[("x", f32s([size], 1))]);
    }
}

#[test]
fn an_output_may_be_a_view() {
    let mut b = Builder::new();
    let x = b.input("x", row(n()));
    let y = b.input("y", TensorType::new(DType::F32, [3, 1, 2]).into());
    let e = b.unary(Unary::Exp, y).unwrap();
    let flat = b.reshape(e, &[3.into(), 2.into()]).unwrap();
    b.output("flat", flat);
    b.output("x", x);
    agree(&b.finish(), &[("x", f32s([4], 1)), ("y", f32s([3, 1, 2], 2))]);
}

#[test]
fn a_choice_of_sizes_known_outside() {
    let mut b = Builder::new();
    let condition = b.input("c", scalar(DType::Bool));
    let x = b.input("x", row(n()));
    let then = nested("t", &[row(n())], |b, x| {
        let e = b.unary(Unary::Exp, x[0]).unwrap();
        vec![b.unary(Unary::Neg, e).unwrap()]
    });
    let otherwise = nested("e", &[row(n())], |_, x| vec![x[0]]);
    let kind = NodeKind::If { then, otherwise };
    let y = b.region(kind, &[condition, x], [row(n())]).unwrap()[0];
    let z = b.binary(Binary::Add, x, y).unwrap();
    b.output("y", y);
    b.output("z", z);
    let graph = b.finish();
    for (side, size) in [(true, 4), (false, 4), (true, 0), (false, 100)] {
        agree(&graph, &[("c", truth(side)), ("x", f32s([size], 1))]);
    }
}

#[test]
fn a_choice_of_two_shapes() {
    let mut b = Builder::new();
    let condition = b.input("c", scalar(DType::Bool));
    let (x, y) = (b.input("x", row(n())), b.input("y", row(Dim::symbol("M"))));
    let types = [row(n()), row(Dim::symbol("M"))];
    let then = nested("t", &types, |_, inputs| vec![inputs[0]]);
    let otherwise = nested("e", &types, |b, inputs| vec![b.unary(Unary::Exp, inputs[1]).unwrap()]);
    let kind = NodeKind::If { then, otherwise };
    let chosen = b.region(kind, &[condition, x, y], [row(Dim::symbol("C"))]).unwrap()[0];
    let sum = b.reduce(Reduction::Sum, chosen, &[0], true).unwrap();
    let scaled = b.binary(Binary::Sub, chosen, sum).unwrap();
    b.output("scaled", scaled);
    b.output("chosen", chosen);
    let mut graph = b.finish();
    let source = SymbolSource::Extent(chosen, 0);
    graph.symbols.push(irc_tl::Symbol { name: "C".into(), source });
    for side in [true, false] {
        let inputs = [("c", truth(side)), ("x", f32s([3], 1)), ("y", f32s([5], 2))];
        agree(&graph, &inputs);
    }
}

#[test]
fn a_choice_in_a_loop_over_a_symbol() {
    let state = row(n());
    let body = nested("l", &[scalar(DType::I64), state.clone(), state.clone()], |b, inputs| {
        let [index, s, w] = inputs else { unreachable!() };
        let one = b.scalar(1.0, DType::I64).unwrap();
        let odd = b.binary(Binary::And, *index, one).unwrap();
        let odd = b.cast(odd, DType::Bool).unwrap();
        let then = nested("lt", &[state.clone(), state.clone()], |b, inputs| {
            vec![b.binary(Binary::Add, inputs[0], inputs[1]).unwrap()]
        });
        let otherwise = nested("le", &[state.clone(), state.clone()], |b, inputs| {
            vec![b.binary(Binary::Mul, inputs[0], inputs[1]).unwrap()]
        });
        let kind = NodeKind::If { then, otherwise };
        let next = b.region(kind, &[odd, *s, *w], [state.clone()]).unwrap()[0];
        let total = b.reduce(Reduction::Max, next, &[0], false).unwrap();
        let limit = b.scalar(50.0, DType::F32).unwrap();
        let go_on = b.compare(Comparison::Lt, total, limit).unwrap();
        vec![go_on, next, next]
    });
    let mut b = Builder::new();
    let trips = b.input("trips", scalar(DType::I64));
    let (s, w) = (b.input("s", state.clone()), b.input("w", state.clone()));
    let start = yes(&mut b);
    let kind = NodeKind::Loop { body, carried: 1 };
    let sequence = Type::new(DType::F32, [Dim::symbol("T"), n()]);
    let results = b.region(kind, &[trips, start, s, w], [state, sequence]).unwrap();
    b.output("last", results[0]);
    b.output("all", results[1]);
    let graph = b.finish();
    for (trips, size) in [(0, 3), (1, 3), (6, 5), (i64::MAX, 4), (7, 1)] {
        let positive = |seed| {
            let mut tensor = f32s([size], seed);
            (0..size as usize).for_each(|at| tensor.set_f64(at, 2.0 + tensor.get_f64(at).abs()));
            tensor
        };
        agree(&graph, &[("trips", i64s([], &[trips])), ("s", positive(1)), ("w", positive(2))]);
    }
}

#[test]
fn a_loop_that_carries_what_it_was_given() {
    let body = nested("l", &[scalar(DType::I64), row(n()), row(n())], |b, inputs| {
        let go_on = yes(b);
        vec![go_on, inputs[2], inputs[1], inputs[1]]
    });
    let mut b = Builder::new();
    let trips = b.input("trips", scalar(DType::I64));
    let (x, y) = (b.input("x", row(n())), b.input("y", row(n())));
    let start = yes(&mut b);
    let kind = NodeKind::Loop { body, carried: 2 };
    let sequence = Type::new(DType::F32, [Dim::symbol("T"), n()]);
    let results = b.region(kind, &[trips, start, x, y], [row(n()), row(n()), sequence]).unwrap();
    for (index, result) in results.iter().enumerate() {
        b.output(format!("r{index}"), *result);
    }
    let graph = b.finish();
    for trips in [0, 1, 2, 3] {
        let inputs = [("trips", i64s([], &[trips])), ("x", f32s([4], 1)), ("y", f32s([4], 2))];
        agree(&graph, &inputs);
    }
}

#[test]
fn what_is_not_zero() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [n()]));
    let found = b.algorithm(Algorithm::NonZero, &[x]).unwrap();
    let count = b.elements_or_symbols(found[1]).unwrap()[0].clone();
    b.require(&count, Relation::AtMost, &Dim::Known(4), "expected few numbers").unwrap();
    let flat = b.reshape(found[0], &[n()]).unwrap();
    let body = Scalar::load(0, [Scalar::Loop(0)]);
    let indices = b.compute(Compute::map([count.clone()], body), &[flat]).unwrap();
    let picked = Scalar::load(0, [Scalar::load(1, [Scalar::Loop(0)])]);
    let picked = b.compute(Compute::map([count], picked), &[x, indices]).unwrap();
    b.output("indices", indices);
    b.output("picked", picked);
    let graph = b.finish();
    let given =
        |values: &[f32]| irc_tl::Tensor::from_values([values.len() as i64], values).unwrap();
    for values in [&[0.0, 5.0, 0.0, 7.0][..], &[0.0, 0.0], &[], &[1.0, 2.0, 3.0]] {
        agree(&graph, &[("x", given(values))]);
    }
    let error = run(&compile(&graph), &[("x", given(&[1.0; 6]))]).unwrap_err();
    assert_eq!(error.to_string(), "expected few numbers: found 6 and 4");
}

/// Each iteration makes a row as long as a number it reads; the rows have one length, or the loop
/// fails.
#[test]
fn elements_of_a_sequence_may_have_sizes_that_depend_on_data() {
    let lengths = Type::new(DType::I64, [3.into()]);
    let body = nested("l", &[scalar(DType::I64), row(8.into()), lengths.clone()], |b, inputs| {
        let [index, x, lengths] = inputs else { unreachable!() };
        let pick = Scalar::load(0, [Scalar::load(1, [])]);
        let length = b.compute(Compute::map([], pick), &[*lengths, *index]).unwrap();
        let length = b.elements_or_symbols(length).unwrap()[0].clone();
        let short = head(b, *x, length);
        let short = b.unary(Unary::Exp, short).unwrap();
        let go_on = yes(b);
        vec![go_on, short]
    });
    let mut b = Builder::new();
    let trips = b.input("trips", scalar(DType::I64));
    let (x, lengths) = (b.input("x", row(8.into())), b.input("lengths", lengths));
    let start = yes(&mut b);
    let kind = NodeKind::Loop { body, carried: 0 };
    let sequence = Type::new(DType::F32, [Dim::symbol("T"), Dim::symbol("L")]);
    let all = b.region(kind, &[trips, start, x, lengths], [sequence]).unwrap()[0];
    b.output("all", all);
    let graph = b.finish();
    let inputs = |trips, lengths: [i64; 3]| {
        [("trips", i64s([], &[trips])), ("x", f32s([8], 1)), ("lengths", i64s([3], &lengths))]
    };
    for trips in 1..=3 {
        agree(&graph, &inputs(trips, [5, 5, 5]));
    }
    let error = run(&compile(&graph), &inputs(3, [5, 5, 4])).unwrap_err();
    let expected = "loop: expected elements of one shape in a sequence: found 5 and 4";
    assert_eq!(error.to_string(), expected);
}

/// A model may state how many elements a loop gives; another number ends the program.
#[test]
fn the_length_of_a_sequence_may_be_stated() {
    let body = nested("l", &[scalar(DType::I64), row(4.into())], |b, inputs| {
        vec![yes(b), b.unary(Unary::Neg, inputs[1]).unwrap()]
    });
    let mut b = Builder::new();
    let trips = b.input("trips", scalar(DType::I64));
    let x = b.input("x", row(4.into()));
    let start = yes(&mut b);
    let kind = NodeKind::Loop { body, carried: 0 };
    let length = b.fresh_symbol();
    let sequence = Type::new(DType::F32, [length, 4.into()]);
    let all = b.region(kind, &[trips, start, x], [sequence]).unwrap()[0];
    let three = b.assume(all, 0, 3, "expected three rows").unwrap();
    assert_eq!(b.ty(three).known(), Some(TensorType::new(DType::F32, [3, 4])));
    let sum = b.reduce(Reduction::Sum, three, &[0], false).unwrap();
    b.output("all", three);
    b.output("sum", sum);
    let graph = b.finish();
    let inputs = |trips| [("trips", i64s([], &[trips])), ("x", f32s([4], 1))];
    agree(&graph, &inputs(3));
    for trips in [0, 2, 200] {
        let error = run(&compile(&graph), &inputs(trips)).unwrap_err();
        assert_eq!(error.to_string(), format!("expected three rows: found {trips} and 3"));
    }
}

#[test]
fn a_check_may_fail_inside() {
    let body = nested("l", &[scalar(DType::I64), row(n())], |b, inputs| {
        let at = b.elements_or_symbols(inputs[0]).unwrap()[0].clone();
        b.require(&at, Relation::AtMost, &Dim::Known(2), "expected few iterations").unwrap();
        let go_on = yes(b);
        vec![go_on, b.unary(Unary::Neg, inputs[1]).unwrap()]
    });
    let mut b = Builder::new();
    let trips = b.input("trips", scalar(DType::I64));
    let x = b.input("x", row(n()));
    let start = yes(&mut b);
    let kind = NodeKind::Loop { body, carried: 1 };
    let y = b.region(kind, &[trips, start, x], [row(n())]).unwrap()[0];
    b.output("y", y);
    let graph = b.finish();
    agree(&graph, &[("trips", i64s([], &[3])), ("x", f32s([4], 1))]);
    let error = run(&compile(&graph), &[("trips", i64s([], &[9])), ("x", f32s([4], 1))]);
    assert_eq!(error.unwrap_err().to_string(), "expected few iterations: found 3 and 2");
}

#[test]
fn a_loop_in_a_loop() {
    let inner = |prefix: &str| {
        nested(prefix, &[scalar(DType::I64), row(n()), row(n())], |b, inputs| {
            let go_on = yes(b);
            let half = b.scalar(0.5, DType::F32).unwrap();
            let half = b.binary(Binary::Mul, inputs[1], half).unwrap();
            vec![go_on, b.binary(Binary::Add, half, inputs[2]).unwrap()]
        })
    };
    let body = nested("o", &[scalar(DType::I64), row(n()), row(n())], |b, inputs| {
        let (go_on, start) = (yes(b), yes(b));
        let kind = NodeKind::Loop { body: inner("i"), carried: 1 };
        let next =
            b.region(kind, &[inputs[0], start, inputs[1], inputs[2]], [row(n())]).unwrap()[0];
        let total = b.reduce(Reduction::Sum, next, &[0], false).unwrap();
        vec![go_on, next, total]
    });
    let mut b = Builder::new();
    let trips = b.scalar(5.0, DType::I64).unwrap();
    let (x, w) = (b.input("x", row(n())), b.input("w", row(n())));
    let start = yes(&mut b);
    let kind = NodeKind::Loop { body, carried: 1 };
    let totals = Type::new(DType::F32, [5.into()]);
    let results = b.region(kind, &[trips, start, x, w], [row(n()), totals]).unwrap();
    b.output("x", results[0]);
    b.output("totals", results[1]);
    let graph = b.finish();
    for size in [1, 6, 33] {
        agree(&graph, &[("x", f32s([size], 1)), ("w", f32s([size], 2))]);
    }
}

#[test]
fn weights_are_captured_by_what_is_inside() {
    let ty = || Type::new(DType::F32, [n(), 32.into()]);
    let body = nested("l", &[scalar(DType::I64), ty()], |b, inputs| {
        let w = b.tensor(&f32s([32, 32], 9));
        let product = b.matmul(inputs[1], w).unwrap();
        let go_on = yes(b);
        vec![go_on, b.unary(Unary::Tanh, product).unwrap()]
    });
    let mut b = Builder::new();
    let trips = b.input("trips", scalar(DType::I64));
    let x = b.input("x", ty());
    let start = yes(&mut b);
    let kind = NodeKind::Loop { body, carried: 1 };
    let y = b.region(kind, &[trips, start, x], [ty()]).unwrap()[0];
    b.output("y", y);
    let graph = b.finish();
    assert_eq!(compile(&graph).constants.len(), 1);
    for trips in [0, 3] {
        agree(&graph, &[("trips", i64s([], &[trips])), ("x", f32s([5, 32], 1))]);
    }
}

#[test]
fn an_input_of_fixed_size_is_checked_too() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [n(), 4.into()]));
    let y = b.input("y", TensorType::new(DType::F32, [2]).into());
    b.output("x", x);
    b.output("y", y);
    let compiled = compile(&b.finish());
    let error = run(&compiled, &[("x", f32s([2, 4], 1)), ("y", f32s([3], 2))]).unwrap_err();
    assert_eq!(error.to_string(), "input 'y': expected f32[2], found f32[3]");
}

#[test]
fn a_size_that_divides_by_zero_is_rejected() {
    let mut b = Builder::new();
    let x = b.input("x", row(n()));
    let m = b.input("m", row(Dim::symbol("M")));
    let y = head(&mut b, x, n().floor_div(&Dim::symbol("M")));
    b.output("y", y);
    b.output("m", m);
    let graph = b.finish();
    agree(&graph, &[("x", f32s([7], 1)), ("m", f32s([2], 2))]);
    let error = run(&compile(&graph), &[("x", f32s([7], 1)), ("m", f32s([0], 2))]).unwrap_err();
    let expected = "the size floordiv(N, M) cannot be computed: found 1 and 0";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn names_of_sizes_may_be_any_text() {
    let mut b = Builder::new();
    let size = Dim::symbol("batch size, \"é\" * 2\\");
    let x = b.input("the 'input'", Type::new(DType::F32, [size.clone(), 3.into()]));
    let y = b.unary(Unary::Neg, x).unwrap();
    let flat = b.reshape(y, &[size * 3.into()]).unwrap();
    b.output("flat \"y\"", flat);
    agree(&b.finish(), &[("the 'input'", f32s([4, 3], 1))]);
}

/// What a graph says when it runs on inputs, compiled by both code generators.
fn rejected(graph: &Graph, inputs: &[(&str, irc_tl::Tensor)]) -> String {
    let errors = [Backend::LLVM, Backend::QUICK].map(|backend| {
        let compiled = compile_for(graph, Target::host().with_backend(backend));
        run(&compiled, inputs).unwrap_err().to_string()
    });
    assert_eq!(errors[0], errors[1]);
    errors[0].clone()
}

/// A tensor of ones whose two extents are the elements of `shape`.
fn ones() -> Graph {
    let mut b = Builder::new();
    let shape = b.input("shape", TensorType::new(DType::I64, [2]).into());
    b.set_origin(Some("graph.node[3]: Expand 'e'".into()));
    let dims = b.elements_or_symbols(shape).unwrap();
    let y = b.fill(1.0, &dims, DType::F32).unwrap();
    b.output("y", y);
    b.finish()
}

#[test]
fn a_negative_size_is_an_error_at_its_node() {
    let inputs = [("shape", i64s([2], &[3, -2]))];
    let found = rejected(&ones(), &inputs);
    let expected = "graph.node[3]: Expand 'e': expected dimension 1 of f32[s0,s1] not to be \
                    negative: found 0 and -2";
    assert_eq!(found, expected);
    let inputs = inputs.into_iter().map(|(name, tensor)| (name.to_owned(), tensor)).collect();
    assert_eq!(ones().eval(&inputs).unwrap_err().to_string(), expected);
    agree(&ones(), &[("shape", i64s([2], &[3, 0]))]);
}

#[test]
fn a_computed_size_that_no_memory_has_is_an_error_at_its_node() {
    for extents in [[1 << 40, 1 << 40], [1 << 31, 1 << 31], [1 << 62, 4]] {
        let inputs = [("shape", i64s([2], &extents))];
        let found = rejected(&ones(), &inputs);
        assert!(
            found.starts_with("graph.node[3]: Expand 'e': expected as many elements"),
            "{found}"
        );
        let inputs = inputs.into_iter().map(|(name, tensor)| (name.to_owned(), tensor)).collect();
        assert_eq!(ones().eval(&inputs).unwrap_err().to_string(), found);
    }
}

#[test]
fn bytes_of_an_output_do_not_wrap_around() {
    let mut b = Builder::new();
    b.input("x", Type::new(DType::F32, [n(), 0.into()]));
    let y = b.fill(1.0, &[n(), 4.into()], DType::F32).unwrap();
    b.output("y", y);
    // 2^64 bytes, 0 in 64 bits.
    let found = rejected(&b.finish(), &[("x", f32s([1 << 60, 0], 1))]);
    assert!(found.starts_with("output 'y': expected memory for the bytes of f32[N,4]"), "{found}");
}

#[test]
fn bytes_of_intermediate_values_do_not_wrap_around() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [n(), 0.into()]));
    let w = b.input("w", TensorType::new(DType::F32, [0, 8]).into());
    let v = b.input("v", TensorType::new(DType::F32, [8, 0]).into());
    b.set_origin(Some("graph.node[0]: MatMul 'wide'".into()));
    let wide = b.matmul(x, w).unwrap();
    b.set_origin(None);
    let y = b.matmul(wide, v).unwrap();
    b.output("y", y);
    let graph = b.finish();
    let given = |size| [("x", f32s([size, 0], 1)), ("w", f32s([0, 8], 2)), ("v", f32s([8, 0], 3))];
    agree(&graph, &given(3));
    // 2^64 bytes, 0 in 64 bits.
    let found = rejected(&graph, &given(1 << 59));
    let expected = "graph.node[0]: MatMul 'wide': expected memory for the bytes of f32[N,8]: \
                    4611686018427387904 bytes could not be allocated";
    assert_eq!(found, expected);
}

#[test]
fn a_size_that_overflows_is_an_error() {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [n(), 0.into()]));
    let y = b.input("y", Type::new(DType::F32, [Dim::symbol("M"), 0.into()]));
    let flat = b.fill(1.0, &[n() * Dim::symbol("M")], DType::U8).unwrap();
    b.output("flat", flat);
    b.output("x", x);
    b.output("y", y);
    let graph = b.finish();
    agree(&graph, &[("x", f32s([3, 0], 1)), ("y", f32s([2, 0], 1))]);
    let found = rejected(&graph, &[("x", f32s([1 << 32, 0], 1)), ("y", f32s([1 << 32, 0], 1))]);
    assert!(found.starts_with("the size M*N cannot be computed"), "{found}");
}

/// LLVM 22 computes it for the first element of a vector only, if a condition guards it there.
#[test]
fn a_quotient_that_does_not_depend_on_the_innermost_loop_is_that_of_each_element() {
    let (c, w) = (Dim::symbol("C"), Dim::symbol("W"));
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [c.clone(), w.clone()]));
    let taps = b.input("taps", TensorType::new(DType::F32, [3]).into());
    let (channel, column, tap) = (Scalar::Loop(0), Scalar::Loop(1), Scalar::Loop(2));
    let at = column.binary(Binary::Add, tap.clone()).binary(Binary::Sub, Scalar::index(1));
    let inside = at.clone().ge(Scalar::index(0)).and(at.clone().lt(Scalar::Size(w.clone())));
    let group = channel.binary(Binary::Div, Scalar::Size(c.clone()));
    let product = Scalar::load(0, [group, at]).binary(Binary::Mul, Scalar::load(1, [tap]));
    let body = inside.select(product, Scalar::float(0.0, DType::F32));
    let sum = Compute::reduce([c, w], Combine::Sum, [3.into()], body);
    let y = b.compute(sum, &[x, taps]).unwrap();
    b.output("y", y);
    let graph = b.finish();
    for width in [1, 8, 70] {
        let given = [("x", f32s([2, width], 1)), ("taps", f32s([3], 2))];
        for target in levels() {
            same(&graph, &given, &run(&compile_for(&graph, target), &given).unwrap());
        }
    }
}
