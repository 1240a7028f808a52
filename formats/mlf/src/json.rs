//! JSON of members: diagnostic codes of the reader, and Python's layout of the writer.

use irc_diag::{Diagnostic, Sink, Source};
use irc_json::{At, Format, Node, Reader};
use serde::Serialize;

/// Diagnostic codes of members, and limits on their text. A byte order mark is an
/// error, as for clients.
pub(crate) static FORMAT: Format = Format {
    file: "member",
    // So that sums over values fit into 64 bits.
    max_bytes: 16 << 20,
    too_large: "mlf-limit",
    wrong_type: "mlf-wrong-type",
    range: "mlf-wrong-type",
    missing_key: "mlf-missing-key",
    duplicate_key: "mlf-duplicate-key",
    ..Format::of("mlf-json")
};

/// The tree of a member; `None` after a diagnostic.
pub(crate) fn parse<'t>(source: &'t Source, sink: &mut Sink) -> Option<Node<'t>> {
    irc_json::parse(source, &FORMAT, sink)
}

/// A reader that reports to `sink`.
pub(crate) fn reader(sink: &mut Sink) -> Reader<'_> {
    Reader::new(sink, &FORMAT, false)
}

/// Reports a diagnostic at a value.
pub(crate) fn report(r: &mut Reader<'_>, diagnostic: Diagnostic, node: &Node<'_>, at: &At<'_>) {
    r.report(diagnostic, node.span(), at, "");
}

/// The text of a value as Python's `json.dump(indent=2)` writes it; keys are in the order of
/// fields.
pub(crate) fn print(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    let mut ascii = String::with_capacity(text.len());
    // Only strings contain characters that are not printable ASCII; Python escapes them.
    for c in text.chars() {
        match c {
            '\n' | ' '..='~' => ascii.push(c),
            _ => ascii
                .extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
        }
    }
    Ok(ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_json_is_rejected() {
        let deep = "[".repeat(100_000);
        let mark = "\u{feff}{}";
        for text in ["", "{", "[1,]", "{a: 1}", "[0x1]", "// x\n1", "[NaN]", mark, &deep] {
            let mut sink = Sink::new();
            parse(&Source::new("x", text), &mut sink);
            assert_eq!(sink.diagnostics()[0].code, "mlf-json", "{text}");
        }
        let mut sink = Sink::new();
        assert!(parse(&Source::new("x", " ".repeat((16 << 20) + 1)), &mut sink).is_none());
        assert_eq!(sink.diagnostics()[0].code, "mlf-limit");
    }

    #[test]
    fn text_is_laid_out_as_python_does() {
        let value = serde_json::json!({"a": [], "b": {}, "c": [1, "é\u{1F600}\n\u{7f}"]});
        // json.dumps(value, indent=2)
        let python = "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    \"\\u00e9\\ud83d\\ude00\\n\\u007f\"\n  ]\n}";
        assert_eq!(print(&value).expect("memory"), python);
    }
}
