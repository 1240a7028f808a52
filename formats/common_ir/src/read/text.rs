//! Converts the JSON and text encodings to messages.

use bytes::Bytes;
use irc_diag::{Diagnostic, Sink};
use miette::Diagnostic as _;
use prost::Message;
use prost_reflect::{DeserializeOptions, DynamicMessage};

use crate::locate::{json_excess, text_excess};
use crate::schema::{self, LimitError};
use crate::{Encoding, Form, Root};

/// U+FEFF in UTF-8, which some editors write at the start of a text.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Maximum size of a file in one of these encodings. Binary files, which are mapped, have no such limit.
const MAX_BYTES: usize = 256 << 20;

/// The message of a file in one of these encodings, converted to binary.
pub(super) fn message(bytes: &Bytes, form: Form, sink: &mut Sink) -> Option<Bytes> {
    let text = text(bytes, sink)?;
    let message = match form.encoding {
        Encoding::Json => json(text, form, sink)?,
        Encoding::Text | Encoding::Binary => proto_text(text, form, sink)?,
    };
    Some(message.encode_to_vec().into())
}

/// Replaces the byte order mark at the start of a text by spaces, which preserves offsets.
pub(super) fn blank_mark(bytes: Bytes) -> Bytes {
    match bytes.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) if bytes.len() <= MAX_BYTES => [b"   ", rest].concat().into(),
        _ => bytes,
    }
}

/// The text of a file: UTF-8, of limited size.
pub(super) fn text<'b>(bytes: &'b Bytes, sink: &mut Sink) -> Option<&'b str> {
    if bytes.len() > MAX_BYTES {
        let message = format!("the text of {} bytes is too large", bytes.len());
        let help = "use the binary encoding for models of that size";
        sink.push(Diagnostic::error("cir-too-large", message).at(0..0, "").help(help));
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) => {
            let at = error.valid_up_to();
            let diagnostic = Diagnostic::error("cir-encoding", "the file is not UTF-8 text");
            sink.push(diagnostic.at(at..at + 1, "this byte is not UTF-8"));
            None
        }
    }
}

fn json(text: &str, form: Form, sink: &mut Sink) -> Option<DynamicMessage> {
    check(json_excess(text), sink)?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let descriptor = schema::message(form.root.message());
    let read = DynamicMessage::deserialize_with_options(descriptor, &mut deserializer, &options)
        .and_then(|message| deserializer.end().map(|()| message));
    read.map_err(|error| {
        let mut diagnostic = json_diagnostic(text, &error);
        let at = offset(text, error.line(), error.column());
        diagnostic.message.push_str(rule(&diagnostic.message, &text[..floor(text, at)], form));
        sink.push(diagnostic);
    })
    .ok()
}

/// A diagnostic at the line and column where the deserializer stopped.
pub(super) fn json_diagnostic(text: &str, error: &serde_json::Error) -> Diagnostic {
    let at = offset(text, error.line(), error.column());
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = message.strip_suffix(&place).unwrap_or(&message);
    let code = if error.is_eof() { "cir-truncated" } else { "cir-syntax" };
    Diagnostic::error(code, message).at(at..at, "parsed up to here")
}

/// Byte offset of a line and a column of bytes, both from one.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let lines = text.split_inclusive('\n').take(line.saturating_sub(1));
    let start: usize = lines.map(str::len).sum();
    (start + column.saturating_sub(1)).min(text.len())
}

fn proto_text(text: &str, form: Form, sink: &mut Sink) -> Option<DynamicMessage> {
    check(text_excess(text), sink)?;
    let descriptor = schema::message(form.root.message());
    let read = DynamicMessage::parse_text_format(descriptor, text);
    read.map_err(|error| {
        let label = error.labels().and_then(|mut labels| labels.next());
        let span = label
            .map_or(text.len()..text.len(), |label| label.offset()..label.offset() + label.len());
        let code = if span.start >= text.len() { "cir-truncated" } else { "cir-syntax" };
        let mut message = error.to_string();
        message.push_str(rule(&message, &text[..floor(text, span.start)], form));
        sink.push(Diagnostic::error(code, message).at(span, ""));
    })
    .ok()
}

/// The nearest character boundary at or before a byte.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Metadata fields of Common IR with a type that a text can violate.
const METADATA: [&str; 9] = [
    "producer_version",
    "producerVersion",
    "producer_tag",
    "producerTag",
    "model_author",
    "modelAuthor",
    "model_license",
    "modelLicense",
    "doc_string",
];

/// Fields that only a graph has.
const GRAPH: [&str; 5] = ["node", "input", "output", "initializer", "input_arg_info"];

/// The rule of Common IR that an invalid text violates, as the end of a sentence.
fn rule(message: &str, before: &str, form: Form) -> &'static str {
    let named = message.split(['\'', '`', '"']).nth(1).unwrap_or_default();
    if form.root == Root::Library && GRAPH.contains(&named) {
        return " (R14)";
    }
    let key = before.rsplit_once(':').map_or("", |(key, _)| key).trim_end().trim_end_matches('"');
    let is_other = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let key = key.rsplit(is_other).next().unwrap_or_default();
    let is_metadata = form.root != Root::Model && METADATA.contains(&key);
    if is_metadata { " (R09)" } else { "" }
}

fn check(excess: Option<LimitError>, sink: &mut Sink) -> Option<()> {
    let Some(excess) = excess else { return Some(()) };
    let (LimitError::Depth(at) | LimitError::Items(at)) = excess;
    sink.push(excess.diagnostic().at(at..at + 1, "one too many"));
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, Options, read};

    #[test]
    fn a_text_that_breaks_a_rule_names_it() {
        let rows = [
            (
                "common-ir-json",
                r#"{"irVersion": "1", "producerVersion": "0.2", "node": []}"#,
                "(R09)",
            ),
            ("common-ir-text", "ir_version: 1\nproducer_version: \"0.2\"", "(R09)"),
            (
                "common-ir-library-json",
                r#"{"name": "a", "domain": "b", "operator": [], "node": 1}"#,
                "(R14)",
            ),
        ];
        for (format, text, rule) in rows {
            let format = Format::from_name(format).unwrap_or_default();
            let mut sink = Sink::new();
            read("x", text.into(), &Options { format, ..Options::default() }, &mut sink);
            let found = sink.diagnostics();
            assert!(found.iter().any(|diagnostic| diagnostic.message.ends_with(rule)), "{found:?}");
        }
    }
}
