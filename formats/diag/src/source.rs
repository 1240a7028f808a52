//! A named text.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;

/// A named text that diagnostics point into; cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    name: Arc<str>,
    text: ByteString,
    invalid_utf8: Option<usize>,
}

impl Source {
    /// A source from text.
    pub fn new(name: impl AsRef<str>, text: impl AsRef<str>) -> Self {
        Self { name: name.as_ref().into(), text: text.as_ref().into(), invalid_utf8: None }
    }

    /// A source from bytes; what is not UTF-8 is replaced, and [`Source::invalid_utf8`] says so.
    pub fn from_bytes(name: impl AsRef<str>, bytes: &[u8]) -> Self {
        Self::from_shared(name, Bytes::copy_from_slice(bytes))
    }

    /// As [`Source::from_bytes`], of bytes that are not copied.
    pub fn from_shared(name: impl AsRef<str>, bytes: Bytes) -> Self {
        let (text, invalid_utf8) = match ByteString::try_from(bytes.clone()) {
            Ok(text) => (text, None),
            Err(error) => {
                (String::from_utf8_lossy(&bytes).into_owned().into(), Some(error.valid_up_to()))
            }
        };
        Self { name: name.as_ref().into(), text, invalid_utf8 }
    }

    /// A source from bytes of a format that has a binary form: their text, or none if they are not UTF-8.
    pub fn of_text_or_binary(name: impl AsRef<str>, bytes: &Bytes) -> Self {
        match ByteString::try_from(bytes.clone()) {
            Ok(text) => Self { name: name.as_ref().into(), text, invalid_utf8: None },
            Err(_) => Self::new(name, ""),
        }
    }

    /// Name of the source, as a user would recognise it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name without its folder.
    pub fn file_name(&self) -> &str {
        self.name.rsplit_once('/').map_or(&*self.name, |(_, name)| name)
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Byte offset of the first byte that was not UTF-8, if any.
    pub fn invalid_utf8(&self) -> Option<usize> {
        self.invalid_utf8
    }

    /// Line and column of a byte offset, both counted from one; the column counts characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        self.lines().line_column(offset)
    }

    /// Byte offset of a line and column, both counted from one; the column counts characters. A line or
    /// column behind the end is the end of the text.
    pub fn offset(&self, line: usize, column: usize) -> usize {
        let lines = self.text.split_inclusive('\n').take(line.saturating_sub(1));
        let start: usize = lines.map(str::len).sum();
        let mut rest = self.text[start..].char_indices().skip(column.saturating_sub(1));
        rest.next().map_or(self.text.len(), |(offset, _)| start + offset)
    }

    /// Where its lines begin: for who asks for many places.
    pub fn lines(&self) -> Lines<'_> {
        let newlines = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        Lines { text: &self.text, starts }
    }

    /// The nearest character boundary at or before `offset`, within the text.
    pub(crate) fn floor(&self, offset: usize) -> usize {
        floor_boundary(&self.text, offset)
    }

    /// Byte range of the line that holds `offset`, without its line ending.
    pub(crate) fn line_range(&self, offset: usize) -> Range<usize> {
        let offset = self.floor(offset);
        let start = self.text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
        let end = self.text[offset..].find('\n').map_or(self.text.len(), |len| offset + len);
        start..end
    }
}

/// Where the lines of a text begin.
#[derive(Clone, Debug)]
pub struct Lines<'s> {
    text: &'s str,
    starts: Vec<usize>,
}

impl Lines<'_> {
    /// Line and column of a byte offset, both counted from one; the column counts characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let offset = floor_boundary(self.text, offset);
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line - 1];
        (line, self.text[start..offset].chars().count() + 1)
    }
}

/// The nearest character boundary at or before `offset`, within `text`.
pub(crate) fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_and_column_count_characters_from_one() {
        let source = Source::new("x", "ab\ncédille\n");
        assert_eq!(source.line_column(0), (1, 1));
        assert_eq!(source.line_column(6), (2, 3));
        assert_eq!(source.line_column(999), (3, 1));
    }

    #[test]
    fn offsets_are_those_of_lines_and_columns() {
        let source = Source::new("x", "é\nä{}");
        assert_eq!((source.offset(1, 1), source.offset(2, 2), source.offset(9, 9)), (0, 5, 7));
        for offset in [0, 3, 5, 6] {
            let (line, column) = source.line_column(offset);
            assert_eq!(source.offset(line, column), offset);
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_remembered() {
        let source = Source::from_bytes("x", b"ab\xffc");
        assert_eq!((source.text(), source.invalid_utf8()), ("ab\u{fffd}c", Some(2)));
    }
}
