//! Parses text to a tree of values with byte ranges.

use std::borrow::Cow;
use std::ops::Range;

use irc_diag::{Diagnostic, Sink, Source, clip};

use crate::{Format, Member, Node, Value, finite::is_finite};

/// Parses a file; `None` after a diagnostic at the first syntax error.
///
/// There may be a tree and errors: bytes that are not UTF-8, numbers that are not finite and control
/// characters are reported, and parsing continues.
pub fn parse<'t>(source: &'t Source, format: &Format, sink: &mut Sink) -> Option<Node<'t>> {
    check_encoding(source, format, sink);
    tree_of(source.text(), format, false, sink)
}

/// As [`parse`], but objects and arrays in the outermost arrays are [`Value::Unread`], with the same diagnostics: for long
/// lists, whose elements are read one after another. The limit on values is for each element.
pub fn outline<'t>(source: &'t Source, format: &Format, sink: &mut Sink) -> Option<Node<'t>> {
    check_encoding(source, format, sink);
    tree_of(source.text(), format, true, sink)
}

fn check_encoding(source: &Source, format: &Format, sink: &mut Sink) {
    if let Some(at) = source.invalid_utf8() {
        let message = format!("the {} is not UTF-8 text", format.file);
        let diagnostic = Diagnostic::error(format.encoding, message);
        let diagnostic = diagnostic.at(at..at + '\u{fffd}'.len_utf8(), "this byte is not UTF-8");
        sink.push(diagnostic.help(format!("save the {} as UTF-8", format.file)));
    }
}

/// Parses a text as [`parse`] does.
pub fn tree<'t>(text: &'t str, format: &Format, sink: &mut Sink) -> Option<Node<'t>> {
    tree_of(text, format, false, sink)
}

/// The value that starts at a byte of a text, which [`outline`] has checked.
pub(crate) fn again(text: &str, start: usize) -> Node<'_> {
    const NO_LIMITS: Format =
        Format { max_depth: usize::MAX, max_values: usize::MAX, ..Format::of("") };
    let sink = &mut Sink::with_limit(0);
    let mut parser = Parser { at: start, ..Parser::new(text, &NO_LIMITS, sink) };
    parser.node().unwrap_or(Node { start, end: start, value: Value::Null })
}

/// Parses a text as [`parse`] or [`outline`] does.
pub(crate) fn tree_of<'t>(
    text: &'t str,
    format: &Format,
    is_outline: bool,
    sink: &mut Sink,
) -> Option<Node<'t>> {
    if text.len() as u64 > format.max_bytes {
        let message = format!("the text of {} bytes is too large", text.len());
        let note = format!("expected at most {} bytes", format.max_bytes);
        sink.push(Diagnostic::error(format.too_large, message).at(0..1, "").with_note(note));
        return None;
    }
    let mut at = 0;
    if let Some(code) = format.byte_order_mark.filter(|_| text.starts_with('\u{feff}')) {
        at = '\u{feff}'.len_utf8();
        let message = "byte order mark ignored; JSON text has none";
        sink.push(Diagnostic::warning(code, message).at(0..at, ""));
    }
    let mut parser = Parser { at, is_outline, ..Parser::new(text, format, sink) };
    match parser.document() {
        Ok(node) => Some(node),
        Err(diagnostic) => {
            sink.push(*diagnostic);
            None
        }
    }
}

/// The state of the parser.
struct Parser<'t, 's> {
    text: &'t str,
    at: usize,
    /// Open brackets.
    open: Vec<usize>,
    values: usize,
    /// Whether what is nested in arrays remains unread.
    is_outline: bool,
    /// Open arrays.
    arrays: usize,
    format: &'s Format,
    sink: &'s mut Sink,
}

type Parsed<T> = Result<T, Box<Diagnostic>>;

/// Words that some writers use for numbers that JSON cannot represent.
const NON_FINITE: [&str; 8] =
    ["-Infinity", "+Infinity", "Infinity", "-NaN", "NaN", "nan", "-inf", "inf"];

impl<'t, 's> Parser<'t, 's> {
    fn new(text: &'t str, format: &'s Format, sink: &'s mut Sink) -> Self {
        Self { text, at: 0, open: vec![], values: 0, is_outline: false, arrays: 0, format, sink }
    }

    fn document(&mut self) -> Parsed<Node<'t>> {
        self.skip_space();
        if self.peek().is_none() {
            let message = format!("the {} is empty", self.format.file);
            let diagnostic = Diagnostic::error(self.format.truncated, message);
            return Err(Box::new(diagnostic.at(0..0, format!("expected {}", self.format.holds))));
        }
        let node = self.node()?;
        self.skip_space();
        match self.peek() {
            None => Ok(node),
            Some(_) => Err(self.unexpected(&format!("the end of the {}", self.format.file))),
        }
    }

    fn node(&mut self) -> Parsed<Node<'t>> {
        self.skip_space();
        self.values += 1;
        if self.values > self.format.max_values {
            let note = format!("expected at most {} values", self.format.max_values);
            let diagnostic = Diagnostic::error(self.format.too_large, "too many values");
            return Err(Box::new(diagnostic.at(self.at..self.at, "").with_note(note)));
        }
        let start = self.at;
        let value = match self.peek() {
            Some(b'{' | b'[') if self.is_outline && self.arrays > 0 => self.unread()?,
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::array)?,
            Some(b'"') => Value::String(self.string()?),
            Some(b'0'..=b'9') => Value::Number(self.number()?),
            Some(b't') => self.word("true", Value::Bool(true))?,
            Some(b'f') => self.word("false", Value::Bool(false))?,
            Some(b'n') if !self.rest().starts_with(b"nan") => self.word("null", Value::Null)?,
            Some(b'-') if self.rest().get(1).is_none_or(|byte| !byte.is_ascii_alphabetic()) => {
                Value::Number(self.number()?)
            }
            _ => self.non_finite()?,
        };
        Ok(Node { start, end: self.at, value })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Parsed<Value<'t>>) -> Parsed<Value<'t>> {
        if self.open.len() == self.format.max_depth {
            let message = format!("nested more than {} levels deep", self.format.max_depth);
            let diagnostic = Diagnostic::error(self.format.nesting, message);
            let mut diagnostic = diagnostic.at(self.at..self.at + 1, "one level too deep");
            if let Some(levels) = self.format.levels {
                diagnostic = diagnostic.help(format!("the format itself nests {levels} levels"));
            }
            return Err(Box::new(diagnostic));
        }
        self.open.push(self.at);
        self.at += 1;
        let value = read(self)?;
        self.open.pop();
        Ok(value)
    }

    /// Checks a value without keeping its parts.
    fn unread(&mut self) -> Parsed<Value<'t>> {
        let values = std::mem::take(&mut self.values);
        self.is_outline = false;
        self.node()?;
        self.is_outline = true;
        self.values = values;
        Ok(Value::Unread(self.text))
    }

    fn array(&mut self) -> Parsed<Value<'t>> {
        let mut elements = vec![];
        if self.ends(b']') {
            return Ok(Value::Array(elements));
        }
        self.arrays += 1;
        loop {
            elements.push(self.node()?);
            if !self.goes_on(b']', "`,` or `]`")? {
                self.arrays -= 1;
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
            let start = self.at;
            let key = self.string()?;
            let end = self.at;
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

    /// Consumes the closing bracket, if it is next.
    fn ends(&mut self, close: u8) -> bool {
        self.skip_space();
        let ends = self.peek() == Some(close);
        self.at += usize::from(ends);
        ends
    }

    /// Consumes a comma or the closing bracket; returns whether it was a comma.
    fn goes_on(&mut self, close: u8, expected: &str) -> Parsed<bool> {
        self.skip_space();
        let (at, found) = (self.at, self.peek());
        if found != Some(b',') && found != Some(close) {
            return Err(self.unexpected(expected));
        }
        self.at += 1;
        if found == Some(close) {
            return Ok(false);
        }
        self.skip_space();
        match self.peek() == Some(close) {
            true => Err(self.syntax("trailing commas are not allowed", at..at + 1)),
            false => Ok(true),
        }
    }

    fn word(&mut self, word: &str, value: Value<'t>) -> Parsed<Value<'t>> {
        let rest = self.rest();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(value);
        }
        let is_cut = word.as_bytes().starts_with(rest);
        Err(if is_cut { self.truncated() } else { self.unexpected("a value") })
    }

    /// A word for a number that is not finite: reported, and replaced by zero.
    fn non_finite(&mut self) -> Parsed<Value<'t>> {
        let rest = self.rest();
        let is_whole = |word: &&&str| {
            let next = rest.get(word.len());
            rest.starts_with(word.as_bytes()) && !next.is_some_and(u8::is_ascii_alphanumeric)
        };
        match NON_FINITE.iter().find(is_whole) {
            Some(word) => {
                self.at += word.len();
                Ok(Value::Number(self.stand_in(self.at - word.len())))
            }
            None => Err(self.unexpected("a value")),
        }
    }

    /// The replacement of a number at `start` that is not finite.
    fn stand_in(&mut self, start: usize) -> &'static str {
        let (span, format) = (start..self.at, self.format);
        let message = format!("`{}` is not a finite number", clip(&self.text[span.clone()]));
        let diagnostic = Diagnostic::error(format.non_finite, message);
        let mut diagnostic = diagnostic.at(span, "expected a finite number");
        diagnostic.help = format.non_finite_help.map(str::to_owned);
        self.sink.push(diagnostic);
        "0"
    }

    /// A number by the grammar of RFC 8259, finite in double precision.
    fn number(&mut self) -> Parsed<&'t str> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let whole = self.digits();
        let leading_zero = self.text.as_bytes()[self.at - whole..].starts_with(b"0");
        let mut is_valid = whole > 0 && !(leading_zero && whole > 1);
        if leading_zero && matches!(self.peek(), Some(b'x' | b'X')) {
            return Err(self.syntax("hexadecimal numbers are not allowed", start..self.at));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            is_valid &= self.digits() > 0;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            is_valid &= self.digits() > 0;
        }
        let text = &self.text[start..self.at];
        if !is_valid {
            return Err(match self.peek() {
                None => self.truncated(),
                Some(_) => {
                    let message = format!("`{}` is not a JSON number", clip(text));
                    let diagnostic = Diagnostic::error(self.format.number, message);
                    Box::new(diagnostic.at(start..self.at, "expected a JSON number"))
                }
            });
        }
        match is_finite(text) {
            true => Ok(text),
            false => Ok(self.stand_in(start)),
        }
    }

    fn digits(&mut self) -> usize {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
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
            let is_plain = |byte: &&u8| !matches!(byte, b'"' | b'\\' | 0..=0x1f);
            self.at += self.rest().iter().take_while(is_plain).count();
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
                    text.push(self.escape(open)?);
                    start = self.at;
                }
                Some(_) => {
                    let message = "raw control character in a string";
                    let diagnostic = Diagnostic::error(self.format.control_character, message);
                    let place = self.at..self.at + 1;
                    self.sink.push(diagnostic.at(place, "expected an escape such as `\\n`"));
                    self.at += 1;
                }
                None => return Err(self.open_string(open)),
            }
        }
    }

    /// The character of an escape in the string that starts at `open`.
    fn escape(&mut self, open: usize) -> Parsed<char> {
        let start = self.at;
        self.at += 1;
        let Some(byte) = self.peek() else { return Err(self.open_string(open)) };
        self.at += 1;
        let found = match byte {
            b'"' | b'\\' | b'/' => Some(char::from(byte)),
            b'b' => Some('\u{8}'),
            b'f' => Some('\u{c}'),
            b'n' => Some('\n'),
            b'r' => Some('\r'),
            b't' => Some('\t'),
            b'u' => self.unicode_escape(),
            _ => None,
        };
        found.ok_or_else(|| {
            if byte == b'u' && self.rest().iter().all(u8::is_ascii_hexdigit) {
                return self.open_string(open);
            }
            let mut end = self.at;
            while !self.text.is_char_boundary(end) {
                end += 1;
            }
            let message = "not an escape of a JSON string";
            let diagnostic = Diagnostic::error(self.format.syntax, message);
            Box::new(diagnostic.at(start..end, "not an escape"))
        })
    }

    /// The character of `\uXXXX`, or of a surrogate pair; `None` for an unpaired surrogate.
    fn unicode_escape(&mut self) -> Option<char> {
        let first = self.hex()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        if !self.rest().starts_with(b"\\u") {
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
        let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.rest().iter().take_while(is_space).count();
    }

    fn rest(&self) -> &'t [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn unexpected(&self, expected: &str) -> Box<Diagnostic> {
        let rest = &self.text[self.at..];
        let Some(found) = rest.chars().next() else { return self.truncated() };
        if let Some(length) = comment_length(rest) {
            return self.syntax("comments are not allowed", self.at..self.at + length);
        }
        let message = format!("expected {expected}, found {found:?}");
        self.syntax(&message, self.at..self.at + found.len_utf8())
    }

    fn syntax(&self, message: &str, span: Range<usize>) -> Box<Diagnostic> {
        let diagnostic = Diagnostic::error(self.format.syntax, message);
        Box::new(diagnostic.at(span, "not JSON from here"))
    }

    /// Reports that the text ends in the innermost bracket.
    fn truncated(&self) -> Box<Diagnostic> {
        let open = self.open.last().map(|open| (*open, "this bracket is never closed"));
        self.ends_too_early(open)
    }

    /// Reports that the text ends in a string.
    fn open_string(&self, open: usize) -> Box<Diagnostic> {
        self.ends_too_early(Some((open, "this string is never closed")))
    }

    fn ends_too_early(&self, open: Option<(usize, &str)>) -> Box<Diagnostic> {
        let (end, file) = (self.text.len(), self.format.file);
        let message = format!("the {file} ends too early");
        let diagnostic = Diagnostic::error(self.format.truncated, message);
        let mut diagnostic = diagnostic.at(end..end, "the text ends here");
        if let Some((open, what)) = open {
            diagnostic = diagnostic.also(open..open + 1, what);
        }
        let help = format!("the {file} may have been cut off while it was written or copied");
        Box::new(diagnostic.help(help))
    }
}

/// Length of a comment at the start of a text.
fn comment_length(text: &str) -> Option<usize> {
    let end = match text.get(..2)? {
        "//" => text.find(['\n', '\r']),
        "/*" => text.as_bytes().windows(2).position(|two| two == b"*/").map(|end| end + 2),
        _ => return None,
    };
    Some(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Json, locate};

    const FORMAT: Format = Format {
        encoding: "encoding",
        byte_order_mark: Some("mark"),
        truncated: "truncated",
        number: "number",
        non_finite: "non-finite",
        control_character: "control",
        nesting: "nesting",
        too_large: "large",
        max_values: 1000,
        max_bytes: 1 << 21,
        ..Format::of("syntax")
    };

    fn found(bytes: &[u8]) -> Vec<Diagnostic> {
        let mut sink = Sink::new();
        let source = Source::from_bytes("x", bytes);
        let tree = parse(&source, &FORMAT, &mut sink);
        assert!(tree.is_some() || sink.has_errors());
        sink.into_diagnostics()
    }

    fn codes(bytes: &[u8]) -> Vec<&'static str> {
        found(bytes).iter().map(|diagnostic| diagnostic.code).collect()
    }

    #[test]
    fn each_way_a_text_is_not_json_has_its_code() {
        for cut in ["", " ", "{\"a\": [1,", "[", "[1", "[-", "[1.", "{\"a", "[\"\\", "[\"\\u12"] {
            assert_eq!(codes(cut.as_bytes()), ["truncated"], "{cut}");
        }
        assert_eq!(codes(b"[tru"), ["truncated"]);
        for wrong in ["[1,]", "{a: 1}", "[0x1]", "// x\n1", "[1] 2", "[True]", "[\u{a0}1]", "\x0b"]
        {
            assert_eq!(codes(wrong.as_bytes()), ["syntax"], "{wrong}");
        }
        for escape in ["[\"\\é\"]", "[\"\\ud800\"]", "[\"\\u12\"]", "[\"\\udc00\"]"] {
            assert_eq!(codes(escape.as_bytes()), ["syntax"], "{escape}");
        }
        for number in ["[01]", "[1.]", "[-]", "[1e]", "[-01]"] {
            assert_eq!(codes(number.as_bytes()), ["number"], "{number}");
        }
        assert_eq!(codes("[".repeat(1_000_000).as_bytes()), ["nesting"]);
        assert_eq!(codes(format!("[{}1]", "1,".repeat(999)).as_bytes()), ["large"]);
        assert_eq!(codes(&vec![b' '; (1 << 21) + 1]), ["large"]);
        assert_eq!(
            codes(b" {\"a\": [1, -2.5e-3, \"\\ud83d\\ude00\", true, false, null]} "),
            [""; 0]
        );
    }

    #[test]
    fn the_rest_is_examined_where_that_harms_nobody() {
        assert_eq!(codes(b"[NaN, -Infinity, nan, inf, 1e999, 0.5e-999]"), ["non-finite"; 5]);
        assert_eq!(codes("9".repeat(400).as_bytes()), ["non-finite"]);
        assert_eq!(codes(b"[\"a\tb\", \"NaN\", \"\x01\"]"), ["control"; 2]);
        assert_eq!(codes("\u{feff}[]".as_bytes()), ["mark"]);
        assert_eq!(codes(b"[\"\xff\"]"), ["encoding"]);
        assert_eq!(codes(b"[nano]"), ["syntax"]);
    }

    #[test]
    fn an_outline_has_the_diagnostics_and_the_values_of_the_tree() {
        let texts = [
            r#" {"a": [{"b": [1, [2]], "c": {"d": [{}]}}, [3, {"e": 4}], 5, "f"], "g": {"h": [[]]}} "#,
            r#"{"a": [{"b": [NaN, 1e999]}, {"c": "x	y"}]}"#,
            r#"{"a": [{"b": [1,]}, 2]}"#,
            r#"{"a": [[1, 2]"#,
            r#"[{"a": tru}]"#,
        ];
        for text in texts {
            let source = Source::new("x", text);
            let (mut whole, mut lines) = (Sink::new(), Sink::new());
            let tree = parse(&source, &FORMAT, &mut whole);
            let outline = outline(&source, &FORMAT, &mut lines);
            assert_eq!(tree.as_ref().map(Json::of), outline.as_ref().map(Json::of), "{text}");
            assert_eq!(whole.into_diagnostics(), lines.into_diagnostics(), "{text}");
        }
        // As many values as there may be in each element, not in all.
        let element = format!("[{}1]", "1,".repeat(600));
        let long = Source::new("x", format!("[{element},{element},{element}]"));
        assert!(parse(&long, &FORMAT, &mut Sink::new()).is_none());
        let outline = outline(&long, &FORMAT, &mut Sink::new()).expect("an outline");
        let last = &outline.elements().expect("an array")[2];
        assert!(matches!(last.value, Value::Unread(_)));
        assert_eq!(&long.text()[last.span()], element);
        let span = |node: &Node<'_>| node.elements().expect("an array")[600].span();
        let found = last.with_parts(span);
        assert_eq!((&long.text()[found.clone()], found.end + 1), ("1", last.span().end));
        assert_eq!(locate(long.text(), &FORMAT, "$[2][600]"), Some(last.with_parts(span)));
        let mut found = [Diagnostic::error("x", "y").path("$[2][600]")];
        found.iter_mut().for_each(|found| crate::place_in(&outline, found));
        assert_eq!(found[0].primary_span(), Some(last.with_parts(span)));
    }

    #[test]
    fn a_text_that_was_cut_off_shows_what_is_open() {
        let spans = |text: &str| -> Vec<Range<usize>> {
            found(text.as_bytes())[0].labels.iter().map(|label| label.span.clone()).collect()
        };
        assert_eq!(spans("[{\"a\": [1], "), [12..12, 1..2]);
        assert_eq!(spans("[{\"a"), [4..4, 2..3]);
    }

    #[test]
    fn other_kinds_of_json_are_named() {
        let first = |text: &str| {
            let diagnostic = found(text.as_bytes()).remove(0);
            (diagnostic.primary_span().map(|span| text[span].to_owned()), diagnostic.message)
        };
        let is = |at: &str, message: &str| (Some(at.to_owned()), message.to_owned());
        assert_eq!(first("[1, ]"), is(",", "trailing commas are not allowed"));
        assert_eq!(first("[ // a\n1]"), is("// a", "comments are not allowed"));
        assert_eq!(first("[1 /* a */]"), is("/* a */", "comments are not allowed"));
        assert_eq!(first("[0x1f]"), is("0", "hexadecimal numbers are not allowed"));
        assert_eq!(first("{\"a\": 1,,}"), is(",", "expected a key in quotes, found ','"));
    }
}
