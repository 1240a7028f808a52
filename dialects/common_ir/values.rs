//! Conversion of descriptions of values (name, type and properties) to attributes.
use super::{
    read::{Dictionary, Fields, entries},
    types::{Types, dims_attr, shape_of},
};
use irc_common_format::model::{Type, Value};
use irc_mlir::{
    Attribute, AttributeLike, attr, melior::ir::attribute::TypeAttribute, string_value,
};

const FIELDS: [&str; 6] = ["name", "type", "shape", "denotation", "doc", "metadata"];

/// The description of a value whose SSA value has the type `known`.
pub(super) fn to_attribute<'c>(
    types: &mut Types<'c>,
    value: &Value,
    known: Option<&Type>,
) -> Attribute<'c> {
    let Value { name, ty, shape, denotation, doc, properties } = value;
    let context = types.context;
    let is_known = ty.as_ref() == known;
    let is_plain =
        shape.is_none() && denotation.is_none() && doc.is_none() && properties.is_empty();
    match name {
        Some(name) if is_plain && is_known => return attr::string(context, name),
        None if is_plain && is_known => return attr::unit(context),
        None if is_plain => return attr::ty(types.mlir(ty.as_ref())),
        _ => {}
    }
    let mut fields = Dictionary::new(context);
    fields.text("name", name.as_ref());
    if !is_known {
        fields.set("type", attr::ty(types.mlir(ty.as_ref())));
    }
    fields.maybe("shape", shape.as_ref().map(|shape| dims_attr(context, shape)));
    fields.text("denotation", denotation.as_ref());
    fields.text("doc", doc.as_ref());
    fields.maybe("metadata", entries(context, properties));
    fields.finish()
}

/// Converts an attribute to the description of a value whose SSA value has the type `known`.
///
/// # Errors
/// An invalid attribute.
pub(super) fn from_attribute<'c>(
    types: &mut Types<'c>,
    attribute: Attribute<'c>,
    known: Option<&Type>,
) -> Result<Value, String> {
    if let Some(name) = string_value(attribute) {
        return Ok(Value { name: Some(name), ty: known.cloned(), ..Value::default() });
    }
    if attribute.is_unit() {
        return Ok(Value { ty: known.cloned(), ..Value::default() });
    }
    if let Ok(ty) = TypeAttribute::try_from(attribute) {
        return Ok(Value { ty: types.of_mlir(ty.value())?, ..Value::default() });
    }
    let fields = Fields::of(attribute, "a value", &FIELDS)?;
    let ty = match fields.get("type") {
        None => known.cloned(),
        Some(ty) => type_of(types, ty)?,
    };
    let shape = fields.get("shape").map(|shape| shape_of(types.context, shape)).transpose()?;
    Ok(Value {
        name: fields.text("name")?,
        ty,
        shape,
        denotation: fields.text("denotation")?,
        doc: fields.text("doc")?,
        properties: fields.entries("metadata")?,
    })
}

/// The type in a type attribute.
///
/// # Errors
/// Another attribute, or a type that represents none.
pub(super) fn type_of<'c>(
    types: &mut Types<'c>,
    attribute: Attribute<'c>,
) -> Result<Option<Type>, String> {
    let ty = TypeAttribute::try_from(attribute)
        .map_err(|_| format!("expected a type, found {attribute}"))?;
    types.of_mlir(ty.value())
}

/// The name of a value in such an attribute.
pub(super) fn name_of(attribute: Attribute<'_>) -> Option<String> {
    string_value(attribute).or_else(|| {
        let fields = Fields::of(attribute, "a value", &FIELDS).ok()?;
        fields.text("name").ok().flatten()
    })
}
