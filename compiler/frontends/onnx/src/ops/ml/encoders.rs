//! Look-ups of labels and categories.

use super::super::indexing::loops;
use super::operator;
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{
    Binary, Combine, Comparison, Compute, Constant, DType, Dim, Relation, Scalar, Tensor, ValueId,
};

pub(in super::super) const OPERATORS: &[Operator] = &[
    operator("CategoryMapper", &[1], |cx| {
        let numbers = cx.ints("cats_int64s")?.ok_or_else(|| cx.missing("cats_int64s"))?;
        let numbers = list(&numbers)?;
        translate(cx, "cats_strings", numbers)
    }),
    operator("LabelEncoder", &[1, 2, 4], |cx| match cx.version {
        1 => {
            let count = cx.texts("classes_strings")?.map_or(0, |texts| texts.len() as i64);
            let numbers = list(&(0..count).collect::<Vec<_>>())?;
            translate(cx, "classes_strings", numbers)
        }
        _ => label_encoder(cx),
    }),
    operator("OneHotEncoder", &[1], one_hot_encoder),
];

fn list(values: &[i64]) -> Result<Constant, LowerError> {
    let tensor = Tensor::from_values([values.len() as i64], values);
    Ok(Constant::of(&tensor.map_err(|error| LowerError::invalid(error.to_string()))?))
}

/// The strings of an attribute.
fn texts(cx: &Context<'_>, name: &str) -> Result<Option<Constant>, LowerError> {
    let Some(texts) = cx.texts(name)? else { return Ok(None) };
    let tensor = Tensor::from_strings([texts.len() as i64], &texts);
    let tensor = tensor.map_err(|error| LowerError::invalid(error.to_string()))?;
    Ok(Some(Constant::of(&tensor)))
}

/// Looks elements up among keys.
fn label_encoder(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let keys = table(cx, "keys")?;
    let values = table(cx, "values")?;
    // Since version 4, a NaN among the keys matches every NaN.
    look_up(cx, x, (keys, values), cx.version >= 4)
}

/// Strings of an attribute for numbers, or numbers for strings.
fn translate(cx: &mut Context<'_>, name: &str, numbers: Constant) -> Lowered {
    let x = cx.input(0)?;
    let strings = texts(cx, name)?.ok_or_else(|| cx.missing(name))?;
    let (keys, values) = match cx.dtype(x) {
        DType::String => (strings, numbers),
        _ => (numbers, strings),
    };
    look_up(cx, x, (keys, values), false)
}

/// The values of the keys that elements equal, or the default.
fn look_up(
    cx: &mut Context<'_>,
    x: ValueId,
    (keys, values): (Constant, Constant),
    with_nan: bool,
) -> Lowered {
    if keys.ty.elements() != values.ty.elements() {
        let message = format!("expected a value per key, found {} and {}", keys.ty, values.ty);
        return Err(LowerError::invalid(message));
    }
    let default = default_value(cx, values.ty.dtype)?;
    let (keys, values) = (cx.b.constant(keys), cx.b.constant(values));
    let default = cx.b.reshape(default, &[])?;
    let found = places(cx, x, keys, with_nan)?;
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
    let of_keys = cx.dtype(keys);
    if (ty.dtype == DType::String) != (of_keys == DType::String) {
        let message = format!("expected elements of type {of_keys}, found {ty}");
        return Err(LowerError::invalid(message));
    }
    let value = Scalar::load(0, loops(0..ty.rank()));
    let key = Scalar::load(1, [Scalar::Loop(ty.rank())]);
    let key = if of_keys == ty.dtype { key } else { key.cast(ty.dtype) };
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
    if let Some(constant) = texts(cx, &format!("{name}_strings"))? {
        return Ok(constant);
    }
    if let Some(values) = cx.ints(&format!("{name}_int64s"))? {
        return list(&values);
    }
    let values = cx.floats(&format!("{name}_floats"))?;
    let values = values.ok_or_else(|| LowerError::invalid(format!("the {name} are missing")))?;
    let tensor = Tensor::from_values([values.len() as i64], &values);
    Ok(Constant::of(&tensor.map_err(|error| LowerError::invalid(error.to_string()))?))
}

fn default_value(cx: &mut Context<'_>, dtype: DType) -> Result<ValueId, LowerError> {
    if let Some(constant) = cx.tensor("default_tensor")? {
        let value = cx.b.constant(constant);
        return Ok(if cx.dtype(value) == dtype { value } else { cx.b.cast(value, dtype)? });
    }
    let value = match dtype {
        DType::String => {
            let text = cx.bytes("default_string")?.unwrap_or_else(|| "_Unused".into());
            return Ok(cx.b.strings(&[text])?);
        }
        DType::I64 => cx.int_or("default_int64", -1)? as f64,
        _ => f64::from(cx.float_or("default_float", -0.0)?),
    };
    Ok(cx.b.scalar(value, dtype)?)
}

/// A new last dimension with a 1 at the position of the category.
fn one_hot_encoder(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let strings = cx.texts("cats_strings")?.filter(|texts| !texts.is_empty());
    let (x, categories) = match strings {
        Some(strings) => (x, cx.b.strings(&strings)?),
        None => {
            let numbers = cx.ints("cats_int64s")?.ok_or_else(|| cx.missing("cats_int64s"))?;
            let is_string = cx.dtype(x) == DType::String;
            let x = if is_string { x } else { cx.b.cast(x, DType::I64)? };
            (x, cx.b.integers(&numbers)?)
        }
    };
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
