//! Random expressions, shapes and parameters of ops.

use super::case::*;
use irc_mlir::ops::func;
use irc_tensor::{DType, Tensor, TensorType};
use irc_tl::{Binary, Combine, Comparison, Compute, Conv, Dim, Op, Reduction, Scalar, Unary};

/// Random expressions in a small grammar, whose every function is exact.
struct Grammar {
    state: u64,
    dtype: DType,
    shapes: Vec<Vec<i64>>,
    loops: usize,
}

impl Grammar {
    fn below(&mut self, count: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 33) as usize % count
    }

    /// An index expression, and the same within an extent.
    fn index(&mut self, depth: usize) -> Scalar {
        match self.below(if depth == 0 { 2 } else { 5 }) {
            0 if self.loops > 0 => Scalar::Loop(self.below(self.loops)),
            0 | 1 => Scalar::index(self.below(5) as i64 - 1),
            2 => self.index(depth - 1) + self.index(depth - 1),
            3 => self.index(depth - 1) * Scalar::index(2),
            _ => self.index(depth - 1) - self.index(depth - 1),
        }
    }

    fn load(&mut self) -> Scalar {
        let operand = self.below(self.shapes.len());
        let shape = self.shapes[operand].clone();
        let plain: Vec<_> = shape.iter().map(|_| self.index(2)).collect();
        let guarded = self.below(2) == 0;
        if !guarded {
            let wrap = |(index, extent): (&Scalar, &i64)| {
                index.clone().binary(Binary::Mod, Scalar::index(*extent))
            };
            let at: Vec<_> = plain.iter().zip(&shape).map(wrap).collect();
            return Scalar::load(operand, at);
        }
        let inside = plain.iter().zip(&shape).map(|(index, extent)| {
            let low = index.clone().ge(Scalar::index(0));
            low.and(index.clone().lt(Scalar::index(*extent)))
        });
        let inside = inside.reduce(Scalar::and);
        let load = Scalar::load(operand, plain);
        inside.map_or(load.clone(), |inside| inside.select(load, Scalar::number(2, self.dtype)))
    }

    fn value(&mut self, depth: usize) -> Scalar {
        if depth == 0 {
            return match self.below(4) {
                0 => Scalar::number(self.below(7) as i64 - 3, self.dtype),
                _ => self.load(),
            };
        }
        let dtype = self.dtype;
        match self.below(6) {
            0 => {
                let exact = [Unary::Neg, Unary::Abs, Unary::Sign, Unary::Relu];
                let function = exact[self.below(4)];
                self.value(depth - 1).unary(function)
            }
            1 | 2 => {
                let takes: Vec<_> = Binary::ALL
                    .into_iter()
                    .filter(|f| f.takes(dtype) && *f != Binary::Pow)
                    .collect();
                let function = takes[self.below(takes.len())];
                let exact = !(dtype.is_float() && function == Binary::Mod);
                let function = if exact { function } else { Binary::Rem };
                self.value(depth - 1).binary(function, self.value(depth - 1))
            }
            3 => {
                let comparison = Comparison::ALL[self.below(6)];
                let condition = self.value(depth - 1).compare(comparison, self.value(depth - 1));
                condition.select(self.value(depth - 1), self.value(depth - 1))
            }
            4 => {
                let through = DType::NUMBERS[self.below(DType::NUMBERS.len())];
                self.value(depth - 1).cast(through).cast(dtype)
            }
            _ => self.load(),
        }
    }
}

/// A random op around a random expression, and its operands.
fn random_compute(seed: u64) -> Case {
    let mut grammar = Grammar { state: seed, dtype: DType::F32, shapes: vec![], loops: 0 };
    let numeric: Vec<_> =
        DType::NUMBERS.iter().copied().filter(|dtype| *dtype != DType::Bool).collect();
    (0..8).for_each(|_| _ = grammar.below(2));
    grammar.dtype = numeric[grammar.below(numeric.len())];
    for _ in 0..=grammar.below(3) {
        let rank = grammar.below(4);
        let shape = (0..rank).map(|_| grammar.below(5) as i64 + 1).collect();
        grammar.shapes.push(shape);
    }
    let rank = grammar.below(4);
    let extents = [0, 1, 2, 3, 5, 9, 21];
    let dims: Vec<_> =
        (0..rank).map(|_| Dim::Known(extents[grammar.below(extents.len())])).collect();
    let over: Vec<_> = (0..grammar.below(3)).map(|_| Dim::Known(grammar.below(5) as i64)).collect();
    grammar.loops = dims.len() + over.len();
    let body = grammar.value(4);
    let combine = match grammar.below(4) {
        // Other orders of floats round otherwise.
        0 if !grammar.dtype.is_float() => Combine::Sum,
        1 if !grammar.dtype.is_float() => Combine::Product,
        0 | 2 => Combine::Min,
        _ => Combine::Max,
    };
    let compute = if over.is_empty() {
        Compute::map(dims, body)
    } else {
        Compute::reduce(dims, combine, over, body)
    };
    let operands: Vec<_> =
        grammar.shapes.iter().map(|shape| numbers(grammar.dtype, shape, seed)).collect();
    case(Op::compute(compute), &operands.iter().collect::<Vec<_>>()).within(0.0)
}

#[test]
fn random_expressions_mean_what_they_mean() {
    let cases: Vec<_> = (0..120).map(|seed| random_compute(seed * 7919 + 1)).collect();
    check(&cases);
}

/// A number sequence of its own for each test.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, count: i64) -> i64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i64 % count
    }

    pub(super) fn shape(&mut self, rank: i64, most: i64) -> Vec<i64> {
        (0..rank).map(|_| 1 + self.below(most)).collect()
    }
}

fn random_conv(random: &mut Random) -> Case {
    let spatial = 1 + random.below(3);
    let groups = 1 + random.below(3);
    let (channels, filters) = (1 + random.below(3), 1 + random.below(7));
    let taps = random.shape(spatial, 3);
    let mut each =
        |least: i64, most: i64| (0..spatial).map(|_| least + random.below(most)).collect();
    let (strides, dilations): (Vec<i64>, Vec<i64>) = (each(1, 3), each(1, 2));
    let (before, after): (Vec<i64>, Vec<i64>) = (each(0, 3), each(-1, 4));
    let pads = before.into_iter().zip(after).map(|(before, after)| [before, after]).collect();
    let mut x = vec![1 + random.below(2), channels * groups];
    x.extend(random.shape(spatial, 9));
    let w = [vec![filters * groups, channels], taps].concat();
    let conv = Op::Conv(Conv { strides, dilations, pads, groups, outside: 0 });
    let dtype = [DType::F32, DType::F16, DType::F64, DType::I32][random.below(4) as usize];
    let (x, w) = (calm(&numbers(dtype, &x, 1)), calm(&numbers(dtype, &w, 2)));
    case(conv, &[&x, &w]).within(64.0)
}

#[test]
fn convolutions_of_any_rank_and_step() {
    let mut random = Random(1);
    let cases: Vec<_> = (0..60).map(|_| random_conv(&mut random)).collect();
    check(&cases);
}

fn random_matmul(random: &mut Random, dtype: DType) -> Case {
    let [m, n, k] = [1, 2, 3].map(|_| [1, 2, 5, 17][random.below(4) as usize]);
    let rank = random.below(3);
    let batch = random.shape(rank, 3);
    let [transpose_lhs, transpose_rhs] = [1, 2].map(|_| random.below(2) == 1);
    let mut side = |transposed: bool, [rows, columns]: [i64; 2]| {
        let from = random.below(batch.len() as i64 + 1) as usize;
        let thin = |extent: &i64| if random.below(3) == 0 { 1 } else { *extent };
        let mut shape: Vec<_> = batch[from..].iter().map(thin).collect();
        shape.extend(if transposed { [columns, rows] } else { [rows, columns] });
        calm(&numbers(dtype, &shape, 5))
    };
    let (lhs, rhs) = (side(transpose_lhs, [m, k]), side(transpose_rhs, [k, n]));
    case(Op::Matmul { transpose_lhs, transpose_rhs }, &[&lhs, &rhs]).within(16.0)
}

fn random_move(random: &mut Random, dtype: DType) -> Case {
    let rank = random.below(5);
    let shape = random.shape(rank, 5);
    let x = numbers(dtype, &shape, 8);
    match random.below(6) {
        0 => {
            let mut permutation: Vec<usize> = (0..shape.len()).collect();
            (1..shape.len())
                .for_each(|at| permutation.swap(at, random.below(at as i64 + 1) as usize));
            case(Op::Transpose { permutation }, &[&x])
        }
        1 => {
            let wide = shape.iter().map(|dim| if *dim == 1 { 1 + random.below(4) } else { *dim });
            let wide: Vec<_> = wide.collect();
            let new = random.below(2);
            let shape = [random.shape(new, 3), wide].concat();
            case(Op::Broadcast { shape }, &[&x])
        }
        2 => {
            let sizes: Vec<_> = shape.iter().map(|dim| 1 + random.below(*dim)).collect();
            let room = shape.iter().zip(&sizes).map(|(dim, size)| dim - size);
            let offsets: Vec<_> = room.map(|room| random.below(room + 1)).collect();
            if random.below(2) == 0 {
                return case(Op::Slice { offsets, sizes }, &[&x]);
            }
            case(Op::Update { offsets }, &[&x, &numbers(dtype, &sizes, 9)])
        }
        3 => {
            let thin = |dim: &i64| if random.below(2) == 0 { 1 } else { *dim };
            let other: Vec<_> = shape.iter().map(thin).collect();
            let from = random.below(other.len() as i64 + 1) as usize;
            case(Op::Compare(Comparison::Le), &[&x, &numbers(dtype, &other[from..], 9)])
        }
        4 => {
            let axes: Vec<_> = (0..shape.len()).filter(|_| random.below(2) == 0).collect();
            let kind = [Reduction::Max, Reduction::Min, Reduction::Sum][random.below(3) as usize];
            let keep_dims = random.below(2) == 0;
            case(Op::Reduce { kind, axes, keep_dims }, &[&calm(&x)]).within(16.0)
        }
        _ => {
            let rank = random.below(3);
            let mut index =
                Tensor::zeros(TensorType::new(DType::I32, random.shape(rank, 4))).unwrap();
            let table = numbers(dtype, &[1 + random.below(5), 1 + random.below(9)], 3);
            let rows = table.shape()[0];
            for at in 0..index.elements() {
                set_integer(&mut index, at, i128::from(random.below(2 * rows) - rows));
            }
            case(Op::Gather, &[&table, &index])
        }
    }
}

#[test]
fn random_shapes_move_and_multiply() {
    for (seed, dtype) in [DType::F32, DType::BF16, DType::I64, DType::U8].into_iter().enumerate() {
        let mut random = Random(seed as u64 + 17);
        let mut cases: Vec<_> = (0..25).map(|_| random_matmul(&mut random, dtype)).collect();
        cases.extend((0..60).map(|_| random_move(&mut random, dtype)));
        check(&cases);
    }
}

#[test]
fn general_ops_written_into_each_other_keep_every_bit() {
    let text = r#"
        func.func @main(%x: tensor<6x9xf16>, %y: tensor<9xf16>) -> (tensor<9x6xf16>, tensor<6xf16>) {
          %a = tl.compute(%x, %y) "%0[i0, i1] * %1[i1] + 0.3 : f16" : (tensor<6x9xf16>, tensor<9xf16>) -> tensor<6x9xf16>
          %b = tl.compute(%a) "select(i0 > 2, %0[i1, i0] / 3.0 : f16, %0[i1, i0])" : (tensor<6x9xf16>) -> tensor<9x6xf16>
          %c = tl.compute(%b, %x, %b) "max(%0[i0, i1], %1[i1, i0]) - %2[i0, i1]" : (tensor<9x6xf16>, tensor<6x9xf16>, tensor<9x6xf16>) -> tensor<9x6xf16>
          %d = tl.compute(%x, %y) "abs(%0[i0, i1]) + %1[i1]" : (tensor<6x9xf16>, tensor<9xf16>) -> tensor<6x9xf16>
          %e = tl.compute(%d) "%0[i0, 8 - i1]" combine "max" over ["9"] : (tensor<6x9xf16>) -> tensor<6xf16>
          %f = tl.compute(%e) "%0[i0] * %0[i0]" : (tensor<6xf16>) -> tensor<6xf16>
          return %c, %f : tensor<9x6xf16>, tensor<6xf16>
        }"#;
    let context = irc_dialects::new_context();
    let mut module = irc_mlir::parse_module(&context, text).unwrap();
    let inputs = vec![numbers(DType::F16, &[6, 9], 1), numbers(DType::F16, &[9], 2)];
    let functions = irc_mlir::walk_collect(module.as_operation(), |op| {
        irc_mlir::read::op_name(&op) == func::FUNC
    });
    let expected = irc::eval::evaluate(functions[0], &inputs).unwrap();
    let found = run_module(&context, &mut module, inputs);
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(difference(found, expected, 0.0), None);
    }
}
