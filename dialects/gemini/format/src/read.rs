//! Typed access to a tree, reporting at the value concerned and going on.

use std::collections::HashSet;
use std::ops::Range;

use irc_diag::{Diagnostic, Severity, Sink};

use crate::json::{At, Member, Node, Value};

/// How to read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Unknown keys are errors rather than warnings.
    pub strict: bool,
    /// Check the meaning too, not only the form.
    pub validate: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { strict: false, validate: true }
    }
}

/// Reads values, reporting what is not as expected; every method returns `None` after reporting.
pub(crate) struct Reader<'s> {
    sink: &'s mut Sink,
    strict: bool,
}

impl<'s> Reader<'s> {
    /// A reader that reports to `sink`; `strict` makes unknown keys errors.
    pub fn new(sink: &'s mut Sink, strict: bool) -> Self {
        Self { sink, strict }
    }

    /// Reports a finding that has a path, placed at a byte range.
    pub fn report(&mut self, finding: Diagnostic, span: Range<usize>, at: &At<'_>, text: &str) {
        self.sink.push(finding.path(at.to_string()).at(span, text));
    }

    /// Reports a value of the wrong type.
    pub fn wrong_type(&mut self, expected: &str, node: &Node<'_>, at: &At<'_>) {
        let found = describe(node);
        let message = format!("expected {expected}, found {found}");
        let span = match node.value {
            Value::Array(_) | Value::Object(_) => node.open(),
            _ => node.span(),
        };
        let label = format!("this is {found}");
        self.report(Diagnostic::error("gem-wrong-type", message), span, at, &label);
    }

    /// Reports a missing key where its object opens.
    pub fn missing(&mut self, node: &Node<'_>, at: &At<'_>, key: &str) {
        let finding = Diagnostic::error("gem-missing-key", format!("missing key `{key}`"));
        self.report(finding, node.open(), at, &format!("this object needs `{key}`"));
    }

    /// Reports a key that is not of the format.
    pub fn unknown(&mut self, member: &Member<'_>, at: &At<'_>, known: &[&str]) {
        let severity = if self.strict { Severity::Error } else { Severity::Warning };
        let message = format!("unknown key `{}` is kept but not used", clip(&member.key));
        let mut finding = Diagnostic::new(severity, "gem-unknown-key", message);
        if let Some(near) = nearest(&member.key, known) {
            finding = finding.help(format!("did you mean `{near}`?"));
        }
        self.report(finding, member.key_span(), &at.key(&member.key), "");
    }

    /// Reports a key that occurs twice.
    fn duplicate(&mut self, member: &Member<'_>, at: &At<'_>) {
        let message = format!("key `{}` occurs twice in one object", clip(&member.key));
        let finding = Diagnostic::error("gem-duplicate-key", message);
        let label = "one of the two values would be lost";
        self.report(finding, member.key_span(), &at.key(&member.key), label);
    }

    /// The members of an object; keys that occur twice are reported.
    pub fn members<'n, 't>(&mut self, node: &'n Node<'t>, at: &At<'_>) -> Option<&'n [Member<'t>]> {
        match &node.value {
            Value::Object(members) => {
                for member in repeated(members) {
                    self.duplicate(member, at);
                }
                Some(members)
            }
            _ => {
                self.wrong_type("an object", node, at);
                None
            }
        }
    }

    /// The elements of an array.
    pub fn elements<'n, 't>(&mut self, node: &'n Node<'t>, at: &At<'_>) -> Option<&'n [Node<'t>]> {
        match &node.value {
            Value::Array(elements) => Some(elements),
            _ => {
                self.wrong_type("an array", node, at);
                None
            }
        }
    }

    /// A string.
    pub fn string<'n>(&mut self, node: &'n Node<'_>, at: &At<'_>) -> Option<&'n str> {
        match &node.value {
            Value::String(text) => Some(text),
            _ => {
                self.wrong_type("a string", node, at);
                None
            }
        }
    }

    /// An integer within the bounds of every quantity of the formats.
    pub fn integer(&mut self, node: &Node<'_>, at: &At<'_>) -> Option<i64> {
        let expected = "an integer";
        let Value::Number(text) = node.value else {
            self.wrong_type(expected, node, at);
            return None;
        };
        if text.contains(['.', 'e', 'E']) {
            self.wrong_type(expected, node, at);
            return None;
        }
        let number = text.parse().ok().filter(|number: &i64| number.unsigned_abs() <= MAX_INTEGER);
        if number.is_none() {
            let message = format!("the number {} is out of range", clip(text));
            let label = format!("expected at most {MAX_INTEGER} either way");
            self.report(Diagnostic::error("gem-range", message), node.span(), at, &label);
        }
        number
    }
}

/// Largest integer read: above the bits of any memory, and small enough that sums do not overflow.
const MAX_INTEGER: u64 = 1 << 48;

/// Members whose key an earlier one has.
fn repeated<'n, 't>(members: &'n [Member<'t>]) -> Vec<&'n Member<'t>> {
    const FEW: usize = 48;
    if members.len() <= FEW {
        let is_repeated = |&(index, member): &(usize, &Member<'_>)| {
            members[..index].iter().any(|other| other.key == member.key)
        };
        return members.iter().enumerate().filter(is_repeated).map(|(_, member)| member).collect();
    }
    let mut seen = HashSet::with_capacity(members.len());
    members.iter().filter(|member| !seen.insert(&*member.key)).collect()
}

/// A value in words.
fn describe(node: &Node<'_>) -> String {
    match &node.value {
        Value::Null => "null".into(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(text) => format!("the number {}", clip(text)),
        Value::String(text) => format!("the string \"{}\"", clip(text)),
        Value::Array(elements) => format!("an array of {}", elements.len()),
        Value::Object(_) => "an object".into(),
    }
}

/// The start of a text that may be long.
pub(crate) fn clip(text: &str) -> String {
    const LONG: usize = 40;
    match text.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

/// The name that is at most two edits away, when that is less than half of it.
pub(crate) fn nearest<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    const LONGEST: usize = 32;
    if name.len() > LONGEST {
        return None;
    }
    let distances = names.iter().map(|near| (strsim::levenshtein(near, name), *near));
    let (distance, near) = distances.min()?;
    (distance <= 2 && 2 * distance < near.len()).then_some(near)
}
