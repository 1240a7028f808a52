//! Constants that matrix products read are packed when a graph is compiled.

use crate::support::{graphs::f32s, levels::widths};
use irc::pipeline::HOST_CPU;
use irc::{CompileOptions, ImportOptions, Place, Session, Target, codegen::Backend};
use irc_tensor::{DType, Tensor};
use irc_tl::{Builder, Constant, Conv, Dim, Graph, NodeKind, Op, Type, ValueId};
use std::collections::BTreeMap;

/// `x[m, k]` times a constant `w`, or its transpose, and a bias; compiled for each width of vectors and by
/// each code generator.
fn product(m: i64, k: i64, n: i64, is_transposed: bool) -> Graph {
    let mut b = Builder::new();
    let x = b.input("x", Type::from(f32s([m, k], 0).ty().clone()));
    let shape = if is_transposed { [n, k] } else { [k, n] };
    let w = b.constant(Constant::of(&f32s(shape, 1)));
    let bias = b.constant(Constant::of(&f32s([n], 2)));
    let op = Op::Matmul { transpose_lhs: false, transpose_rhs: is_transposed };
    let y = b.op(op, &[x, w]).unwrap();
    let y = b.binary(irc_tl::Binary::Add, y, bias).unwrap();
    b.output("y", y);
    b.finish()
}

fn targets() -> Vec<Target> {
    let quick = Target::host().with_backend(Backend::QUICK);
    widths().into_iter().chain([quick]).collect()
}

/// How many constants are packed, after the results were compared.
fn packed(graph: &Graph, m: i64, k: i64, target: Target) -> usize {
    let inputs = BTreeMap::from([("x".to_owned(), f32s([m, k], 3))]);
    let expected = graph.eval(&inputs).unwrap();
    let compiled = Session::new().import_graph(graph).library_with(target, Place::Given).unwrap();
    let found = compiled.runner().unwrap().run(inputs.clone()).unwrap();
    let tolerance = irc_tensor::Tolerance::of(irc_tensor::DType::F32);
    let result = irc_tensor::compare(&expected[0], &found["y"], tolerance).unwrap();
    assert!(result.is_match(), "{m} x {k}: {result}");
    // The bias has one dimension as well, and the sizes that it had.
    let is_packed =
        |weight: &&Constant| weight.ty.shape.len() == 1 && weight.bytes.len() > 4 * 2048;
    compiled.constants.iter().filter(is_packed).count()
}

#[test]
fn of_every_size_and_layout() {
    // Beyond a panel, a block of columns and a block of depth, and neither a multiple of a vector.
    for (k, n) in [(7, 300), (64, 64), (70, 45), (300, 1100), (1500, 33), (2100, 1030)] {
        for (m, is_transposed) in [(1, false), (4, false), (5, false), (9, true), (3, true)] {
            let graph = product(m, k, n, is_transposed);
            for target in targets() {
                packed(&graph, m, k, target);
            }
        }
    }
}

#[test]
fn what_is_packed_is_what_a_call_would_pack() {
    let count =
        |m, is_transposed| packed(&product(m, 128, 96, is_transposed), m, 128, Target::host());
    assert_eq!(count(8, false), 1);
    assert_eq!(count(8, true), 1);
    // A few rows against contiguous columns read them where they are, if these are few.
    assert_eq!(count(1, false), 0);
    let (k, n) = (512, 768);
    assert_eq!(packed(&product(1, k, n, false), 1, k, Target::host()), 1);
}

#[test]
fn filters_of_images_of_open_size_are_packed() {
    let open = |axis: &str| Dim::symbol(axis);
    // Filters and channels that tiles and blocks of channels divide or do not, steps, and filters of one position.
    for (filters, channels, taps, step) in
        [(24, 16, 3, 1), (13, 70, 3, 2), (64, 300, 1, 1), (17, 3, 7, 2)]
    {
        let mut b = Builder::new();
        let dims = [1.into(), channels.into(), open("H"), open("W")];
        let x = b.input("x", Type::new(irc_tl::DType::F32, dims));
        let w = b.constant(Constant::of(&f32s([filters, channels, taps, taps], 1)));
        let conv = Conv {
            strides: vec![step; 2],
            dilations: vec![1; 2],
            pads: vec![[taps / 2; 2]; 2],
            groups: 1,
            outside: 0,
        };
        let y = b.op(Op::Conv(conv), &[x, w]).unwrap();
        b.output("y", y);
        let graph = b.finish();
        for target in targets() {
            let compiled =
                Session::new().import_graph(&graph).library_with(target, Place::Given).unwrap();
            assert_eq!(compiled.constants[0].ty.shape.len(), 1, "packed");
            let mut runner = compiled.runner().unwrap();
            for (height, width) in [(1, 1), (7, 7), (5, 37), (16, 16), (33, 9)] {
                let x = f32s([1, channels, height, width], 3);
                let inputs = BTreeMap::from([("x".to_owned(), x)]);
                let expected = graph.eval(&inputs).unwrap();
                let found = runner.run(inputs).unwrap();
                let tolerance = irc_tensor::Tolerance::of(irc_tensor::DType::F32);
                let result = irc_tensor::compare(&expected[0], &found["y"], tolerance).unwrap();
                assert!(result.is_match(), "{height} x {width}: {result}");
            }
        }
    }
}

#[test]
fn a_constant_that_something_else_reads_stays_as_it_is() {
    let mut b = Builder::new();
    let x = b.input("x", Type::from(f32s([8, 64], 0).ty().clone()));
    let w = b.constant(Constant::of(&f32s([64, 64], 1)));
    let y = b.matmul(x, w).and_then(|y| b.matmul(y, w)).unwrap();
    b.output("y", y);
    b.output("w", w);
    let graph = b.finish();
    assert_eq!(packed(&graph, 8, 64, Target::host()), 0);
}

/// `x[m, k]` times a constant `w` in each iteration of loops around each other, which pass it on.
fn repeated(depth: usize, m: i64, k: i64) -> Graph {
    let state = Type::from(f32s([m, k], 0).ty().clone());
    let twice = |b: &mut Builder, x: ValueId, w: ValueId, body: Graph| {
        let count = b.scalar(2.0, DType::I64).unwrap();
        let start = b.fill(1.0, &[], DType::Bool).unwrap();
        let kind = NodeKind::Loop { body: Box::new(body), carried: 1 };
        b.region(kind, &[count, start, x, w], [state.clone()]).unwrap()[0]
    };
    let mut inner: Option<Graph> = None;
    for level in 0..depth {
        let mut body = Builder::nested(format!("l{level}"));
        body.input("i", Type::new(DType::I64, []));
        let x = body.input("x", state.clone());
        let w = body.input("w", Type::from(f32s([k, k], 1).ty().clone()));
        let next = match inner.take() {
            None => body.matmul(x, w).unwrap(),
            Some(graph) => twice(&mut body, x, w, graph),
        };
        let go_on = body.fill(1.0, &[], DType::Bool).unwrap();
        body.output("go on", go_on);
        body.output("x", next);
        inner = Some(body.finish());
    }
    let mut b = Builder::new();
    let x = b.input("x", state.clone());
    let w = b.constant(Constant::of(&f32s([k, k], 1)));
    let y = twice(&mut b, x, w, inner.unwrap());
    b.output("y", y);
    b.finish()
}

#[test]
fn constants_of_loops_are_packed() {
    for depth in [1, 2] {
        for target in targets() {
            assert_eq!(packed(&repeated(depth, 8, 64), 8, 64, target), 1, "{depth}");
        }
    }
}

/// `x[m, k]` times one of two constants, which a comparison selects, or times the same one in both branches.
fn chosen(is_shared: bool, m: i64, k: i64) -> Graph {
    let mut b = Builder::new();
    let state = Type::from(f32s([m, k], 0).ty().clone());
    let x = b.input("x", state.clone());
    let weights = [1, 2].map(|seed| b.constant(Constant::of(&f32s([k, k], seed))));
    let branch = |name: &str, own: usize| {
        let mut branch = Builder::nested(name.to_owned());
        let x = branch.input("x", state.clone());
        let ty = Type::from(f32s([k, k], 0).ty().clone());
        let weights = [1, 2].map(|number| branch.input(format!("w{number}"), ty.clone()));
        let product = branch.matmul(x, weights[if is_shared { 0 } else { own }]).unwrap();
        branch.output("y", product);
        Box::new(branch.finish())
    };
    let kind = NodeKind::If { then: branch("t", 0), otherwise: branch("e", 1) };
    // The sum of powers is not negative.
    let squares = b.binary(irc_tl::Binary::Mul, x, x).unwrap();
    let sum = b.reduce(irc_tl::Reduction::Sum, squares, &[0, 1], false).unwrap();
    let zero = b.fill(0.0, &[], DType::F32).unwrap();
    let condition = b.compare(irc_tl::Comparison::Lt, sum, zero).unwrap();
    let y = b.region(kind, &[condition, x, weights[0], weights[1]], [state.clone()]).unwrap()[0];
    b.output("y", y);
    b.finish()
}

#[test]
fn constants_of_one_branch_are_packed() {
    for (is_shared, count) in [(false, 2), (true, 0)] {
        for target in targets() {
            assert_eq!(packed(&chosen(is_shared, 8, 64), 8, 64, target), count);
        }
    }
}

#[test]
fn a_library_holds_packed_constants() {
    let graph = product(16, 200, 100, true);
    let inputs = BTreeMap::from([("x".to_owned(), f32s([16, 200], 3))]);
    let expected = graph.eval(&inputs).unwrap();
    let options = CompileOptions::default();
    let compiled = Session::new().import_graph(&graph).library(&options).unwrap();
    let program = irc::Program::from_library(&compiled.library).unwrap();
    let found = program.run(inputs).unwrap();
    let tolerance = irc_tensor::Tolerance::of(irc_tensor::DType::F32);
    assert!(irc_tensor::compare(&expected[0], &found["y"], tolerance).unwrap().is_match());
}

/// The text after each stage stands alone, with constants of any size.
#[test]
fn a_module_after_any_stage_holds_its_constants() {
    let graph = product(5, 64, 48, false);
    let inputs = BTreeMap::from([("x".to_owned(), f32s([5, 64], 3))]);
    let expected = graph.eval(&inputs).unwrap();
    let session = Session::new();
    let model = session.import_graph(&graph);
    for stage in HOST_CPU.stages {
        let text = model.stage(stage.name, Target::host()).unwrap();
        let name = format!("{}.mlir", stage.name);
        let bytes = text.into_bytes().into();
        let read = session.import_bytes(&name, bytes, &ImportOptions::default()).unwrap();
        let program =
            irc::Program::from_library(&read.library(CompileOptions::default()).unwrap().library);
        let found = program.unwrap().run(inputs.clone()).unwrap();
        let tolerance = irc_tensor::Tolerance::of(irc_tensor::DType::F32);
        let result = irc_tensor::compare(&expected[0], &found["y"], tolerance).unwrap();
        assert!(result.is_match(), "after stage '{}': {result}", stage.name);
    }
}

/// A convolution of a small image by filters of one element, a bias and a function of the result.
fn pointwise(images: i64, channels: i64, filters: i64, size: i64) -> (Graph, Tensor) {
    let x = f32s([images, channels, size, size], 1);
    let mut b = Builder::new();
    let input = b.input("x", Type::from(x.ty().clone()));
    let w = b.constant(Constant::of(&f32s([filters, channels, 1, 1], 2)));
    let bias = b.constant(Constant::of(&f32s([filters, 1, 1], 3)));
    let (ones, pads) = (vec![1, 1], vec![[0, 0]; 2]);
    let conv = Conv { strides: ones.clone(), dilations: ones, pads, groups: 1, outside: 0 };
    let y = b.op(Op::Conv(conv), &[input, w]).unwrap();
    let y = b.binary(irc_tl::Binary::Add, y, bias).unwrap();
    let y = b.op(Op::Unary(irc_tl::Unary::Relu), &[y]).unwrap();
    b.output("y", y);
    (b.finish(), x)
}

/// Filters are packed: as columns of a product whose rows are positions where that takes less time, otherwise as rows.
#[test]
fn images_are_multiplied_transposed_where_that_pays() {
    let cases = [
        // Less than five sixths of the lanes have positions: one block of depth, and two; tiles of equal height, and not.
        (1, 160, 64, 7),
        (2, 1100, 96, 7),
        (3, 130, 32, 3),
        // Deep enough for tiles of 14 positions, and not, as a few positions are computed with rows in lanes; rows of another
        // number than a tile's.
        (2, 200, 32, 14),
        (2, 130, 32, 14),
        (1, 96, 44, 14),
        // Panels one at a time; blocks of depth and a tile of fewer rows; few channels.
        (1, 140, 44, 17),
        (1, 1100, 9, 6),
        (2, 24, 120, 20),
    ];
    for (images, channels, filters, size) in cases {
        let (graph, x) = pointwise(images, channels, filters, size);
        let w = Constant::of(&f32s([filters, channels, 1, 1], 2));
        let inputs = BTreeMap::from([("x".to_owned(), x)]);
        let expected = graph.eval(&inputs).unwrap();
        for target in targets() {
            let width = target.vector_bytes();
            let compiled =
                Session::new().import_graph(&graph).library_with(target, Place::Given).unwrap();
            let found = compiled.runner().unwrap().run(inputs.clone()).unwrap();
            let tolerance = irc_tensor::Tolerance::of(irc_tensor::DType::F32);
            let result = irc_tensor::compare(&expected[0], &found["y"], tolerance).unwrap();
            let case = format!("{channels} channels of {size}x{size}, vectors of {width} bytes");
            assert!(result.is_match(), "{case}: {result}");
            let lanes = i64::from(width) / 4;
            let columns = size * size;
            let idle = 6 * columns < 5 * ((columns + lanes - 1) / lanes * lanes);
            let is_few = lanes == 16 && filters % 8 == 0 && (1..=4).contains(&(columns % lanes));
            let least = if size == 14 { 176 } else { 251 };
            let is_deep = is_few && channels >= least;
            let is_turned = idle && !is_few || is_deep;
            let pays = lanes >= 8 && is_turned && filters % lanes == 0 && columns >= 8;
            let packed = compiled.constants.iter().find(|weight| weight.ty.shape.len() == 1);
            let ninth = packed.map(|packed| &packed.bytes[32..36]);
            let filter = 8 * channels as usize * 4;
            let is_column = ninth == Some(&w.bytes[filter..filter + 4]);
            assert_eq!(is_column, pays, "{case}");
            assert!(packed.is_some(), "{case}");
        }
    }
}
