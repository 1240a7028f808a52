//! Reductions over axes, and the indices of extremes.

use super::formula::Formula;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{
    Binary, Builder, Built, Combine, Comparison, Compute, DType, Op, Reduction, Scalar, Unary,
    ValueId,
};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("ReduceSum", &[1, 11, 13], |cx| plain(cx, Reduction::Sum)),
    Operator::new("ReduceMean", &[1, 11, 13, 18], |cx| plain(cx, Reduction::Mean)),
    Operator::new("ReduceProd", &[1, 11, 13, 18], |cx| plain(cx, Reduction::Product)),
    Operator::new("ReduceMax", &[1, 11, 12, 13, 18, 20], |cx| extreme(cx, Reduction::Max)),
    Operator::new("ReduceMin", &[1, 11, 12, 13, 18, 20], |cx| extreme(cx, Reduction::Min)),
    Operator::new("ReduceL1", &[1, 11, 13, 18], |cx| {
        composed(cx, DType::F32, |b, x, over| {
            let size = b.unary(Unary::Abs, x)?;
            over.sum(b, size)
        })
    }),
    Operator::new("ReduceL2", &[1, 11, 13, 18], |cx| {
        composed(cx, DType::F64, |b, x, over| {
            let squares = b.mul(x, x)?;
            let sum = over.sum(b, squares)?;
            b.unary(Unary::Sqrt, sum)
        })
    }),
    Operator::new("ReduceLogSum", &[1, 11, 13, 18, 28], |cx| {
        composed(cx, DType::F64, |b, x, over| {
            let sum = over.sum(b, x)?;
            b.unary(Unary::Log, sum)
        })
    }),
    Operator::new("ReduceLogSumExp", &[1, 11, 13, 18, 28], |cx| {
        composed(cx, DType::F64, log_sum_exp)
    }),
    Operator::new("ReduceSumSquare", &[1, 11, 13, 18], |cx| {
        composed(cx, DType::F32, |b, x, over| {
            let squares = b.mul(x, x)?;
            over.sum(b, squares)
        })
    }),
    Operator::new("ArgMax", &[1, 11, 12, 13], |cx| arg(cx, Reduction::Max)),
    Operator::new("ArgMin", &[1, 11, 12, 13], |cx| arg(cx, Reduction::Min)),
];

/// What is reduced.
pub(super) struct Over {
    pub axes: Vec<usize>,
    pub keep_dims: bool,
}

impl Over {
    fn sum(&self, b: &mut Builder, x: ValueId) -> Built {
        b.reduce(Reduction::Sum, x, &self.axes, self.keep_dims)
    }
}

/// Axes are an attribute, then an input: for the sum from version 13 on, for others from 18. By default
/// all axes are reduced, or none if the node states so.
pub(super) fn over(cx: &Context<'_>, x: ValueId, input: usize) -> Result<Over, LowerError> {
    let rank = cx.b.rank(x);
    let given = match cx.ints("axes")? {
        Some(axes) => Some(axes),
        None => cx.constant_ints(input)?,
    };
    let axes = given.unwrap_or_default();
    let keep_dims = cx.int_or("keepdims", 1)? != 0;
    let axes = match axes.is_empty() {
        true if cx.int_or("noop_with_empty_axes", 0)? != 0 => vec![],
        true => (0..rank).collect(),
        false => cx.axes(&axes, rank)?,
    };
    Ok(Over { axes, keep_dims })
}

fn plain(cx: &mut Context<'_>, kind: Reduction) -> Lowered {
    let x = cx.input(0)?;
    let over = over(cx, x, 1)?;
    one(cx.b.reduce(kind, x, &over.axes, over.keep_dims))
}

/// The extreme of no elements is the identity of the reduction.
fn extreme(cx: &mut Context<'_>, kind: Reduction) -> Lowered {
    let x = cx.input(0)?;
    let over = over(cx, x, 1)?;
    if cx.dtype(x) == DType::Bool {
        let bytes = cx.b.cast(x, DType::U8)?;
        let result = extreme_of(cx.b, kind, bytes, &over)?;
        return one(cx.b.cast(result, DType::Bool));
    }
    one(extreme_of(cx.b, kind, x, &over))
}

fn extreme_of(b: &mut Builder, kind: Reduction, x: ValueId, over: &Over) -> Built {
    let ty = b.ty(x).clone();
    let empty = over.axes.iter().any(|axis| ty.dims[*axis].is(0));
    let op = Op::Reduce { kind, axes: over.axes.clone(), keep_dims: over.keep_dims };
    match op.as_compute(std::slice::from_ref(&ty)) {
        Some(compute) if empty => b.compute(compute, &[x]),
        _ => b.op(op, &[x]),
    }
}

/// Computes in at least `f32`, integers in `integers`, and rounds once.
fn composed(
    cx: &mut Context<'_>,
    integers: DType,
    formula: impl FnOnce(&mut Builder, ValueId, &Over) -> Built,
) -> Lowered {
    let x = cx.input(0)?;
    let over = over(cx, x, 1)?;
    let dtype = cx.dtype(x);
    let computed = match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        // Sums of integers and of their squares are exact, modulo the width of the type.
        other if other.is_float() || integers == DType::F32 => other,
        _ => integers,
    };
    let wide = cx.b.cast(x, computed)?;
    let result = formula(cx.b, wide, &over)?;
    one(cx.b.cast(result, dtype))
}

/// `m + log(sum(e^(x - m)))` with the maximum `m`, to avoid overflow.
fn log_sum_exp(b: &mut Builder, x: ValueId, over: &Over) -> Built {
    let kept = Over { axes: over.axes.clone(), keep_dims: true };
    let most = extreme_of(b, Reduction::Max, x, &kept)?;
    // The difference of two infinities is NaN: infinite maxima are not subtracted.
    let size = b.unary(Unary::Abs, most)?;
    let finite = b.compare_number(Comparison::Lt, size, f64::INFINITY)?;
    let zero = b.number(0.0, x)?;
    let most = b.select(finite, most, zero)?;
    let moved = b.sub(x, most)?;
    let powers = b.unary(Unary::Exp, moved)?;
    let sum = kept.sum(b, powers)?;
    let log = b.unary(Unary::Log, sum)?;
    let result = b.add(log, most)?;
    if over.keep_dims {
        return Ok(result);
    }
    let dims = b.dims(result).into_iter().enumerate();
    let dims: Vec<_> =
        dims.filter(|(axis, _)| !over.axes.contains(axis)).map(|dim| dim.1).collect();
    b.reshape(result, &dims)
}

fn arg(cx: &mut Context<'_>, kind: Reduction) -> Lowered {
    let x = cx.input(0)?;
    let axis = cx.axis(cx.int_or("axis", 0)?, cx.b.rank(x))?;
    let last = cx.int_or("select_last_index", 0)? != 0;
    let place = place_of(cx.b, kind, x, axis, last)?;
    if cx.int_or("keepdims", 1)? != 0 {
        return Ok(vec![place]);
    }
    let mut dims = cx.b.dims(place);
    dims.remove(axis);
    one(cx.b.reshape(place, &dims))
}

/// The index of the extreme along an axis, the first or the last of equal ones; NaN is an extreme. The axis
/// is kept with extent 1.
pub(super) fn place_of(
    b: &mut Builder,
    kind: Reduction,
    x: ValueId,
    axis: usize,
    last: bool,
) -> Built {
    let most = b.reduce(kind, x, &[axis], true)?;
    let dims = b.dims(x);
    let mut result = dims.clone();
    result[axis] = 1.into();
    let step = Scalar::Loop(dims.len());
    let mut at: Vec<Scalar> = (0..dims.len()).map(Scalar::Loop).collect();
    let extreme = Scalar::load(1, at.clone());
    at[axis] = step.clone();
    let element = Scalar::load(0, at);
    let mut here = element.clone().equals(extreme);
    if b.dtype(x).is_float() {
        let not_a_number = element.clone().compare(Comparison::Ne, element);
        here = here.binary(Binary::Or, not_a_number);
    }
    let (combine, never) = if last {
        (Combine::Max, Scalar::index(0))
    } else {
        (Combine::Min, Scalar::index(i64::MAX))
    };
    let compute = Compute::reduce(result, combine, [dims[axis].clone()], here.select(step, never));
    b.compute(compute, &[x, most])
}
