//! JSON paths: `$["0"][3].buffer[1].address`.

use std::fmt;
use std::ops::Range;

use irc_diag::{Diagnostic, Label, Sink, Source};

use super::{Node, Value};

/// A place in a JSON document, a list of steps linked to the root; written out only when shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'p> {
    parent: Option<&'p At<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

impl<'p> At<'p> {
    /// The whole document.
    pub const ROOT: At<'static> = At { parent: None, step: Step::Root };

    /// The value of a key of the object at this place.
    pub fn key(&'p self, key: &'p str) -> At<'p> {
        At { parent: Some(self), step: Step::Key(key) }
    }

    /// The element of that index of the array at this place.
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
        }
    }
}

fn is_plain(key: &str) -> bool {
    let starts = key.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Gives every finding that has a path but no label its place in the text.
pub fn place(source: &Source, findings: &mut [Diagnostic]) {
    if let Some(tree) = super::parse(source, &mut Sink::with_limit(0)) {
        findings.iter_mut().for_each(|finding| place_in(&tree, finding));
    }
}

/// Gives a finding that has a path but no label its place in the tree.
pub(crate) fn place_in(tree: &Node<'_>, finding: &mut Diagnostic) {
    let Some(path) = finding.path.as_deref().filter(|_| finding.labels.is_empty()) else { return };
    let label = |span, text: &str, primary| Label { span, text: text.into(), primary };
    let mut labels = vec![label(range_of(tree, path), "", true)];
    let others = finding.related.iter();
    labels.extend(others.map(|place| label(range_of(tree, &place.path), &place.text, false)));
    finding.labels = labels;
}

/// Byte range of what shows the value a path names, or its nearest ancestor that exists: the whole
/// of it where it is short, else the bracket that opens it.
fn range_of(tree: &Node<'_>, path: &str) -> Range<usize> {
    const SHORT: usize = 200;
    let mut node = tree;
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    while let Some((child, tail)) = step(node, rest) {
        (node, rest) = (child, tail);
    }
    if node.span().len() <= SHORT { node.span() } else { node.open() }
}

/// The child the first step of `path` names, and the rest of the path.
fn step<'v, 't>(node: &'v Node<'t>, path: &'v str) -> Option<(&'v Node<'t>, &'v str)> {
    if let Some(path) = path.strip_prefix('.') {
        let end = path.find(['.', '[']).unwrap_or(path.len());
        return Some((node.get(&path[..end])?, &path[end..]));
    }
    let path = path.strip_prefix('[')?;
    if path.starts_with('"') {
        let (key, tail) = path.split_once("\"]")?;
        return Some((node.get(&key[1..])?, tail));
    }
    let (index, tail) = path.split_once(']')?;
    let Value::Array(elements) = &node.value else { return None };
    Some((elements.get(index.parse::<usize>().ok()?)?, tail))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn a_path_names_its_value_or_the_nearest_ancestor() {
        let source = Source::new("x", r#"{"0": [{"Id": 7}, {"a b": true}]}"#);
        let tree = parse(&source, &mut Sink::new()).expect("JSON");
        let found = |path: &str| &source.text()[range_of(&tree, path)];
        assert_eq!(found("$[\"0\"][0].Id"), "7");
        assert_eq!(found("$[\"0\"][1][\"a b\"]"), "true");
        assert_eq!(found("$[\"0\"][0].Op.Type"), "{\"Id\": 7}");
        assert_eq!(found("$"), source.text());
        assert_eq!(At::ROOT.key("0").index(3).key("Op").to_string(), "$[\"0\"][3].Op");
    }
}
