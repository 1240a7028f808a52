//! JSON of ARK's files: the codes of syntax errors, the location of an op in a file, and
//! what both readers need in addition to [`Reader`].
//!
//! The fast path of models reads with `serde_json` and stores no ranges. If it rejects a text, or if a
//! diagnostic needs a location, the text is parsed again into a tree with ranges.

use std::fmt;
use std::ops::Range;

use irc_diag::{Diagnostic, Severity, Sink, Source, clip};
use irc_json::{At, Format, Node, Object, Reader, Value, place_in};

/// The error codes of ARK's formats for syntax errors, and the limits of reading.
pub(crate) static FORMAT: Format = Format {
    levels: Some("twelve"),
    max_values: 4_000_000,
    encoding: "ark-encoding",
    byte_order_mark: Some("ark-byte-order-mark"),
    truncated: "ark-truncated",
    non_finite: "ark-non-finite",
    non_finite_help: Some("an infinite or undefined constant cannot be stored in this format"),
    control_character: "ark-control-character",
    nesting: "ark-nesting",
    too_large: "ark-too-large",
    wrong_type: "ark-wrong-type",
    range: "ark-number-range",
    missing_key: "ark-missing-key",
    duplicate_key: "ark-duplicate-key",
    unknown_key: Severity::Note,
    ..Format::of("ark-syntax")
};

/// The location of an op in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpPlace {
    /// `$.Nodes[i].Op`, the current form of a model.
    Node(usize),
    /// `$.Nodes[i].Ops[j]`, the older form of a model.
    NodeOps(usize, usize),
    /// `$.TaskInfos[i].Ops[j]` of a plan.
    Task(usize, usize),
}

impl OpPlace {
    /// The location as a path of the document.
    pub fn at(self) -> At<'static> {
        match self {
            OpPlace::Node(node) => At::entry("Nodes", node, "Op", None),
            OpPlace::NodeOps(node, op) => At::entry("Nodes", node, "Ops", Some(op)),
            OpPlace::Task(task, op) => At::entry("TaskInfos", task, "Ops", Some(op)),
        }
    }
}

impl fmt::Display for OpPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at().fmt(f)
    }
}

/// The tree of a file; `None` after a diagnostic.
pub(crate) fn tree<'t>(source: &'t Source, sink: &mut Sink) -> Option<Node<'t>> {
    irc_json::parse(source, &FORMAT, sink)
}

/// Byte range of the value at a path, or of its nearest ancestor that exists; only the opening bracket
/// of a long value.
///
/// `None` if the text is not JSON. Parses the text: use [`place`] to locate many diagnostics.
pub fn locate(text: &str, path: &str) -> Option<Range<usize>> {
    irc_json::locate(text, &FORMAT, path)
}

/// Sets the location in the text of every diagnostic that has a path but no label.
pub fn place(text: &str, diagnostics: &mut [Diagnostic]) {
    irc_json::place(text, &FORMAT, diagnostics);
}

/// Reports a diagnostic at the opening bracket of an object.
pub(crate) fn report_object(
    reader: &mut Reader<'_>,
    diagnostic: Diagnostic,
    object: &Object<'_, '_, '_>,
) {
    reader.report(diagnostic, object.node.open(), object.at, "");
}

/// Reports diagnostics whose paths are relative to `node`, which is at `at`.
pub(crate) fn report_within(
    reader: &mut Reader<'_>,
    found: Vec<Diagnostic>,
    node: &Node<'_>,
    at: &At<'_>,
) {
    let absolute = |path: &str| format!("{at}{}", path.strip_prefix('$').unwrap_or(path));
    for mut diagnostic in found {
        place_in(node, &mut diagnostic);
        diagnostic.path = diagnostic.path.as_deref().map(absolute);
        diagnostic.related.iter_mut().for_each(|place| place.path = absolute(&place.path));
        reader.push(diagnostic);
    }
}

/// Reports that an older or newer generation of the format was accepted.
pub(crate) fn accepted(reader: &mut Reader<'_>, message: &str, node: &Node<'_>, at: &At<'_>) {
    reader.report(Diagnostic::warning("ark-generation", message), node.span(), at, "");
}

/// Reports keys that are not in `known`.
pub(crate) fn check_keys(reader: &mut Reader<'_>, object: &Object<'_, '_, '_>, known: &[&str]) {
    let message = |key: &str| format!("unknown key `{key}` is ignored");
    check_known(reader, object, known, "ark-unknown-key", message);
}

/// As [`check_keys`], with the code and the message for keys that are not in `known`.
pub(crate) fn check_known(
    reader: &mut Reader<'_>,
    object: &Object<'_, '_, '_>,
    known: &[&str],
    code: &'static str,
    message: impl Fn(&str) -> String,
) {
    for member in object.members.iter().filter(|member| !known.contains(&&*member.key)) {
        reader.unknown(member, object.at, known, (code, message(&clip(&member.key).to_string())));
    }
}

/// A finite number that fits a 32-bit float.
pub(crate) fn float(reader: &mut Reader<'_>, node: &Node<'_>, at: &At<'_>) -> Option<f32> {
    let expected = "a finite 32-bit float";
    match node.value {
        Value::Number(text) => {
            let number = text.parse::<f64>().ok().map(|number| number as f32);
            let finite = number.filter(|number| number.is_finite());
            if finite.is_none() {
                reader.out_of_range(expected, node, at);
            }
            finite
        }
        Value::Null => {
            let message = "the float is `null`: an infinity or NaN was lost when the file was \
                           written";
            let diagnostic = Diagnostic::error("ark-null-float", message)
                .help("write the model again with a finite constant");
            reader.report(diagnostic, node.span(), at, "expected a finite number");
            None
        }
        _ => {
            reader.wrong_type(expected, node, at);
            None
        }
    }
}

/// An array of integers.
pub(crate) fn integers<T: TryFrom<i128>>(
    reader: &mut Reader<'_>,
    node: &Node<'_>,
    at: &At<'_>,
    expected: &str,
) -> Option<Vec<T>> {
    if node.elements().is_none() {
        reader.wrong_type("an array of integers", node, at);
        return None;
    }
    reader.list(node, at, |reader, node, at| reader.integer(node, at, expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(bytes: &[u8]) -> Vec<&'static str> {
        let mut sink = Sink::new();
        tree(&Source::from_bytes("x", bytes), &mut sink);
        sink.diagnostics().iter().map(|diagnostic| diagnostic.code).collect()
    }

    #[test]
    fn each_way_a_text_is_not_json_has_its_code() {
        assert_eq!(codes(b""), ["ark-truncated"]);
        assert_eq!(codes(b"{\"a\": [1,"), ["ark-truncated"]);
        assert_eq!(codes(b"[NaN, Infinity, 1e999]"), ["ark-non-finite"; 3]);
        assert_eq!(codes(b"[1,]"), ["ark-syntax"]);
        assert_eq!(codes(b"[0x10]"), ["ark-syntax"]);
        assert_eq!(codes(b"\x0b"), ["ark-syntax"]);
        assert_eq!(codes("[\u{a0}1]".as_bytes()), ["ark-syntax"]);
        assert_eq!(codes(b"[\"a\tb\"]"), ["ark-control-character"]);
        assert_eq!(codes("\u{feff}[]".as_bytes()), ["ark-byte-order-mark"]);
        assert_eq!(codes(b"[\"\xff\"]"), ["ark-encoding"]);
        assert_eq!(codes("[".repeat(1_000_000).as_bytes()), ["ark-nesting"]);
    }

    #[test]
    fn places_print_as_paths() {
        let places = [OpPlace::Node(3), OpPlace::NodeOps(3, 1), OpPlace::Task(2, 0)];
        let paths = ["$.Nodes[3].Op", "$.Nodes[3].Ops[1]", "$.TaskInfos[2].Ops[0]"];
        assert_eq!(places.map(|place| place.to_string()), paths);
    }
}
