//! JSON paths: `$.Nodes[3].Op.ReadTensors[0].Shape`.

use std::fmt;
use std::ops::Range;

use irc_diag::Diagnostic;
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

/// A place in a JSON document, a list of steps linked to the root; written out only when shown.
#[derive(Clone, Copy, Debug)]
pub struct At<'p> {
    parent: Option<&'p At<'p>>,
    step: Step<'p>,
}

/// Where an op stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpPlace {
    /// `$.Nodes[i].Op`, the present form of a model.
    Node(usize),
    /// `$.Nodes[i].Ops[j]`, the older form of a model.
    NodeOps(usize, usize),
    /// `$.TaskInfos[i].Ops[j]` of a plan.
    Task(usize, usize),
}

impl fmt::Display for OpPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpPlace::Node(node) => write!(f, "$.Nodes[{node}].Op"),
            OpPlace::NodeOps(node, op) => write!(f, "$.Nodes[{node}].Ops[{op}]"),
            OpPlace::Task(task, op) => write!(f, "$.TaskInfos[{task}].Ops[{op}]"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    Root,
    Op(OpPlace),
    Key(&'p str),
    Index(usize),
}

impl<'p> At<'p> {
    /// The whole document.
    pub const ROOT: At<'static> = At { parent: None, step: Step::Root };

    /// An op of the document.
    pub fn op(place: OpPlace) -> At<'static> {
        At { parent: None, step: Step::Op(place) }
    }

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
            Step::Op(place) => place.fmt(f),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) if is_plain(key) => write!(f, ".{key}"),
            Step::Key(key) => write!(f, "[{key:?}]"),
        }
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Byte range of the value a path names, or of its nearest ancestor that exists.
///
/// Nothing when the text is not JSON. Parses the text: to place many findings use [`place`].
pub fn locate(text: &str, path: &str) -> Option<Range<usize>> {
    let tree = super::tree(text, &mut irc_diag::Sink::with_limit(0))?;
    Some(range_of(&tree, path))
}

/// Gives every finding that has a path but no label its place in the text.
pub fn place(text: &str, diagnostics: &mut [Diagnostic]) {
    if !diagnostics.iter().any(|finding| finding.labels.is_empty() && finding.path.is_some()) {
        return;
    }
    if let Some(tree) = super::tree(text, &mut irc_diag::Sink::with_limit(0)) {
        diagnostics.iter_mut().for_each(|finding| place_in(&tree, finding));
    }
}

/// Gives a finding that has a path but no label its place in the tree.
pub(crate) fn place_in(tree: &Value<'_>, finding: &mut Diagnostic) {
    let Some(path) = finding.path.as_deref().filter(|_| finding.labels.is_empty()) else { return };
    let primary = range_of(tree, path);
    let related = finding.related.iter();
    let others: Vec<_> =
        related.map(|place| (range_of(tree, &place.path), place.text.clone())).collect();
    let label = |span, text, primary| irc_diag::Label { span, text, primary };
    finding.labels.push(label(primary, String::new(), true));
    finding.labels.extend(others.into_iter().map(|(span, text)| label(span, text, false)));
}

/// Byte range of the value a path names in a tree, or of its nearest ancestor that exists.
fn range_of(tree: &Value<'_>, path: &str) -> Range<usize> {
    let mut value = tree;
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    while let Some((child, tail)) = step(value, rest) {
        (value, rest) = (child, tail);
    }
    value.start()..value.end()
}

/// The child the first step of `path` names, and the rest of the path.
fn step<'v, 'a>(value: &'v Value<'a>, path: &'v str) -> Option<(&'v Value<'a>, &'v str)> {
    if let Some(path) = path.strip_prefix('.') {
        let end = path.find(['.', '[']).unwrap_or(path.len());
        return Some((member(value, &path[..end])?, &path[end..]));
    }
    let path = path.strip_prefix('[')?;
    if path.starts_with('"') {
        let (key, tail) = path.split_once("\"]")?;
        return Some((member(value, &key[1..])?, tail));
    }
    let (index, tail) = path.split_once(']')?;
    let index: usize = index.parse().ok()?;
    Some((value.as_array()?.elements.get(index)?, tail))
}

fn member<'v, 'a>(value: &'v Value<'a>, key: &str) -> Option<&'v Value<'a>> {
    value.as_object()?.get(key).map(|property| &property.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"Nodes": [{"Id": 7}, {"a b": true}]}"#;

    fn found(path: &str) -> &'static str {
        &TEXT[locate(TEXT, path).expect("JSON")]
    }

    #[test]
    fn a_path_names_its_value_or_the_nearest_ancestor() {
        assert_eq!(found("$.Nodes[0].Id"), "7");
        assert_eq!(found("$.Nodes[1][\"a b\"]"), "true");
        assert_eq!(found("$.Nodes[0].Op.Type"), "{\"Id\": 7}");
        assert_eq!(found("$"), TEXT);
    }

    #[test]
    fn places_print_as_paths() {
        let nodes = At::ROOT.key("Nodes");
        assert_eq!(nodes.index(3).key("Op").to_string(), "$.Nodes[3].Op");
        assert_eq!(At::ROOT.key("a b").to_string(), "$[\"a b\"]");
    }
}
