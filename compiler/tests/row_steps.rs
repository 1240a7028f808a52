//! Softmax, normalisations and other steps over rows whose length is known when they run.
use crate::open_rows::serves;
use crate::support::graphs::f32s;
use irc_tensor::{Tensor, TensorType};
use irc_tl::{Binary, Builder, DType, Dim, Op, Reduction, Type, Unary, ValueId};

/// Around the lengths of a vector and of four of them.
const SIZES: [i64; 12] = [0, 1, 2, 7, 8, 15, 16, 17, 63, 64, 65, 333];

fn columns() -> Dim {
    Dim::symbol("M")
}

fn single(dims: impl Into<Vec<Dim>>) -> Type {
    Type::new(DType::F32, dims)
}

fn powers(b: &mut Builder, x: ValueId, axes: &[usize]) -> ValueId {
    let most = b.reduce(Reduction::Max, x, axes, true).unwrap();
    let below = b.binary(Binary::Sub, x, most).unwrap();
    b.unary(Unary::Exp, below).unwrap()
}

fn normalised(b: &mut Builder, x: ValueId, axes: &[usize]) -> ValueId {
    let mean = b.reduce(Reduction::Mean, x, axes, true).unwrap();
    let centred = b.binary(Binary::Sub, x, mean).unwrap();
    let squares = b.binary(Binary::Mul, centred, centred).unwrap();
    let variance = b.reduce(Reduction::Mean, squares, axes, true).unwrap();
    let small = b.op(Op::fill(1e-5, [], DType::F32), &[]).unwrap();
    let variance = b.binary(Binary::Add, variance, small).unwrap();
    let spread = b.unary(Unary::Sqrt, variance).unwrap();
    b.binary(Binary::Div, centred, spread).unwrap()
}

#[test]
fn softmax_and_its_logarithm() {
    for is_logarithm in [false, true] {
        let mut b = Builder::new();
        let x = b.input("x", single([2.into(), 3.into(), columns()]));
        let powers = powers(&mut b, x, &[2]);
        let sum = b.reduce(Reduction::Sum, powers, &[2], true).unwrap();
        let y = match is_logarithm {
            false => b.binary(Binary::Div, powers, sum).unwrap(),
            true => {
                let most = b.reduce(Reduction::Max, x, &[2], true).unwrap();
                let below = b.binary(Binary::Sub, x, most).unwrap();
                let log = b.unary(Unary::Log, sum).unwrap();
                b.binary(Binary::Sub, below, log).unwrap()
            }
        };
        b.output("y", y);
        serves(&b.finish(), &|n| vec![("x", f32s([2, 3, n], 1))], &SIZES);
    }
}

/// A long row is computed by one thread, several rows by several.
#[test]
fn long_rows_are_divided() {
    for rows in [1, 3] {
        let mut b = Builder::new();
        let x = b.input("x", single([rows.into(), columns()]));
        let powers = powers(&mut b, x, &[1]);
        let sum = b.reduce(Reduction::Sum, powers, &[1], true).unwrap();
        let y = b.binary(Binary::Div, powers, sum).unwrap();
        b.output("y", y);
        serves(&b.finish(), &|n| vec![("x", f32s([rows, n], 1))], &[100_000]);
    }
}

/// Rows whose number is open too, with factors of the columns and of the rows.
#[test]
fn normalisation_with_factors() {
    let mut b = Builder::new();
    let x = b.input("x", single([Dim::symbol("N"), columns()]));
    let scale = b.input("scale", single([columns()]));
    let shift = b.input("shift", single([Dim::symbol("N"), 1.into()]));
    let y = normalised(&mut b, x, &[1]);
    let y = b.binary(Binary::Mul, y, scale).unwrap();
    let y = b.binary(Binary::Add, y, shift).unwrap();
    b.output("y", y);
    let inputs = |n| {
        vec![("x", f32s([n / 2, n], 1)), ("scale", f32s([n], 2)), ("shift", f32s([n / 2, 1], 3))]
    };
    serves(&b.finish(), &inputs, &SIZES);
}

/// The positions of an image are a row.
#[test]
fn images_are_normalised() {
    let mut b = Builder::new();
    let x = b.input("x", single([2.into(), 3.into(), Dim::symbol("H"), 7.into()]));
    let y = normalised(&mut b, x, &[2, 3]);
    b.output("y", y);
    serves(&b.finish(), &|n| vec![("x", f32s([2, 3, n, 7], 1))], &SIZES);
}

/// One value of each row is the result, and what else is read from outside is in memory.
#[test]
fn values_of_rows_are_results() {
    let mut b = Builder::new();
    let x = b.input("x", single([4.into(), columns()]));
    let powers = powers(&mut b, x, &[1]);
    let sum = b.reduce(Reduction::Sum, powers, &[1], true).unwrap();
    let log = b.unary(Unary::Log, sum).unwrap();
    let y = b.binary(Binary::Div, powers, sum).unwrap();
    b.output("log", log);
    b.output("powers", powers);
    b.output("y", y);
    serves(&b.finish(), &|n| vec![("x", f32s([4, n], 1))], &SIZES[1..]);
}

/// Two values that are much work are read by two passes: one is stored in the row of the result, the other one computed again.
#[test]
fn values_are_computed_again() {
    let mut b = Builder::new();
    let x = b.input("x", single([4.into(), columns()]));
    let tanh = b.unary(Unary::Tanh, x).unwrap();
    let least = b.reduce(Reduction::Min, tanh, &[1], true).unwrap();
    let above = b.binary(Binary::Sub, tanh, least).unwrap();
    let power = b.unary(Unary::Exp, above).unwrap();
    let sum = b.reduce(Reduction::Sum, power, &[1], true).unwrap();
    let shares = b.binary(Binary::Div, power, sum).unwrap();
    let product = b.reduce(Reduction::Product, shares, &[1], true).unwrap();
    let y = b.binary(Binary::Add, shares, product).unwrap();
    let y = b.binary(Binary::Add, y, tanh).unwrap();
    b.output("y", y);
    serves(&b.finish(), &|n| vec![("x", f32s([4, n], 1))], &SIZES);
}

/// A NaN in a row is in its maximum, and in nothing of other rows; infinities are compared as numbers.
#[test]
fn unordered_elements_stay_in_their_rows() {
    let mut b = Builder::new();
    let x = b.input("x", single([4.into(), columns()]));
    let most = b.reduce(Reduction::Max, x, &[1], true).unwrap();
    let least = b.reduce(Reduction::Min, x, &[1], true).unwrap();
    let range = b.binary(Binary::Sub, most, least).unwrap();
    let y = b.binary(Binary::Div, x, range).unwrap();
    b.output("y", y);
    let inputs = |n: i64| {
        let mut values = f32s([4, n], 1).to_f64();
        let width = usize::try_from(n).unwrap();
        values[width * 3 / 4] = f64::NAN;
        values[width + width / 3] = f64::INFINITY;
        values[2 * width + width - 1] = f64::NEG_INFINITY;
        vec![("x", Tensor::from_f64(TensorType::new(DType::F32, [4, n]), &values).unwrap())]
    };
    serves(&b.finish(), &inputs, &SIZES[1..]);
}
