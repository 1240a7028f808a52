//! Maps: of classes to scores, and of words to counts.

use super::super::cast::of_strings;
use super::super::indexing::loops;
use super::encoders::places;
use super::labels::Labels;
use super::operator;
use super::rows::rows_of;
use crate::context::{Context, LowerError, Lowered, one};
use crate::item::Item;
use crate::operator::Operator;
use irc_tl::{Combine, Comparison, Compute, DType, Dim, Relation, Scalar, ValueId};

pub(in super::super) const OPERATORS: &[Operator] = &[
    operator("CastMap", &[1], cast_map),
    operator("DictVectorizer", &[1], dict_vectorizer),
    operator("ZipMap", &[1], zip_map),
];

/// A map per row, from labels of classes to the elements of the row.
fn zip_map(cx: &mut Context<'_>) -> Lowered {
    let values = rows_of(cx, 0)?;
    let labels = Labels::read(cx, "classlabels_int64s")?;
    let (count, columns) = (Dim::Known(labels.count() as i64), cx.b.dims(values)[1].clone());
    let message = format!("expected rows of {count} scores");
    cx.b.require(&count, Relation::Equal, &columns, &message)?;
    labels.expect_distinct()?;
    let keys = labels.table(cx)?;
    cx.items(vec![Item::Map { keys, values }])
}

/// The keys and values of the input, a map.
fn map(cx: &Context<'_>) -> Result<(ValueId, ValueId), LowerError> {
    match cx.item(0) {
        Some(Item::Map { keys, values }) if cx.b.rank(*values) == 1 => Ok((*keys, *values)),
        Some(Item::Map { .. }) => {
            Err(LowerError::invalid("input 0: expected a map, found a sequence"))
        }
        Some(other) => {
            Err(LowerError::invalid(format!("input 0: expected a map, found {}", other.kind())))
        }
        None => Err(LowerError::invalid("input 0 is missing")),
    }
}

/// The values of the keys in a vocabulary, in its order; 0 for absent keys.
fn dict_vectorizer(cx: &mut Context<'_>) -> Lowered {
    let (keys, values) = map(cx)?;
    let strings = cx.texts("string_vocabulary")?.filter(|texts| !texts.is_empty());
    let vocabulary = match strings {
        Some(strings) => cx.b.strings(&strings)?,
        None => {
            let name = "int64_vocabulary";
            let numbers = cx.ints(name)?.ok_or_else(|| cx.missing(name))?;
            cx.b.integers(&numbers)?
        }
    };
    let found = places(cx, vocabulary, keys, false)?;
    let dtype = cx.dtype(values);
    if dtype == DType::String {
        return Err(LowerError::unsupported("values that are strings are not supported"));
    }
    let place = Scalar::load(0, [Scalar::Loop(1)]);
    let known = place.clone().ge(Scalar::index(0));
    let body = known.select(Scalar::load(1, [place]), Scalar::number(0, dtype));
    let dims = [Dim::Known(1), cx.b.dims(vocabulary)[0].clone()];
    one(cx.b.compute(Compute::map(dims, body), &[found, values]))
}

/// The values in ascending order of the keys (`DENSE`), or at the positions given by the keys (`SPARSE`).
fn cast_map(cx: &mut Context<'_>) -> Lowered {
    let (keys, values) = map(cx)?;
    let dtype = match cx.string_or("cast_to", "TO_FLOAT")?.as_str() {
        "TO_FLOAT" => DType::F32,
        "TO_INT64" => DType::I64,
        "TO_STRING" => DType::String,
        other => return Err(LowerError::invalid(format!("unknown `cast_to` '{other}'"))),
    };
    let values = match of_strings(cx, values, dtype)? {
        Some(converted) => converted,
        None => cx.b.cast(values, dtype)?,
    };
    // For strings, the text that ONNX Runtime has.
    let absent = match dtype {
        DType::String => cx.b.strings(&["0.f"])?,
        _ => cx.b.scalar(0.0, dtype)?,
    };
    let absent = cx.b.reshape(absent, &[])?;
    let count = cx.b.dims(keys)[0].clone();
    let (places, width) = match cx.string_or("map_form", "DENSE")?.as_str() {
        "DENSE" => {
            let smaller = Scalar::load(0, [Scalar::Loop(1)]).lt(Scalar::load(0, [Scalar::Loop(0)]));
            let rank = smaller.cast(DType::I64);
            let ranks = Compute::reduce([count.clone()], Combine::Sum, [count.clone()], rank);
            (cx.b.compute(ranks, &[keys])?, count.clone())
        }
        "SPARSE" => {
            let width = cx.int_or("max_map", 1)?;
            if width < 1 {
                let message = format!("expected a positive `max_map`, found {width}");
                return Err(LowerError::invalid(message));
            }
            (keys, Dim::Known(width))
        }
        other => return Err(LowerError::invalid(format!("unknown `map_form` '{other}'"))),
    };
    // For each column, the key that belongs there.
    let here = Scalar::load(0, [Scalar::Loop(2)]).equals(Scalar::Loop(1));
    let key = here.select(Scalar::Loop(2), Scalar::index(-1));
    let dims = [Dim::Known(1), width];
    let key = Compute::reduce(dims.clone(), Combine::Max, [count], key);
    let key = cx.b.compute(key, &[places])?;
    let key_here = Scalar::load(0, loops(0..2));
    let is_present = key_here.clone().compare(Comparison::Ge, Scalar::index(0));
    let body = is_present.select(Scalar::load(1, [key_here]), Scalar::load(2, []));
    one(cx.b.compute(Compute::map(dims, body), &[key, values, absent]))
}
