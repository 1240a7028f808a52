//! Convolutions by Winograd's algorithm, against the evaluator in `f64`.

use crate::support::{graphs::f32s, levels::widths};
use irc::{Compiled, Place, Session, Target, codegen::Backend};
use irc_tensor::{DType, Tensor, TensorType};
use irc_tl::{Binary, Builder, Constant, Conv, Dim, Graph, Op, Type, Unary};
use std::{collections::BTreeMap, sync::Arc};

/// The bound that docs/kernels.md states, relative to the largest element of the result before what follows.
const BOUND: f64 = 2e-5;

struct Case {
    images: i64,
    channels: i64,
    filters: i64,
    size: [i64; 2],
    pads: [[i64; 2]; 2],
    /// The type of the images, filters and result.
    dtype: DType,
}

impl Case {
    fn op(&self) -> Op {
        let (strides, dilations, pads) = (vec![1, 1], vec![1, 1], self.pads.to_vec());
        Op::Conv(Conv { strides, dilations, pads, groups: 1, outside: 0 })
    }

    fn x(&self) -> Tensor {
        self.random(&[self.images, self.channels, self.size[0], self.size[1]], 1)
    }

    fn w(&self) -> Tensor {
        self.random(&[self.filters, self.channels, 3, 3], 2)
    }

    fn random(&self, shape: &[i64], seed: u64) -> Tensor {
        Tensor::random(TensorType::new(self.dtype, shape), seed).unwrap()
    }

    /// How far a number of the result's type is from the one it stands for, relative to that.
    fn rounding(&self) -> f64 {
        match self.dtype {
            DType::F16 => 2f64.powi(-11),
            DType::BF16 => 2f64.powi(-8),
            _ => 0.0,
        }
    }

    /// The convolution alone, or with a bias, a second operand and a function after it; of images of this size, or of open
    /// size.
    fn graph(&self, is_followed: bool, is_open: bool) -> Graph {
        let mut b = Builder::new();
        let ty = |tensor: &Tensor| {
            let mut ty = Type::from(tensor.ty().clone());
            let sizes = ["H", "W"].into_iter().enumerate().filter(|_| is_open);
            for (axis, name) in sizes {
                let more = tensor.ty().shape[axis + 2] - self.size[axis];
                ty.dims[axis + 2] = Dim::symbol(name) + more.into();
            }
            ty
        };
        let x = b.input("x", ty(&self.x()));
        let w = b.constant(Constant::of(&self.w()));
        let mut y = b.op(self.op(), &[x, w]).unwrap();
        if is_followed {
            let bias = b.constant(Constant::of(&f32s([self.filters, 1, 1], 3)));
            let z = b.input("z", ty(&self.z()));
            y = b.binary(Binary::Add, y, bias).unwrap();
            y = b.binary(Binary::Add, y, z).unwrap();
            y = b.op(Op::Unary(Unary::Relu), &[y]).unwrap();
        }
        b.output("y", y);
        b.finish()
    }

    /// The second operand.
    fn z(&self) -> Tensor {
        let [height, width] =
            [0, 1].map(|axis| self.size[axis] + self.pads[axis][0] + self.pads[axis][1] - 2);
        f32s([self.images, self.filters, height, width], 4)
    }

    /// The result in `f64`, and the largest element of the convolution.
    fn expected(&self, is_followed: bool) -> (Vec<f64>, f64) {
        let wide = |tensor: &Tensor| {
            Tensor::from_values(tensor.ty().shape.clone(), &tensor.to_f64()).unwrap()
        };
        let product = self.op().eval(&[&wide(&self.x()), &wide(&self.w())]).unwrap();
        let largest =
            product.to_f64().into_iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        if !is_followed {
            return (product.to_f64(), largest);
        }
        let bias = wide(&f32s([self.filters, 1, 1], 3));
        let add = Op::Binary(Binary::Add);
        let sum = add.eval(&[&add.eval(&[&product, &bias]).unwrap(), &wide(&self.z())]).unwrap();
        (sum.to_f64().into_iter().map(|value| value.max(0.0)).collect(), largest)
    }

    /// The number of transformed filters, after the results were compared.
    fn transformed(&self, target: Target, is_followed: bool) -> usize {
        self.transformed_as(target, is_followed, &self.expected(is_followed))
    }

    /// The same, with the expected result.
    fn transformed_as(
        &self,
        target: Target,
        is_followed: bool,
        expected: &(Vec<f64>, f64),
    ) -> usize {
        let compiled = compiled(&self.graph(is_followed, false), target);
        self.compare(&compiled, is_followed, expected);
        self.filters_of(&compiled)
    }

    /// Compares results with those expected.
    fn compare(
        &self,
        compiled: &Compiled,
        is_followed: bool,
        (expected, largest): &(Vec<f64>, f64),
    ) {
        let mut inputs = BTreeMap::from([("x".to_owned(), self.x())]);
        if is_followed {
            inputs.insert("z".to_owned(), self.z());
        }
        let found = compiled.runner().unwrap().run(inputs).unwrap();
        for (place, (found, expected)) in found["y"].to_f64().into_iter().zip(expected).enumerate()
        {
            let bound = BOUND * largest + self.rounding() * expected.abs();
            assert!(
                (found - expected).abs() <= bound,
                "element {place} of {:?}: {found}, not {expected}",
                self.size
            );
        }
    }

    /// The number of transformed filters.
    fn filters_of(&self, compiled: &Compiled) -> usize {
        // Panels have some rows more; a transformed filter has 16 elements or more for 9.
        let filters = (9 * self.filters * self.channels) as usize;
        let is_transformed = |weight: &&Constant| weight.ty.elements().unwrap() > filters * 3 / 2;
        compiled.constants.iter().filter(is_transformed).count()
    }
}

fn compiled(graph: &Graph, target: Target) -> Arc<Compiled> {
    Session::new().import_graph(graph).library_with(target, Place::Given).unwrap()
}

const SAME: [[i64; 2]; 2] = [[1, 1], [1, 1]];

/// A convolution of one image to one of the same size.
fn of(channels: i64, filters: i64, size: [i64; 2]) -> Case {
    Case { images: 1, channels, filters, size, pads: SAME, dtype: DType::F32 }
}

#[test]
fn of_every_size_and_on_every_processor() {
    let cases = [
        // Whole tiles and chunks; neither; several blocks of tiles; panels of filters that are not full.
        of(8, 16, [16, 16]),
        of(9, 21, [13, 17]),
        of(16, 40, [23, 70]),
        of(64, 8, [14, 14]),
        Case { images: 3, pads: [[0, 0], [0, 0]], ..of(12, 9, [15, 22]) },
        Case { images: 2, pads: [[2, 0], [1, 3]], ..of(8, 8, [19, 12]) },
        // Small images, in tiles of 2 by 2.
        of(8, 24, [7, 7]),
        Case { images: 2, ..of(24, 19, [8, 6]) },
        of(16, 16, [6, 8]),
    ];
    for (number, case) in cases.iter().enumerate() {
        let is_followed = number % 2 == 0;
        let expected = case.expected(is_followed);
        for target in widths() {
            let width = target.vector_bytes();
            if width >= 32 {
                let count = case.transformed_as(target, is_followed, &expected);
                assert_eq!(count, 1, "{:?}, {width}", case.size);
            }
        }
    }
    // Vectors of 16 bytes hold too few tiles.
    let quick = Target::host().with_backend(Backend::QUICK);
    assert_eq!(cases[1].transformed(quick, true), 0);
}

/// Halves are transformed, multiplied and added in single precision, and rounded once.
#[test]
fn of_halves() {
    for dtype in [DType::F16, DType::BF16] {
        for (channels, filters, size) in [(8, 16, [16, 16]), (9, 21, [13, 17]), (8, 24, [7, 7])] {
            let case = Case { dtype, ..of(channels, filters, size) };
            let expected = case.expected(false);
            for target in widths().into_iter().filter(|target| target.vector_bytes() >= 32) {
                assert_eq!(case.transformed_as(target, false, &expected), 1, "{size:?}");
            }
        }
    }
}

/// One program serves images smaller than a tile, and those of several blocks of tiles, of which the last has one vector or two.
#[test]
fn of_open_sizes() {
    let sizes = [[1, 1], [2, 3], [4, 4], [7, 7], [9, 8], [13, 17], [16, 33], [31, 9]];
    for (images, pads) in [(1, SAME), (2, [[0, 0], [0, 0]]), (1, [[2, 0], [1, 3]])] {
        let case = |size| Case { images, pads, ..of(9, 21, size) };
        for target in widths() {
            let is_followed = images == 1;
            let any = case([7, 7]);
            let open = compiled(&any.graph(is_followed, true), target.clone());
            let count = usize::from(target.vector_bytes() >= 32);
            assert_eq!(any.filters_of(&open), count);
            let fits = |size: &[i64; 2]| {
                (0..2).all(|axis| size[axis] + pads[axis].iter().sum::<i64>() > 2)
            };
            for size in sizes.into_iter().filter(fits) {
                case(size).compare(&open, is_followed, &case(size).expected(is_followed));
            }
        }
    }
}

/// Filters that come from memory are packed for smaller tiles too, which small images use.
#[test]
fn of_open_sizes_with_large_filters() {
    let case = |size| of(172, 173, size);
    let open = compiled(&case([7, 7]).graph(true, true), Target::host());
    for size in [[7, 7], [3, 5], [8, 13], [12, 12]] {
        case(size).compare(&open, true, &case(size).expected(true));
    }
}

#[test]
fn not_where_it_does_not_pay() {
    let case = of(32, 32, [5, 5]);
    assert_eq!(case.transformed(Target::host(), false), 0);
}

#[test]
fn deep_sums_stay_within_the_bound() {
    let case = of(512, 16, [16, 16]);
    case.transformed(Target::host(), false);
}
