//! Products, convolutions and reductions of rows with open sizes, in tiles of vectors: at sizes that end in every part of a
//! tile, and within the memory of their operands.

use crate::open_rows::serves;
use crate::support::graphs::f32s;
use crate::symbolic_kernels::{Kernel, Work, m, n, ty};
use irc_tensor::DType;
use irc_tl::{Binary, Builder, Combine, Compute, Conv, Op, Scalar, Type};

/// Sizes around the numbers of rows and columns of a tile.
const SIZES: [(i64, i64); 11] = [
    (1, 1),
    (8, 32),
    (9, 31),
    (7, 33),
    (3, 16),
    (16, 15),
    (11, 49),
    (2, 65),
    (23, 8),
    (0, 5),
    (5, 0),
];

fn check(op: Op, operands: Vec<Type>) {
    let kernel = Kernel::compile(Work::Op(op), operands);
    for (n, m) in SIZES {
        kernel.check(&[("N", n), ("M", m)]);
    }
}

#[test]
fn products() {
    let product = || Op::Matmul { transpose_lhs: false, transpose_rhs: false };
    let f32s = |dims: Vec<irc_tl::Dim>| ty(DType::F32, dims);
    check(product(), vec![f32s(vec![n(), m()]), f32s(vec![m(), 37.into()])]);
    check(product(), vec![f32s(vec![n(), 5.into()]), f32s(vec![5.into(), m()])]);
    // Columns are packed for 32 rows or more.
    check(product(), vec![f32s(vec![40.into(), 12.into()]), f32s(vec![12.into(), m()])]);
    let heads = |rows, columns| f32s(vec![2.into(), 3.into(), rows, columns]);
    check(product(), vec![heads(n(), 16.into()), heads(16.into(), m())]);
    check(product(), vec![heads(n(), m()), heads(m(), n())]);
    // The right operand is read across its rows.
    let across = || Op::Matmul { transpose_lhs: false, transpose_rhs: true };
    check(across(), vec![f32s(vec![n(), m()]), f32s(vec![37.into(), m()])]);
    check(across(), vec![heads(n(), 16.into()), heads(m(), 16.into())]);
    check(across(), vec![heads(40.into(), n()), heads(m(), n())]);
}

fn conv(strides: [i64; 2], dilations: [i64; 2], pads: [[i64; 2]; 2], groups: i64) -> Op {
    let (strides, dilations, pads) = (strides.to_vec(), dilations.to_vec(), pads.to_vec());
    Op::Conv(Conv { strides, dilations, pads, groups, outside: 0 })
}

#[test]
fn convolutions() {
    let image =
        |channels: i64| ty(DType::F32, [1.into(), channels.into(), n() + 4.into(), m() + 4.into()]);
    let filters = |dims: [i64; 4]| ty(DType::F32, dims.map(irc_tl::Dim::Known));
    check(conv([1, 1], [1, 1], [[1, 1]; 2], 1), vec![image(3), filters([11, 3, 3, 3])]);
    check(conv([1, 1], [1, 1], [[0, 0]; 2], 1), vec![image(5), filters([9, 5, 1, 1])]);
    check(conv([1, 1], [1, 1], [[0, 0]; 2], 1), vec![image(2), filters([40, 2, 1, 1])]);
    check(conv([1, 1], [1, 1], [[0, 0]; 2], 1), vec![image(2), filters([8, 2, 3, 3])]);
    check(conv([2, 2], [1, 1], [[1, 1]; 2], 1), vec![image(3), filters([10, 3, 3, 3])]);
    check(conv([2, 2], [1, 1], [[0, 0]; 2], 1), vec![image(3), filters([4, 3, 1, 1])]);
    check(conv([1, 3], [1, 1], [[1, 1]; 2], 1), vec![image(3), filters([4, 3, 3, 3])]);
    // Columns that are gathered.
    check(conv([2, 3], [1, 1], [[0, 2]; 2], 1), vec![image(3), filters([10, 3, 3, 4])]);
    check(conv([1, 5], [1, 1], [[0, 0]; 2], 1), vec![image(2), filters([9, 2, 1, 4])]);
    check(conv([1, 1], [1, 2], [[0, 0], [2, 3]], 1), vec![image(3), filters([12, 3, 2, 3])]);
    check(conv([1, 1], [1, 1], [[1, 1]; 2], 6), vec![image(6), filters([6, 1, 3, 3])]);
    check(conv([2, 1], [1, 1], [[1, 0]; 2], 2), vec![image(4), filters([6, 2, 2, 2])]);
    // Windows of one channel.
    check(conv([2, 2], [1, 1], [[0, 1]; 2], 6), vec![image(6), filters([6, 1, 3, 3])]);
    check(conv([1, 2], [2, 1], [[2, 2], [1, 0]], 5), vec![image(5), filters([5, 1, 3, 2])]);
    check(conv([1, 1], [1, 1], [[0, 0]; 2], 3), vec![image(3), filters([3, 1, 4, 1])]);
    check(conv([3, 1], [1, 1], [[2, 2]; 2], 4), vec![image(4), filters([4, 1, 5, 5])]);
    // Channels of several blocks, the last of which is smaller.
    check(conv([1, 1], [1, 1], [[1, 1]; 2], 1), vec![image(70), filters([19, 70, 3, 3])]);
    check(conv([2, 2], [1, 1], [[0, 0]; 2], 1), vec![image(520), filters([8, 520, 1, 1])]);
}

/// Products of unsigned and signed bytes, beside zeros and other numbers.
#[test]
fn convolutions_of_bytes() {
    let image =
        |channels: i64| ty(DType::U8, [1.into(), channels.into(), n() + 4.into(), m() + 4.into()]);
    let filters = |dims: [i64; 4]| ty(DType::I8, dims.map(irc_tl::Dim::Known));
    for outside in [0, 130] {
        let conv = |strides, dilations, pads, groups| {
            let Op::Conv(conv) = conv(strides, dilations, pads, groups) else { unreachable!() };
            Op::Conv(Conv { outside, ..conv })
        };
        // Channels by four, and fewer.
        check(conv([1, 1], [1, 1], [[1, 1]; 2], 1), vec![image(8), filters([11, 8, 3, 3])]);
        check(conv([1, 1], [1, 1], [[0, 0]; 2], 1), vec![image(20), filters([33, 20, 1, 1])]);
        check(conv([2, 2], [1, 1], [[0, 0]; 2], 1), vec![image(16), filters([8, 16, 1, 1])]);
        check(conv([2, 2], [1, 1], [[3, 3]; 2], 1), vec![image(3), filters([10, 3, 7, 7])]);
        check(conv([1, 2], [2, 1], [[2, 0], [1, 1]], 1), vec![image(2), filters([9, 2, 2, 3])]);
        // Windows of one channel, of one and of several words.
        check(conv([1, 1], [1, 1], [[1, 1]; 2], 6), vec![image(6), filters([6, 1, 3, 3])]);
        check(conv([2, 2], [1, 1], [[1, 0]; 2], 5), vec![image(5), filters([10, 1, 3, 3])]);
        check(conv([1, 1], [1, 1], [[2, 2]; 2], 3), vec![image(3), filters([3, 1, 5, 5])]);
        check(conv([1, 2], [2, 2], [[2, 2]; 2], 3), vec![image(3), filters([3, 1, 2, 5])]);
        // Other numbers of channels, and groups.
        check(conv([1, 1], [1, 1], [[1, 1]; 2], 1), vec![image(6), filters([9, 6, 3, 3])]);
        check(conv([1, 1], [1, 1], [[1, 1]; 2], 2), vec![image(8), filters([18, 4, 3, 3])]);
    }
}

/// The elements of each window of an image of one channel, combined.
fn pool(
    dtype: DType,
    combine: Combine,
    window: [i64; 2],
    [stride, pad]: [i64; 2],
    sizes: [irc_tl::Dim; 2],
) -> (Op, Vec<Type>) {
    let number = Scalar::index;
    let [rows, columns] = sizes.clone();
    let index = |axis: usize, size: irc_tl::Dim| {
        let at = Scalar::Loop(axis + 1) * number(stride) + Scalar::Loop(axis + 3) - number(pad);
        let inside = at.clone().ge(number(0)).and(at.clone().lt(Scalar::Size(size)));
        (at, inside)
    };
    let (row, in_rows) = index(0, rows);
    let (column, in_columns) = index(1, columns);
    let element = Scalar::load(0, [Scalar::Loop(0), row, column]);
    let outside = combine.neutral(dtype).scalar(dtype);
    let body = in_rows.and(in_columns).select(element, outside);
    let [height, width] = [0, 1].map(|axis| {
        let rest = sizes[axis].clone() + (2 * pad - window[axis]).into();
        rest.floor_div(&stride.into()) + 1.into()
    });
    let over = window.map(irc_tl::Dim::Known);
    let image = ty(dtype, [3.into(), sizes[0].clone(), sizes[1].clone()]);
    let compute = Compute::reduce([3.into(), height, width], combine, over, body);
    (Op::compute(compute), vec![image])
}

#[test]
fn pools() {
    let open = || [n() + 4.into(), m() + 4.into()];
    for dtype in [DType::F32, DType::F16, DType::U8, DType::I8] {
        for combine in [Combine::Max, Combine::Min] {
            let (op, operands) = pool(dtype, combine, [3, 3], [2, 1], open());
            check(op, operands);
            // Borders wider than half a window.
            let (op, operands) = pool(dtype, combine, [2, 5], [1, 4], open());
            check(op, operands);
            // Of known sizes.
            let (op, operands) = pool(dtype, combine, [3, 3], [1, 1], [37.into(), 41.into()]);
            check(op, operands);
        }
    }
    let (op, operands) = pool(DType::F32, Combine::Sum, [3, 3], [1, 1], open());
    check(op, operands);
}

/// Several loops are one over columns, but for the one that selects what is added.
#[test]
fn columns_of_several_loops() {
    let mut b = Builder::new();
    let x = b.input("x", ty(DType::F32, [5.into()]));
    let y = b.input("y", ty(DType::F32, [5.into(), 3.into(), n(), 4.into()]));
    let factor = Scalar::load(1, [3, 0, 1, 2].map(Scalar::Loop));
    let product = Scalar::load(0, [Scalar::Loop(3)]) * factor;
    let sums = Compute::reduce([3.into(), n(), 4.into()], Combine::Sum, [5.into()], product);
    let sums = b.op(Op::compute(sums), &[x, y]).unwrap();
    let bias = b.tensor(&f32s([3, 1, 1], 1));
    let sums = b.binary(Binary::Add, sums, bias).unwrap();
    b.output("sums", sums);
    let inputs = |n| vec![("x", f32s([5], 2)), ("y", f32s([5, 3, n, 4], 3))];
    serves(&b.finish(), &inputs, &[0, 1, 7, 20]);
}

#[test]
fn volumes() {
    let conv = Op::Conv(Conv {
        strides: vec![1, 2, 1],
        dilations: vec![1; 3],
        pads: vec![[1, 1]; 3],
        groups: 1,
        outside: 0,
    });
    let volume = [2.into(), 3.into(), 4.into(), n(), m()];
    let filters = [9, 3, 3, 3, 3].map(irc_tl::Dim::Known);
    check(conv, vec![ty(DType::F32, volume), ty(DType::F32, filters)]);
}

#[test]
fn rows() {
    for combine in Combine::ALL {
        let row = Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1)]);
        let reduced = Compute::reduce([n()], combine, [m()], row);
        check(Op::compute(reduced), vec![ty(DType::F32, [n(), m()])]);
        // Planes are rows too.
        let plane = Scalar::load(0, [0, 1, 2].map(Scalar::Loop));
        let reduced = Compute::reduce([3.into()], combine, [n(), m()], plane);
        check(Op::compute(reduced), vec![ty(DType::F32, [3.into(), n(), m()])]);
    }
}
