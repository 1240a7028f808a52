//! Detects the form of a file, which is not stated in it; a wrong guess could parse without an error.
//!
//! The outermost message of a binary file is the one schema whose fields have the wire types
//! of the file and whose required fields are present.

use std::collections::BTreeMap;

use bytes::{Buf, Bytes};
use irc_diag::{Diagnostic, Sink};
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use serde_json::value::RawValue;

use super::{ambiguous, text};
use crate::locate::{text_excess, text_names};
use crate::{Encoding, Form, Root, schema};

/// The form of a file in an encoding; `root` is what the user says it contains.
pub(super) fn form(
    bytes: &Bytes,
    encoding: Encoding,
    root: Option<Root>,
    sink: &mut Sink,
) -> Option<Form> {
    let fits = match encoding {
        Encoding::Binary => binary_roots(bytes),
        Encoding::Json => named_roots(&json_names(text::text(bytes, sink)?, sink)?),
        Encoding::Text => named_roots(&text_names_of(text::text(bytes, sink)?)),
    };
    let root = match root {
        Some(root) => forced(root, &fits, sink)?,
        None => only(&fits, encoding, sink)?,
    };
    Some(Form { root, encoding })
}

/// The one form that fits.
fn only(fits: &[Root], encoding: Encoding, sink: &mut Sink) -> Option<Root> {
    match *fits {
        [root] => return Some(root),
        [] => {
            let words: Vec<&str> = Root::ALL.into_iter().map(Root::words).collect();
            let what = match encoding {
                Encoding::Binary => "file",
                Encoding::Json => "JSON text",
                Encoding::Text => "text",
            };
            let message = format!("the {what} does not look like {}", words.join(", nor like "));
            sink.push(ambiguous(message).with_note(
                "a graph has nodes or inputs, a library a name and a domain, a model a graph",
            ));
        }
        _ => {
            let words: Vec<&str> = fits.iter().map(|root| root.words()).collect();
            sink.push(ambiguous(format!("the file may be {}", words.join(" or "))));
        }
    }
    None
}

/// The form that a user specified, unless the file clearly has another, as it could parse without an error.
fn forced(root: Root, fits: &[Root], sink: &mut Sink) -> Option<Root> {
    match *fits {
        [other] if other != root => {
            let rule = match (root, other) {
                (Root::Library, _) => " (R14)",
                (_, Root::Library) => " (R15)",
                _ => "",
            };
            let message = format!("the file is {}, not {}{rule}", other.words(), root.words());
            let help = format!("use --format={}", other.name());
            sink.push(Diagnostic::error("cir-root", message).help(help));
            None
        }
        _ => Some(root),
    }
}

/// Text has no control characters except white space; even short messages have some.
pub(super) fn encoding(bytes: &Bytes) -> Encoding {
    const LOOK: usize = 4096;
    let start = &bytes[..bytes.len().min(LOOK)];
    let is_control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\n' | b'\r' | b'\t');
    if start.iter().any(is_control) {
        return Encoding::Binary;
    }
    let text = start.strip_prefix(text::BYTE_ORDER_MARK).unwrap_or(start);
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => Encoding::Json,
        _ => Encoding::Text,
    }
}

/// Names of the fields of the outermost message; a diagnostic when the text is not JSON.
fn json_names(text: &str, sink: &mut Sink) -> Option<Vec<String>> {
    match serde_json::from_str::<BTreeMap<String, &RawValue>>(text) {
        Ok(names) => Some(names.into_keys().collect()),
        Err(error) => {
            sink.push(text::json_diagnostic(text, &error));
            None
        }
    }
}

/// Names of the fields of the outermost message, as far as the text can be parsed.
fn text_names_of(text: &str) -> Vec<String> {
    match text_excess(text) {
        None => text_names(text).into_iter().map(String::from).collect(),
        Some(_) => vec![],
    }
}

/// The outermost messages that have all of these fields, and whose required fields are present.
fn named_roots(names: &[String]) -> Vec<Root> {
    let has = |name: &str| names.iter().any(|known| known == name);
    let fits = |root: &Root| {
        let message = schema::message(root.message());
        let is_known = |name: &String| {
            message.get_field_by_name(name).is_some()
                || message.get_field_by_json_name(name).is_some()
        };
        let is_whole = match root {
            Root::Graph => has("node") || has("input") || has("output"),
            Root::Library => has("name") && has("domain"),
            Root::Model => has("graph"),
        };
        is_whole && names.iter().all(is_known)
    };
    Root::ALL.into_iter().filter(fits).collect()
}

/// A field of the outermost message: its number, its wire type and, if it has a length, the
/// payload, as far as it is available.
struct Field {
    number: u32,
    wire: WireType,
    payload: Option<Bytes>,
    is_cut: bool,
}

/// The fields of a message, up to one that is invalid.
struct Fields(Bytes);

impl Iterator for Fields {
    type Item = Field;

    fn next(&mut self) -> Option<Field> {
        let rest = &mut self.0;
        let (number, wire) = decode_key(rest).ok()?;
        if wire != WireType::LengthDelimited {
            skip_field(wire, number, rest, DecodeContext::default()).ok()?;
            return Some(Field { number, wire, payload: None, is_cut: false });
        }
        let length = usize::try_from(decode_varint(rest).ok()?).ok()?;
        let is_cut = length > rest.remaining();
        let payload = Some(rest.split_to(length.min(rest.remaining())));
        Some(Field { number, wire, payload, is_cut })
    }
}

/// Whether a field has the type of the schema.
type FieldTest = fn(&Field) -> bool;

fn binary_roots(bytes: &Bytes) -> Vec<Root> {
    let mut left: Vec<(Root, FieldTest)> =
        vec![(Root::Graph, fits_graph), (Root::Library, fits_library), (Root::Model, fits_model)];
    let mut seen = 0_u64;
    for field in Fields(bytes.clone()) {
        seen |= 1_u64.checked_shl(field.number).unwrap_or_default();
        left.retain(|(_, fits)| fits(&field));
        if left.is_empty() {
            break;
        }
    }
    let has = |number: u32| seen & 1 << number != 0;
    let is_whole = |root: &Root| match root {
        Root::Graph => has(1) || has(3) || has(4),
        Root::Library => has(7) && has(8),
        Root::Model => has(7),
    };
    left.into_iter().map(|(root, _)| root).filter(is_whole).collect()
}

fn is_text(field: &Field) -> bool {
    let text = field.payload.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok());
    field.is_cut
        || text.is_some_and(|text| !text.contains(|c: char| c.is_control() && !c.is_whitespace()))
}

fn fits_graph(field: &Field) -> bool {
    match field.number {
        1 | 5 | 11..=13 | 17 => field.payload.is_some(),
        2..=4 | 8..=10 | 15 | 16 | 18 => is_text(field),
        6 | 7 | 14 => field.wire == WireType::Varint,
        _ => false,
    }
}

fn fits_library(field: &Field) -> bool {
    match field.number {
        1 | 2 | 4 => field.wire == WireType::Varint,
        3 | 5..=9 | 12 => is_text(field),
        10 | 11 => field.payload.is_some(),
        _ => false,
    }
}

/// Later versions may add fields beyond those known.
fn fits_model(field: &Field) -> bool {
    match field.number {
        1 | 5 => field.wire == WireType::Varint,
        2..=4 | 6 | 50 | 51 => is_text(field),
        7 => field.payload.as_ref().is_some_and(|graph| is_onnx_graph(graph, field.is_cut)),
        8 | 14 | 20 | 25 | 26 => field.payload.is_some(),
        27.. => true,
        _ => false,
    }
}

fn is_onnx_graph(bytes: &Bytes, is_cut: bool) -> bool {
    let fits = |field: &Field| match field.number {
        1 | 5 | 11..=16 => field.payload.is_some(),
        2..=4 | 10 => is_text(field),
        17.. => true,
        _ => false,
    };
    let mut fields = Fields(bytes.clone());
    fields.by_ref().all(|field| fits(&field)) && (is_cut || !fields.0.has_remaining())
}
