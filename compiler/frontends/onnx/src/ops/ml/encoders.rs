//! Look-ups of labels and categories.

use super::super::indexing::loops;
use super::operator;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{
    Binary, Combine, Comparison, Compute, Constant, DType, Dim, Relation, Scalar, Tensor, ValueId,
};

pub(in super::super) const OPERATORS: &[Operator] = &[
    operator("LabelEncoder", &[2, 4], label_encoder),
    operator("OneHotEncoder", &[1], one_hot_encoder),
];

/// Looks numbers up among keys.
fn label_encoder(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let keys = table(cx, "keys")?;
    let values = table(cx, "values")?;
    if keys.ty.elements() != values.ty.elements() {
        let message = format!("expected a value per key, found {} and {}", keys.ty, values.ty);
        return Err(LowerError::invalid(message));
    }
    let default = default_value(cx, values.ty.dtype)?;
    let (keys, values) = (cx.b.constant(keys), cx.b.constant(values));
    let default = cx.b.reshape(default, &[])?;
    // Since version 4, a NaN among the keys matches every NaN.
    let found = places(cx, x, keys, cx.version >= 4)?;
    let dims = cx.b.dims(x);
    let place = Scalar::load(0, loops(0..dims.len()));
    let known = place.clone().ge(Scalar::index(0));
    let body = known.select(Scalar::load(1, [place]), Scalar::load(2, []));
    one(cx.b.compute(Compute::map(dims, body), &[found, values, default]))
}

/// The position of each element among keys, the last of equal ones, or -1.
pub(super) fn places(
    cx: &mut Context<'_>,
    x: ValueId,
    keys: ValueId,
    with_nan: bool,
) -> Result<ValueId, LowerError> {
    let (ty, count) = (cx.ty(x), cx.b.dims(keys));
    let value = Scalar::load(0, loops(0..ty.rank()));
    let key = Scalar::load(1, [Scalar::Loop(ty.rank())]).cast(ty.dtype);
    let mut equal = value.clone().equals(key.clone());
    if with_nan && ty.dtype.is_float() {
        let nan = |scalar: Scalar| scalar.clone().compare(Comparison::Ne, scalar);
        equal = equal.binary(Binary::Or, nan(key).and(nan(value)));
    }
    let found = equal.select(Scalar::Loop(ty.rank()), Scalar::index(-1));
    let found = Compute::reduce(ty.dims, Combine::Max, count, found);
    Ok(cx.b.compute(found, &[x, keys])?)
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

/// A new last dimension with a 1 at the position of the category.
fn one_hot_encoder(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    if cx.strings("cats_strings")?.is_some_and(|list| !list.is_empty()) {
        return Err(LowerError::unsupported("categories that are strings are not supported"));
    }
    let categories = cx.ints("cats_int64s")?.ok_or_else(|| cx.missing("cats_int64s"))?;
    let x = cx.b.cast(x, DType::I64)?;
    let categories = cx.b.integers(&categories)?;
    let found = places(cx, x, categories, false)?;
    if cx.int_or("zeros", 1)? == 0 {
        expect_known(cx, found)?;
    }
    let mut dims = cx.b.dims(x);
    dims.extend(cx.b.dims(categories));
    let rank = dims.len();
    let is_own = Scalar::load(0, loops(0..rank - 1)).equals(Scalar::Loop(rank - 1));
    one(cx.b.compute(Compute::map(dims, is_own.cast(DType::F32)), &[found]))
}

/// Checks at run time that every category is known.
fn expect_known(cx: &mut Context<'_>, found: ValueId) -> Result<(), LowerError> {
    let dims = cx.b.dims(found);
    let unknown = Scalar::load(0, loops(0..dims.len())).lt(Scalar::index(0)).cast(DType::I64);
    let count = Compute::reduce([], Combine::Sum, dims, unknown);
    let count = cx.b.compute(count, &[found])?;
    let count = cx.b.elements_or_symbols(count)?;
    let message = "expected known categories";
    Ok(cx.b.require(&count[0], Relation::Equal, &Dim::Known(0), message)?)
}
