//! Which form a file has: nothing in it says so, and a wrong guess parses silently.
//!
//! The outermost message of a binary file is the one schema whose fields have the wire types
//! found and which has what such a file cannot do without.

use bytes::{Buf, Bytes};
use irc_diag::Sink;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::ambiguous;
use crate::{Encoding, Form, Format, Root};

/// The form of a file, as far as `format` leaves it open.
pub(super) fn form(bytes: &Bytes, format: Format, sink: &mut Sink) -> Option<Form> {
    let encoding = format.encoding.unwrap_or_else(|| encoding(bytes));
    if let Some(root) = format.root {
        return Some(Form { root, encoding });
    }
    let fits: Vec<Root> = match encoding {
        Encoding::Binary => binary_roots(bytes),
        Encoding::Json | Encoding::Text => vec![],
    };
    match *fits {
        [root] => Some(Form { root, encoding }),
        [] => {
            sink.push(ambiguous("this is no form of Common IR or ONNX".into()));
            None
        }
        _ => {
            let words: Vec<&str> = fits.iter().map(|root| root.words()).collect();
            sink.push(ambiguous(format!("the file may be {}", words.join(" or "))));
            None
        }
    }
}

/// Text has no control characters but white space, of which even short messages have some.
fn encoding(bytes: &Bytes) -> Encoding {
    const LOOK: usize = 4096;
    let start = &bytes[..bytes.len().min(LOOK)];
    let is_control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\n' | b'\r' | b'\t');
    if start.iter().any(is_control) {
        return Encoding::Binary;
    }
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => Encoding::Json,
        _ => Encoding::Text,
    }
}

/// A field of the outermost message: its number, its wire type and, when it has a length, the
/// payload.
struct Field {
    number: u32,
    wire: WireType,
    payload: Option<Bytes>,
}

/// The fields of a message as far as they can be read; false when not all can.
fn fields(bytes: &Bytes) -> (Vec<Field>, bool) {
    let mut rest = bytes.clone();
    let mut fields = vec![];
    while rest.has_remaining() {
        let Some(field) = field(&mut rest) else { return (fields, false) };
        fields.push(field);
    }
    (fields, true)
}

fn field(rest: &mut Bytes) -> Option<Field> {
    let (number, wire) = decode_key(rest).ok()?;
    if wire != WireType::LengthDelimited {
        skip_field(wire, number, rest, DecodeContext::default()).ok()?;
        return Some(Field { number, wire, payload: None });
    }
    let length = usize::try_from(decode_varint(rest).ok()?).ok()?;
    (length <= rest.remaining()).then(|| Field {
        number,
        wire,
        payload: Some(rest.split_to(length)),
    })
}

fn binary_roots(bytes: &Bytes) -> Vec<Root> {
    let (fields, _) = fields(bytes);
    let fits = |root: &Root| match root {
        Root::Graph => is_graph(&fields),
        Root::Library => is_library(&fields),
        Root::Model => is_model(&fields),
    };
    Root::ALL.into_iter().filter(fits).collect()
}

fn is_text(field: &Field) -> bool {
    let text = field.payload.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.is_some_and(|text| !text.contains(|c: char| c.is_control() && !c.is_whitespace()))
}

fn is_graph(fields: &[Field]) -> bool {
    let fits = |field: &Field| match field.number {
        1 | 5 | 11..=13 | 17 => field.payload.is_some(),
        2..=4 | 8..=10 | 15 | 16 | 18 => is_text(field),
        6 | 7 | 14 => field.wire == WireType::Varint,
        _ => false,
    };
    fields.iter().all(fits) && fields.iter().any(|field| matches!(field.number, 1 | 3 | 4))
}

fn is_library(fields: &[Field]) -> bool {
    let fits = |field: &Field| match field.number {
        1 | 2 | 4 => field.wire == WireType::Varint,
        3 | 5..=9 | 12 => is_text(field),
        10 | 11 => field.payload.is_some(),
        _ => false,
    };
    let has = |number| fields.iter().any(|field| field.number == number);
    fields.iter().all(fits) && has(7) && has(8)
}

/// Later versions may add fields beyond those known.
fn is_model(model: &[Field]) -> bool {
    let fits = |field: &Field| match field.number {
        1 | 5 => field.wire == WireType::Varint,
        2..=4 | 6 | 50 | 51 => is_text(field),
        7 => field.payload.as_ref().is_some_and(is_onnx_graph),
        8 | 14 | 20 | 25 | 26 => field.payload.is_some(),
        27.. => true,
        _ => false,
    };
    model.iter().all(fits) && model.iter().any(|field| field.number == 7)
}

fn is_onnx_graph(bytes: &Bytes) -> bool {
    let (fields, is_whole) = fields(bytes);
    let fits = |field: &Field| match field.number {
        1 | 5 | 11..=16 => field.payload.is_some(),
        2..=4 | 10 => is_text(field),
        17.. => true,
        _ => false,
    };
    is_whole && fields.iter().all(fits)
}
