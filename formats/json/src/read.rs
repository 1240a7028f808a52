//! Typed access to a tree, which reports errors at the value concerned and continues.

use std::collections::BTreeSet;
use std::ops::Range;

use irc_diag::{Diagnostic, Severity, Sink, clip, nearest};

use crate::{At, Format, Member, Node, Value};

/// Reads values and reports errors; every method returns `None` after reporting.
pub struct Reader<'s> {
    sink: &'s mut Sink,
    format: &'static Format,
    strict: bool,
}

/// An object being read.
#[derive(Clone, Copy, Debug)]
pub struct Object<'n, 't, 'p> {
    /// Its node in the tree.
    pub node: &'n Node<'t>,
    /// Its members in the order written.
    pub members: &'n [Member<'t>],
    /// Its path.
    pub at: &'p At<'p>,
}

impl<'n, 't, 'p> Object<'n, 't, 'p> {
    /// The object at a path, if it is one; reports nothing.
    pub fn of(node: &'n Node<'t>, at: &'p At<'p>) -> Option<Self> {
        Some(Object { node, members: node.members()?, at })
    }

    /// Value of a key, if present.
    pub fn get(&self, key: &str) -> Option<&'n Node<'t>> {
        self.node.get(key)
    }

    /// Keys and values in the order written.
    pub fn entries(&self) -> impl Iterator<Item = (&'n str, &'n Node<'t>)> + use<'n, 't> {
        self.members.iter().map(|member| (&*member.key, &member.value))
    }

    /// Byte range of a key, or of the opening bracket if it is absent.
    pub fn key_span(&self, key: &str) -> Range<usize> {
        let named = self.members.iter().find(|member| member.key == key);
        named.map_or_else(|| self.node.open(), Member::key_span)
    }
}

impl<'s> Reader<'s> {
    /// A reader that reports to `sink`; `strict` makes unknown keys errors.
    pub fn new(sink: &'s mut Sink, format: &'static Format, strict: bool) -> Self {
        Self { sink, format, strict }
    }

    /// Reports a diagnostic at a path and a byte range.
    pub fn report(&mut self, diagnostic: Diagnostic, span: Range<usize>, at: &At<'_>, text: &str) {
        self.push(diagnostic.path(at.to_string()).at(span, text));
    }

    /// Reports a diagnostic without a location.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.sink.push(diagnostic);
    }

    /// Reports a value of the wrong type.
    pub fn wrong_type(&mut self, expected: &str, node: &Node<'_>, at: &At<'_>) {
        let found = describe(node);
        let message = format!("expected {expected}, found {found}");
        let diagnostic = Diagnostic::error(self.format.wrong_type, message);
        self.report(diagnostic, node.shown(), at, &format!("this is {found}"));
    }

    /// Reports a missing key at the opening bracket of its object.
    pub fn missing(&mut self, object: &Object<'_, '_, '_>, key: &str) {
        let diagnostic = Diagnostic::error(self.format.missing_key, format!("missing key `{key}`"));
        let label = format!("this object has no `{key}`");
        self.report(diagnostic, object.node.open(), object.at, &label);
    }

    /// Reports an unknown key of the object at `at`.
    pub fn unknown(
        &mut self,
        member: &Member<'_>,
        at: &At<'_>,
        known: &[&str],
        (code, message): (&'static str, String),
    ) {
        let severity = if self.strict { Severity::Error } else { self.format.unknown_key };
        let mut diagnostic = Diagnostic::new(severity, code, message);
        if let Some(near) = nearest(&member.key, known.iter().copied()) {
            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
        }
        self.report(diagnostic, member.key_span(), &at.key(&member.key), "");
    }

    /// The value as an object; keys that occur twice are reported.
    pub fn object<'n, 't, 'p>(
        &mut self,
        node: &'n Node<'t>,
        at: &'p At<'p>,
    ) -> Option<Object<'n, 't, 'p>> {
        let Some(object) = Object::of(node, at) else {
            self.wrong_type("an object", node, at);
            return None;
        };
        for member in repeated(object.members) {
            let message = format!("key `{}` occurs twice in one object", clip(&member.key));
            let diagnostic = Diagnostic::error(self.format.duplicate_key, message);
            let label = "one of the two values would be lost";
            self.report(diagnostic, member.key_span(), &at.key(&member.key), label);
        }
        Some(object)
    }

    /// The value of a required key.
    pub fn required<'n, 't>(
        &mut self,
        object: &Object<'n, 't, '_>,
        key: &str,
    ) -> Option<&'n Node<'t>> {
        let node = object.get(key);
        if node.is_none() {
            self.missing(object, key);
        }
        node
    }

    /// The elements of an array.
    pub fn array<'n, 't>(&mut self, node: &'n Node<'t>, at: &At<'_>) -> Option<&'n [Node<'t>]> {
        self.typed(node.elements(), "an array", node, at)
    }

    /// Each element of an array read with `read`, with its parts; all are read before an error is returned.
    pub fn list<'t, T>(
        &mut self,
        node: &Node<'t>,
        at: &At<'_>,
        mut read: impl FnMut(&mut Self, &Node<'t>, &At<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut all = vec![];
        let is_read = self.each(node, at, &mut |reader, element, at| {
            all.extend(read(reader, element, at));
        });
        is_read.filter(|count| *count == all.len()).map(|_| all)
    }

    /// Visits each element of an array; returns their number.
    fn each<'t>(
        &mut self,
        node: &Node<'t>,
        at: &At<'_>,
        look: &mut dyn FnMut(&mut Self, &Node<'t>, &At<'_>),
    ) -> Option<usize> {
        let elements = self.array(node, at)?;
        for (index, element) in elements.iter().enumerate() {
            element.with_parts(|element| look(self, element, &at.index(index)));
        }
        Some(elements.len())
    }

    /// A string.
    pub fn string<'n>(&mut self, node: &'n Node<'_>, at: &At<'_>) -> Option<&'n str> {
        self.typed(node.text(), "a string", node, at)
    }

    /// A boolean.
    pub fn boolean(&mut self, node: &Node<'_>, at: &At<'_>) -> Option<bool> {
        let value = match node.value {
            Value::Bool(value) => Some(value),
            _ => None,
        };
        self.typed(value, "a boolean", node, at)
    }

    /// An integer that fits `T`; `expected` describes the range.
    pub fn integer<T: TryFrom<i128>>(
        &mut self,
        node: &Node<'_>,
        at: &At<'_>,
        expected: &str,
    ) -> Option<T> {
        let is_whole = |text: &&str| text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        let text = self.typed(node.number().filter(is_whole), expected, node, at)?;
        let fits = text.parse::<i128>().ok().and_then(|number| T::try_from(number).ok());
        if fits.is_none() {
            self.out_of_range(expected, node, at);
        }
        fits
    }

    /// Reports a number that is out of range.
    pub fn out_of_range(&mut self, expected: &str, node: &Node<'_>, at: &At<'_>) {
        let message = format!("number out of range, expected {expected}");
        self.report(Diagnostic::error(self.format.range, message), node.span(), at, "does not fit");
    }

    /// Describes a value of the right type.
    fn typed<T>(
        &mut self,
        value: Option<T>,
        expected: &str,
        node: &Node<'_>,
        at: &At<'_>,
    ) -> Option<T> {
        if value.is_none() {
            self.wrong_type(expected, node, at);
        }
        value
    }
}

/// Members whose key occurs earlier.
fn repeated<'n, 't>(members: &'n [Member<'t>]) -> Vec<&'n Member<'t>> {
    const FEW: usize = 48;
    if members.len() <= FEW {
        let is_repeated = |&(index, member): &(usize, &Member<'_>)| {
            members[..index].iter().any(|other| other.key == member.key)
        };
        return members.iter().enumerate().filter(is_repeated).map(|(_, member)| member).collect();
    }
    let mut seen = BTreeSet::new();
    members.iter().filter(|member| !seen.insert(&member.key)).collect()
}

/// Describes a value.
fn describe(node: &Node<'_>) -> String {
    match &node.value {
        Value::Null => "null".into(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(text) => format!("the number {}", clip(text)),
        Value::String(text) => format!("the string \"{}\"", clip(text)),
        Value::Array(elements) => format!("an array of {}", elements.len()),
        Value::Object(_) => "an object".into(),
        Value::Unread(_) => node.with_parts(describe),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format = Format {
        wrong_type: "type",
        range: "range",
        missing_key: "missing",
        duplicate_key: "twice",
        ..Format::of("syntax")
    };

    fn found(text: &str, read: impl FnOnce(&mut Reader<'_>, &Node<'_>)) -> Vec<Diagnostic> {
        let mut sink = Sink::new();
        let tree = crate::tree(text, &FORMAT, &mut sink).expect("JSON");
        read(&mut Reader::new(&mut sink, &FORMAT, false), &tree);
        sink.into_diagnostics()
    }

    fn codes(text: &str, read: impl FnOnce(&mut Reader<'_>, &Node<'_>)) -> Vec<&'static str> {
        found(text, read).iter().map(|diagnostic| diagnostic.code).collect()
    }

    #[test]
    fn integers_fit_or_say_why_not() {
        let read = |reader: &mut Reader<'_>, node: &Node<'_>| {
            reader
                .list(node, &At::ROOT, |reader, node, at| reader.integer::<u8>(node, at, "a byte"));
        };
        assert_eq!(codes("[0, 255]", read), [""; 0]);
        assert_eq!(codes("[1.0, 1e2, \"1\", null]", read), ["type"; 4]);
        assert_eq!(codes("[256, -1]", read), ["range"; 2]);
        assert_eq!(codes(&format!("[{}]", "9".repeat(60)), read), ["range"]);
        let diagnostic = &found("[300]", read)[0];
        assert_eq!(diagnostic.message, "number out of range, expected a byte");
        assert_eq!(diagnostic.path.as_deref(), Some("$[0]"));
    }

    #[test]
    fn keys_occur_once() {
        let read = |reader: &mut Reader<'_>, node: &Node<'_>| {
            let object = reader.object(node, &At::ROOT).expect("an object");
            reader.required(&object, "b");
        };
        assert_eq!(codes("{\"a\": 1, \"a\": 2}", read), ["twice", "missing"]);
        let many: String = (0..100).map(|key| format!("\"{}\": 0, ", key % 99)).collect();
        assert_eq!(codes(&format!("{{{many}\"b\": 1}}"), read), ["twice"]);
    }

    #[test]
    fn an_unknown_key_is_an_error_when_reading_is_strict() {
        let mut sink = Sink::new();
        let tree = crate::tree("{\"Shap\": 1}", &FORMAT, &mut sink).expect("JSON");
        for strict in [false, true] {
            let mut reader = Reader::new(&mut sink, &FORMAT, strict);
            let object = reader.object(&tree, &At::ROOT).expect("an object");
            reader.unknown(&object.members[0], object.at, &["Shape"], ("key", "no".into()));
        }
        let severities: Vec<_> = sink.diagnostics().iter().map(|found| found.severity).collect();
        assert_eq!(severities, [Severity::Warning, Severity::Error]);
        assert_eq!(sink.diagnostics()[0].help.as_deref(), Some("did you mean `Shape`?"));
    }
}
