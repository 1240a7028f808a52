//! The JSON and text forms to messages.

use std::borrow::Cow;

use bytes::Bytes;
use irc_diag::{Diagnostic, Sink};
use miette::Diagnostic as _;
use prost::Message;
use prost_reflect::{DeserializeOptions, DynamicMessage};

use crate::locate::{json_excess, text_excess};
use crate::schema::{self, Excess};
use crate::{Encoding, Form};

/// Largest file in one of these forms. Binary files, which are mapped, have no such bound.
const MAX_BYTES: usize = 256 << 20;

/// The message a file in one of these forms holds, in binary form.
pub(super) fn message(bytes: &Bytes, form: Form, sink: &mut Sink) -> Option<Bytes> {
    let text = text(bytes, sink)?;
    let message = match form.encoding {
        Encoding::Json => json(&text, form, sink)?,
        Encoding::Text | Encoding::Binary => proto_text(&text, form, sink)?,
    };
    Some(message.encode_to_vec().into())
}

/// The text of a file: UTF-8, of bounded size, a byte order mark replaced by spaces.
pub(super) fn text<'b>(bytes: &'b Bytes, sink: &mut Sink) -> Option<Cow<'b, str>> {
    if bytes.len() > MAX_BYTES {
        let message = format!("{} bytes of text are too many to read", bytes.len());
        let help = "models of that size are kept in binary form";
        sink.push(Diagnostic::error("cir-too-large", message).at(0..0, "").help(help));
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(match text.strip_prefix('\u{feff}') {
            Some(rest) => format!("   {rest}").into(),
            None => text.into(),
        }),
        Err(error) => {
            let at = error.valid_up_to();
            let finding = Diagnostic::error("cir-encoding", "the file is not UTF-8 text");
            sink.push(finding.at(at..at + 1, "this byte is not UTF-8"));
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
    read.map_err(|error| sink.push(json_finding(text, &error))).ok()
}

/// A finding at the line and column the deserializer had reached.
pub(super) fn json_finding(text: &str, error: &serde_json::Error) -> Diagnostic {
    let at = offset(text, error.line(), error.column());
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let message = message.strip_suffix(&place).unwrap_or(&message);
    let code = if error.is_eof() { "cir-truncated" } else { "cir-syntax" };
    Diagnostic::error(code, message).at(at..at, "read up to here")
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
        sink.push(Diagnostic::error(code, error.to_string()).at(span, ""));
    })
    .ok()
}

fn check(excess: Option<Excess>, sink: &mut Sink) -> Option<()> {
    let Some(excess) = excess else { return Some(()) };
    let (Excess::Depth(at) | Excess::Items(at)) = excess;
    sink.push(excess.finding().at(at..at + 1, "one too many"));
    None
}
