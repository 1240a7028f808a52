//! Strings in compiled programs, against evaluation.
use crate::support::graphs::{agree, compile, compile_for, run, truth};
use irc::{Target, codegen::Backend};
use irc_tensor::Tensor;
use irc_tl::{Builder, Comparison, Compute, DType, Dim, Graph, NodeKind, Scalar, Type, ValueId};

fn words(words: &[&str]) -> Tensor {
    Tensor::from_strings([words.len() as i64], words).unwrap()
}

fn row(dim: impl Into<Dim>) -> Type {
    Type::new(DType::String, [dim.into()])
}

/// `other` where the words are one of two, and whether they are the same at each place.
fn replaced(b: &mut Builder, x: ValueId, other: ValueId) -> [ValueId; 2] {
    let known = b.strings(&["b", "a"]).unwrap();
    let (word, index) = (Scalar::load(0, [Scalar::Loop(0)]), Scalar::index);
    let is = |at| word.clone().equals(Scalar::load(1, [index(at)]));
    let body = is(0).select(Scalar::load(2, [Scalar::Loop(0)]), word.clone());
    let body = is(1).select(Scalar::load(2, [Scalar::Loop(0)]), body);
    let dims = b.dims(x);
    let replaced = b.compute(Compute::map(dims, body), &[x, known, other]).unwrap();
    [replaced, b.compare(Comparison::Eq, x, other).unwrap()]
}

fn graph(dim: &Dim) -> Graph {
    let mut b = Builder::new();
    let x = b.input("x", row(dim.clone()));
    let other = b.input("other", row(dim.clone()));
    let [replaced, same] = replaced(&mut b, x, other);
    b.output("replaced", replaced);
    b.output("same", same);
    let constant = b.strings(&["new", "b"]).unwrap();
    b.output("constant", constant);
    b.finish()
}

#[test]
fn strings_of_constants_and_inputs_are_equal_if_their_characters_are() {
    let inputs = [("x", words(&["a", "c", "", "new"])), ("other", words(&["a", "y", "", "x"]))];
    for dim in [Dim::Known(4), Dim::symbol("N")] {
        let graph = graph(&dim);
        agree(&graph, &inputs);
        for backend in [Backend::LLVM, Backend::QUICK] {
            let compiled = compile_for(&graph, Target { backend, ..Target::host() });
            assert_eq!(compiled.interface.strings, ["b", "a", "new"]);
            let found = run(&compiled, &inputs).unwrap();
            assert_eq!(found["replaced"], words(&["a", "c", "", "new"]));
            assert_eq!(found["constant"], words(&["new", "b"]));
        }
    }
}

#[test]
fn a_run_keeps_no_strings_of_another() {
    let graph = graph(&Dim::symbol("N"));
    let mut runner = compile(&graph).runner().unwrap();
    for word in ["first", "second", "a"] {
        let inputs = [("x", words(&[word])), ("other", words(&["z"]))];
        let inputs = inputs.map(|(name, tensor)| (name.to_owned(), tensor));
        let found = runner.run(inputs.into()).unwrap();
        let expected = if word == "a" { "z" } else { word };
        assert_eq!(found["replaced"], words(&[expected]));
    }
}

#[test]
fn inputs_that_are_not_given_are_empty() {
    let found = run(&compile(&graph(&Dim::Known(2))), &[]).unwrap();
    assert_eq!(found["replaced"], words(&["", ""]));
    assert_eq!(found["same"].to_f64(), [1.0, 1.0]);
}

#[test]
fn branches_choose_strings() {
    let mut b = Builder::new();
    let condition = b.input("condition", Type::new(DType::Bool, []));
    let x = b.input("x", row(2));
    let [then, otherwise] = ["then", "otherwise"].map(|own| {
        let mut inner = b.inside();
        let (x, _) = inner.capture(&b, x, "x");
        let own = inner.strings(&[own, "both"]).unwrap();
        let [replaced, _] = replaced(&mut inner, x, own);
        inner.output("y", replaced);
        Box::new(inner.finish())
    });
    assert!(then.strings.is_empty());
    let kind = NodeKind::If { then, otherwise };
    let chosen = b.region(kind, &[condition, x], [row(2)]).unwrap();
    b.output("chosen", chosen[0]);
    let graph = b.finish();
    let x = || words(&["a", "other"]);
    for value in [true, false] {
        agree(&graph, &[("condition", truth(value)), ("x", x())]);
    }
    let found = run(&compile(&graph), &[("condition", truth(false)), ("x", x())]).unwrap();
    assert_eq!(found["chosen"], words(&["otherwise", "other"]));
}
