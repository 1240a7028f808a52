//! Products and convolutions of unsigned and signed bytes, which are exact, against the evaluator.

use crate::support::levels::levels;
use irc::{Place, Session, Target, codegen::Backend};
use irc_tensor::Tensor;
use irc_tl::{Binary, Builder, Constant, Conv, DType, Graph, Op, Type};
use std::collections::BTreeMap;

/// Bytes of all values; those of a type are the same for the same seed.
fn bytes(dtype: DType, shape: &[i64], seed: u64) -> Tensor {
    let small = Tensor::random(irc_tensor::TensorType::new(dtype, shape), seed).unwrap();
    let spread = small.bytes().iter().map(|byte| byte.wrapping_mul(29));
    match dtype {
        DType::I8 => {
            let bytes: Vec<i8> = spread.map(u8::cast_signed).collect();
            Tensor::from_values(shape.to_vec(), &bytes).unwrap()
        }
        _ => Tensor::from_values(shape.to_vec(), &spread.collect::<Vec<u8>>()).unwrap(),
    }
}

/// How an operand is given.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Given {
    Constant,
    /// A constant of this number and its negative.
    Extremes(i8),
    Input,
}

/// An op on two operands, and the sum of its result and a bias of each filter or column.
struct Case {
    op: Op,
    operands: [(DType, Vec<i64>, Given); 2],
    bias: Vec<i64>,
}

fn conv(x: &[i64], w: &[i64], [stride, pad, groups, outside]: [i64; 4]) -> Case {
    let spatial = x.len() - 2;
    let conv = Conv {
        strides: vec![stride; spatial],
        dilations: vec![1; spatial],
        pads: vec![[pad; 2]; spatial],
        groups,
        outside,
    };
    let mut bias = vec![1; spatial + 1];
    bias[0] = w[0];
    let operands =
        [(DType::U8, x.to_vec(), Given::Input), (DType::I8, w.to_vec(), Given::Constant)];
    Case { op: Op::Conv(conv), operands, bias }
}

fn matmul(types: [DType; 2], lhs: &[i64], rhs: &[i64], transpose_rhs: bool, given: Given) -> Case {
    let columns = rhs[rhs.len() - if transpose_rhs { 2 } else { 1 }];
    let operands = [(types[0], lhs.to_vec(), Given::Input), (types[1], rhs.to_vec(), given)];
    Case { op: Op::Matmul { transpose_lhs: false, transpose_rhs }, operands, bias: vec![columns] }
}

fn convolutions() -> Vec<Case> {
    vec![
        // Filters of one element; with steps of 2, on even and odd sizes; small images are columns.
        conv(&[1, 64, 14, 14], &[40, 64, 1, 1], [1, 0, 1, 0]),
        conv(&[2, 64, 14, 14], &[32, 64, 1, 1], [2, 0, 1, 0]),
        conv(&[1, 16, 15, 15], &[8, 16, 1, 1], [2, 0, 1, 0]),
        conv(&[1, 160, 7, 7], &[64, 160, 1, 1], [1, 0, 1, 0]),
        // Windows, beside zeros and another value; a depth of several blocks.
        conv(&[1, 32, 14, 14], &[20, 32, 3, 3], [1, 1, 1, 0]),
        conv(&[1, 32, 14, 14], &[20, 32, 3, 3], [1, 1, 1, 255]),
        conv(&[1, 16, 28, 27], &[12, 16, 3, 3], [2, 1, 1, 7]),
        conv(&[1, 512, 7, 7], &[32, 512, 3, 3], [1, 1, 1, 0]),
        conv(&[3, 12, 9, 9], &[5, 12, 3, 3], [1, 1, 1, 3]),
        // As many channels as fill one element, or fewer, or not a multiple.
        conv(&[1, 4, 12, 12], &[8, 4, 3, 3], [1, 1, 1, 9]),
        conv(&[1, 3, 32, 32], &[32, 3, 7, 7], [2, 3, 1, 129]),
        conv(&[2, 1, 16, 16], &[8, 1, 3, 3], [1, 1, 1, 9]),
        conv(&[1, 6, 12, 12], &[8, 6, 3, 3], [1, 1, 1, 9]),
        // Groups: with many filters, and depthwise.
        conv(&[1, 32, 14, 14], &[32, 8, 3, 3], [1, 1, 4, 5]),
        conv(&[1, 12, 14, 14], &[12, 6, 3, 3], [1, 1, 2, 5]),
        conv(&[2, 8, 30, 19], &[8, 1, 3, 3], [1, 1, 8, 200]),
        conv(&[1, 8, 28, 28], &[8, 1, 5, 5], [2, 2, 8, 0]),
        conv(&[1, 8, 11, 26], &[8, 1, 3, 3], [1, 0, 8, 0]),
        // Depthwise, of small images and of several vectors and tiles; windows of less and more than four columns.
        conv(&[2, 6, 7, 7], &[6, 1, 3, 3], [1, 1, 6, 0]),
        conv(&[2, 5, 33, 50], &[5, 1, 3, 3], [1, 1, 5, 0]),
        conv(&[1, 5, 44, 71], &[5, 1, 3, 3], [2, 1, 5, 0]),
        conv(&[1, 4, 30, 40], &[4, 1, 4, 4], [1, 1, 4, 0]),
        conv(&[1, 4, 20, 70], &[4, 1, 5, 5], [1, 2, 4, 0]),
        conv(&[1, 3, 25, 40], &[3, 1, 7, 7], [2, 3, 3, 0]),
        conv(&[1, 70, 9, 20], &[2, 70, 3, 3], [1, 1, 1, 4]),
        small_conv(&[1, 32, 14, 14], &[20, 32, 3, 3], [1, 1, 1, 255]),
        small_conv(&[1, 64, 14, 14], &[40, 64, 1, 1], [1, 0, 1, 0]),
    ]
}

/// Filters whose elements are small, beside an operand that may be large.
fn small_conv(x: &[i64], w: &[i64], parameters: [i64; 4]) -> Case {
    let mut case = conv(x, w, parameters);
    case.operands[1].2 = Given::Extremes(64);
    case
}

fn products() -> Vec<Case> {
    let mixed = [DType::U8, DType::I8];
    let turned = [DType::I8, DType::U8];
    vec![
        matmul(mixed, &[33, 64], &[64, 48], false, Given::Constant),
        matmul(mixed, &[33, 64], &[64, 48], false, Given::Input),
        matmul(mixed, &[17, 1028], &[1028, 33], false, Given::Constant),
        matmul(mixed, &[1, 1280], &[100, 1280], true, Given::Constant),
        matmul(mixed, &[9, 128], &[40, 128], true, Given::Input),
        matmul(mixed, &[9, 128], &[40, 128], true, Given::Constant),
        matmul(mixed, &[5, 30], &[30, 20], false, Given::Constant),
        matmul(mixed, &[9, 127], &[40, 127], true, Given::Constant),
        matmul(turned, &[2, 9, 33], &[2, 33, 20], false, Given::Constant),
        matmul(mixed, &[5, 4], &[4, 20], false, Given::Constant),
        matmul(mixed, &[2, 9, 64], &[2, 64, 20], false, Given::Constant),
        matmul(turned, &[20, 64], &[64, 33], false, Given::Constant),
        matmul(turned, &[20, 64], &[64, 33], false, Given::Input),
        // Up to 64, pairs of products fit in 16 bits; with 65 they do not.
        matmul(mixed, &[33, 64], &[64, 48], false, Given::Extremes(64)),
        matmul(mixed, &[33, 64], &[64, 48], false, Given::Extremes(65)),
        matmul(mixed, &[1, 1280], &[100, 1280], true, Given::Extremes(64)),
        matmul(mixed, &[9, 128], &[40, 128], true, Given::Extremes(64)),
    ]
}

impl Case {
    fn operand(&self, index: usize) -> Tensor {
        let (dtype, shape, given) = &self.operands[index];
        let random = bytes(*dtype, shape, index as u64 + 1);
        let Given::Extremes(number) = *given else { return random };
        let sign = |byte: &u8| if *byte < 200 { number } else { -number };
        let numbers: Vec<i8> = random.bytes().iter().map(sign).collect();
        Tensor::from_values(shape.clone(), &numbers).unwrap()
    }

    fn graph(&self) -> (Graph, BTreeMap<String, Tensor>) {
        let mut b = Builder::new();
        let mut inputs = BTreeMap::new();
        let mut values = vec![];
        for index in 0..2 {
            let tensor = self.operand(index);
            values.push(match self.operands[index].2 {
                Given::Constant | Given::Extremes(_) => b.constant(Constant::of(&tensor)),
                Given::Input => {
                    let name = format!("x{index}");
                    let value = b.input(&name, Type::from(tensor.ty().clone()));
                    inputs.insert(name, tensor);
                    value
                }
            });
        }
        let product = b.op(self.op.clone(), &values).unwrap();
        let count: i64 = self.bias.iter().product();
        let bias: Vec<i32> = (0..count as i32).map(|filter| 1000 * filter - 5000).collect();
        let bias =
            b.constant(Constant::of(&Tensor::from_values(self.bias.clone(), &bias).unwrap()));
        let sum = b.binary(Binary::Add, product, bias).unwrap();
        // As quantised models go on.
        let float = b.cast(sum, DType::F32).unwrap();
        let scale = b.scalar(0.003, DType::F32).unwrap();
        let scaled = b.binary(Binary::Mul, float, scale).unwrap();
        let quantised = b.cast(scaled, DType::U8).unwrap();
        b.output("sum", sum);
        b.output("quantised", quantised);
        (b.finish(), inputs)
    }

    fn check(&self, targets: [Target; 3]) {
        let (graph, inputs) = self.graph();
        let expected = graph.eval(&inputs).unwrap();
        for target in targets {
            let what = format!("{:?} on {}, {:?}", self.op, target.cpu, target.backend);
            let compiled =
                Session::new().import_graph(&graph).library_with(target, Place::Given).unwrap();
            let found = compiled.runner().unwrap().run(inputs.clone()).unwrap();
            for (name, expected) in ["sum", "quantised"].into_iter().zip(&expected) {
                assert_eq!(found[name].dtype(), expected.dtype(), "{name} of {what}");
                let differs = found[name].to_f64().into_iter().zip(expected.to_f64());
                let place = differs.enumerate().find(|(_, (found, expected))| found != expected);
                assert_eq!(place, None, "{name} of {what}");
            }
        }
    }
}

#[test]
fn convolutions_are_exact_on_every_processor() {
    check(&convolutions());
}

#[test]
fn products_are_exact_on_every_processor() {
    check(&products());
}

fn check(cases: &[Case]) {
    let levels = levels();
    for (number, case) in cases.iter().enumerate() {
        let quick = Target::host().with_backend(Backend::QUICK);
        case.check([Target::host(), levels[number % levels.len()].clone(), quick]);
    }
}

/// Rows and columns of extremes, so deep that 32 bits hold the sums of so many products, but not of 256 times them.
#[test]
fn the_largest_sums_are_exact() {
    for (rows, byte) in [(1, -128_i8), (2, 127), (4, -128), (9, -128)] {
        let (depth, columns) = (2 * 1024 + 36, 37);
        let mut b = Builder::new();
        let x = b.input("x", Type::new(DType::U8, [rows, depth].map(irc_tl::Dim::Known)));
        let w = vec![byte; (depth * columns) as usize];
        let w = b.constant(Constant::of(&Tensor::from_values([depth, columns], &w).unwrap()));
        let y = b.matmul(x, w).unwrap();
        b.output("y", y);
        let graph = b.finish();
        let x = vec![255_u8; (rows * depth) as usize];
        let inputs =
            BTreeMap::from([("x".to_owned(), Tensor::from_values([rows, depth], &x).unwrap())]);
        for target in levels() {
            let compiled =
                Session::new().import_graph(&graph).library_with(target, Place::Given).unwrap();
            let found = compiled.runner().unwrap().run(inputs.clone()).unwrap();
            let expected = 255.0 * f64::from(byte) * depth as f64;
            assert!(found["y"].to_f64().iter().all(|sum| *sum == expected), "{rows} rows, {byte}");
        }
    }
}

/// Small signed bytes are multiplied by instructions that saturate for others, so they stay bytes.
#[test]
fn small_weights_are_packed_as_bytes() {
    for (number, copies) in [(64, 1), (65, 2)] {
        let given = Given::Extremes(number);
        let case = matmul([DType::U8, DType::I8], &[33, 64], &[64, 64], false, given);
        let target = Target::from_name("x86-64-v3");
        let (graph, _) = case.graph();
        let compiled =
            Session::new().import_graph(&graph).library_with(target, Place::Given).unwrap();
        let sizes: Vec<usize> = compiled.constants.iter().map(|it| it.bytes.len()).collect();
        assert!(sizes.contains(&(copies * 64 * 64)), "{sizes:?} for {number}");
    }
}

/// Constants are packed as bytes, and for processors that multiply pairs of 16-bit integers as those, unless there are few
/// rows, for which they are read from memory.
#[test]
fn weights_are_packed_as_the_processor_multiplies_them() {
    let product =
        |rows: i64| matmul([DType::U8, DType::I8], &[rows, 64], &[64, 64], false, Given::Constant);
    let conv = conv(&[1, 64, 14, 14], &[48, 64, 3, 3], [1, 1, 1, 0]);
    for (case, is_extended) in [(conv, true), (product(33), true), (product(12), false)] {
        let (graph, _) = case.graph();
        for (cpu, is_paired) in [("x86-64", false), ("x86-64-v3", true), ("znver4", false)] {
            let target = Target::from_name(cpu);
            let compiled =
                Session::new().import_graph(&graph).library_with(target, Place::Given).unwrap();
            let copies = if is_paired && is_extended { 2 } else { 1 };
            let elements = copies * case.operands[1].1.iter().product::<i64>();
            let found = compiled.constants.iter().find(|it| it.bytes.len() as i64 == elements);
            let found = found.unwrap_or_else(|| panic!("no weights of {elements} bytes on {cpu}"));
            assert_eq!((found.ty.dtype, &found.ty.shape[..]), (DType::I8, &[elements][..]));
            assert_ne!(found.bytes[..], case.operand(1).bytes()[..], "{:?}", case.op);
        }
    }
}
