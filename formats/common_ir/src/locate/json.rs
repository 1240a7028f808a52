//! The JSON encoding as a tree with byte ranges.

use std::borrow::Cow;
use std::ops::Range;

use irc_diag::Sink;
use irc_json::{Format, Node};
use prost_reflect::FieldDescriptor;

use super::Tree;
use crate::schema::{LimitError, MAX_ITEMS};

/// A JSON file.
pub(crate) struct Json<'a>(Node<'a>);

/// Maximum nesting, which is that of the deserializer; a level of messages has an object and
/// often a list.
const MAX_DEPTH: usize = 127;

/// Limits of parsing; all diagnostics are the deserializer's, so none are reported here.
const FORMAT: Format = Format {
    max_depth: MAX_DEPTH,
    // Each value except the outermost follows a bracket or a comma.
    max_values: MAX_ITEMS + 1,
    max_bytes: u64::MAX,
    ..Format::of("cir-syntax")
};

impl<'a> Json<'a> {
    /// `None` if the text is not JSON.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        irc_json::tree(text, &FORMAT, &mut Sink::with_limit(0)).map(Json)
    }
}

impl<'a> Tree for Json<'a> {
    type Node<'t>
        = &'t Node<'a>
    where
        Self: 't;

    fn root(&self) -> &Node<'a> {
        &self.0
    }

    fn children<'t>(&'t self, node: &&'t Node<'a>, field: &FieldDescriptor) -> Vec<&'t Node<'a>> {
        values(node, field).iter().collect()
    }

    fn child<'t>(
        &'t self,
        node: &&'t Node<'a>,
        field: &FieldDescriptor,
        index: usize,
    ) -> Result<&'t Node<'a>, usize> {
        let values = values(node, field);
        values.get(index).ok_or(values.len())
    }

    fn span(&self, node: &&Node<'a>) -> Range<usize> {
        node.span()
    }

    fn text<'t>(&'t self, node: &&'t Node<'a>) -> Option<Cow<'t, str>> {
        node.text().map(Cow::Borrowed)
    }
}

/// The values of a field, by either of its names.
fn values<'t, 'a>(node: &'t Node<'a>, field: &FieldDescriptor) -> &'t [Node<'a>] {
    let Some(value) = node.get(field.json_name()).or_else(|| node.get(field.name())) else {
        return &[];
    };
    let list = value.elements().filter(|_| field.is_list());
    list.unwrap_or(std::slice::from_ref(value))
}

/// The first limit that the text exceeds.
pub(crate) fn excess(text: &str) -> Option<LimitError> {
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
        if depth > MAX_DEPTH {
            return Some(LimitError::Depth(at));
        }
        if items > MAX_ITEMS {
            return Some(LimitError::Items(at));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_count_outside_strings() {
        assert_eq!(excess(&"[".repeat(1000)), Some(LimitError::Depth(MAX_DEPTH)));
        assert_eq!(excess(&format!("[{:?}]", "[\"".repeat(1000))), None);
    }
}
