//! `f16` and `bf16`: every code, and every way to round to one, for processors that have instructions for
//! them and for those that have none.
use crate::support::levels::levels;
use irc::{CompileOptions, DType, Place, Session, Tensor, TensorType};
use irc_tl::{Builder, Graph, Type};
use std::collections::BTreeMap;

const HALVES: [DType; 2] = [DType::F16, DType::BF16];

/// Compiles for each level of processors that this one can stand for, and compares every bit of what is a
/// number with the evaluation.
fn agree(graph: &Graph, inputs: &BTreeMap<String, Tensor>) {
    let expected = graph.eval(inputs).unwrap();
    for target in levels() {
        let options = CompileOptions::from(target.clone());
        let compiled =
            Session::new().import_graph(graph).library_with(&options, Place::Given).unwrap();
        let found = compiled.runner().unwrap().run(inputs.clone()).unwrap();
        for ((name, _), expected) in graph.outputs.iter().zip(&expected) {
            let (found, expected) = (found[name].to_f64(), expected.to_f64());
            let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            let at = found.iter().zip(&expected).position(|(a, b)| !same(*a, *b));
            let at =
                at.map(|at| format!("element {at}: {:e} instead of {:e}", found[at], expected[at]));
            assert_eq!(at, None, "{}: {name}", target.cpu);
        }
    }
}

fn every_code(dtype: DType) -> Tensor {
    let codes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    Tensor::from_bytes(TensorType::new(dtype, [1 << 16]), &codes).unwrap()
}

/// Numbers of a wide type: those of a narrow one, what lies half between neighbours, and beside that.
fn around(half: DType, dtype: DType) -> Tensor {
    let mut codes = every_code(half).to_f64();
    codes.retain(|value| value.is_finite());
    codes.sort_by(f64::total_cmp);
    let mut values = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-300, -1e-300, 1e300];
    for pair in codes.windows(2).step_by(7) {
        let middle = f64::midpoint(pair[0], pair[1]);
        values.extend([pair[0], middle, middle * (1.0 + 1e-15), middle * (1.0 - 1e-15)]);
        values.extend([middle * (1.0 + 1e-7), middle * (1.0 - 1e-7)]);
    }
    let largest = codes.last().copied().unwrap();
    values.extend([1.0001, 1.0002, 1.001, 1.01, 1.5].map(|by| largest * by));
    let count = values.len() as i64;
    Tensor::from_f64(TensorType::new(dtype, [count]), &values).unwrap()
}

#[test]
fn every_code_becomes_every_wider_float() {
    for half in HALVES {
        let mut b = Builder::new();
        let codes = every_code(half);
        let x = b.input("x", Type::from(codes.ty().clone()));
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
            let y = b.cast(x, dtype).unwrap();
            b.output(format!("{half} as {dtype}"), y);
        }
        agree(&b.finish(), &BTreeMap::from([("x".to_owned(), codes)]));
    }
}

#[test]
fn every_number_rounds_once() {
    for half in HALVES {
        let (mut b, mut inputs) = (Builder::new(), BTreeMap::new());
        for dtype in [DType::F32, DType::F64] {
            let numbers = around(half, dtype);
            let x = b.input(dtype.name(), Type::from(numbers.ty().clone()));
            let y = b.cast(x, half).unwrap();
            b.output(format!("{dtype} as {half}"), y);
            inputs.insert(dtype.name().to_owned(), numbers);
        }
        for dtype in [DType::I8, DType::U8, DType::I32, DType::I64] {
            let numbers = Tensor::random(TensorType::new(dtype, [1000]), 3).unwrap();
            let x = b.input(dtype.name(), Type::from(numbers.ty().clone()));
            let y = b.cast(x, half).unwrap();
            b.output(format!("{dtype} as {half}"), y);
            inputs.insert(dtype.name().to_owned(), numbers);
        }
        agree(&b.finish(), &inputs);
    }
}

/// Of NaN and of what is out of range too.
#[test]
fn every_code_becomes_every_integer() {
    for half in HALVES {
        let mut b = Builder::new();
        let codes = every_code(half);
        let x = b.input("x", Type::from(codes.ty().clone()));
        for dtype in [DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::I64] {
            let y = b.cast(x, dtype).unwrap();
            b.output(format!("{half} as {dtype}"), y);
        }
        agree(&b.finish(), &BTreeMap::from([("x".to_owned(), codes)]));
    }
}
