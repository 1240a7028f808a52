//! Softmax of rows with infinities and NaN.

use crate::support::levels::widths;
use irc::{
    Place, Session, Target,
    codegen::{Backend, Output},
};
use irc_tensor::Tensor;
use irc_tl::{Binary, Builder, Graph, Reduction, Type, Unary};
use std::collections::BTreeMap;

const ROWS: i64 = 8;

/// `e^(x - max x) / sum of e^(x - max x)` along the last axis; with another reader of the maximum, if it is read.
fn graph(columns: i64, is_read: bool) -> Graph {
    let mut b = Builder::new();
    let x = b.input("x", Type::from(x(columns).ty().clone()));
    let dims = b.ty(x).dims.clone();
    let highest = b.reduce(Reduction::Max, x, &[1], true).unwrap();
    let moved = b.binary(Binary::Sub, x, highest).unwrap();
    let powers = b.unary(Unary::Exp, moved).unwrap();
    let sum = b.reduce(Reduction::Sum, powers, &[1], true).unwrap();
    let y = b.binary(Binary::Div, powers, sum).unwrap();
    b.output("y", y);
    if is_read {
        let highest = b.broadcast(highest, &dims).unwrap();
        b.output("highest", highest);
    }
    b.finish()
}

/// Rows without anything special, with NaN at the start, in the middle, at the end and everywhere, and with infinities.
fn x(columns: i64) -> Tensor {
    let mut values: Vec<f32> = (0..ROWS * columns).map(|at| (at % 7) as f32 - 3.0).collect();
    for (row, line) in values.chunks_mut(columns as usize).enumerate() {
        let (middle, last) = (line.len() / 2, line.len() - 1);
        match row {
            1 => line[0] = f32::NAN,
            2 => line[middle] = f32::NAN,
            3 => line[last] = f32::NAN,
            4 => line.fill(f32::NAN),
            5 => line.fill(f32::NEG_INFINITY),
            6 => line[middle] = f32::INFINITY,
            7 => line[middle] = f32::NEG_INFINITY,
            _ => {}
        }
    }
    Tensor::from_values([ROWS, columns], &values).unwrap()
}

fn check(columns: i64, target: Target, is_read: bool) {
    let graph = graph(columns, is_read);
    let inputs = BTreeMap::from([("x".to_owned(), x(columns))]);
    let compiled = Session::new().import_graph(&graph).library_with(target, Place::Given).unwrap();
    let found = compiled.runner().unwrap().run(inputs.clone()).unwrap();
    let expected = graph.eval(&inputs).unwrap();
    for ((name, _), expected) in graph.outputs.iter().zip(&expected) {
        let pairs = found[&**name].to_f64().into_iter().zip(expected.to_f64());
        for (place, (found, expected)) in pairs.enumerate() {
            let is_near = (found - expected).abs() <= 1e-6 || found == expected;
            let agrees = is_near || found.is_nan() && expected.is_nan();
            assert!(
                agrees,
                "{name}: element {place} of {columns} columns: {found}, not {expected}"
            );
        }
    }
}

#[test]
fn a_nan_makes_its_row_nan() {
    for columns in [3, 16, 37, 128] {
        for target in widths() {
            check(columns, target, false);
        }
        check(columns, Target::host(), true);
        check(columns, Target::host().with_backend(Backend::QUICK), false);
    }
}

/// A row of 128 elements has more vectors than AVX2 has registers.
#[test]
fn vectors_on_the_stack_lie_in_one_cache_line_each() {
    let target = Target::from_name("x86-64-v3");
    let graph = graph(128, false);
    let text = Session::new().import_graph(&graph).emit(Output::Assembly, target).unwrap();
    let text = String::from_utf8(text).unwrap();
    let stores = text.lines().filter(|line| {
        line.contains("\tvmov") && line.contains("%ymm") && line.ends_with("(%rsp)")
    });
    let (aligned, other): (Vec<_>, Vec<_>) = stores.partition(|line| line.contains("vmova"));
    assert!(!aligned.is_empty() && other.is_empty(), "{aligned:?} {other:?}");
}
