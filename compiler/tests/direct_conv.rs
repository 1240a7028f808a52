//! Convolutions with few filters in each group, against the evaluator in `f64`.

use crate::support::{graphs::f32s, levels::levels};
use irc::{Place, Session, Target, codegen::Backend};
use irc_tensor::Tensor;
use irc_tl::{Binary, Builder, Constant, Conv, Graph, Op, Type, Unary};
use std::collections::BTreeMap;

/// The maximum difference, relative to the largest element.
const BOUND: f64 = 1e-6;

struct Case {
    x: Vec<i64>,
    w: Vec<i64>,
    conv: Conv,
}

/// A convolution with the same stride, dilation and padding in each dimension.
fn case(x: &[i64], w: &[i64], [stride, dilation, pad]: [i64; 3], groups: i64) -> Case {
    let spatial = x.len() - 2;
    let conv = Conv {
        strides: vec![stride; spatial],
        dilations: vec![dilation; spatial],
        pads: vec![[pad; 2]; spatial],
        groups,
        outside: 0,
    };
    Case { x: x.to_vec(), w: w.to_vec(), conv }
}

fn cases() -> Vec<Case> {
    let moved = |strides: &[i64], case: Case| Case {
        conv: Conv { strides: strides.to_vec(), ..case.conv },
        ..case
    };
    let padded = |pads: &[[i64; 2]], case: Case| Case {
        conv: Conv { pads: pads.to_vec(), ..case.conv },
        ..case
    };
    vec![
        // Depthwise, as in networks for images: whole vectors of columns, and rests.
        case(&[1, 8, 32, 32], &[8, 1, 3, 3], [1, 1, 1], 8),
        case(&[2, 5, 30, 19], &[5, 1, 3, 3], [2, 1, 1], 5),
        case(&[3, 4, 7, 7], &[4, 1, 3, 3], [1, 1, 1], 4),
        case(&[1, 4, 14, 14], &[4, 1, 5, 5], [2, 1, 2], 4),
        case(&[1, 3, 23, 21], &[3, 1, 7, 7], [1, 1, 3], 3),
        // Several tiles and vectors, which end inside of the image and at its edges.
        case(&[2, 3, 45, 50], &[3, 1, 3, 3], [1, 1, 1], 3),
        case(&[2, 3, 61, 75], &[3, 1, 3, 3], [2, 1, 1], 3),
        case(&[1, 2, 64, 33], &[2, 1, 5, 5], [2, 1, 2], 2),
        case(&[1, 2, 40, 40], &[2, 1, 3, 3], [1, 2, 2], 2),
        case(&[1, 2, 40, 40], &[2, 1, 3, 3], [1, 1, 5], 2),
        padded(&[[3, 0], [1, 4]], case(&[1, 2, 50, 36], &[2, 1, 4, 4], [2, 1, 0], 2)),
        padded(&[[0, 1], [0, 1]], case(&[1, 4, 16, 16], &[4, 1, 3, 3], [2, 1, 0], 4)),
        padded(&[[2, 0], [0, 3]], case(&[1, 4, 9, 20], &[4, 1, 3, 4], [1, 1, 0], 4)),
        padded(&[[1, 1], [0, 0]], case(&[2, 3, 9, 18], &[3, 1, 3, 1], [1, 1, 0], 3)),
        // Without padding, with even and odd rows; with larger steps and gaps between taps.
        case(&[2, 3, 11, 26], &[3, 1, 3, 3], [1, 1, 0], 3),
        case(&[2, 3, 11, 26], &[3, 1, 3, 3], [2, 1, 0], 3),
        case(&[1, 3, 12, 27], &[3, 1, 2, 2], [2, 1, 0], 3),
        case(&[1, 3, 21, 40], &[3, 1, 4, 4], [3, 1, 1], 3),
        case(&[1, 2, 40, 41], &[2, 1, 7, 7], [5, 1, 2], 2),
        case(&[1, 3, 20, 33], &[3, 1, 3, 3], [2, 3, 2], 3),
        case(&[1, 3, 20, 20], &[3, 1, 3, 3], [1, 2, 2], 3),
        // Several filters or channels in a group, and one group with few filters.
        case(&[1, 4, 10, 17], &[12, 1, 3, 3], [1, 1, 1], 4),
        case(&[2, 6, 10, 17], &[4, 3, 3, 3], [2, 1, 1], 2),
        case(&[1, 70, 9, 20], &[2, 70, 3, 3], [1, 1, 1], 1),
        case(&[1, 5, 9, 20], &[1, 5, 1, 1], [1, 1, 0], 1),
        // One dimension and three; rows of one element; more taps than are unrolled.
        case(&[2, 6, 50], &[6, 1, 5], [1, 2, 3], 6),
        case(&[1, 6, 50], &[6, 1, 4], [2, 1, 0], 6),
        case(&[1, 2, 200], &[2, 1, 90], [1, 1, 7], 2),
        case(&[1, 3, 6, 7, 18], &[3, 1, 3, 3, 3], [1, 1, 1], 3),
        case(&[1, 3, 6, 7, 18], &[3, 1, 3, 3, 3], [2, 1, 1], 3),
        case(&[1, 3, 5, 5], &[3, 1, 5, 5], [1, 1, 0], 3),
        case(&[1, 3, 20, 3], &[3, 1, 3, 3], [1, 1, 0], 3),
        // A step of 2 is to the next row, or to the next column of rows that are read whole.
        moved(&[1, 2], case(&[1, 4, 15, 2], &[4, 1, 2, 1], [1, 1, 0], 4)),
        moved(&[1, 2], case(&[1, 4, 9, 8], &[4, 1, 3, 1], [1, 1, 0], 4)),
        moved(
            &[3, 2],
            padded(&[[1, 1], [0, 0]], case(&[1, 4, 25, 2], &[4, 1, 3, 1], [1, 1, 0], 4)),
        ),
        case(&[1, 2, 30, 30], &[2, 1, 11, 11], [2, 1, 5], 2),
    ]
}

impl Case {
    fn x(&self) -> Tensor {
        f32s(self.x.clone(), 1)
    }

    fn w(&self) -> Tensor {
        f32s(self.w.clone(), 2)
    }

    fn bias(&self) -> Tensor {
        let mut shape = vec![1; self.x.len() - 1];
        shape[0] = self.w[0];
        f32s(shape, 3)
    }

    /// The convolution, or with a bias and a function after it.
    fn graph(&self, is_followed: bool) -> Graph {
        let mut b = Builder::new();
        let x = b.input("x", Type::from(self.x().ty().clone()));
        let w = b.constant(Constant::of(&self.w()));
        let mut y = b.op(Op::Conv(self.conv.clone()), &[x, w]).unwrap();
        if is_followed {
            let bias = b.constant(Constant::of(&self.bias()));
            y = b.binary(Binary::Add, y, bias).unwrap();
            y = b.op(Op::Unary(Unary::Relu), &[y]).unwrap();
        }
        b.output("y", y);
        b.finish()
    }

    fn expected(&self, is_followed: bool) -> Vec<f64> {
        let wide = |tensor: Tensor| {
            Tensor::from_values(tensor.ty().shape.clone(), &tensor.to_f64()).unwrap()
        };
        let conv = Op::Conv(self.conv.clone());
        let product = conv.eval(&[&wide(self.x()), &wide(self.w())]).unwrap();
        if !is_followed {
            return product.to_f64();
        }
        let sum = Op::Binary(Binary::Add).eval(&[&product, &wide(self.bias())]).unwrap();
        sum.to_f64().into_iter().map(|value| value.max(0.0)).collect()
    }

    fn check(&self, target: Target, is_followed: bool, expected: &[f64]) {
        let graph = self.graph(is_followed);
        let inputs = BTreeMap::from([("x".to_owned(), self.x())]);
        let compiled =
            Session::new().import_graph(&graph).library_with(target, Place::Given).unwrap();
        let found = compiled.runner().unwrap().run(inputs).unwrap()["y"].to_f64();
        let largest = expected.iter().fold(1.0, |most: f64, value| most.max(value.abs()));
        assert_eq!(found.len(), expected.len());
        for (place, (found, expected)) in found.into_iter().zip(expected).enumerate() {
            let error = (found - expected).abs() / largest;
            assert!(
                error <= BOUND,
                "element {place} of {:?} * {:?}: {found}, not {expected}",
                self.x,
                self.w
            );
        }
    }
}

#[test]
fn of_every_shape_and_on_every_processor() {
    let levels = levels();
    for (number, case) in cases().iter().enumerate() {
        let [alone, followed] = [false, true].map(|is_followed| case.expected(is_followed));
        let check = |target, is_followed| {
            let expected = if is_followed { &followed } else { &alone };
            case.check(target, is_followed, expected);
        };
        check(levels[number % levels.len()].clone(), number % 2 == 0);
        check(Target::host(), number % 2 == 1);
        check(Target::host().with_backend(Backend::QUICK), true);
    }
}
