//! Sequences and optionals. Their structure is known when the model is imported: at the tensor level
//! only their tensors exist.

use super::indexing::{along, concat, unsqueeze};
use crate::context::{Context, LowerError, Lowered, one};
use crate::item::Item;
use crate::operator::Operator;
use irc_common_format::model::{AttributeValue, Type as FileType};
use irc_tl::{DType, Dim, Relation, ValueId};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("ConcatFromSequence", &[11], concat_from_sequence),
    Operator::new("Optional", &[15], optional),
    Operator::new("OptionalGetElement", &[15, 18], get_element),
    Operator::new("OptionalHasElement", &[15, 18], has_element),
    Operator::new("SequenceAt", &[11], |cx| {
        let items = sequence(cx, 0)?;
        let at = position(cx, items.len())?;
        let item = items.get(at).cloned();
        let item =
            item.ok_or_else(|| LowerError::invalid("expected a sequence with at least one value"));
        cx.items(vec![item?])
    }),
    Operator::new("SequenceConstruct", &[11], |cx| {
        let items: Result<Vec<Item>, LowerError> =
            (0..cx.input_count()).map(|index| cx.input(index).map(Item::Tensor)).collect();
        cx.items(vec![Item::Sequence(items?)])
    }),
    Operator::new("SequenceEmpty", &[11], |cx| cx.items(vec![Item::Sequence(vec![])])),
    Operator::new("SequenceErase", &[11], |cx| {
        let mut items = sequence(cx, 0)?;
        let default = items.len().saturating_sub(1);
        let at = if cx.item(1).is_some() { position(cx, items.len())? } else { default };
        if at >= items.len() {
            return Err(LowerError::invalid("expected a sequence with at least one value"));
        }
        items.remove(at);
        cx.items(vec![Item::Sequence(items)])
    }),
    Operator::new("SequenceInsert", &[11], sequence_insert),
    Operator::new("SequenceLength", &[11], |cx| {
        let length = sequence(cx, 0)?.len() as i64;
        one(cx.b.sizes(&[Dim::Known(length)], true, DType::I64))
    }),
    Operator::new("SequenceMap", &[17], sequence_map),
    Operator::new("SplitToSequence", &[11, 24], split_to_sequence),
];

/// The values of an input that is a sequence.
fn sequence(cx: &Context<'_>, input: usize) -> Result<Vec<Item>, LowerError> {
    let wrong = |found: &str| {
        LowerError::invalid(format!("input {input}: expected a sequence, found {found}"))
    };
    match cx.item(input) {
        Some(Item::Sequence(items)) => Ok(items.clone()),
        Some(Item::Optional(Some(item))) => match &**item {
            Item::Sequence(items) => Ok(items.clone()),
            other => Err(wrong(other.kind())),
        },
        Some(other) => Err(wrong(other.kind())),
        None => Err(wrong("nothing")),
    }
}

/// The position in a sequence given by the second input.
fn position(cx: &Context<'_>, length: usize) -> Result<usize, LowerError> {
    place(cx, 1, length, length as i64 - 1)
}

fn place(cx: &Context<'_>, input: usize, length: usize, most: i64) -> Result<usize, LowerError> {
    let given = cx.constant_ints(input)?.and_then(|values| values.first().copied());
    let given = given.ok_or_else(|| LowerError::invalid("expected a position, found none"))?;
    let length = length as i64;
    let at = if given < 0 { given + length } else { given };
    if (0..=most).contains(&at) {
        return Ok(at as usize);
    }
    let message = format!("expected a position from {} to {most}, found {given}", -length);
    Err(LowerError::invalid(message))
}

fn sequence_insert(cx: &mut Context<'_>) -> Lowered {
    let mut items = sequence(cx, 0)?;
    let item = Item::Tensor(cx.input(1)?);
    let length = items.len();
    let at = match cx.item(2) {
        Some(_) => place(cx, 2, length, length as i64)?,
        None => length,
    };
    items.insert(at, item);
    cx.items(vec![Item::Sequence(items)])
}

fn concat_from_sequence(cx: &mut Context<'_>) -> Lowered {
    let mut values = vec![];
    for item in sequence(cx, 0)? {
        let value = item.tensor();
        values.push(value.ok_or_else(|| LowerError::invalid("expected a sequence of tensors"))?);
    }
    let Some(first) = values.first().copied() else {
        return Err(LowerError::unsupported("concatenating an empty sequence is not supported"));
    };
    let axis = cx.int("axis")?.ok_or_else(|| cx.missing("axis"))?;
    let stack = cx.int_or("new_axis", 0)? != 0;
    let axis = cx.axis(axis, cx.b.rank(first) + usize::from(stack))?;
    if stack {
        for value in &mut values {
            *value = unsqueeze(cx.b, *value, &[axis])?;
        }
    }
    Ok(vec![concat(cx.b, &values, axis)?])
}

fn split_to_sequence(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let axis = cx.axis(cx.int_or("axis", 0)?, cx.b.rank(x))?;
    let dim = cx.b.dims(x)[axis].clone();
    let given = cx.optional(1);
    let keep = given.is_some() || cx.int_or("keepdims", 1)? != 0;
    let scalar = given.is_some_and(|split| cx.b.rank(split) == 0);
    let sizes: Vec<Dim> = match given {
        Some(_) if !scalar => cx.sizes(1)?,
        _ => {
            let chunk = match given {
                Some(_) => cx.constant_ints(1)?.and_then(|values| values.first().copied()),
                None => Some(1),
            };
            let chunk = chunk.filter(|chunk| *chunk > 0);
            let chunk =
                chunk.ok_or_else(|| LowerError::invalid("expected a positive size of parts"))?;
            let total = dim.known().ok_or_else(|| LowerError::NeedsSize(dim.clone()))?;
            let whole = vec![Dim::Known(chunk); (total / chunk) as usize];
            let rest = (total % chunk != 0).then_some(Dim::Known(total % chunk));
            whole.into_iter().chain(rest).collect()
        }
    };
    let total = sizes.iter().fold(Dim::Known(0), |sum, size| sum + size.clone());
    let message = "split_to_sequence: expected sizes that add up to the axis'";
    cx.b.require(&total, Relation::Equal, &dim, message)?;
    let mut start = Dim::Known(0);
    let mut items = vec![];
    for size in sizes {
        let part = along(cx.b, x, axis, start.clone(), size.clone())?;
        start = start + size;
        items.push(Item::Tensor(if keep { part } else { drop_axis(cx, part, axis)? }));
    }
    cx.items(vec![Item::Sequence(items)])
}

fn drop_axis(cx: &mut Context<'_>, x: ValueId, axis: usize) -> Result<ValueId, LowerError> {
    let mut dims = cx.b.dims(x);
    dims.remove(axis);
    Ok(cx.b.reshape(x, &dims)?)
}

/// The graph attribute, applied once per element; inputs other than sequences are passed unchanged.
fn sequence_map(cx: &mut Context<'_>) -> Lowered {
    let graph = cx.graph("body")?.ok_or_else(|| cx.missing("body"))?;
    let length = sequence(cx, 0)?.len();
    let mut results: Vec<Vec<Item>> = vec![vec![]; cx.output_count()];
    for at in 0..length {
        let mut inputs = vec![];
        for index in 0..cx.input_count() {
            let missing = || LowerError::invalid(format!("input {index} is missing"));
            inputs.push(match cx.item(index).ok_or_else(missing)? {
                Item::Sequence(items) if items.len() == length => items[at].clone(),
                Item::Sequence(items) => {
                    let found = items.len();
                    let message = format!("expected sequences of {length} values, found {found}");
                    return Err(LowerError::invalid(message));
                }
                item => item.clone(),
            });
        }
        let outputs = cx.inline(graph, &inputs)?;
        results.iter_mut().zip(outputs).for_each(|(result, item)| result.push(item));
    }
    cx.items(results.into_iter().map(Item::Sequence).collect())
}

fn optional(cx: &mut Context<'_>) -> Lowered {
    let item = cx.item(0).cloned();
    if let (None, Some(AttributeValue::Type(ty))) = (&item, cx.attribute("type"))
        && !matches!(**ty, FileType::Tensor(_) | FileType::Sequence(_))
    {
        return Err(LowerError::unsupported(format!("optionals of {ty} are not supported")));
    }
    cx.items(vec![Item::Optional(item.map(Box::new))])
}

fn get_element(cx: &mut Context<'_>) -> Lowered {
    match cx.item(0) {
        Some(Item::Optional(Some(item))) => cx.items(vec![(**item).clone()]),
        Some(Item::Optional(None)) | None => {
            Err(LowerError::invalid("expected a value, found an optional without one"))
        }
        Some(item) => cx.items(vec![item.clone()]),
    }
}

fn has_element(cx: &mut Context<'_>) -> Lowered {
    let has = !matches!(cx.item(0), Some(Item::Optional(None)) | None);
    one(cx.b.scalar(f64::from(u8::from(has)), DType::Bool))
}
