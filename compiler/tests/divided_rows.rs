//! Maps that choose between values along rows, of known and open sizes.
use crate::open_rows::serves;
use crate::support::graphs::f32s;
use irc_tensor::{Tensor, TensorType};
use irc_tl::{Builder, Compute, DType, Dim, Op, Scalar, Type};

/// Around the length from which on rows are divided, and that of a vector.
const SIZES: [i64; 6] = [1, 2, 15, 16, 17, 70];

fn within(index: &Scalar, size: &Dim) -> Scalar {
    index.clone().ge(Scalar::index(0)).and(index.clone().lt(Scalar::Size(size.clone())))
}

/// Rows of `N` elements, or of as many as a size says.
fn rows(dtype: DType, size: Option<i64>) -> Type {
    Type::new(dtype, [3.into(), size.map_or(Dim::symbol("N"), Dim::Known)])
}

fn bytes(shape: &[i64]) -> Tensor {
    Tensor::random(TensorType::new(DType::U8, shape), 3).unwrap()
}

/// An image is padded with an element that is known when the program runs: on both sides, on one, and beyond its size.
#[test]
fn pads_are_values() {
    for [before, after] in [[2, 3], [0, 40], [5, -1], [-3, 20]] {
        for size in [None, Some(16), Some(70)] {
            let mut b = Builder::new();
            let ty = rows(DType::U8, size);
            let width = ty.dims[1].clone();
            let (x, pad) = (b.input("x", ty), b.input("pad", Type::new(DType::U8, [])));
            let at = [0, 1].map(|axis| Scalar::Loop(axis) - Scalar::index([1, before][axis]));
            let inside = within(&at[0], &3.into()).and(within(&at[1], &width));
            let body = inside.select(Scalar::load(0, at), Scalar::load(1, []));
            let wide = (width + (before + after).into()).maximum(&0.into());
            let y = Op::compute(Compute::map([5.into(), wide], body));
            let y = b.op(y, &[x, pad]).unwrap();
            b.output("y", y);
            let inputs = |n| vec![("x", bytes(&[3, n])), ("pad", bytes(&[]))];
            let sizes = size.map_or(SIZES.to_vec(), |size| vec![size]);
            serves(&b.finish(), &inputs, &sizes);
        }
    }
}

/// Three values next to each other, the first of as many columns as the size, and values of some rows instead of all.
#[test]
fn values_are_joined_along_rows() {
    for size in [None, Some(17)] {
        let mut b = Builder::new();
        let ty = rows(DType::F32, size);
        let width = ty.dims[1].clone();
        let x = b.input("x", ty.clone());
        let z = b.input("z", ty);
        let column = Scalar::Loop(1);
        let end = Scalar::Size(width.clone());
        let own = |operand: usize, from: Scalar| {
            Scalar::load(operand, [Scalar::Loop(0), column.clone() - from])
        };
        let twice = end.clone() + end.clone();
        let last = own(0, twice.clone()) + Scalar::number(1, DType::F32);
        let rest = column.clone().lt(twice).select(own(1, end.clone()), last);
        let joined = column.clone().lt(end).select(own(0, Scalar::index(0)), rest);
        let is_first = Scalar::Loop(0).lt(Scalar::index(1));
        let body = is_first.select(Scalar::number(7, DType::F32), joined);
        let y = Op::compute(Compute::map([3.into(), width * 3.into()], body));
        let y = b.op(y, &[x, z]).unwrap();
        b.output("y", y);
        let inputs = |n| vec![("x", f32s([3, n], 1)), ("z", f32s([3, n], 2))];
        let sizes = size.map_or(SIZES.to_vec(), |size| vec![size]);
        serves(&b.finish(), &inputs, &sizes);
    }
}

/// A value of the columns before a range, which begins after the last of its conditions holds.
#[test]
fn values_are_before_a_range() {
    let mut b = Builder::new();
    let ty = rows(DType::F32, None);
    let width = ty.dims[1].clone();
    let x = b.input("x", ty);
    let column = Scalar::Loop(1);
    let begins = |from: i64| column.clone().ge(Scalar::index(from));
    let own = Scalar::load(0, [Scalar::Loop(0), column.clone()]);
    let negative = own.clone() * Scalar::number(-1, DType::F32);
    let body = begins(5).and(begins(9)).select(negative, own);
    let y = b.op(Op::compute(Compute::map([3.into(), width], body)), &[x]).unwrap();
    b.output("y", y);
    serves(&b.finish(), &|n| vec![("x", f32s([3, n], 1))], &SIZES);
}
