//! Scaling, imputation, lookup and weighting of features.

use super::super::indexing::loops;
use super::operator;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{
    Binary, Combine, Comparison, Compute, Constant, DType, Dim, Reduction, Relation, Scalar,
    Tensor, Unary, ValueId,
};

pub(in super::super) const OPERATORS: &[Operator] = &[
    operator("Binarizer", &[1], binarizer),
    operator("Imputer", &[1], imputer),
    operator("LabelEncoder", &[2, 4], label_encoder),
    operator("LinearRegressor", &[1], linear_regressor),
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

fn linear_regressor(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let x = cx.b.cast(x, DType::F32)?;
    let ty = cx.ty(x);
    if ty.rank() != 2 {
        return Err(LowerError::invalid(format!("expected rows of features, found {ty}")));
    }
    if cx.string_or("post_transform", "NONE")? != "NONE" {
        return Err(LowerError::unsupported("`post_transform` is not supported"));
    }
    let weights = cx.floats("coefficients")?.ok_or_else(|| cx.missing("coefficients"))?;
    let targets = cx.int_or("targets", 1)?.max(1);
    let weights = row(cx, &weights, None)?;
    let count = cx.b.dims(weights)[0].clone();
    let features = ty.dims[1].clone();
    let expected = features.clone() * targets.into();
    let message = "expected a coefficient per target and feature";
    cx.b.require(&count, Relation::Equal, &expected, message)?;
    let matrix = cx.b.reshape(weights, &[targets.into(), features])?;
    let by_feature = cx.b.transpose(matrix, &[1, 0])?;
    let product = cx.b.matmul(x, by_feature)?;
    let Some(offsets) = cx.floats("intercepts")?.filter(|list| !list.is_empty()) else {
        return Ok(vec![product]);
    };
    let offsets = row(cx, &offsets, Some(&targets.into()))?;
    one(cx.b.binary(Binary::Add, product, offsets))
}

/// Looks numbers up among keys.
fn label_encoder(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let ty = cx.ty(x);
    let keys = table(cx, "keys")?;
    let values = table(cx, "values")?;
    if keys.ty.elements() != values.ty.elements() {
        let message = format!("expected a value per key, found {} and {}", keys.ty, values.ty);
        return Err(LowerError::invalid(message));
    }
    let default = default_value(cx, values.ty.dtype)?;
    let (keys, values) = (cx.b.constant(keys), cx.b.constant(values));
    let default = cx.b.reshape(default, &[])?;
    let count = cx.b.dims(keys);
    let value = Scalar::load(0, loops(0..ty.rank()));
    let key = Scalar::load(1, [Scalar::Loop(ty.rank())]).cast(ty.dtype);
    let mut equal = value.clone().equals(key.clone());
    if cx.version >= 4 {
        // A NaN among the keys matches every NaN.
        let nan = |scalar: Scalar| scalar.clone().compare(Comparison::Ne, scalar);
        equal = equal.binary(Binary::Or, nan(key).and(nan(value)));
    }
    let found = equal.select(Scalar::Loop(ty.rank()), Scalar::index(-1));
    let found = Compute::reduce(ty.dims.clone(), Combine::Max, count, found);
    let found = cx.b.compute(found, &[x, keys])?;
    let place = Scalar::load(0, loops(0..ty.rank()));
    let known = place.clone().ge(Scalar::index(0));
    let body = known.select(Scalar::load(1, [place]), Scalar::load(2, []));
    one(cx.b.compute(Compute::map(ty.dims, body), &[found, values, default]))
}

fn table(cx: &Context<'_>, name: &str) -> Result<Constant, LowerError> {
    if let Some(constant) = cx.tensor(&format!("{name}_tensor"))? {
        return Ok(constant);
    }
    let tensor = if let Some(values) = cx.ints(&format!("{name}_int64s"))? {
        Tensor::from_values([values.len() as i64], &values)
    } else if let Some(values) = cx.floats(&format!("{name}_floats"))? {
        Tensor::from_values([values.len() as i64], &values)
    } else {
        return Err(LowerError::unsupported(format!("{name} that are strings are not supported")));
    };
    Ok(Constant::of(&tensor.map_err(|error| LowerError::invalid(error.to_string()))?))
}

fn default_value(cx: &mut Context<'_>, dtype: DType) -> Result<ValueId, LowerError> {
    if let Some(constant) = cx.tensor("default_tensor")? {
        let value = cx.b.constant(constant);
        return Ok(cx.b.cast(value, dtype)?);
    }
    let value = match dtype {
        DType::I64 => cx.int_or("default_int64", -1)? as f64,
        _ => f64::from(cx.float_or("default_float", -0.0)?),
    };
    Ok(cx.b.scalar(value, dtype)?)
}
