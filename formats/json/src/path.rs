//! JSON paths: `$.Nodes[3].Op.ReadTensors[0].Shape`, `$["0"][3].buffer[1].address`.

use std::fmt;
use std::ops::Range;

use irc_diag::{Diagnostic, Label, Sink};

use crate::{Format, Node};

/// A path in a JSON document: a list of steps linked to the root, formatted only when displayed.
#[derive(Clone, Copy, Debug)]
pub struct At<'p> {
    parent: Option<&'p At<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    Root,
    Key(&'p str),
    Index(usize),
    /// `$.list[index].key`, and optionally an element of it.
    Entry(&'static str, usize, &'static str, Option<usize>),
}

impl<'p> At<'p> {
    /// The whole document.
    pub const ROOT: At<'static> = At { parent: None, step: Step::Root };

    /// The value of a key of an element of a list of the document, `$.Nodes[3].Op`, or an element of
    /// that value: `$.Nodes[3].Ops[1]`. It has no links, so it can be returned from functions.
    pub fn entry(
        list: &'static str,
        index: usize,
        key: &'static str,
        element: Option<usize>,
    ) -> At<'static> {
        At { parent: None, step: Step::Entry(list, index, key, element) }
    }

    /// The value of a key of the object at this path.
    pub fn key(&'p self, key: &'p str) -> At<'p> {
        At { parent: Some(self), step: Step::Key(key) }
    }

    /// The element with an index of the array at this path.
    pub fn index(&'p self, index: usize) -> At<'p> {
        At { parent: Some(self), step: Step::Index(index) }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parent.map_or(Ok(()), |parent| parent.fmt(f))?;
        match self.step {
            Step::Root => f.write_str("$"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) if is_plain(key) => write!(f, ".{key}"),
            Step::Key(key) => write!(f, "[{key:?}]"),
            Step::Entry(list, index, key, None) => write!(f, "$.{list}[{index}].{key}"),
            Step::Entry(list, index, key, Some(element)) => {
                write!(f, "$.{list}[{index}].{key}[{element}]")
            }
        }
    }
}

fn is_plain(key: &str) -> bool {
    let starts = key.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Byte range to point at for a path, or for its closest ancestor that exists; `None`
/// if the text is not JSON. Parses the text: to place many diagnostics use [`place`].
pub fn locate(text: &str, format: &Format, path: &str) -> Option<Range<usize>> {
    let tree = crate::parse::tree_of(text, format, true, &mut Sink::with_limit(0))?;
    Some(range_of(&tree, path))
}

/// Locates every diagnostic that has a path but no label in the text.
pub fn place(text: &str, format: &Format, diagnostics: &mut [Diagnostic]) {
    if !diagnostics.iter().any(needs_place) {
        return;
    }
    if let Some(tree) = crate::parse::tree_of(text, format, true, &mut Sink::with_limit(0)) {
        diagnostics.iter_mut().for_each(|diagnostic| place_in(&tree, diagnostic));
    }
}

fn needs_place(diagnostic: &Diagnostic) -> bool {
    diagnostic.path.is_some() && diagnostic.labels.is_empty()
}

/// Locates a diagnostic that has a path but no label in the tree.
pub fn place_in(tree: &Node<'_>, diagnostic: &mut Diagnostic) {
    let Some(path) = diagnostic.path.as_deref().filter(|_| needs_place(diagnostic)) else { return };
    let label = |span, text: &str, primary| Label { span, text: text.into(), primary };
    let mut labels = vec![label(range_of(tree, path), "", true)];
    let others = diagnostic.related.iter();
    labels.extend(others.map(|place| label(range_of(tree, &place.path), &place.text, false)));
    diagnostic.labels = labels;
}

/// Byte range to point at for a path, or for its closest ancestor that exists.
fn range_of(tree: &Node<'_>, path: &str) -> Range<usize> {
    below(tree, path.strip_prefix('$').unwrap_or(path))
}

/// The same for a path that starts at a node.
fn below(node: &Node<'_>, path: &str) -> Range<usize> {
    node.with_parts(|node| match step(node, path) {
        Some((child, rest)) => below(child, rest),
        None => node.shown(),
    })
}

/// The child that the first step of `path` names, and the rest of the path.
fn step<'v, 't>(node: &'v Node<'t>, path: &'v str) -> Option<(&'v Node<'t>, &'v str)> {
    if let Some(path) = path.strip_prefix('.') {
        let end = path.find(['.', '[']).unwrap_or(path.len());
        return Some((node.get(&path[..end])?, &path[end..]));
    }
    let path = path.strip_prefix('[')?;
    if path.starts_with('"') {
        let end = path.as_bytes().windows(2).position(|two| two == b"\"]")?;
        return Some((node.get(path.get(1..end)?)?, &path[end + 2..]));
    }
    let (index, tail) = path.split_once(']')?;
    Some((node.elements()?.get(index.parse::<usize>().ok()?)?, tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format = Format::of("syntax");

    #[test]
    fn a_path_names_its_value_or_the_nearest_ancestor() {
        let text = r#"{"0": [{"Id": 7}, {"a b": true}]}"#;
        let found = |path: &str| &text[locate(text, &FORMAT, path).expect("JSON")];
        assert_eq!(found("$[\"0\"][0].Id"), "7");
        assert_eq!(found("$[\"0\"][1][\"a b\"]"), "true");
        assert_eq!(found("$[\"0\"][0].Op.Type"), "{\"Id\": 7}");
        assert_eq!(found("$[\"0\"][9]"), "[{\"Id\": 7}, {\"a b\": true}]");
        assert_eq!(found("$"), text);
    }

    #[test]
    fn what_is_long_is_shown_by_its_bracket() {
        let text = format!("{{\"a\": [{}1]}}", "1, ".repeat(100));
        assert_eq!(locate(&text, &FORMAT, "$.a"), Some(6..7));
    }

    #[test]
    fn places_print_as_paths() {
        let nodes = At::ROOT.key("Nodes");
        assert_eq!(nodes.index(3).key("Op").to_string(), "$.Nodes[3].Op");
        assert_eq!(At::ROOT.key("0").key("a b").to_string(), "$[\"0\"][\"a b\"]");
        assert_eq!(At::entry("Nodes", 3, "Op", None).key("Args").to_string(), "$.Nodes[3].Op.Args");
        assert_eq!(At::entry("Nodes", 3, "Ops", Some(1)).to_string(), "$.Nodes[3].Ops[1]");
    }

    #[test]
    fn diagnostics_with_a_path_get_their_place() {
        let text = "{\"a\": 1, \"b\": 2}";
        let diagnostic = Diagnostic::error("x", "y").path("$.b").related("$.a", "see");
        let mut diagnostics =
            [diagnostic, Diagnostic::error("x", "y"), Diagnostic::error("x", "y").at(0..1, "")];
        place(text, &FORMAT, &mut diagnostics);
        let starts = |diagnostic: &Diagnostic| {
            diagnostic.labels.iter().map(|label| label.span.start).collect::<Vec<_>>()
        };
        assert_eq!(diagnostics.each_ref().map(starts), [vec![14, 6], vec![], vec![0]]);
    }
}
