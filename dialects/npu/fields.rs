//! Conversion of fields of instructions to attributes.
use crate::attributes::{integer, integers, text};
use irc_mlir::{
    Attribute, AttributeLike, Context, Type, attr,
    melior::ir::attribute::{BoolAttribute, FloatAttribute},
    read,
};
use irc_npu::{Number, Spanned, Value};

/// The attribute of the value of a field.
pub(super) fn to_attribute<'c>(context: &'c Context, value: &Value<'_>) -> Attribute<'c> {
    match value {
        Value::Number(Number::Int(value)) => attr::i64(context, *value),
        Value::Number(Number::Float(value)) => attr::float(context, Type::float64(context), *value),
        Value::Bool(value) => attr::bool(context, *value),
        Value::Text(name) | Value::Word(name) | Value::Named { name, .. } => {
            attr::string(context, name)
        }
        Value::Name(name) => attr::string(context, name),
        Value::List(items) => list(context, items),
        Value::Dict(_) => unreachable!("a field that is not a dictionary"),
    }
}

fn list<'c>(context: &'c Context, items: &[Spanned<'_>]) -> Attribute<'c> {
    let number = |item: &Spanned<'_>| match item.value {
        Value::Number(Number::Int(value)) => Some(value),
        _ => None,
    };
    if let Some(numbers) = items.iter().map(number).collect::<Option<Vec<_>>>() {
        return attr::i64s(context, &numbers);
    }
    let items: Vec<_> = items.iter().map(|item| to_attribute(context, &item.value)).collect();
    attr::array(context, &items)
}

/// The value of a field in an attribute; `None` for an unsupported attribute.
pub(super) fn from_attribute(attribute: Attribute<'_>) -> Option<Value<'static>> {
    // Checked first, as a conversion that fails prints the attribute.
    if attribute.is_bool() {
        return Some(Value::Bool(BoolAttribute::try_from(attribute).ok()?.value()));
    }
    if attribute.is_float() {
        let value = FloatAttribute::try_from(attribute).ok()?.value();
        return Some(Value::Number(Number::Float(value)));
    }
    if let Some(value) = integer(attribute) {
        return Some(Value::Number(Number::Int(value)));
    }
    if let Some(name) = text(attribute) {
        return Some(Value::Name(name.into()));
    }
    let items: Option<Vec<_>> = match integers(attribute) {
        Some(values) => Some(values.into_iter().map(|value| Value::Number(value.into())).collect()),
        None => read::array_elements(attribute)?.into_iter().map(from_attribute).collect(),
    };
    Some(Value::List(items?.into_iter().map(Spanned::nowhere).collect()))
}
