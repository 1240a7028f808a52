//! Functions of quantised integers with a scale and a zero point.

use super::channels_last::{from_channels_last, to_channels_last};
use super::operator;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::like::{like, like_with};
use crate::ops::pieces::{concat, softmax};
use crate::ops::product::quantized::{centred, products, quantize};
use crate::ops::reduce::{Over, over};
use crate::ops::spatial::pool::{Count, averages, window_sums};
use irc_tl::{Binary, Builder, Built, DType, Dim, Op, Reduction, Unary, ValueId};

pub(in crate::ops) const OPERATORS: &[Operator] = &[
    operator("QGemm", gemm),
    operator("QLinearAdd", add),
    operator("QLinearAveragePool", average_pool),
    operator("QLinearConcat", concatenate),
    operator("QLinearConv", conv),
    operator("QLinearGlobalAveragePool", global_average_pool),
    operator("QLinearLeakyRelu", leaky_relu),
    operator("QLinearMul", mul),
    operator("QLinearReduceMean", reduce_mean),
    operator("QLinearSigmoid", sigmoid),
    operator("QLinearSoftmax", soft_max),
    operator("QLinearWhere", choose),
];

/// Dequantises an input: inputs `first`, its scale, and its zero point.
fn read(cx: &mut Context<'_>, first: usize) -> Result<ValueId, LowerError> {
    let (x, scale, zero) = (cx.input(first)?, cx.input(first + 1)?, cx.optional(first + 2));
    let number = centred(cx.b, x, zero)?;
    let number = cx.b.cast(number, DType::F32)?;
    Ok(cx.b.binary(Binary::Mul, number, scale)?)
}

/// The zero point of a result, which also determines its type; by default 0 of type `to`.
fn zero_point(cx: &mut Context<'_>, index: usize, to: DType) -> Result<ValueId, LowerError> {
    match cx.optional(index) {
        Some(zero) => Ok(zero),
        None => Ok(cx.b.scalar(0.0, to)?),
    }
}

/// Quantises a float: inputs `first`, the scale, and the zero point.
fn write(cx: &mut Context<'_>, x: ValueId, first: usize, to: DType) -> Lowered {
    let scale = cx.input(first)?;
    let zero = zero_point(cx, first + 1, to)?;
    let scaled = cx.b.binary(Binary::Div, x, scale)?;
    one(quantize(cx.b, scaled, zero))
}

/// The sum of two inputs, each times its scale divided by the result's, and of a constant for all zero points:
/// with the order and the roundings of ONNX Runtime, on which results halfway between two integers depend.
fn add(cx: &mut Context<'_>) -> Lowered {
    let (scale, dtype) = (cx.input(6)?, cx.dtype(cx.input(0)?));
    let zero = zero_point(cx, 7, dtype)?;
    let mut constant = cx.b.cast(zero, DType::F32)?;
    let mut factors = vec![];
    let mut zeros = vec![];
    for first in [0, 3] {
        let own = cx.input(first + 1)?;
        factors.push(cx.b.binary(Binary::Div, own, scale)?);
        let zero = zero_point(cx, first + 2, dtype)?;
        zeros.push(cx.b.cast(zero, DType::F32)?);
    }
    let right = cx.b.binary(Binary::Mul, factors[1], zeros[1])?;
    let both = multiply_add(cx.b, factors[0], zeros[0], right)?;
    constant = cx.b.binary(Binary::Sub, constant, both)?;
    let right = multiply_add(cx.b, cx.input(3)?, factors[1], constant)?;
    let sum = multiply_add(cx.b, cx.input(0)?, factors[0], right)?;
    let sum = cx.b.unary(Unary::Round, sum)?;
    one(cx.b.cast(sum, dtype))
}

/// `x * y + z` in `f32`, rounded once: the product of two `f32` is exact in `f64`.
fn multiply_add(b: &mut Builder, x: ValueId, y: ValueId, z: ValueId) -> Built {
    let wide = [b.cast(x, DType::F64)?, b.cast(y, DType::F64)?, b.cast(z, DType::F64)?];
    let product = b.binary(Binary::Mul, wide[0], wide[1])?;
    let sum = b.binary(Binary::Add, product, wide[2])?;
    b.cast(sum, DType::F32)
}

/// The product of integers, times one factor, as ONNX Runtime computes it: `x_scale y_scale / scale`.
fn mul(cx: &mut Context<'_>) -> Lowered {
    let (scale, dtype) = (cx.input(6)?, cx.dtype(cx.input(0)?));
    let mut factors = vec![];
    for first in [0, 3] {
        let zero = cx.optional(first + 2);
        let factor = centred(cx.b, cx.input(first)?, zero)?;
        factors.push(cx.b.cast(factor, DType::F32)?);
    }
    // Exact: a product of two integers of 9 bits.
    let product = cx.b.binary(Binary::Mul, factors[0], factors[1])?;
    let by = cx.b.binary(Binary::Mul, cx.input(1)?, cx.input(4)?)?;
    let by = cx.b.binary(Binary::Div, by, scale)?;
    let value = cx.b.binary(Binary::Mul, product, by)?;
    let zero = zero_point(cx, 7, dtype)?;
    one(quantize(cx.b, value, zero))
}

/// A function of one input, whose result's scale is input 3.
fn unary(cx: &mut Context<'_>, function: impl Fn(&mut Builder, ValueId) -> Built) -> Lowered {
    let x = read(cx, 0)?;
    let result = function(cx.b, x)?;
    let dtype = cx.dtype(cx.input(0)?);
    write(cx, result, 3, dtype)
}

fn sigmoid(cx: &mut Context<'_>) -> Lowered {
    unary(cx, |b, x| b.unary(Unary::Sigmoid, x))
}

fn leaky_relu(cx: &mut Context<'_>) -> Lowered {
    let slope = f64::from(cx.float_or("alpha", 0.01)?);
    unary(cx, |b, x| {
        let zero = b.scalar(0.0, DType::F32)?;
        let below = crate::ops::pieces::scale(b, x, slope)?;
        let negative = b.compare(irc_tl::Comparison::Lt, x, zero)?;
        b.select(negative, below, x)
    })
}

/// Softmax along one axis; before version 13 of the operator set along that and all following axes.
fn soft_max(cx: &mut Context<'_>) -> Lowered {
    let dims = cx.b.dims(cx.input(0)?);
    let rank = dims.len();
    let all_later = cx.int_or("opset", 13)? < 13;
    let axis = cx.axis(cx.int_or("axis", -1)?, rank)?;
    unary(cx, |b, x| {
        if all_later {
            let (rows, columns) = (Dim::product(&dims[..axis]), Dim::product(&dims[axis..]));
            let flat = b.reshape(x, &[rows, columns])?;
            let flat = softmax(b, flat)?;
            return b.reshape(flat, &dims);
        }
        let mut swap: Vec<usize> = (0..rank).collect();
        swap.swap(axis, rank - 1);
        let turned = b.transpose(x, &swap)?;
        let turned = softmax(b, turned)?;
        b.transpose(turned, &swap)
    })
}

/// A function of `[batch, channels, ...]`, for an input that may be channels-last.
fn spatial(
    cx: &mut Context<'_>,
    function: impl Fn(&mut Context<'_>, ValueId) -> Result<ValueId, LowerError>,
) -> Lowered {
    let dtype = cx.dtype(cx.input(0)?);
    let x = read(cx, 0)?;
    let rank = cx.b.rank(x);
    if cx.int_or("channels_last", 0)? == 0 || rank < 3 {
        let result = function(cx, x)?;
        return write(cx, result, 3, dtype);
    }
    let x = from_channels_last(cx.b, x)?;
    let result = function(cx, x)?;
    let result = to_channels_last(cx.b, result)?;
    write(cx, result, 3, dtype)
}

fn average_pool(cx: &mut Context<'_>) -> Lowered {
    let with_pads = cx.int_or("count_include_pad", 0)? != 0;
    let sums = |cx: &mut Context<'_>, x: ValueId| window_sums(cx, x, with_pads);
    if let Some(results) = mean_of_integers(cx, sums)? {
        return Ok(results);
    }
    spatial(cx, |cx, x| averages(cx, x, with_pads))
}

fn global_average_pool(cx: &mut Context<'_>) -> Lowered {
    let sums = |cx: &mut Context<'_>, x: ValueId| {
        let axes = (2..cx.b.rank(x)).collect();
        sums_over(cx, x, &Over { axes, keep_dims: true })
    };
    if let Some(results) = mean_of_integers(cx, sums)? {
        return Ok(results);
    }
    spatial(cx, |cx, x| {
        let axes: Vec<usize> = (2..cx.b.rank(x)).collect();
        Ok(cx.b.reduce(Reduction::Mean, x, &axes, true)?)
    })
}

/// The sums of integers over axes, and the number of terms of each; `None` if it is not known.
fn sums_over(
    cx: &mut Context<'_>,
    x: ValueId,
    over: &Over,
) -> Result<Option<(ValueId, Count)>, LowerError> {
    let dims = cx.b.dims(x);
    let count = over.axes.iter().try_fold(1, |count: i64, axis| {
        dims[*axis].known().and_then(|extent| count.checked_mul(extent))
    });
    let Some(count) = count else { return Ok(None) };
    let sum = cx.b.reduce(Reduction::Sum, x, &over.axes, over.keep_dims)?;
    Ok(Some((sum, Count::Known(count))))
}

/// A mean whose sums are of integers, and so exact: `sum x_scale / (y_scale count)`. `sums` also returns the numbers of
/// terms; `None` if they are not known.
fn mean_of_integers(
    cx: &mut Context<'_>,
    sums: impl Fn(&mut Context<'_>, ValueId) -> Result<Option<(ValueId, Count)>, LowerError>,
) -> Result<Option<Vec<ValueId>>, LowerError> {
    let (x, x_scale, y_scale) = (cx.input(0)?, cx.input(1)?, cx.input(3)?);
    let dtype = cx.dtype(x);
    let rank = cx.b.rank(x);
    let x_zero = cx.optional(2);
    let is_last = cx.int_or("channels_last", 0)? != 0 && rank >= 3;
    let mut number = centred(cx.b, x, x_zero)?;
    if cx.dtype(number) != DType::I32 {
        return Ok(None);
    }
    if is_last {
        number = from_channels_last(cx.b, number)?;
    }
    let Some((sum, count)) = sums(cx, number)? else { return Ok(None) };
    let by = match count {
        Count::Known(count) => {
            let count = cx.b.scalar(count as f64, DType::F32)?;
            let whole = cx.b.binary(Binary::Mul, y_scale, count)?;
            cx.b.binary(Binary::Div, x_scale, whole)?
        }
        Count::Each(counts) => {
            let ratio = cx.b.binary(Binary::Div, x_scale, y_scale)?;
            cx.b.binary(Binary::Div, ratio, counts)?
        }
    };
    let sum = cx.b.cast(sum, DType::F32)?;
    let value = cx.b.binary(Binary::Mul, sum, by)?;
    let zero = zero_point(cx, 4, dtype)?;
    let mut result = quantize(cx.b, value, zero)?;
    if is_last {
        result = to_channels_last(cx.b, result)?;
    }
    Ok(Some(vec![result]))
}

/// ONNX's operator, for an operand that may be channels-last.
fn conv(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    if cx.int_or("channels_last", 0)? == 0 || cx.b.rank(x) < 3 {
        return like(cx, "QLinearConv", 10);
    }
    let mut inputs: Vec<_> = (0..cx.input_count()).map(|index| cx.optional(index)).collect();
    inputs[0] = Some(from_channels_last(cx.b, x)?);
    let mut results = like_with(cx, "QLinearConv", 10, &inputs)?;
    for result in &mut results {
        *result = to_channels_last(cx.b, *result)?;
    }
    Ok(results)
}

/// A mean over axes: an attribute, or the input after those of the operator, which is that of `ReduceMean`.
fn reduce_mean(cx: &mut Context<'_>) -> Lowered {
    let over = over(cx, cx.input(0)?, 5)?;
    if let Some(results) = mean_of_integers(cx, |cx, x| sums_over(cx, x, &over))? {
        return Ok(results);
    }
    unary(cx, |b, x| b.reduce(Reduction::Mean, x, &over.axes, over.keep_dims))
}

fn choose(cx: &mut Context<'_>) -> Lowered {
    let condition = cx.input(0)?;
    let (x, y) = (read(cx, 1)?, read(cx, 4)?);
    let result = cx.b.select(condition, x, y)?;
    let dtype = cx.dtype(cx.input(1)?);
    write(cx, result, 7, dtype)
}

fn concatenate(cx: &mut Context<'_>) -> Lowered {
    let mut parts = vec![];
    for first in (2..cx.input_count()).step_by(3) {
        parts.push(read(cx, first)?);
    }
    let Some(first) = parts.first() else {
        return Err(LowerError::invalid("expected a value to concatenate, found none"));
    };
    let axis = cx.int("axis")?.ok_or_else(|| cx.missing("axis"))?;
    let axis = cx.axis(axis, cx.b.rank(*first))?;
    let dtype = cx.dtype(cx.input(2)?);
    let joined = concat(cx.b, &parts, axis)?;
    write(cx, joined, 0, dtype)
}

fn gemm(cx: &mut Context<'_>) -> Lowered {
    let [a, b] = [cx.input(0)?, cx.input(3)?];
    let (a_zero, b_zero) = (cx.optional(2), cx.optional(5));
    let dtype = cx.dtype(a);
    let transposed = |name| -> Result<bool, LowerError> { Ok(cx.int_or(name, 0)? != 0) };
    let (transpose_lhs, transpose_rhs) = (transposed("transA")?, transposed("transB")?);
    // The zero point of B may be given per column of the product.
    let b_zero = match b_zero {
        Some(zero) => Some(of_columns(cx.b, zero, transpose_rhs)?),
        None => None,
    };
    let multiply = |b: &mut Builder, left: ValueId, right: ValueId| {
        b.op(Op::Matmul { transpose_lhs, transpose_rhs }, &[left, right])
    };
    let columns = usize::from(!transpose_rhs);
    let mut sum = products(cx.b, [a, b], [a_zero, b_zero], columns, multiply)?;
    if let Some(added) = cx.optional(6) {
        sum = cx.b.binary(Binary::Add, sum, added)?;
    }
    let (a_scale, b_scale) = (cx.input(1)?, cx.input(4)?);
    let alpha = cx.float_or("alpha", 1.0)?;
    let by = cx.b.binary(Binary::Mul, a_scale, b_scale)?;
    let by = crate::ops::pieces::scale(cx.b, by, f64::from(alpha))?;
    let sum = cx.b.cast(sum, DType::F32)?;
    let Some(scale) = cx.optional(7) else {
        return one(cx.b.binary(Binary::Mul, sum, by));
    };
    let by = cx.b.binary(Binary::Div, by, scale)?;
    let value = cx.b.binary(Binary::Mul, sum, by)?;
    let zero = zero_point(cx, 8, dtype)?;
    one(quantize(cx.b, value, zero))
}

/// A vector with one element per column, shaped as the matrix is stored.
fn of_columns(b: &mut Builder, x: ValueId, transposed: bool) -> Built {
    let count = b.ty(x).elements();
    match (b.rank(x), count.is(1)) {
        (0, _) => Ok(x),
        (_, true) => b.reshape(x, &[]),
        _ if transposed => b.reshape(x, &[count, 1.into()]),
        _ => Ok(x),
    }
}
