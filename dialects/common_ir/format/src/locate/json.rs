//! The JSON form as a tree with byte ranges.

use std::borrow::Cow;
use std::ops::Range;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use prost_reflect::FieldDescriptor;

use super::Tree;
use crate::schema::{Excess, MAX_ITEMS};

/// A JSON file.
pub(crate) struct Json<'a>(Value<'a>);

impl<'a> Json<'a> {
    /// Nothing for what is not JSON.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        if excess(text).is_some() {
            return None;
        }
        parse_to_ast(text, &CollectOptions::default(), &strict()).ok()?.value.map(Json)
    }
}

/// Options that hold the parser to RFC 8259.
fn strict() -> ParseOptions {
    ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
    }
}

impl<'a> Tree for Json<'a> {
    type Node<'t>
        = &'t Value<'a>
    where
        Self: 't;

    fn root(&self) -> &Value<'a> {
        &self.0
    }

    fn children<'t>(&'t self, node: &&'t Value<'a>, field: &FieldDescriptor) -> Vec<&'t Value<'a>> {
        match node.as_object().and_then(|object| property(object, field)) {
            Some(Value::Array(array)) if field.is_list() => array.elements.iter().collect(),
            Some(value) => vec![value],
            None => vec![],
        }
    }

    fn child<'t>(
        &'t self,
        node: &&'t Value<'a>,
        field: &FieldDescriptor,
        index: usize,
    ) -> Result<&'t Value<'a>, usize> {
        let property = node.as_object().and_then(|object| property(object, field));
        let (found, count) = match property {
            Some(Value::Array(array)) if field.is_list() => {
                (array.elements.get(index), array.elements.len())
            }
            Some(value) => (Some(value).filter(|_| index == 0), 1),
            None => (None, 0),
        };
        found.ok_or(count)
    }

    fn span(&self, node: &&Value<'a>) -> Range<usize> {
        node.start()..node.end()
    }

    fn text<'t>(&'t self, node: &&'t Value<'a>) -> Option<Cow<'t, str>> {
        match node {
            Value::StringLit(text) => Some(Cow::Borrowed(&*text.value)),
            _ => None,
        }
    }
}

fn property<'t, 'a>(object: &'t Object<'a>, field: &FieldDescriptor) -> Option<&'t Value<'a>> {
    let property = object.get(field.json_name()).or_else(|| object.get(field.name()));
    property.map(|property| &property.value)
}

/// The first bound the text goes beyond.
pub(crate) fn excess(text: &str) -> Option<Excess> {
    // What the deserializer of JSON takes; a level of messages has an object and often a list.
    const DEEPEST: usize = 127;
    let (mut depth, mut items, mut in_string, mut is_escaped) = (0_usize, 0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => (depth, items) = (depth + 1, items + 1),
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => items += 1,
            _ => {}
        }
        if depth > DEEPEST {
            return Some(Excess::Depth(at));
        }
        if items > MAX_ITEMS {
            return Some(Excess::Items(at));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_count_outside_strings() {
        assert_eq!(excess(&"[".repeat(1000)), Some(Excess::Depth(127)));
        assert_eq!(excess(&format!("[{:?}]", "[\"".repeat(1000))), None);
    }
}
