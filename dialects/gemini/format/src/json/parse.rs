//! From text to a tree of values with byte ranges.

use std::borrow::Cow;
use std::ops::Range;

use irc_diag::{Diagnostic, Sink, Source};

/// Deepest nesting read. The formats themselves need ten levels.
const MAX_DEPTH: usize = 64;

/// Most values read, each of which takes some fifty bytes as a tree.
const MAX_VALUES: usize = 16_000_000;

/// Most bytes read, so that ranges fit in 32 bits.
const MAX_BYTES: usize = 1 << 30;

/// A value and where it stands in the text.
#[derive(Debug)]
pub(crate) struct Node<'t> {
    start: u32,
    end: u32,
    /// The value.
    pub value: Value<'t>,
}

/// A value that borrows the text.
#[derive(Debug)]
pub(crate) enum Value<'t> {
    Null,
    Bool(bool),
    /// A number as spelt; it is finite in double precision.
    Number(&'t str),
    String(Cow<'t, str>),
    Array(Vec<Node<'t>>),
    Object(Vec<Member<'t>>),
}

/// A key and its value.
#[derive(Debug)]
pub(crate) struct Member<'t> {
    start: u32,
    end: u32,
    /// The key.
    pub key: Cow<'t, str>,
    /// The value.
    pub value: Node<'t>,
}

impl<'t> Node<'t> {
    /// Byte range of the value.
    pub fn span(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Byte range of the bracket that opens it.
    pub fn open(&self) -> Range<usize> {
        self.start as usize..self.start as usize + 1
    }

    /// The value of a key of an object, if it is one and has it.
    pub fn get(&self, key: &str) -> Option<&Node<'t>> {
        let Value::Object(members) = &self.value else { return None };
        members.iter().find(|member| member.key == key).map(|member| &member.value)
    }
}

impl Member<'_> {
    /// Byte range of the key.
    pub fn key_span(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The tree of a file, or nothing after a finding at the first thing that is not JSON.
pub(crate) fn parse<'t>(source: &'t Source, sink: &mut Sink) -> Option<Node<'t>> {
    let text = source.text();
    if text.len() > MAX_BYTES {
        let message = format!("{} bytes are too many to examine", text.len());
        let note = format!("at most {MAX_BYTES} bytes are examined");
        sink.push(Diagnostic::error("gem-too-large", message).at(0..1, "").with_note(note));
        return None;
    }
    if let Some(at) = source.invalid_utf8() {
        let end = at + '\u{fffd}'.len_utf8();
        let finding = Diagnostic::error("gem-encoding", "the file is not UTF-8 text");
        sink.push(finding.at(at..end, "this byte is not UTF-8").help("save the file as UTF-8"));
    }
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    if start > 0 {
        let message = "byte order mark ignored; JSON text has none";
        sink.push(Diagnostic::warning("gem-byte-order-mark", message).at(0..start, ""));
    }
    let mut parser = Parser { text, at: start, depth: 0, values: 0 };
    match parser.document() {
        Ok(node) => Some(node),
        Err(finding) => {
            sink.push(*finding);
            None
        }
    }
}

/// Where the parser stands. Positions fit in 32 bits, as the text does.
struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    values: usize,
}

type Parsed<T> = Result<T, Box<Diagnostic>>;

impl<'t> Parser<'t> {
    fn document(&mut self) -> Parsed<Node<'t>> {
        let node = self.node()?;
        self.skip_space();
        match self.peek() {
            None => Ok(node),
            Some(_) => Err(self.unexpected("the end of the file")),
        }
    }

    fn node(&mut self) -> Parsed<Node<'t>> {
        self.skip_space();
        self.values += 1;
        if self.values > MAX_VALUES {
            let note = format!("at most {MAX_VALUES} values are examined");
            let finding = Diagnostic::error("gem-too-large", "too many values to examine");
            return Err(Box::new(finding.at(self.at..self.at, "").with_note(note)));
        }
        let start = self.at as u32;
        let value = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::array)?,
            Some(b'"') => Value::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => Value::Number(self.number()?),
            Some(b't') => self.word("true", Value::Bool(true))?,
            Some(b'f') => self.word("false", Value::Bool(false))?,
            Some(b'n') => self.word("null", Value::Null)?,
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Node { start, end: self.at as u32, value })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Parsed<Value<'t>>) -> Parsed<Value<'t>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            let finding = Diagnostic::error("gem-nesting", message);
            return Err(Box::new(finding.at(self.at..self.at + 1, "one level too deep")));
        }
        let open = self.at;
        self.at += 1;
        let value = read(self).map_err(|finding| match finding.code {
            "gem-truncated" if finding.labels.len() < 2 => {
                Box::new(finding.also(open..open + 1, "this bracket is never closed"))
            }
            _ => finding,
        })?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Parsed<Value<'t>> {
        let mut elements = vec![];
        if self.ends(b']') {
            return Ok(Value::Array(elements));
        }
        loop {
            elements.push(self.node()?);
            if !self.goes_on(b']', "`,` or `]`")? {
                return Ok(Value::Array(elements));
            }
        }
    }

    fn object(&mut self) -> Parsed<Value<'t>> {
        let mut members = vec![];
        if self.ends(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a key in quotes"));
            }
            let start = self.at as u32;
            let key = self.string()?;
            let end = self.at as u32;
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("`:`"));
            }
            self.at += 1;
            members.push(Member { start, end, key, value: self.node()? });
            if !self.goes_on(b'}', "`,` or `}`")? {
                return Ok(Value::Object(members));
            }
        }
    }

    /// Whether the bracket closes here; it is then passed.
    fn ends(&mut self, close: u8) -> bool {
        self.skip_space();
        let ends = self.peek() == Some(close);
        self.at += usize::from(ends);
        ends
    }

    /// Whether a comma follows, rather than the closing bracket; either is passed.
    fn goes_on(&mut self, close: u8, expected: &str) -> Parsed<bool> {
        self.skip_space();
        let found = self.peek();
        if found != Some(b',') && found != Some(close) {
            return Err(self.unexpected(expected));
        }
        self.at += 1;
        Ok(found == Some(b','))
    }

    fn word(&mut self, word: &str, value: Value<'t>) -> Parsed<Value<'t>> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.unexpected("a value"));
        }
        self.at += word.len();
        Ok(value)
    }

    /// A number by the grammar of RFC 8259, finite in double precision.
    fn number(&mut self) -> Parsed<&'t str> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let whole = self.digits();
        let leading_zero = whole > 1 && self.text.as_bytes()[self.at - whole] == b'0';
        let mut is_sound = whole > 0 && !leading_zero;
        if self.peek() == Some(b'.') {
            self.at += 1;
            is_sound &= self.digits() > 0;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            is_sound &= self.digits() > 0;
        }
        let text = &self.text[start..self.at];
        let is_finite = || text.len() < 19 || text.parse::<f64>().is_ok_and(f64::is_finite);
        let may_overflow = text.contains(['e', 'E']);
        if is_sound && is_finite() && (!may_overflow || text.parse().is_ok_and(f64::is_finite)) {
            return Ok(text);
        }
        let message = format!("`{}` is not a finite JSON number", crate::read::clip(text));
        let finding = Diagnostic::error("gem-number", message);
        Err(Box::new(finding.at(start..self.at, "expected a finite number")))
    }

    fn digits(&mut self) -> usize {
        let rest = &self.text.as_bytes()[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    /// A string, borrowed where it has no escapes.
    fn string(&mut self) -> Parsed<Cow<'t, str>> {
        let open = self.at;
        self.at += 1;
        let mut start = self.at;
        let mut owned: Option<String> = None;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let tail = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(match owned {
                        Some(text) => Cow::Owned(text + tail),
                        None => Cow::Borrowed(tail),
                    });
                }
                Some(b'\\') => {
                    let text = owned.get_or_insert_default();
                    text.push_str(&self.text[start..self.at]);
                    let escaped = self.escape()?;
                    owned.get_or_insert_default().push(escaped);
                    start = self.at;
                }
                Some(0..=0x1f) => {
                    let finding = Diagnostic::error("gem-syntax", "raw control character");
                    let place = self.at..self.at + 1;
                    return Err(Box::new(finding.at(place, "expected an escape such as `\\n`")));
                }
                Some(_) => self.at += 1,
                None => {
                    let finding = self.truncated();
                    return Err(Box::new(finding.also(open..open + 1, "this string is open")));
                }
            }
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        let start = self.at;
        self.at += 1;
        let Some(byte) = self.peek() else { return Err(Box::new(self.truncated())) };
        self.at += 1;
        let simple = match byte {
            b'"' | b'\\' | b'/' => Some(char::from(byte)),
            b'b' => Some('\u{8}'),
            b'f' => Some('\u{c}'),
            b'n' => Some('\n'),
            b'r' => Some('\r'),
            b't' => Some('\t'),
            b'u' => self.unicode_escape(),
            _ => None,
        };
        simple.ok_or_else(|| {
            let mut end = self.at;
            while !self.text.is_char_boundary(end) {
                end += 1;
            }
            let finding = Diagnostic::error("gem-syntax", "not an escape of a JSON string");
            Box::new(finding.at(start..end, "not an escape"))
        })
    }

    /// The character of `\uXXXX`, or of a pair of surrogates; nothing for half a pair.
    fn unicode_escape(&mut self) -> Option<char> {
        let first = self.hex()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        if !self.text[self.at..].starts_with("\\u") {
            return None;
        }
        self.at += 2;
        let second = self.hex().filter(|second| (0xdc00..0xe000).contains(second))?;
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4)?;
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    fn skip_space(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += rest.iter().take_while(is_space).count();
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn unexpected(&self, expected: &str) -> Box<Diagnostic> {
        let Some(found) = self.text[self.at..].chars().next() else {
            return Box::new(self.truncated());
        };
        let message = format!("expected {expected}, found {found:?}");
        let place = self.at..self.at + found.len_utf8();
        Box::new(Diagnostic::error("gem-syntax", message).at(place, "not JSON from here"))
    }

    fn truncated(&self) -> Diagnostic {
        let end = self.text.len();
        Diagnostic::error("gem-truncated", "the file ends too early")
            .at(end..end, "the text ends here")
            .help("the file may have been cut off while it was written or copied")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(bytes: &[u8]) -> Option<&'static str> {
        let mut sink = Sink::new();
        parse(&Source::from_bytes("x", bytes), &mut sink);
        sink.diagnostics().first().map(|finding| finding.code)
    }

    #[test]
    fn each_way_a_text_is_not_json_has_its_code() {
        assert_eq!(code(b""), Some("gem-truncated"));
        assert_eq!(code(b"{\"a\": [1,"), Some("gem-truncated"));
        assert_eq!(code(b"{\"a"), Some("gem-truncated"));
        assert_eq!(code(b"[1,]"), Some("gem-syntax"));
        assert_eq!(code(b"[NaN]"), Some("gem-syntax"));
        assert_eq!(code(b"[1e999]"), Some("gem-number"));
        assert_eq!(code(b"[01]"), Some("gem-number"));
        assert_eq!(code(b"[1.]"), Some("gem-number"));
        assert_eq!(code(b"[-]"), Some("gem-number"));
        assert_eq!(code(b"[\"a\tb\"]"), Some("gem-syntax"));
        assert_eq!(code("[\"\\é\"]".as_bytes()), Some("gem-syntax"));
        assert_eq!(code(b"[\"\\ud800\"]"), Some("gem-syntax"));
        assert_eq!(code("\u{feff}[]".as_bytes()), Some("gem-byte-order-mark"));
        assert_eq!(code(b"[\"\xff\"]"), Some("gem-encoding"));
        assert_eq!(code("[".repeat(1_000_000).as_bytes()), Some("gem-nesting"));
        assert_eq!(code(b" {\"a\": [1, -2.5e-3, \"\\ud83d\\ude00\"]} "), None);
    }
}
