//! Every op against numpy, on operands and results that `data/make.py` wrote.

use irc_tensor::{Tolerance, compare, read_npz_file};
use irc_tl::{Binary, DType, Op, Reduction, Rounding, Tensor, Unary};
use std::collections::BTreeMap;
use std::path::Path;

/// The op of a case. A cast of `f32` truncates, one of a 16-bit float rounds, as ARK's do.
fn op(case: &str, dtype: DType) -> Op {
    let rounding = if dtype == DType::F32 { Rounding::TowardZero } else { Rounding::NearestEven };
    match case {
        "exp" => Op::Unary(Unary::Exp),
        "log1p" => Op::Unary(Unary::Log1p),
        "relu" => Op::Unary(Unary::Relu),
        "gelu" => Op::Unary(Unary::Gelu),
        "sigmoid" => Op::Unary(Unary::Sigmoid),
        "sqrt" => Op::Unary(Unary::Sqrt),
        "rsqrt" => Op::Unary(Unary::Rsqrt),
        "add" => Op::Binary(Binary::Add),
        "sub" => Op::Binary(Binary::Sub),
        "mul" => Op::Binary(Binary::Mul),
        "div" => Op::Binary(Binary::Div),
        "max" => Op::Binary(Binary::Max),
        "matmul" => Op::Matmul { transpose_lhs: false, transpose_rhs: false },
        "matmul_tt" => Op::Matmul { transpose_lhs: true, transpose_rhs: true },
        "reduce_sum" => Op::Reduce { kind: Reduction::Sum, axes: vec![1], keep_dims: true },
        "reduce_mean" => Op::Reduce { kind: Reduction::Mean, axes: vec![0, 2], keep_dims: false },
        "rope" => Op::Rope,
        "to_i32" => Op::Cast { to: DType::I32, rounding },
        "to_f16" => Op::Cast { to: DType::F16, rounding },
        "to_bf16" => Op::Cast { to: DType::BF16, rounding },
        "gather" => Op::Gather,
        other => panic!("no op for the case {other}"),
    }
}

/// One rounding of difference: numpy computes in `f32`, and its functions err by an ulp or two.
fn tolerance(dtype: DType) -> Tolerance {
    let rel = match dtype {
        DType::F32 => 1e-6,
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        _ => return Tolerance::EXACT,
    };
    // Where terms cancel (gelu far below zero, sums), f32 errs by an ulp of the terms.
    Tolerance { abs: 1e-6, rel, rms: 1e-6 }
}

/// numpy has no bf16: such cases hold its bits.
fn restore(tensor: Tensor) -> Tensor {
    let bits = tensor.dtype() == DType::U16;
    if bits { tensor.reinterpret(DType::BF16).expect("16 bits") } else { tensor }
}

#[test]
fn every_op_agrees_with_numpy() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/numpy.npz");
    let arrays = read_npz_file(&path).expect("the file of make.py");
    let mut cases: BTreeMap<String, Vec<Tensor>> = BTreeMap::new();
    // In key order: operands by number, then `out`.
    for (key, tensor) in arrays {
        let (case, _) = key.split_once('.').expect("a key is case.place");
        cases.entry(case.to_owned()).or_default().push(restore(tensor));
    }
    assert_eq!(cases.len(), 63);
    for (case, mut tensors) in cases {
        let expected = tensors.pop().expect("a result");
        let (name, dtype) = case.rsplit_once('_').expect("a case is op_type");
        let op = op(name, dtype.parse().expect("an element type"));
        let operands: Vec<_> = tensors.iter().collect();
        let actual = op.eval(&operands).unwrap_or_else(|error| panic!("{case}: {error}"));
        let found = compare(&expected, &actual, tolerance(expected.dtype()));
        let found = found.unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(found.is_match(), "{case}: {found}");
    }
}
