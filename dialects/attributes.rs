//! Making and reading the attributes that several dialects share.
use irc_mlir::{
    Attribute, AttributeLike, Context, OperationLike, OperationRef,
    melior::ir::{
        Identifier,
        attribute::{
            BoolAttribute, DenseI32ArrayAttribute, DenseI64ArrayAttribute, DictionaryAttribute,
            IntegerAttribute,
        },
    },
};

/// A dictionary of named attributes.
pub(crate) fn dictionary<'c, 'n>(
    context: &'c Context,
    entries: impl IntoIterator<Item = (&'n str, Attribute<'c>)>,
) -> Attribute<'c> {
    let entries: Vec<_> =
        entries.into_iter().map(|(name, value)| (Identifier::new(context, name), value)).collect();
    DictionaryAttribute::new(context, &entries).into()
}

/// A string attribute's text.
pub(crate) fn text(attribute: Attribute<'_>) -> Option<String> {
    irc_mlir::string_value(attribute)
}

/// An integer attribute's value.
pub(crate) fn integer(attribute: Attribute<'_>) -> Option<i64> {
    // Checked first, as a conversion that fails prints the attribute.
    attribute.is_integer().then_some(())?;
    Some(IntegerAttribute::try_from(attribute).ok()?.value())
}

/// The elements of `array<i64: ...>`.
pub(crate) fn integers(attribute: Attribute<'_>) -> Option<Vec<i64>> {
    attribute.is_dense_i64_array().then_some(())?;
    let array = DenseI64ArrayAttribute::try_from(attribute).ok()?;
    (0..array.len()).map(|index| array.element(index).ok()).collect()
}

/// One entry of a dictionary.
pub(crate) fn entry<'c>(attribute: Attribute<'c>, name: &str) -> Option<Attribute<'c>> {
    DictionaryAttribute::try_from(attribute).ok()?.element_by_name(name)
}

/// The entries of a dictionary.
///
/// # Errors
/// The attribute is not a dictionary.
pub(crate) fn entries(attribute: Attribute<'_>) -> Result<Vec<(String, Attribute<'_>)>, String> {
    let dictionary = DictionaryAttribute::try_from(attribute).map_err(|error| error.to_string())?;
    let entry = |index| {
        let (name, value) = dictionary.element(index).map_err(|error| error.to_string())?;
        Ok((name.as_string_ref().as_str().unwrap_or_default().to_owned(), value))
    };
    (0..dictionary.len()).map(entry).collect()
}

/// Flattened pairs; `None` for an odd number of integers.
pub(crate) fn pairs(flat: &[i64]) -> Option<Vec<[i64; 2]>> {
    let (pairs, rest) = flat.as_chunks::<2>();
    rest.is_empty().then(|| pairs.to_vec())
}

/// A required integer attribute of an op.
///
/// # Errors
/// The attribute is missing or not an integer.
pub(crate) fn op_integer(op: OperationRef<'_, '_>, name: &str) -> Result<i64, String> {
    let attribute = op.attribute(name).ok().and_then(integer);
    attribute.ok_or_else(|| format!("expected an integer attribute '{name}'"))
}

/// A required string attribute of an op.
///
/// # Errors
/// The attribute is missing or not a string.
pub(crate) fn op_text(op: OperationRef<'_, '_>, name: &str) -> Result<String, String> {
    let attribute = op.attribute(name).ok().and_then(text);
    attribute.ok_or_else(|| format!("expected a string attribute '{name}'"))
}

/// A required `array<i64>` attribute of an op.
///
/// # Errors
/// The attribute is missing or not an array of `i64`.
pub(crate) fn op_integers(op: OperationRef<'_, '_>, name: &str) -> Result<Vec<i64>, String> {
    let attribute = op.attribute(name).ok().and_then(integers);
    attribute.ok_or_else(|| format!("expected an attribute '{name}' of type array<i64>"))
}

/// An optional `array<i64>` attribute of an op, empty when absent.
///
/// # Errors
/// The attribute is not an array of `i64`.
pub(crate) fn op_maybe_integers(op: OperationRef<'_, '_>, name: &str) -> Result<Vec<i64>, String> {
    if op.has_attribute(name) { op_integers(op, name) } else { Ok(vec![]) }
}

/// An optional boolean attribute of an op.
pub(crate) fn op_bool(op: OperationRef<'_, '_>, name: &str) -> Option<bool> {
    let attribute = op.attribute(name).ok()?;
    Some(BoolAttribute::try_from(attribute).ok()?.value())
}

/// The operand segment sizes of an op.
///
/// # Errors
/// The op has none.
pub(crate) fn segments(op: OperationRef<'_, '_>) -> Result<Vec<usize>, String> {
    let missing = || "expected the attribute 'operandSegmentSizes'".to_owned();
    let attribute = op.attribute("operandSegmentSizes").map_err(|_| missing())?;
    let array = DenseI32ArrayAttribute::try_from(attribute).map_err(|_| missing())?;
    let size = |index| array.element(index).ok().and_then(|size| usize::try_from(size).ok());
    (0..array.len()).map(size).collect::<Option<Vec<_>>>().ok_or_else(missing)
}
