//! Laws of the ops, on random shapes and values.

use irc_tl::{
    Binary, DType, Op, Reduction, Rounding, Tensor, TensorType, Type, Unary, broadcast_shapes,
};
use proptest::prelude::*;

fn dtypes() -> impl Strategy<Value = DType> {
    let numeric: Vec<_> =
        DType::NUMBERS.iter().copied().filter(|ty| *ty != DType::Bool && !ty.is_small()).collect();
    prop::sample::select(numeric)
}

fn shapes() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(1..4i64, 1..5)
}

fn random(dtype: DType, shape: &[i64], seed: u64) -> Tensor {
    Tensor::random(TensorType::new(dtype, shape), seed).expect("a small tensor")
}

fn apply(op: &Op, operands: &[&Tensor]) -> Tensor {
    op.eval(operands).unwrap_or_else(|error| panic!("{error}"))
}

proptest! {
    #[test]
    fn implicit_broadcasting_is_explicit_broadcasting(
        dtype in dtypes(), shape in shapes(), mask in any::<u8>(), seed in any::<u64>(),
    ) {
        let thin = |(axis, &dim): (usize, &i64)| if mask >> axis & 1 == 1 { 1 } else { dim };
        let narrow: Vec<_> = shape.iter().enumerate().map(thin).collect();
        let (lhs, rhs) = (random(dtype, &narrow, seed), random(dtype, &shape[1..], seed ^ 1));
        let joined = broadcast_shapes(&narrow, &shape[1..]).expect("made to fit");
        let widen = Op::Broadcast { shape: joined };
        let (wide_lhs, wide_rhs) = (apply(&widen, &[&lhs]), apply(&widen, &[&rhs]));
        for op in [Op::Binary(Binary::Add), Op::Binary(Binary::Sub), Op::Binary(Binary::Mul), Op::Binary(Binary::Max)] {
            prop_assert_eq!(apply(&op, &[&lhs, &rhs]), apply(&op, &[&wide_lhs, &wide_rhs]));
        }
    }

    #[test]
    fn a_permutation_and_its_inverse_cancel(
        dtype in dtypes(),
        (shape, permutation) in shapes().prop_flat_map(|shape| {
            let axes: Vec<usize> = (0..shape.len()).collect();
            (Just(shape), Just(axes).prop_shuffle())
        }),
    ) {
        let mut inverse = vec![0; permutation.len()];
        for (to, &from) in permutation.iter().enumerate() {
            inverse[from] = to;
        }
        let tensor = random(dtype, &shape, 5);
        let turned = apply(&Op::Transpose { permutation }, &[&tensor]);
        prop_assert_eq!(apply(&Op::Transpose { permutation: inverse }, &[&turned]), tensor);
    }

    #[test]
    fn a_slice_put_back_changes_nothing_and_reads_back(
        dtype in dtypes(),
        (shape, lows, sizes) in shapes().prop_flat_map(|shape| {
            let lows: Vec<_> = shape.iter().map(|&dim| 0..dim).collect();
            (Just(shape), lows).prop_flat_map(|(shape, lows)| {
                let sizes: Vec<_> =
                    shape.iter().zip(&lows).map(|(&dim, &low)| 0..=dim - low).collect();
                (Just(shape), Just(lows), sizes)
            })
        }),
    ) {
        let whole = random(dtype, &shape, 6);
        let cut = Op::Slice { offsets: lows.clone(), sizes: sizes.clone() };
        let paste = Op::Update { offsets: lows };
        let part = apply(&cut, &[&whole]);
        prop_assert_eq!(&apply(&paste, &[&whole, &part]), &whole);
        let other = random(dtype, &sizes, 7);
        prop_assert_eq!(apply(&cut, &[&apply(&paste, &[&whole, &other])]), other);
    }

    #[test]
    fn reducing_axis_by_axis_is_reducing_at_once(shape in shapes(), keep_dims in any::<bool>()) {
        let tensor = random(DType::I32, &shape, 8);
        let axes: Vec<_> = (0..shape.len()).collect();
        let at_once = apply(&Op::Reduce { kind: Reduction::Sum, axes: axes.clone(), keep_dims }, &[&tensor]);
        let step = |tensor: Tensor, axis: usize| {
            apply(&Op::Reduce { kind: Reduction::Sum, axes: vec![axis], keep_dims }, &[&tensor])
        };
        prop_assert_eq!(at_once, axes.into_iter().rev().fold(tensor, step));
    }

    #[test]
    fn a_matrix_product_is_a_broadcast_product_summed(
        dtype in dtypes(), batch in 1..3i64, m in 1..5i64, k in 1..5i64, n in 1..5i64,
    ) {
        let (lhs, rhs) = (random(dtype, &[batch, m, k], 9), random(dtype, &[k, n], 10));
        let product = Op::Matmul { transpose_lhs: false, transpose_rhs: false };
        // In f64 (or wide integers) the terms are exact, so that both sides round once.
        let wide = if dtype.is_float() { DType::F64 } else { DType::I64 };
        let cast = |tensor: &Tensor, to| {
            apply(&Op::Cast { to, rounding: Rounding::TowardZero }, &[tensor])
        };
        let rows = apply(&Op::Reshape { shape: vec![batch, m, k, 1] }, &[&cast(&lhs, wide)]);
        let terms = apply(&Op::Binary(Binary::Mul), &[&rows, &cast(&rhs, wide)]);
        let sum = apply(&Op::Reduce { kind: Reduction::Sum, axes: vec![2], keep_dims: false }, &[&terms]);
        let actual = apply(&product, &[&lhs, &rhs]);
        for (sum, actual) in cast(&sum, dtype).to_f64().into_iter().zip(actual.to_f64()) {
            let unit = if dtype.is_float() { f64::EPSILON * 64.0 } else { 0.0 };
            let half = dtype == DType::F16 || dtype == DType::BF16;
            let unit = if half { 2f64.powi(-8) } else if dtype == DType::F32 { 1e-6 } else { unit };
            prop_assert!((sum - actual).abs() <= unit * (1.0 + sum.abs()), "{} {}", sum, actual);
        }
    }

    #[test]
    fn bits_survive_a_bitcast_and_values_a_wider_cast(dtype in dtypes(), shape in shapes()) {
        let tensor = random(dtype, &shape, 11);
        let mut bytes = shape.clone();
        bytes.push(dtype.size() as i64);
        let raw = apply(&Op::Bitcast { to: DType::U8, shape: bytes }, &[&tensor]);
        prop_assert_eq!(&apply(&Op::Bitcast { to: dtype, shape }, &[&raw]), &tensor);
        let cast = |to| Op::Cast { to, rounding: Rounding::NearestEven };
        let wide = apply(&cast(DType::F64), &[&tensor]);
        prop_assert_eq!(apply(&cast(dtype), &[&wide]), tensor);
    }

    #[test]
    fn what_is_inferred_is_what_is_computed(dtype in dtypes(), shape in shapes()) {
        let tensor = random(dtype, &shape, 12);
        let last = shape.len() - 1;
        let ops = [
            Op::Unary(Unary::Relu),
            Op::Cast { to: DType::F16, rounding: Rounding::TowardZero },
            Op::Reduce { kind: Reduction::Max, axes: vec![last], keep_dims: true },
            Op::Reduce { kind: Reduction::Mean, axes: vec![0], keep_dims: false },
            Op::Transpose { permutation: (0..=last).rev().collect() },
        ];
        for op in ops {
            let inferred = op.infer(&[tensor.ty().clone()]).expect("good operands");
            let computed = apply(&op, &[&tensor]);
            prop_assert_eq!(computed.ty(), &inferred, "{}", op.name());
        }
    }
}

#[test]
fn a_softmax_row_sums_to_one() {
    let x = random(DType::F32, &[3, 100], 13);
    let axes = vec![1];
    let max =
        apply(&Op::Reduce { kind: Reduction::Max, axes: axes.clone(), keep_dims: true }, &[&x]);
    let exp = apply(&Op::Unary(Unary::Exp), &[&apply(&Op::Binary(Binary::Sub), &[&x, &max])]);
    let sum =
        apply(&Op::Reduce { kind: Reduction::Sum, axes: axes.clone(), keep_dims: true }, &[&exp]);
    let softmax = apply(&Op::Binary(Binary::Div), &[&exp, &sum]);
    let total = apply(&Op::Reduce { kind: Reduction::Sum, axes, keep_dims: false }, &[&softmax]);
    assert!(total.to_f64().iter().all(|sum| (sum - 1.0).abs() < 1e-6));
}

#[test]
fn every_op_has_its_own_name_and_rejects_a_wrong_count() {
    let ops = [
        Op::Unary(Unary::Exp),
        Op::Unary(Unary::Gelu),
        Op::Binary(Binary::Add),
        Op::fill(0.0, [], DType::F32),
        Op::Reduce { kind: Reduction::Sum, axes: vec![], keep_dims: false },
        Op::Matmul { transpose_lhs: false, transpose_rhs: false },
        Op::Gather,
        Op::Rope,
    ];
    let names: std::collections::BTreeSet<_> = ops.iter().map(Op::name).collect();
    assert_eq!(names.len(), ops.len());
    let ty = TensorType::new(DType::F32, []);
    for op in ops {
        let error = op.infer(&[ty.clone(), ty.clone(), ty.clone()]).expect_err("three operands");
        assert!(error.message.contains("operands, found 3"), "{error}");
    }
}

/// Large enough for the product to be blocked.
#[test]
fn a_large_product_holds_the_dot_products() {
    let (m, k, n) = (128, 1024, 2048);
    let (lhs, rhs) = (random(DType::F32, &[m, k], 14), random(DType::F32, &[n, k], 15));
    let product = Op::Matmul { transpose_lhs: false, transpose_rhs: true };
    let result = apply(&product, &[&lhs, &rhs]);
    let row =
        |tensor: &Tensor, row: usize| tensor.to_f64()[row * k as usize..][..k as usize].to_vec();
    let expected: f64 = row(&lhs, 5).iter().zip(row(&rhs, 7)).map(|(a, b)| a * b).sum();
    assert!((result.get_f64(5 * n as usize + 7) - expected).abs() < 1e-4);
}

proptest! {
    #[test]
    fn an_op_is_the_loops_it_is_written_as(
        dtype in dtypes(), shape in shapes(), axis in any::<prop::sample::Index>(), seed in any::<u64>(),
    ) {
        let axis = axis.index(shape.len());
        let x = random(dtype, &shape, seed);
        let reversed: Vec<usize> = (0..shape.len()).rev().collect();
        let total = shape.iter().product();
        let mut ops = vec![
            Op::Unary(Unary::Neg),
            Op::Transpose { permutation: reversed },
            Op::Reshape { shape: vec![1, total] },
            Op::Slice { offsets: vec![0; shape.len()], sizes: shape.iter().map(|dim| dim - 1).collect() },
            Op::Cast { to: DType::I16, rounding: Rounding::NearestEven },
        ];
        for kind in Reduction::ALL.into_iter().filter(|kind| *kind != Reduction::Mean) {
            ops.push(Op::Reduce { kind, axes: vec![axis], keep_dims: seed % 2 == 0 });
        }
        for op in ops {
            let types = [Type::from(x.ty().clone())];
            let compute = op.as_compute(&types).unwrap_or_else(|| panic!("{op:?} has loops"));
            prop_assert_eq!(apply(&Op::compute(compute), &[&x]), apply(&op, &[&x]));
        }
        let row = random(dtype, &shape[shape.len() - 1..], seed ^ 1);
        let types = [Type::from(x.ty().clone()), Type::from(row.ty().clone())];
        for op in [Op::Binary(Binary::Sub), Op::Compare(irc_tl::Comparison::Lt)] {
            let compute = op.as_compute(&types).expect("it has loops");
            prop_assert_eq!(apply(&Op::compute(compute), &[&x, &row]), apply(&op, &[&x, &row]));
        }
    }
}
