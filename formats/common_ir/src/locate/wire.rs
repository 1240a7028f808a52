//! Protobuf's wire format: locates fields, and explains why a file is invalid.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use bytes::Buf;
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use super::Tree;
use crate::schema::{LimitError, MAX_DEPTH, MAX_ITEMS};

/// One field as it is in the file.
struct Field {
    number: u32,
    wire: WireType,
    /// The value without key and length.
    value: Range<usize>,
}

/// Why bytes are no field.
enum Invalid {
    /// The field of a number has more bytes than remain.
    TooLong { number: u32, length: u64, left: usize },
    /// Any other reason.
    Other(String),
}

/// The field at `at` in a message that ends at `end`, or where and why it is invalid.
fn field(bytes: &[u8], at: usize, end: usize) -> Result<Field, (usize, Invalid)> {
    let other = |at: usize, error: DecodeError| (at, Invalid::Other(error.to_string()));
    let mut rest = &bytes[at..end];
    let key = decode_key(&mut rest).map_err(|error| other(at, error))?;
    let (number, wire) = key;
    let start = end - rest.remaining();
    if wire == WireType::LengthDelimited {
        let length = decode_varint(&mut rest).map_err(|error| other(start, error))?;
        let (start, left) = (end - rest.remaining(), rest.remaining());
        let fits = usize::try_from(length).ok().filter(|length| *length <= left);
        let Some(length) = fits else {
            return Err((start, Invalid::TooLong { number, length, left }));
        };
        return Ok(Field { number, wire, value: start..start + length });
    }
    skip_field(wire, number, &mut rest, DecodeContext::default())
        .map_err(|error| other(start, error))?;
    Ok(Field { number, wire, value: start..end - rest.remaining() })
}

/// A field by its message's start and its number, and its values.
type Memo = (usize, u32, Rc<Vec<Range<usize>>>);

/// A binary file.
pub(crate) struct Wire<'a> {
    bytes: &'a [u8],
    /// The last long list: paths of diagnostics mostly share one.
    memo: RefCell<Option<Memo>>,
}

impl<'a> Wire<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, memo: RefCell::default() }
    }

    fn values(&self, message: &Range<usize>, number: u32) -> Rc<Vec<Range<usize>>> {
        if let Some((start, known, values)) = &*self.memo.borrow()
            && (*start, *known) == (message.start, number)
        {
            return values.clone();
        }
        let mut values = vec![];
        let mut at = message.start;
        while at < message.end {
            let Ok(field) = field(self.bytes, at, message.end) else { break };
            at = field.value.end;
            if field.number == number {
                values.push(field.value);
            }
        }
        let values = Rc::new(values);
        // Short lists are found again as fast, and should not evict a long one.
        const SHORT: usize = 64;
        if values.len() > SHORT {
            *self.memo.borrow_mut() = Some((message.start, number, values.clone()));
        }
        values
    }
}

impl Tree for Wire<'_> {
    type Node<'t>
        = Range<usize>
    where
        Self: 't;

    fn root(&self) -> Range<usize> {
        0..self.bytes.len()
    }

    fn children(&self, node: &Range<usize>, field: &FieldDescriptor) -> Vec<Range<usize>> {
        self.values(node, field.number()).to_vec()
    }

    fn child(
        &self,
        node: &Range<usize>,
        field: &FieldDescriptor,
        index: usize,
    ) -> Result<Range<usize>, usize> {
        let values = self.values(node, field.number());
        values.get(index).cloned().ok_or(values.len())
    }

    fn span(&self, node: &Range<usize>) -> Range<usize> {
        node.clone()
    }

    fn text(&self, node: &Range<usize>) -> Option<Cow<'_, str>> {
        Some(String::from_utf8_lossy(&self.bytes[node.clone()]))
    }
}

/// The first limit that a file exceeds; files of a few megabytes cannot exceed any.
pub(crate) fn excess(bytes: &[u8], message: &MessageDescriptor) -> Option<LimitError> {
    const SMALL: usize = 8 << 20;
    if bytes.len() <= SMALL {
        return None;
    }
    let mut left = MAX_ITEMS;
    count(bytes, 0..bytes.len(), message, 0, &mut left)
}

/// Counts down by the fields of a message and its nested messages; stops at invalid bytes.
fn count(
    bytes: &[u8],
    range: Range<usize>,
    message: &MessageDescriptor,
    depth: usize,
    left: &mut usize,
) -> Option<LimitError> {
    let mut at = range.start;
    while at < range.end {
        let found = field(bytes, at, range.end).ok()?;
        let Some(fewer) = left.checked_sub(1) else { return Some(LimitError::Items(at)) };
        *left = fewer;
        at = found.value.end;
        let inner = message.get_field(found.number).and_then(|field| super::of_kind(&field));
        if let Some(inner) = inner.filter(|_| depth < MAX_DEPTH)
            && let Some(excess) = count(bytes, found.value, &inner, depth + 1, left)
        {
            return Some(excess);
        }
    }
    None
}

/// An error in a binary file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WireError {
    /// Path of fields: `node[3].attribute[0].t`.
    pub path: String,
    /// Offset in the file.
    pub offset: usize,
    /// The message.
    pub message: String,
}

/// The first reason why a file is not a message of that kind.
pub(crate) fn explain(bytes: &[u8], message: &MessageDescriptor) -> Option<WireError> {
    let mut walk = Walk { bytes, path: vec![], error: None, unknown: None };
    walk.message(0..bytes.len(), message);
    walk.error
}

/// Up to `limit` fields that are not in the schema.
pub(crate) fn unknown_fields(
    bytes: &[u8],
    message: &MessageDescriptor,
    limit: usize,
) -> Vec<WireError> {
    let mut walk = Walk { bytes, path: vec![], error: None, unknown: Some((vec![], limit)) };
    walk.message(0..bytes.len(), message);
    walk.unknown.map(|unknown| unknown.0).unwrap_or_default()
}

struct Walk<'a> {
    bytes: &'a [u8],
    path: Vec<(String, Option<usize>)>,
    error: Option<WireError>,
    /// Unknown fields and their maximum number, if they are collected.
    unknown: Option<(Vec<WireError>, usize)>,
}

impl Walk<'_> {
    fn path(&self) -> String {
        let step = |(name, index): &(String, Option<usize>)| match index {
            Some(index) => format!("{name}[{index}]"),
            None => name.clone(),
        };
        self.path.iter().map(step).collect::<Vec<_>>().join(".")
    }

    fn fail(&mut self, offset: usize, message: String) {
        let path = self.path();
        self.error.get_or_insert(WireError { path, offset, message });
    }

    fn message(&mut self, range: Range<usize>, message: &MessageDescriptor) {
        if self.path.len() >= MAX_DEPTH {
            return self.fail(range.start, format!("nested more than {MAX_DEPTH} levels deep"));
        }
        let mut counts = std::collections::BTreeMap::new();
        let mut at = range.start;
        while at < range.end && self.error.is_none() {
            let found = match field(self.bytes, at, range.end) {
                Ok(found) => found,
                Err((offset, Invalid::Other(message))) => return self.fail(offset, message),
                Err((offset, Invalid::TooLong { number, length, left })) => {
                    let name = match message.get_field(number) {
                        Some(field) => format!("{}.{}", message.name(), field.name()),
                        None => format!("field {number} of {}", message.name()),
                    };
                    let message = match range.end == self.bytes.len() {
                        true => format!(
                            "the file is truncated: {name} has {length} bytes, but only {left} remain"
                        ),
                        false => format!(
                            "{name} has {length} bytes, but only {left} remain of its message"
                        ),
                    };
                    return self.fail(offset, message);
                }
            };
            match message.get_field(found.number) {
                Some(field) => {
                    let count: &mut usize = counts.entry(found.number).or_default();
                    let index = field.is_list().then_some(*count);
                    *count += 1;
                    self.path.push((field.name().into(), index));
                    self.value(&found, &field);
                    self.path.pop();
                }
                None => self.unknown(at, found.number, message),
            }
            at = found.value.end;
        }
    }

    fn unknown(&mut self, offset: usize, number: u32, message: &MessageDescriptor) {
        let path = self.path();
        if let Some((found, limit)) = &mut self.unknown
            && found.len() < *limit
        {
            let message = format!("{} has no field {number}", message.full_name());
            found.push(WireError { path, offset, message });
        }
    }

    fn value(&mut self, found: &Field, field: &FieldDescriptor) {
        let start = found.value.start;
        let kind = field.kind();
        let expected = wire_of(&kind);
        let is_packed = field.is_list()
            && found.wire == WireType::LengthDelimited
            && expected != WireType::LengthDelimited;
        if found.wire != expected && !is_packed {
            let message = format!(
                "field {} is {}, expected {}",
                found.number,
                words(found.wire),
                words(expected)
            );
            return self.fail(start, message);
        }
        match kind {
            Kind::Message(inner) => self.message(found.value.clone(), &inner),
            Kind::String => {
                if let Err(error) = std::str::from_utf8(&self.bytes[found.value.clone()]) {
                    self.fail(start + error.valid_up_to(), "the text is not UTF-8".into());
                }
            }
            _ if is_packed => self.packed(found.value.clone(), expected),
            _ => {}
        }
    }

    fn packed(&mut self, range: Range<usize>, wire: WireType) {
        let width = match wire {
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            _ => {
                let mut rest = &self.bytes[range.clone()];
                while rest.has_remaining() {
                    if let Err(error) = decode_varint(&mut rest) {
                        return self.fail(range.end - rest.remaining(), error.to_string());
                    }
                }
                return;
            }
        };
        if !range.len().is_multiple_of(width) {
            let message = format!("{} packed bytes are not whole numbers of {width}", range.len());
            self.fail(range.start, message);
        }
    }
}

fn wire_of(kind: &Kind) -> WireType {
    match kind {
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => WireType::SixtyFourBit,
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => WireType::ThirtyTwoBit,
        Kind::String | Kind::Bytes | Kind::Message(_) => WireType::LengthDelimited,
        _ => WireType::Varint,
    }
}

fn words(wire: WireType) -> &'static str {
    match wire {
        WireType::Varint => "a number",
        WireType::SixtyFourBit => "8 bytes",
        WireType::LengthDelimited => "a text, bytes or a message",
        WireType::StartGroup | WireType::EndGroup => "a group",
        WireType::ThirtyTwoBit => "4 bytes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn fields_within_fields_count() {
        // A node with two inputs, an empty node.
        let bytes = [0x0a, 4, 0x0a, 0, 0x0a, 0, 0x0a, 0];
        let message = schema::message("LotusIR.GraphProto");
        let beyond = |mut left| count(&bytes, 0..bytes.len(), &message, 0, &mut left);
        assert_eq!(beyond(4), None);
        assert_eq!(beyond(3), Some(LimitError::Items(6)));
        assert_eq!(beyond(1), Some(LimitError::Items(2)));
    }
}
