//! Element types of 8 bits and fewer: every code, and every way to round to one, with both code
//! generators.
use crate::support::levels::widths;
use irc::codegen::{Backend, Target};
use irc::{CompileOptions, Place, Session};
use irc_tensor::{DType, Tensor, TensorType};
use irc_tl::{Binary, Builder, Combine, Compute, Dim, Graph, Reduction, Scalar, Type, Unary};
use std::collections::BTreeMap;

fn small_types() -> impl Iterator<Item = DType> {
    DType::NUMBERS.iter().copied().filter(|dtype| dtype.is_small())
}

fn wide_types() -> impl Iterator<Item = DType> {
    DType::NUMBERS.iter().copied().filter(|dtype| !dtype.is_small())
}

/// Every byte, whether or not the type looks at all its bits.
fn every_code(dtype: DType) -> Tensor {
    let codes: Vec<u8> = (0..=255).collect();
    Tensor::from_bytes(TensorType::new(dtype, [256]), &codes).unwrap()
}

/// Compiles a graph with both code generators, and compares every element with its evaluation.
fn agree(graph: &Graph, inputs: &[(&str, Tensor)]) {
    let inputs: BTreeMap<String, Tensor> =
        inputs.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect();
    let expected = graph.eval(&inputs).unwrap();
    for target in widths().into_iter().chain([Target::host().with_backend(Backend::QUICK)]) {
        let cpu = format!("{:?} for {}", target.backend, target.cpu);
        let options = CompileOptions::from(target);
        let compiled =
            Session::new().import_graph(graph).library_with(&options, Place::Given).unwrap();
        let found = compiled.runner().unwrap().run(inputs.clone()).unwrap();
        for ((name, _), expected) in graph.outputs.iter().zip(&expected) {
            assert_eq!(found[name].ty(), expected.ty());
            // A maximum does not order zeros, as the documentation of kernels says.
            let orders = !["Max", "Min", "Relu"].iter().any(|function| name.starts_with(function));
            let wrong = difference(&found[name], expected, orders);
            assert_eq!(wrong, None, "{cpu}: {name}");
        }
    }
}

/// Where a value differs, or, if it matters, the sign of a zero.
fn difference(found: &Tensor, expected: &Tensor, zeros: bool) -> Option<String> {
    if let (Some(found), Some(expected)) = (found.to_i128(), expected.to_i128()) {
        let at = found.iter().zip(&expected).position(|(a, b)| a != b)?;
        return Some(format!("element {at}: {} instead of {}", found[at], expected[at]));
    }
    let same = |a: &f64, b: &f64| {
        a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan() || !zeros && a == b
    };
    let (found, expected) = (found.to_f64(), expected.to_f64());
    let at = found.iter().zip(&expected).position(|(a, b)| !same(a, b))?;
    Some(format!("element {at}: {:e} instead of {:e}", found[at], expected[at]))
}

/// Numbers of a wide type around the range of a small one: its numbers, what lies half between
/// neighbours, and what lies beside these.
fn around(small: DType, dtype: DType) -> Tensor {
    let mut codes: Vec<f64> = every_code(small).to_f64();
    codes.retain(|value| value.is_finite());
    codes.sort_by(f64::total_cmp);
    codes.dedup();
    let mut values = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-300, -1e-300, 1e300];
    for pair in codes.windows(2) {
        let middle = f64::midpoint(pair[0], pair[1]);
        values.extend([pair[0], pair[1], -pair[0], middle]);
        values.extend([1e-15, 1e-7, 1e-3].map(|by| middle * (1.0 + by)));
        values.extend([1e-15, 1e-7, 1e-3].map(|by| middle * (1.0 - by)));
    }
    let largest = codes.last().copied().unwrap_or_default();
    values.extend([1.01, 1.06, 1.13, 1.5, 2.0, 2.1].map(|by| largest * by));
    values.extend([1.01, 1.06, 1.13, 1.5, 2.0, 2.1].map(|by| -largest * by));
    let count = values.len() as i64;
    let random = Tensor::random(TensorType::new(DType::F64, [4096]), 9).unwrap().to_f64();
    values.extend(random.iter().map(|value| value * largest * 1.25));
    Tensor::from_f64(TensorType::new(dtype, [count + 4096]), &values).unwrap()
}

#[test]
fn every_code_becomes_every_type() {
    for small in small_types() {
        let mut b = Builder::new();
        let x = b.input("x", Type::new(small, [Dim::Known(256)]));
        for dtype in DType::NUMBERS.iter().copied() {
            let y = b.cast(x, dtype).unwrap();
            b.output(format!("{small} as {dtype}"), y);
        }
        agree(&b.finish(), &[("x", every_code(small))]);
    }
}

#[test]
fn every_type_rounds_to_every_small_one() {
    for small in small_types() {
        let mut b = Builder::new();
        let inputs: Vec<_> =
            wide_types().map(|dtype| (dtype.name(), around(small, dtype))).collect();
        for (name, tensor) in &inputs {
            let x = b.input(*name, tensor.ty().clone().into());
            let y = b.cast(x, small).unwrap();
            b.output(format!("{name} as {small}"), y);
        }
        agree(&b.finish(), &inputs);
    }
}

/// Functions whose value is exact before it is rounded.
const UNARY: [Unary; 9] = [
    Unary::Neg,
    Unary::Abs,
    Unary::Sign,
    Unary::Relu,
    Unary::Not,
    Unary::Sqrt,
    Unary::Floor,
    Unary::Ceil,
    Unary::Round,
];

#[test]
fn arithmetic_of_every_pair() {
    for small in small_types() {
        let mut b = Builder::new();
        // Every code beside some others.
        let columns: Vec<u8> = (0..64).map(|code| (code as u8).wrapping_mul(37)).collect();
        let columns = Tensor::from_bytes(TensorType::new(small, [64]), &columns).unwrap();
        let x = b.input("x", Type::new(small, [Dim::Known(256), Dim::Known(1)]));
        let y = b.input("y", Type::new(small, [Dim::Known(64)]));
        for function in UNARY.into_iter().filter(|function| function.takes(small)) {
            let value = b.unary(function, x).unwrap();
            b.output(format!("{function:?} of {small}"), value);
        }
        let exact = |function: &Binary| {
            let inexact = matches!(function, Binary::Pow | Binary::Mod) && small.is_float();
            function.takes(small) && !inexact
        };
        for function in Binary::ALL.into_iter().filter(exact) {
            let value = b.binary(function, x, y).unwrap();
            b.output(format!("{function:?} of {small}"), value);
        }
        for comparison in irc_tl::Comparison::ALL {
            let value = b.compare(comparison, x, y).unwrap();
            b.output(format!("{comparison:?} of {small}"), value);
        }
        let rows = every_code(small);
        let rows = Tensor::from_bytes(TensorType::new(small, [256, 1]), rows.bytes()).unwrap();
        agree(&b.finish(), &[("x", rows), ("y", columns)]);
    }
}

/// What stands beside such elements in a model: constants small and large, views, moves, reductions,
/// neighbours of other types, and sizes that are symbols.
fn neighbours(small: DType, rows: Dim) -> Graph {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(small, [rows.clone(), Dim::Known(16)]));
    let scale = b.input("scale", Type::new(DType::F32, [Dim::Known(16)]));
    let few = b.tensor(&Tensor::from_bytes(TensorType::new(small, [16]), &[3; 16]).unwrap());
    let codes: Vec<u8> = (0..2048).map(|at| (at * 7 % 64) as u8).collect();
    let many = b.tensor(&Tensor::from_bytes(TensorType::new(small, [16, 128]), &codes).unwrap());
    let wide = b.cast(x, DType::F32).unwrap();
    let scaled = b.binary(Binary::Mul, wide, scale).unwrap();
    let back = b.cast(scaled, small).unwrap();
    let sum = b.binary(Binary::Max, back, few).unwrap();
    let flat = b.reshape(sum, &[rows.clone() * 16.into()]).unwrap();
    let turned = b.transpose(x, &[1, 0]).unwrap();
    let most = b.reduce(Reduction::Max, x, &[1], true).unwrap();
    let nothing = b.binary(Binary::Sub, back, back).unwrap();
    let total = b.reduce(Reduction::Sum, nothing, &[0], false).unwrap();
    let weights = b.cast(many, DType::F32).unwrap();
    let halves = b.fill(0.5, &[rows.clone(), 16.into()], DType::F32).unwrap();
    let product = b.matmul(halves, weights).unwrap();
    let filled = b.fill(1.0, &[rows.clone(), 3.into()], small).unwrap();
    let shifted = Scalar::load(0, [Scalar::Loop(0), Scalar::index(15) - Scalar::Loop(1)]);
    let mirrored = b.compute(Compute::map([rows, 16.into()], shifted), &[back]).unwrap();
    for (name, value) in [
        ("flat", flat),
        ("turned", turned),
        ("most", most),
        ("total", total),
        ("product", product),
        ("filled", filled),
        ("mirrored", mirrored),
        ("few", few),
    ] {
        b.output(name, value);
    }
    b.finish()
}

#[test]
fn neighbours_sizes_and_constants() {
    for small in small_types() {
        // What is not a number would make sums of it that are none.
        let mut x = Tensor::random(TensorType::new(small, [5, 16]), 4).unwrap();
        (0..x.elements()).filter(|at| at % 3 == 0).for_each(|at| x.set_f64(at, 1.0));
        let scale = Tensor::random(TensorType::new(DType::F32, [16]), 5).unwrap();
        let inputs = [("x", x), ("scale", scale)];
        agree(&neighbours(small, Dim::Known(5)), &inputs);
        agree(&neighbours(small, Dim::symbol("N")), &inputs);
    }
}

/// Sums of a product that is rounded to the type: accumulated in more than it has.
#[test]
fn reductions_round_once() {
    for small in small_types() {
        let mut b = Builder::new();
        let x = b.input("x", Type::new(small, [Dim::Known(40), Dim::Known(9)]));
        for combine in Combine::ALL {
            let load = Scalar::load(0, [Scalar::Loop(1), Scalar::Loop(0)]);
            let reduced = Compute::reduce([Dim::Known(9)], combine, [Dim::Known(40)], load);
            let y = b.compute(reduced, &[x]).unwrap();
            b.output(format!("{combine:?} of {small}"), y);
            let none = Compute::reduce(
                [Dim::Known(2)],
                combine,
                [Dim::Known(0)],
                Scalar::load(0, [Scalar::Loop(1), Scalar::Loop(0)]),
            );
            let y = b.compute(none, &[x]).unwrap();
            b.output(format!("{combine:?} of no {small}"), y);
        }
        let values: Vec<f64> = (0..360).map(|at| if at % 19 == 0 { 2.0 } else { 0.0 }).collect();
        let x = Tensor::from_f64(TensorType::new(small, [40, 9]), &values).unwrap();
        agree(&b.finish(), &[("x", x)]);
    }
}
