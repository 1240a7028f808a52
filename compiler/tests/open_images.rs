//! Convolutions of images of open height and width, with what follows in their kernels.
use crate::open_rows::{serves, serves_on};
use crate::support::{graphs::f32s, levels::levels};
use irc_tensor::{Tensor, TensorType};
use irc_tl::{Binary, Builder, Constant, Conv, DType, Dim, Graph, Op, Type, Unary, ValueId};

/// Around the rows and columns of tiles, and the positions of panels.
const SIZES: [i64; 9] = [1, 2, 3, 7, 8, 9, 17, 33, 66];

const CHANNELS: i64 = 10;

fn image(channels: i64) -> Type {
    let n = || Dim::symbol("N");
    Type::new(DType::F32, [1.into(), channels.into(), n(), n()])
}

fn conv(b: &mut Builder, x: ValueId, filters: [i64; 4], stride: i64) -> ValueId {
    let groups = CHANNELS / filters[1];
    let pads = vec![[filters[2] / 2; 2]; 2];
    let (strides, dilations) = (vec![stride; 2], vec![1; 2]);
    let filters = b.tensor(&f32s(filters, 1));
    let conv = Conv { strides, dilations, pads, groups, outside: 0 };
    b.op(Op::Conv(conv), &[x, filters]).unwrap()
}

fn bias(b: &mut Builder, x: ValueId, channels: i64) -> ValueId {
    let bias = b.tensor(&f32s([1, channels, 1, 1], 2));
    b.binary(Binary::Add, x, bias).unwrap()
}

fn check(graph: &Graph) {
    serves(graph, &|n| vec![("x", f32s([1, CHANNELS, n, n], 3))], &SIZES);
}

/// A bias, a residual and a unary function follow filters of all channels.
#[test]
fn maps_follow_convolutions() {
    for size in [1, 3] {
        let mut b = Builder::new();
        let x = b.input("x", image(CHANNELS));
        let y = conv(&mut b, x, [CHANNELS, CHANNELS, size, size], 1);
        let y = bias(&mut b, y, CHANNELS);
        let y = b.binary(Binary::Add, y, x).unwrap();
        let y = b.unary(Unary::Relu, y).unwrap();
        b.output("y", y);
        check(&b.finish());
    }
}

/// One column, or four, after the last whole vector of positions; of one block of channels, and of two.
#[test]
fn few_columns_are_left() {
    for (channels, size) in [(16, 1), (40, 3)] {
        let mut b = Builder::new();
        let x = b.input("x", image(channels));
        let filters = b.tensor(&f32s([44, channels, size, size], 1));
        let pads = vec![[size / 2; 2]; 2];
        let (strides, dilations) = (vec![1; 2], vec![1; 2]);
        // Steps of 1 with filters of 3 by 3 would be Winograd's.
        let strides = if size == 3 { vec![1, 2] } else { strides };
        let conv = Conv { strides, dilations, pads, groups: 1, outside: 0 };
        let y = b.op(Op::Conv(conv), &[x, filters]).unwrap();
        let y = bias(&mut b, y, 44);
        b.output("y", y);
        serves(&b.finish(), &|n| vec![("x", f32s([1, channels, n, n], 3))], &SIZES);
    }
}

/// Sums of products of bytes that are requantised: of filters of all channels, and of windows of one.
#[test]
fn requantisation_follows_convolutions_of_bytes() {
    let bytes = |dtype, shape: &[i64]| Tensor::random(TensorType::new(dtype, shape), 5).unwrap();
    for (filters, stride, outside) in [
        ([44, 16, 1, 1], 1, 0),
        ([44, 16, 3, 3], 1, 128),
        ([9, 16, 3, 3], 2, 3),
        ([16, 1, 3, 3], 1, 0),
        ([16, 1, 5, 5], 2, 200),
        ([24, 8, 3, 3], 1, 77),
        ([8, 4, 1, 1], 2, 0),
        ([10, 8, 3, 1], 3, 5),
    ] {
        let mut b = Builder::new();
        let open = Type { dtype: DType::U8, ..image(16) };
        let x = b.input("x", open);
        let w = b.constant(Constant::of(&bytes(DType::I8, &filters)));
        let groups = 16 / filters[1];
        let (strides, dilations) = (vec![stride; 2], vec![1; 2]);
        let pads = vec![[filters[2] / 2; 2]; 2];
        let conv = Conv { strides, dilations, pads, groups, outside };
        let y = b.op(Op::Conv(conv), &[x, w]).unwrap();
        let each = [1, filters[0], 1, 1];
        let sums = b.constant(Constant::of(&bytes(DType::I32, &each)));
        let y = b.binary(Binary::Add, y, sums).unwrap();
        let y = b.cast(y, DType::F32).unwrap();
        let scales = b.tensor(&f32s(each, 7));
        let y = b.binary(Binary::Mul, y, scales).unwrap();
        let y = b.unary(Unary::Round, y).unwrap();
        let y = b.cast(y, DType::U8).unwrap();
        b.output("y", y);
        // Processors multiply bytes with different instructions.
        let inputs = |n: i64| vec![("x", bytes(DType::U8, &[1, 16, n, n]))];
        serves_on(&b.finish(), &inputs, &SIZES, levels());
    }
}

/// Several groups of channels: of as many filters as fill tiles, of fewer, and of a number without a divisor.
#[test]
fn maps_follow_convolutions_of_groups() {
    for (filters, size, stride) in [
        ([20, 5], 3, 1),
        ([4, 5], 1, 1),
        ([32, 5], 3, 2),
        ([10, 2], 3, 1),
        ([15, 2], 1, 2),
        ([22, 5], 5, 1),
    ] {
        let mut b = Builder::new();
        let x = b.input("x", image(CHANNELS));
        let y = conv(&mut b, x, [filters[0], filters[1], size, size], stride);
        let y = bias(&mut b, y, filters[0]);
        let own = b.tensor(&f32s([1, filters[0], 1, 1], 5));
        let y = b.binary(Binary::Mul, y, own).unwrap();
        let y = b.unary(Unary::Relu, y).unwrap();
        b.output("y", y);
        check(&b.finish());
    }
}

/// As many as there are maps, and one that reads the sums twice.
#[test]
fn many_maps_follow_a_convolution() {
    let mut b = Builder::new();
    let x = b.input("x", image(CHANNELS));
    let mut y = conv(&mut b, x, [CHANNELS, CHANNELS, 1, 1], 1);
    for _ in 0..20 {
        y = bias(&mut b, y, CHANNELS);
        y = b.unary(Unary::Abs, y).unwrap();
    }
    b.output("y", y);
    check(&b.finish());
}

/// The windows of a channel: rows of the result at once, of one row, and beyond the rows of the image.
#[test]
fn maps_follow_depthwise_convolutions() {
    for (size, stride) in [(3, 1), (3, 2), (5, 1), (1, 2)] {
        let mut b = Builder::new();
        let x = b.input("x", image(CHANNELS));
        let y = conv(&mut b, x, [CHANNELS, 1, size, size], stride);
        let y = bias(&mut b, y, CHANNELS);
        let y = b.unary(Unary::Relu, y).unwrap();
        b.output("y", y);
        check(&b.finish());
    }
}
