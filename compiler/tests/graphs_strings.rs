//! Strings and images in compiled programs, against evaluation.
use crate::support::graphs::{agree, compile, compile_for, run, truth};
use irc::{ArchiveOptions, Session, Target, codegen::Backend};
use irc_tensor::Tensor;
use irc_tl::{
    Builder, Comparison, Compute, DType, Dim, Function, Graph, NodeKind, PixelFormat, Scalar,
    Separator, Splitter, Type, ValueId,
};

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

#[test]
fn hosts_apply_functions_of_strings() {
    for dim in [Dim::Known(3), Dim::symbol("N")] {
        let mut b = Builder::new();
        let x = b.input("x", row(dim.clone()));
        let comma = b.strings(&[","]).unwrap();
        let joined = b.host(Function::Concat, &[x, comma]).unwrap();
        let joined = b.host(Function::Concat, &[joined, x]).unwrap();
        b.output("joined", joined);
        let separator = Separator { delimiter: b",".to_vec(), max_parts: None };
        let separator = Splitter::Delimiter(separator);
        let count = b.host(Function::CountParts(separator.clone()), &[joined]).unwrap();
        b.output("count", count);
        let second = b.scalar(1.0, DType::I64).unwrap();
        let part = b.host(Function::Part(separator), &[joined, second]).unwrap();
        b.output("part", part);
        let same = b.compare(Comparison::Eq, part, x).unwrap();
        b.output("same", same);
        let upper = b.host(Function::Upper, &[part]).unwrap();
        b.output("upper", upper);
        let arguments = ["tokens", "1", "[a-z]|[a-z]+"].map(str::to_owned);
        let token = Function::read("part", &arguments).unwrap();
        let token = b.host(token, &[joined, second]).unwrap();
        b.output("token", token);
        let matches = b.host(Function::matches("[a-z]+").unwrap(), &[x]).unwrap();
        b.output("matches", matches);
        let graph = b.finish();
        agree(&graph, &[("x", words(&["a", "", "long one"]))]);
        let compiled = compile(&graph);
        assert_eq!((compiled.interface.convention, compiled.interface.calls.len()), (2, 6));
    }
}

#[test]
fn a_string_that_is_no_number_ends_the_run() {
    let mut b = Builder::new();
    let x = b.input("x", row(2));
    let number = b.host(Function::Parse(DType::F32), &[x]).unwrap();
    let text = b.host(Function::Format(DType::F32), &[number]).unwrap();
    b.output("text", text);
    let graph = b.finish();
    agree(&graph, &[("x", words(&["0.10", "1e3 "]))]);
    let mut runner = compile(&graph).runner().unwrap();
    let mut run = |texts: &[&str]| runner.run([("x".to_owned(), words(texts))].into());
    let message = run(&["1", "one"]).unwrap_err().to_string();
    let expected = "expected a result of 'parse': the string \"one\" is not a number of type f32";
    assert_eq!(message, expected);
    assert_eq!(run(&["1", "2.50"]).unwrap()["text"], words(&["1", "2.5"]));
}

#[test]
fn hosts_decode_images() {
    let mut b = Builder::new();
    let file = b.input("file", Type::new(DType::U8, vec![Dim::symbol("N")]));
    let size = b.host(Function::ImageSize(PixelFormat::Bgr), &[file]).unwrap();
    let mut dims = b.elements_or_symbols(size).unwrap();
    dims.push(Dim::Known(3));
    let pixels = b.host_of(Function::Pixels(PixelFormat::Bgr), &[file], &dims).unwrap();
    b.output("pixels", pixels);
    let graph = b.finish();
    let file = |bytes: &[u8]| Tensor::from_values([bytes.len() as i64], bytes).unwrap();
    agree(&graph, &[("file", file(b"P6 1 2 255\nabcdef"))]);
    let mut runner = compile(&graph).runner().unwrap();
    let mut run = |bytes: &[u8]| runner.run([("file".to_owned(), file(bytes))].into());
    let found = run(b"P6 1 2 255\nabcdef").unwrap()["pixels"].clone();
    assert_eq!(found, Tensor::from_values([2, 1, 3], b"cbafed").unwrap());
    // What cannot be decoded is an empty image.
    assert_eq!(run(b"P6 1 2 255\nabc").unwrap()["pixels"].shape(), [0, 0, 3]);
    let message = run(b"P6 60000 60000 255\n").unwrap_err().to_string();
    let expected = "expected a result of 'image_size': expected an image of at most 67108864 pixels, \
                    found 60000x60000";
    assert_eq!(message, expected);
}

/// The strings of a loop are those of the program.
#[test]
fn loops_make_strings() {
    let mut b = Builder::new();
    let (trips, x) = (b.input("trips", Type::new(DType::I64, [])), b.input("x", row(1)));
    let mut body = b.inside();
    body.input("i", Type::new(DType::I64, []));
    let own = body.input("own", row(1));
    let twice = body.host(Function::Concat, &[own, own]).unwrap();
    let more = body.fill(1.0, &[], DType::Bool).unwrap();
    body.output("more", more);
    body.output("twice", twice);
    let start = b.fill(1.0, &[], DType::Bool).unwrap();
    let kind = NodeKind::Loop { body: Box::new(body.finish()), carried: 1 };
    let last = b.region(kind, &[trips, start, x], [row(1)]).unwrap();
    b.output("last", last[0]);
    let graph = b.finish();
    let trips = |count: i64| Tensor::from_values([], &[count]).unwrap();
    agree(&graph, &[("trips", trips(3)), ("x", words(&["ab"]))]);
    let found = run(&compile(&graph), &[("trips", trips(60)), ("x", words(&["ab"]))]);
    assert!(found.unwrap_err().to_string().contains("more than 536870912 bytes"));
}

#[test]
fn archives_have_no_strings() {
    let session = Session::new();
    let graph = graph(&Dim::Known(2));
    let archive = session.import_graph(&graph).archive(Target::host(), &ArchiveOptions::default());
    let message = archive.map(drop).unwrap_err().to_string();
    assert!(message.contains("clients of archives have no strings: 'x': string[2]"), "{message}");
}
