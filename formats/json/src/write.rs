//! Prints JSON in the layouts of the programs that write these formats.

use std::fmt::Write;

use crate::Json;

/// The layout of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layout {
    /// That of schedules, jsoncpp's styled writer: three spaces, `"key" : value`, and short arrays of
    /// scalars on one line.
    Styled,
    /// That of frontend files, Python's `json.dump` with an indent of three.
    Indented,
}

/// Width at which the styled layout breaks an array.
const MARGIN: usize = 74;

impl Json {
    /// The text of the value, ending in a line break.
    pub fn print(&self, layout: Layout) -> String {
        let mut out = String::new();
        write(&mut out, self, layout, 0);
        out.push('\n');
        out
    }
}

fn write(out: &mut String, value: &Json, layout: Layout, depth: usize) {
    match value {
        Json::Array(elements) if elements.is_empty() => out.push_str("[]"),
        Json::Array(elements) => array(out, elements, layout, depth),
        Json::Object(members) if members.is_empty() => out.push_str("{}"),
        Json::Object(members) => {
            out.push('{');
            for (index, (key, value)) in members.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                new_line(out, depth + 1);
                write_string(out, key);
                // A value of several lines starts on the line of its key.
                out.push_str(if layout == Layout::Styled { " : " } else { ": " });
                write(out, value, layout, depth + 1);
            }
            new_line(out, depth);
            out.push('}');
        }
        plain => plain_value(out, plain),
    }
}

fn array(out: &mut String, elements: &[Json], layout: Layout, depth: usize) {
    if let Some(line) = (layout == Layout::Styled).then(|| one_line(elements)).flatten() {
        out.push_str(&line);
        return;
    }
    out.push('[');
    for (index, element) in elements.iter().enumerate() {
        out.push_str(if index == 0 { "" } else { "," });
        new_line(out, depth + 1);
        write(out, element, layout, depth + 1);
    }
    new_line(out, depth);
    out.push(']');
}

/// `[ 1, 2 ]`, if the elements are scalars and the line is short.
fn one_line(elements: &[Json]) -> Option<String> {
    let is_nested = |element: &Json| match element {
        Json::Array(inner) => !inner.is_empty(),
        Json::Object(inner) => !inner.is_empty(),
        _ => false,
    };
    if elements.len() * 3 >= MARGIN || elements.iter().any(is_nested) {
        return None;
    }
    let mut line = String::from("[ ");
    for (index, element) in elements.iter().enumerate() {
        line.push_str(if index == 0 { "" } else { ", " });
        write(&mut line, element, Layout::Styled, 0);
    }
    line.push_str(" ]");
    (line.len() < MARGIN).then_some(line)
}

fn plain_value(out: &mut String, value: &Json) {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        // Writing to a String cannot fail.
        Json::Int(value) => drop(write!(out, "{value}")),
        Json::Number(number) => out.push_str(number.text()),
        Json::String(text) => write_string(out, text),
        Json::Array(_) | Json::Object(_) => unreachable!("brackets are printed by their layout"),
    }
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("   ", depth));
}

/// Appends a JSON string in quotes, with only the required escapes.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Writing to a String cannot fail.
            c if c < ' ' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_needed_only() {
        let mut out = String::new();
        write_string(&mut out, "a\"\\\n\u{1}é/");
        assert_eq!(out, "\"a\\\"\\\\\\n\\u0001é/\"");
    }

    #[test]
    fn short_arrays_stand_on_one_line_in_the_styled_layout() {
        let value = Json::Object(vec![
            ("b".into(), Json::Array(vec![Json::Int(1), Json::Bool(true)])),
            ("a".into(), Json::Array(vec![Json::Array(vec![Json::Null])])),
        ]);
        let styled = "{\n   \"b\" : [ 1, true ],\n   \"a\" : [\n      [ null ]\n   ]\n}\n";
        assert_eq!(value.print(Layout::Styled), styled);
        let indented = "{\n   \"b\": [\n      1,\n      true\n   ],\n   \"a\": [\n      [\n         null\n      ]\n   ]\n}\n";
        assert_eq!(value.print(Layout::Indented), indented);
    }
}
