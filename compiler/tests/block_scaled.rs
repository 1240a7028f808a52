//! Products with operands that are smaller in memory than in registers: integers of a few bits with scales, and narrow floats.
use crate::support::graphs::{f32s, read_back, run, same};
use crate::support::levels::levels;
use irc::{Place, Session, Target, codegen::Backend};
use irc_runtime::{Pool, ThreadPool};
use irc_tensor::{Tensor, TensorType};
use irc_tl::{Binary, Builder, Constant, DType, Dim, Graph, Op, Type, Unary, ValueId};
use std::{collections::BTreeMap, sync::Arc};

/// The form of a right operand, and the rows that it is multiplied by.
#[derive(Debug, Clone, Copy)]
struct Case {
    bits: usize,
    block: usize,
    has_zeros: bool,
    /// Whether the operand is a constant; otherwise it is an input.
    is_constant: bool,
    /// Rows, depth and columns.
    sizes: [i64; 3],
}

const fn case(bits: usize, block: usize, has_zeros: bool, sizes: [i64; 3]) -> Case {
    Case { bits, block, has_zeros, is_constant: true, sizes }
}

/// Rows that tiles convert the operand for, and more; blocks that end at the end of the depth, before it and after it;
/// widths of a part of a vector, of several panels, and of panels with a rest.
const CASES: [Case; 18] = [
    case(4, 32, false, [1, 256, 96]),
    case(4, 16, true, [1, 257, 65]),
    case(4, 32, true, [2, 100, 33]),
    case(4, 64, false, [3, 130, 40]),
    case(4, 128, true, [4, 300, 31]),
    case(4, 32, false, [5, 96, 70]),
    case(4, 256, true, [9, 1500, 50]),
    case(4, 2056, false, [40, 2050, 33]),
    case(4, 32, true, [130, 64, 130]),
    case(8, 16, false, [1, 100, 33]),
    case(8, 32, true, [2, 64, 17]),
    case(8, 128, false, [6, 1300, 40]),
    case(8, 1000, true, [1, 1000, 64]),
    case(2, 16, false, [1, 90, 40]),
    case(2, 64, true, [3, 128, 33]),
    case(2, 64, true, [12, 130, 20]),
    case(4, 32, true, [1, 40, 1]),
    Case { is_constant: false, ..case(4, 32, true, [2, 70, 40]) },
];

/// Products with quantised rows: blocks of all sizes, whole and not, with few rows and more than a tile.
const QUANTISED: [Case; 14] = [
    case(4, 32, false, [1, 256, 96]),
    case(4, 16, true, [2, 272, 65]),
    case(4, 32, true, [3, 96, 33]),
    case(4, 64, false, [5, 136, 40]),
    case(4, 128, true, [8, 384, 31]),
    case(4, 128, false, [40, 640, 48]),
    case(4, 24, true, [7, 56, 17]),
    case(4, 32, false, [9, 41, 20]),
    case(8, 16, false, [1, 112, 33]),
    case(8, 32, true, [6, 64, 17]),
    case(8, 1000, true, [9, 1000, 64]),
    case(2, 64, true, [3, 192, 33]),
    case(2, 16, false, [12, 144, 20]),
    Case { is_constant: false, ..case(4, 32, true, [5, 96, 40]) },
];

impl Case {
    /// The number of blocks along the depth.
    fn blocks(&self) -> i64 {
        (self.sizes[1] as usize).div_ceil(self.block) as i64
    }

    fn op(&self) -> Op {
        Op::BlockScaledMatmul { bits: self.bits, block: self.block }
    }

    /// The codes, the scales, and the zero points, of which some are in the middle and some are not integers.
    fn operands(&self) -> Vec<Tensor> {
        let (columns, blocks) = (self.sizes[2], self.blocks());
        let bytes = blocks * (self.block * self.bits / 8) as i64;
        let codes = Tensor::random(TensorType::new(DType::I8, [columns, bytes]), 1).unwrap();
        let mut operands = vec![codes, f32s([columns, blocks], 2)];
        if self.has_zeros {
            let most = (1_u32 << self.bits) as f64;
            let values = f32s([columns, blocks], 3).to_f64();
            let values = values.into_iter().enumerate().map(|(index, value)| match index % 3 {
                0 => most / 2.0,
                1 => (value.abs() * most).floor().min(most - 1.0),
                _ => value,
            });
            let ty = TensorType::new(DType::F32, [columns, blocks]);
            operands.push(Tensor::from_f64(ty, &values.collect::<Vec<_>>()).unwrap());
        }
        operands
    }

    /// Rows of the left operand: quantised ones have scales.
    fn rows(&self, rows: i64, quantised: bool) -> Vec<(&'static str, Tensor)> {
        let [_, depth, _] = self.sizes;
        if !quantised {
            return vec![("x", f32s([rows, depth], 5))];
        }
        let x = Tensor::random(TensorType::new(DType::I8, [rows, depth]), 5).unwrap();
        vec![("x", x), ("x_scales", f32s([rows, self.blocks()], 6))]
    }

    fn graph(&self, rows: impl Into<Dim>, quantised: bool) -> (Graph, Vec<(&'static str, Tensor)>) {
        let [_, depth, columns] = self.sizes;
        let mut b = Builder::new();
        let mut inputs = vec![];
        let rows: Dim = rows.into();
        let dtype = if quantised { DType::I8 } else { DType::F32 };
        let mut values = vec![b.input("x", Type::new(dtype, [rows.clone(), depth.into()]))];
        for (name, tensor) in ["codes", "scales", "zeros"].into_iter().zip(self.operands()) {
            values.push(match self.is_constant {
                true => b.constant(Constant::of(&tensor)),
                false => b.input(name, Type::from(tensor.ty().clone())),
            });
            if !self.is_constant {
                inputs.push((name, tensor));
            }
        }
        if quantised {
            values.push(b.input("x_scales", Type::new(DType::F32, [rows, self.blocks().into()])));
        }
        let product = b.op(self.op(), &values).unwrap();
        (with_bias(b, product, columns), inputs)
    }
}

/// The product is an output, and so is what follows it.
fn with_bias(mut b: Builder, product: ValueId, columns: i64) -> Graph {
    let bias = b.tensor(&f32s([columns], 7));
    let sum = b.binary(Binary::Add, product, bias).unwrap();
    let y = b.unary(Unary::Relu, sum).unwrap();
    b.output("y", y);
    b.finish()
}

/// Runs a graph on each of some inputs, on 1 to 7 threads.
fn check(graph: &Graph, inputs: &[Vec<(&'static str, Tensor)>], target: Target) {
    let compiled = Session::new().import_graph(graph).library_with(target, Place::Given).unwrap();
    for inputs in inputs {
        let found = run(&compiled, inputs).unwrap();
        same(graph, inputs, &found);
        for threads in [2, 7] {
            let mut runner = compiled.runner().unwrap();
            let pool: Arc<dyn Pool> = Arc::new(ThreadPool::new(threads).unwrap());
            runner.set_pool(&pool).unwrap();
            let named = inputs.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
            let parallel = runner.run(named.collect::<BTreeMap<_, _>>()).unwrap();
            assert_eq!(parallel, found, "on {threads} threads");
        }
    }
}

#[test]
fn blocks_of_integers_are_multiplied_on_every_processor() {
    let levels = levels();
    for (number, case) in CASES.iter().enumerate() {
        let rows = case.sizes[0];
        let (graph, mut inputs) = case.graph(rows, false);
        inputs.extend(case.rows(rows, false));
        let inputs = [inputs];
        check(&read_back(&graph), &inputs, Target::host());
        check(&graph, &inputs, levels[number % levels.len()].clone());
        check(&graph, &inputs, Target::host().with_backend(Backend::QUICK));
    }
}

#[test]
fn the_number_of_rows_may_be_open() {
    for case in [case(4, 32, true, [0, 100, 70]), case(8, 64, false, [0, 1100, 33])] {
        for quantised in [false, true] {
            let (graph, _) = case.graph(Dim::symbol("N"), quantised);
            let rows = [0, 1, 2, 4, 5, 9, 252].into_iter();
            let inputs: Vec<_> = rows.map(|rows| case.rows(rows, quantised)).collect();
            for target in levels() {
                check(&graph, &inputs, target);
            }
        }
    }
}

#[test]
fn quantised_rows_are_multiplied_on_every_processor() {
    let levels = levels();
    for (number, case) in QUANTISED.iter().enumerate() {
        let rows = case.sizes[0];
        let (graph, mut inputs) = case.graph(rows, true);
        inputs.extend(case.rows(rows, true));
        let inputs = [inputs];
        check(&read_back(&graph), &inputs, Target::host());
        check(&graph, &inputs, levels[number % levels.len()].clone());
        check(&graph, &inputs, Target::host().with_backend(Backend::QUICK));
    }
}

/// A graph of a product of `f32` and narrow constants.
fn narrow(dtype: DType, rows: impl Into<Dim>, [depth, columns]: [i64; 2], turned: bool) -> Graph {
    let mut b = Builder::new();
    let x = b.input("x", Type::new(DType::F32, [rows.into(), depth.into()]));
    let shape = if turned { [columns, depth] } else { [depth, columns] };
    let w = Tensor::random(TensorType::new(dtype, shape), 4).unwrap();
    let w = b.constant(Constant::of(&w));
    let op = Op::Matmul { transpose_lhs: false, transpose_rhs: turned };
    let product = b.op(op, &[x, w]).unwrap();
    with_bias(b, product, columns)
}

#[test]
fn narrow_constants_are_converted_where_they_are_multiplied() {
    let cases = [
        (1, [257, 65], false),
        (1, [64, 40], true),
        (3, [100, 33], true),
        (8, [1100, 70], false),
        (9, [130, 31], true),
        (40, [1100, 130], false),
    ];
    for (number, (rows, sizes, turned)) in cases.into_iter().enumerate() {
        let dtype = [DType::F16, DType::BF16][number % 2];
        let graph = narrow(dtype, rows, sizes, turned);
        let inputs = [vec![("x", f32s([rows, sizes[0]], 5))]];
        for target in levels() {
            check(&graph, &inputs, target);
        }
    }
    let graph = narrow(DType::F16, Dim::symbol("N"), [300, 70], false);
    let inputs = |rows: &i64| vec![("x", f32s([*rows, 300], 5))];
    let inputs: Vec<_> = [1, 7, 8, 9, 300].iter().map(inputs).collect();
    check(&graph, &inputs, Target::host());
}

/// What is constant is packed in panels and as narrow as before.
#[test]
fn constants_stay_small() {
    let sizes = [1, 256, 96];
    let of_codes = case(4, 32, false, sizes);
    let codes = of_codes.operands().swap_remove(0);
    let halves = Tensor::random(TensorType::new(DType::F16, [256, 96]), 4).unwrap();
    let of_halves = narrow(DType::F16, 1, [256, 96], false);
    for (graph, given) in [(of_codes.graph(1, false).0, codes), (of_halves, halves)] {
        let dtype = given.dtype();
        let compiled =
            Session::new().import_graph(&graph).library_with(Target::host(), Place::Given).unwrap();
        let found: Vec<_> = compiled.constants.iter().filter(|it| it.ty.dtype == dtype).collect();
        assert_eq!(found.len(), 1, "{dtype}");
        assert_eq!(found[0].bytes.len(), given.bytes().len(), "{dtype}");
        assert_ne!(found[0].bytes[..], given.bytes()[..], "{dtype}");
    }
}
