//! Conversion of JSON values to attributes.
use crate::attributes::{entries, integer, integers, text};
use irc_json::{Json, Number};
use irc_mlir::{
    Attribute, AttributeLike, Context, Type, attr,
    melior::ir::attribute::{BoolAttribute, FloatAttribute},
    read,
};

/// The only entry of a dictionary that represents an object whose keys are not sorted, or cannot be
/// attribute names.
const PAIRS: &str = "gemini.pairs";
/// The only entry of a dictionary that represents a number with an unusual spelling.
const NUMBER: &str = "gemini.number";

/// The attribute of a value.
pub(super) fn to_attribute<'c>(context: &'c Context, value: &Json) -> Attribute<'c> {
    match value {
        Json::Null => attr::unit(context),
        Json::Bool(value) => attr::bool(context, *value),
        Json::Int(value) => attr::i64(context, *value),
        Json::Number(number) => number_attribute(context, number),
        Json::String(text) => attr::string(context, text),
        Json::Array(elements) => list(context, elements),
        Json::Object(members) => object(context, members),
    }
}

fn number_attribute<'c>(context: &'c Context, number: &Number) -> Attribute<'c> {
    let value = number.value();
    if Number::new(value).as_ref() == Some(number) {
        return attr::float(context, Type::float64(context), value);
    }
    crate::attributes::dictionary(context, [(NUMBER, attr::string(context, number.text()))])
}

fn list<'c>(context: &'c Context, elements: &[Json]) -> Attribute<'c> {
    let integer = |element: &Json| match element {
        Json::Int(value) => Some(*value),
        _ => None,
    };
    if let Some(values) = elements.iter().map(integer).collect::<Option<Vec<_>>>() {
        return attr::i64s(context, &values);
    }
    let elements: Vec<_> = elements.iter().map(|element| to_attribute(context, element)).collect();
    attr::array(context, &elements)
}

fn object<'c>(context: &'c Context, members: &[(Box<str>, Json)]) -> Attribute<'c> {
    let is_sorted = members.is_sorted_by(|a, b| a.0 < b.0);
    let is_plain = |key: &str| !key.is_empty() && ![PAIRS, NUMBER].contains(&key);
    if is_sorted && members.iter().all(|(key, _)| is_plain(key)) {
        let members = members.iter().map(|(key, value)| (&**key, to_attribute(context, value)));
        return crate::attributes::dictionary(context, members);
    }
    crate::attributes::dictionary(context, [(PAIRS, pairs(context, members))])
}

/// Keys and values, alternating.
pub(super) fn pairs<'c>(context: &'c Context, members: &[(Box<str>, Json)]) -> Attribute<'c> {
    let pair = |(key, value): &(Box<str>, Json)| {
        attr::array(context, &[attr::string(context, key), to_attribute(context, value)])
    };
    attr::array(context, &members.iter().map(pair).collect::<Vec<_>>())
}

/// The value of an attribute.
///
/// # Errors
/// An attribute without a value.
pub(super) fn from_attribute(attribute: Attribute<'_>) -> Result<Json, String> {
    if attribute.is_unit() {
        return Ok(Json::Null);
    }
    if attribute.is_bool() {
        let value = BoolAttribute::try_from(attribute).map_err(|error| error.to_string())?;
        return Ok(Json::Bool(value.value()));
    }
    if let Some(value) = integer(attribute) {
        return Ok(Json::Int(value));
    }
    if attribute.is_float() {
        let value = FloatAttribute::try_from(attribute).map_err(|error| error.to_string())?;
        let number = Number::new(value.value()).map(Json::Number);
        return number.ok_or_else(|| format!("{attribute} is not finite"));
    }
    if let Some(text) = text(attribute) {
        return Ok(Json::String(text.into()));
    }
    if let Some(values) = integers(attribute) {
        return Ok(Json::Array(values.into_iter().map(Json::Int).collect()));
    }
    if let Some(elements) = read::array_elements(attribute) {
        return Ok(Json::Array(
            elements.into_iter().map(from_attribute).collect::<Result<_, _>>()?,
        ));
    }
    match &entries(attribute).map_err(|_| format!("{attribute} is not a value of a file"))?[..] {
        [(key, value)] if key == NUMBER => number_of(*value),
        [(key, value)] if key == PAIRS => Ok(Json::Object(from_pairs(*value)?)),
        entries => {
            let member = |(key, value): &(String, _)| {
                Ok::<_, String>((key.as_str().into(), from_attribute(*value)?))
            };
            Ok(Json::Object(entries.iter().map(member).collect::<Result<_, _>>()?))
        }
    }
}

fn number_of(attribute: Attribute<'_>) -> Result<Json, String> {
    let number = text(attribute).and_then(|text| Number::of_text(&text));
    number.map(Json::Number).ok_or_else(|| format!("{attribute} is not the spelling of a number"))
}

/// The inverse of [`pairs`].
///
/// # Errors
/// An attribute without pairs.
pub(super) fn from_pairs(attribute: Attribute<'_>) -> Result<Vec<(Box<str>, Json)>, String> {
    let wrong = || format!("expected pairs of a key and a value, found {attribute}");
    let pair = |pair| match read::array_elements(pair).as_deref() {
        Some([key, value]) => {
            let key = text(*key).ok_or_else(wrong)?;
            Ok((key.into(), from_attribute(*value)?))
        }
        _ => Err(wrong()),
    };
    read::array_elements(attribute).ok_or_else(wrong)?.into_iter().map(pair).collect()
}
