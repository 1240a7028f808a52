//! Scaling, imputation and concatenation of features.

use super::super::indexing::{along, concat, loops};
use super::operator;
use super::rows::flat_rows_of;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{
    Binary, Comparison, Compute, DType, Dim, Reduction, Relation, Scalar, Tensor, Unary, ValueId,
};

pub(in super::super) const OPERATORS: &[Operator] = &[
    operator("Binarizer", &[1], binarizer),
    operator("FeatureVectorizer", &[1], feature_vectorizer),
    operator("Imputer", &[1], imputer),
    operator("Normalizer", &[1], normalizer),
    operator("Scaler", &[1], scaler),
];

fn binarizer(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let ty = cx.ty(x);
    let threshold = Scalar::float(f64::from(cx.float_or("threshold", 0.0)?), DType::F32);
    let value = Scalar::load(0, loops(0..ty.rank()));
    let above = value.cast(DType::F32).compare(Comparison::Gt, threshold);
    let body = above.select(Scalar::number(1, ty.dtype), Scalar::number(0, ty.dtype));
    one(cx.b.compute(Compute::map(ty.dims, body), &[x]))
}

/// A row of constants, with one element or one per feature.
fn row(
    cx: &mut Context<'_>,
    values: &[f32],
    features: Option<&Dim>,
) -> Result<ValueId, LowerError> {
    let count = Dim::Known(values.len() as i64);
    if let (Some(features), true) = (features, values.len() != 1) {
        let message = "expected one number, or one per feature";
        cx.b.require(&count, Relation::Equal, features, message)?;
    }
    let tensor = Tensor::from_values([values.len() as i64], values);
    Ok(cx.b.tensor(&tensor.map_err(|error| LowerError::invalid(error.to_string()))?))
}

/// The element of the row that corresponds to the last dimension.
fn of_feature(cx: &Context<'_>, operand: usize, row: ValueId, rank: usize) -> Scalar {
    let single = cx.b.dims(row)[0].is(1) || rank == 0;
    let at = if single { Scalar::index(0) } else { Scalar::Loop(rank - 1) };
    Scalar::load(operand, [at])
}

/// `(x - offset) * scale`, as floats.
fn scaler(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let ty = cx.ty(x);
    let given = |name: &str| -> Result<Vec<f32>, LowerError> {
        cx.floats(name)?.filter(|list| !list.is_empty()).ok_or_else(|| cx.missing(name))
    };
    let (offset, scale) = (given("offset")?, given("scale")?);
    let offset = row(cx, &offset, ty.dims.last())?;
    let scale = row(cx, &scale, ty.dims.last())?;
    let value = Scalar::load(0, loops(0..ty.rank())).cast(DType::F32);
    let offsets = of_feature(cx, 1, offset, ty.rank());
    let scales = of_feature(cx, 2, scale, ty.rank());
    let body = (value - offsets) * scales;
    one(cx.b.compute(Compute::map(ty.dims, body), &[x, offset, scale]))
}

/// Replaces missing numbers.
fn imputer(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let ty = cx.ty(x);
    let (values, replaced) = if ty.dtype.is_float() {
        let values = cx.floats("imputed_value_floats")?;
        (values, f64::from(cx.float_or("replaced_value_float", 0.0)?))
    } else {
        let values = cx.ints("imputed_value_int64s")?;
        let values = values.map(|list| list.into_iter().map(|value| value as f32).collect());
        (values, cx.int_or("replaced_value_int64", 0)? as f64)
    };
    let values = values.filter(|list: &Vec<f32>| !list.is_empty());
    let values = values.ok_or_else(|| cx.missing("imputed_value_floats"))?;
    let values = row(cx, &values, ty.dims.last())?;
    let value = Scalar::load(0, loops(0..ty.rank()));
    let missing = if replaced.is_nan() {
        value.clone().compare(Comparison::Ne, value.clone())
    } else if ty.dtype.is_float() {
        value.clone().equals(Scalar::float(replaced, ty.dtype))
    } else {
        value.clone().equals(Scalar::Int(replaced as i64, ty.dtype))
    };
    let other = of_feature(cx, 1, values, ty.rank()).cast(ty.dtype);
    let body = missing.select(other, value);
    one(cx.b.compute(Compute::map(ty.dims, body), &[x, values]))
}

/// Normalises rows: by the largest magnitude, the sum of magnitudes, or the root of the sum of squares.
fn normalizer(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let x = cx.b.cast(x, DType::F32)?;
    let last = cx.b.rank(x).checked_sub(1);
    let last =
        last.ok_or_else(|| LowerError::invalid("expected rank 1 or more, found a scalar"))?;
    let norm = match cx.string_or("norm", "MAX")?.as_str() {
        "MAX" => cx.b.reduce(Reduction::Max, x, &[last], true)?,
        "L1" => {
            let magnitude = cx.b.unary(Unary::Abs, x)?;
            cx.b.reduce(Reduction::Sum, magnitude, &[last], true)?
        }
        "L2" => {
            let square = cx.b.binary(Binary::Mul, x, x)?;
            let sum = cx.b.reduce(Reduction::Sum, square, &[last], true)?;
            cx.b.unary(Unary::Sqrt, sum)?
        }
        other => return Err(LowerError::invalid(format!("unknown norm '{other}'"))),
    };
    // Rows of zeros are unchanged.
    let zero = cx.b.scalar(0.0, DType::F32)?;
    let empty = cx.b.compare(Comparison::Eq, norm, zero)?;
    let scaled = cx.b.binary(Binary::Div, x, norm)?;
    one(cx.b.select(empty, x, scaled))
}

/// Concatenates rows of features: of each input as many as `inputdimensions` states, the first ones, or followed
/// by zeros.
fn feature_vectorizer(cx: &mut Context<'_>) -> Lowered {
    let widths = cx.ints("inputdimensions")?.ok_or_else(|| cx.missing("inputdimensions"))?;
    if widths.len() != cx.input_count() || widths.iter().any(|width| *width < 0) {
        let (expected, found) = (cx.input_count(), widths.len());
        let message = format!("expected {expected} sizes in `inputdimensions`, found {found}");
        return Err(LowerError::invalid(message));
    }
    let mut parts = vec![];
    for (input, width) in widths.into_iter().enumerate() {
        let x = flat_rows_of(cx, input)?;
        let x = cx.b.cast(x, DType::F32)?;
        let (dims, width) = (cx.b.dims(x), Dim::Known(width));
        if dims[1] == width {
            parts.push(x);
        } else if dims[1].known().is_some_and(|found| width.known().is_some_and(|w| w < found)) {
            parts.push(along(cx.b, x, 1, 0, width)?);
        } else {
            let is_own = Scalar::Loop(1).lt(Scalar::Size(dims[1].clone()));
            let body = is_own.select(Scalar::load(0, loops(0..2)), Scalar::float(0.0, DType::F32));
            parts.push(cx.b.compute(Compute::map([dims[0].clone(), width], body), &[x])?);
        }
    }
    Ok(vec![concat(cx.b, &parts, 1)?])
}
